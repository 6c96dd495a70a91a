"""The convolutions of the shared pair, in training, against PyTorch's own."""

from typing import TypeAlias

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from unbraid.families import strided
from unbraid.families.strided import MANY, Doubling, Halving

Sides: TypeAlias = tuple[int, int]
Layer: TypeAlias = Doubling | Halving

KINDS = [(kind, channels) for kind in (Halving, Doubling) for channels in (1, 3, 5, 8)]
ODD = [(0, 0), (1, 0), (0, 1), (1, 1)]
TIGHT = 1e-12


WAYS = {"layers": lambda _: False, "products": lambda _: True}


@pytest.fixture(params=WAYS, autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each test twice: with what a CPU does, and with what a GPU does."""
    monkeypatch.setattr(strided, "in_products", WAYS[request.param])
    return request.param


def layer_of(kind: type[Layer], fine: int, coarse: int, odd: Sides = (0, 0)) -> Layer:
    return Doubling(coarse, fine, odd) if kind is Doubling else Halving(fine, coarse)


def standard(layer: Layer, images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    if isinstance(layer, Halving):
        return functional.conv2d(images, weight, bias, stride=2, padding=1)
    odd = tuple(layer.output_padding)
    return functional.conv_transpose2d(images, weight, bias, stride=2, padding=1, output_padding=odd)


def called(layer: Layer, images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.func.functional_call(layer, {"weight": weight, "bias": bias}, (images,))


def example(kind: type[Layer], channels: int, odd: Sides = (0, 0), n: int = 2, coarse: int = 5) -> list[Tensor]:
    """Images with channels last, as they come; weight; bias."""
    generator = torch.Generator().manual_seed(channels)
    height, width = (3, 4) if kind is Doubling else (6 + odd[0], 8 + odd[1])
    before, after = (coarse, channels) if kind is Doubling else (channels, coarse)
    shapes = [(n, height, width, before), (coarse, channels, 4, 4), (after,)]
    images, *others = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    return [each.requires_grad_() for each in (images.movedim(-1, 1).detach(), *others)]


@pytest.mark.parametrize("contiguous", [False, True], ids=["channels last", "contiguous"])
@pytest.mark.parametrize(("kind", "channels"), KINDS)
def test_values_gradients_and_their_gradients_are_those_of_pytorch(kind, channels, contiguous):
    for odd in ODD:
        images, weight, bias = example(kind, channels, odd)
        if contiguous:
            images = images.detach().contiguous().requires_grad_()
        layer = layer_of(kind, channels, 5, odd).double()
        found, wanted = called(layer, images, weight, bias), standard(layer, images, weight, bias)
        torch.testing.assert_close(found, wanted, rtol=TIGHT, atol=TIGHT)
        generator = torch.Generator().manual_seed(0)
        upstream = torch.randn(wanted.shape, generator=generator, dtype=torch.float64).requires_grad_()
        inputs = (images, weight, bias)
        first = [torch.autograd.grad(each, inputs, upstream, create_graph=True) for each in (found, wanted)]
        torch.testing.assert_close(*first, rtol=TIGHT, atol=TIGHT)
        directions = [torch.randn(each.shape, generator=generator, dtype=torch.float64) for each in inputs]
        second = [torch.autograd.grad(each, (images, weight, upstream), directions) for each in first]
        torch.testing.assert_close(*second, rtol=TIGHT, atol=TIGHT)


@pytest.mark.parametrize(("kind", "channels"), KINDS)
def test_stacked_layers_are_the_layers_one_by_one(kind, channels):
    layer = layer_of(kind, channels, 5).double()
    stacked = [torch.stack([each, each.flip(0)]).detach().requires_grad_() for each in example(kind, channels)]
    together = torch.vmap(lambda images, weight, bias: called(layer, images, weight, bias))(*stacked)
    apart = torch.stack([standard(layer, images, weight, bias) for images, weight, bias in zip(*stacked, strict=True)])
    torch.testing.assert_close(together, apart, rtol=TIGHT, atol=TIGHT)
    found, wanted = (torch.autograd.grad(each.square().sum(), stacked) for each in (together, apart))
    torch.testing.assert_close(found, wanted, rtol=TIGHT, atol=TIGHT)


@pytest.mark.parametrize(("kind", "channels"), [*KINDS, (Halving, MANY), (Doubling, MANY)])
def test_in_bfloat16_they_err_no_more_than_pytorch(kind, channels, way):
    """Values, and the gradients of images, weight and bias. With products the bias is added after a first rounding."""
    most = {"layers": 1.2, "products": 1.5}[way]
    images, weight, bias = (each.detach().float() for each in example(kind, channels, n=50))
    layer = layer_of(kind, channels, 5)
    exact = [each.detach().double().requires_grad_() for each in (images, weight, bias)]
    truth = standard(layer, *exact)
    upstream = torch.randn(truth.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    truths = [truth, *torch.autograd.grad(truth, exact, upstream)]
    errors = []
    for forward in (called, standard):
        inputs = [each.clone().requires_grad_() for each in (images, weight, bias)]
        with torch.autocast("cpu", torch.bfloat16):
            values = forward(layer, *inputs)
        assert values.dtype == torch.bfloat16
        made = [values, *torch.autograd.grad(values, inputs, upstream.bfloat16())]
        errors.append([(one - other).detach().square().mean().sqrt() for one, other in zip(made, truths, strict=True)])
    for ours, theirs in zip(*errors, strict=True):
        assert ours < most * theirs


@pytest.mark.parametrize("kind", [Halving, Doubling])
def test_what_is_not_wanted_is_not_worked_out(kind):
    images, weight, bias = example(kind, 3)
    layer = layer_of(kind, 3, 5).double().requires_grad_(False)
    image = called(layer, images, weight.detach(), bias.detach())
    (found,) = torch.autograd.grad(image.sum(), images)
    (wanted,) = torch.autograd.grad(standard(layer, images, weight, bias).sum(), images)
    torch.testing.assert_close(found, wanted, rtol=TIGHT, atol=TIGHT)


@pytest.mark.parametrize(("layer", "shape"), [(Doubling(5, 1, (1, 0)), (2, 1, 7, 6)), (Halving(5, 2), (2, 2, 1, 1))])
def test_in_evaluation_they_are_pytorchs_own(layer, shape):
    image = layer.eval()(torch.randn(2, 5, 3, 3))
    assert "ConvolutionBackward" in type(image.grad_fn).__name__
    assert image.shape == shape
    assert [*layer.state_dict()] == ["weight", "bias"]
