"""The transposed convolution of the decoder, in training, against PyTorch's own."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from unbraid.models.doubling import Doubling

CASES = [(after, odd) for after in (1, 3) for odd in ((0, 0), (1, 0), (0, 1), (1, 1))]


def standard(images: Tensor, weight: Tensor, bias: Tensor, odd: tuple[int, int]) -> Tensor:
    return functional.conv_transpose2d(images, weight, bias, stride=2, padding=1, output_padding=odd)


def called(layer: Doubling, images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.func.functional_call(layer, {"weight": weight, "bias": bias}, (images,))


def example(after: int, n: int = 2) -> list[Tensor]:
    """Images with channels last, as they come; weight; bias."""
    generator = torch.Generator().manual_seed(after)
    shapes = [(n, 3, 6, 5), (5, after, 4, 4), (after,)]
    images, *others = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    return [each.requires_grad_() for each in (images.movedim(-1, 1).detach(), *others)]


@pytest.mark.parametrize("contiguous", [False, True], ids=["channels last", "contiguous"])
@pytest.mark.parametrize(("after", "odd"), CASES, ids=str)
def test_values_gradients_and_their_gradients_are_those_of_pytorch(after, odd, contiguous):
    images, weight, bias = example(after)
    if contiguous:
        images = images.detach().contiguous().requires_grad_()
    layer = Doubling(5, after, odd).double()
    found, wanted = called(layer, images, weight, bias), standard(images, weight, bias, odd)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    generator = torch.Generator().manual_seed(0)
    upstream = torch.randn(wanted.shape, generator=generator, dtype=torch.float64).requires_grad_()
    inputs = (images, weight, bias)
    first = [torch.autograd.grad(each, inputs, upstream, create_graph=True) for each in (found, wanted)]
    torch.testing.assert_close(*first, rtol=1e-12, atol=1e-12)
    directions = [torch.randn(each.shape, generator=generator, dtype=torch.float64) for each in inputs]
    second = [torch.autograd.grad(each, (images, weight, upstream), directions) for each in first]
    torch.testing.assert_close(*second, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("after", [1, 3])
def test_stacked_layers_are_the_layers_one_by_one(after):
    layer = Doubling(5, after).double()
    stacked = [torch.stack([each, each.flip(0)]).detach().requires_grad_() for each in example(after)]
    together = torch.vmap(lambda *tensors: called(layer, *tensors))(*stacked)
    apart = torch.stack([standard(*each, (0, 0)) for each in zip(*stacked, strict=True)])
    torch.testing.assert_close(together, apart, rtol=1e-12, atol=1e-12)
    found, wanted = (torch.autograd.grad(each.square().sum(), stacked) for each in (together, apart))
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("after", [1, 3])
def test_in_bfloat16_it_errs_no_more_than_pytorch(after):
    images, weight, bias = (each.detach().float() for each in example(after, n=50))
    layer = Doubling(5, after)
    exact = standard(images.double(), weight.double(), bias.double(), (0, 0))
    with torch.autocast("cpu", torch.bfloat16):
        found, wanted = called(layer, images, weight, bias), standard(images, weight, bias, (0, 0))
    assert found.dtype == wanted.dtype == torch.bfloat16
    errors = [(each - exact).square().mean().sqrt() for each in (found, wanted)]
    assert errors[0] < 1.2 * errors[1]


def test_what_is_not_wanted_is_not_worked_out():
    images, weight, bias = example(3)
    image = called(Doubling(5, 3).double().requires_grad_(False), images, weight.detach(), bias.detach())
    (found,) = torch.autograd.grad(image.sum(), images)
    (wanted,) = torch.autograd.grad(standard(images, weight, bias, (0, 0)).sum(), images)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


def test_in_evaluation_it_is_pytorchs_own():
    layer = Doubling(5, 1, (1, 0)).eval()
    image = layer(torch.randn(2, 5, 3, 3))
    assert "ConvolutionBackward" in type(image.grad_fn).__name__
    assert image.shape == (2, 1, 7, 6)
    assert [*layer.state_dict()] == ["weight", "bias"]
