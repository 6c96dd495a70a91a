"""Decoders in the browser against PyTorch."""

import json
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser
from torch import Tensor, nn
from torch.nn import functional

from tests.show.browser import shown
from tests.training.training_examples import blocks, member
from unbraid.families.building import build_member, structural_settings
from unbraid.families.family import code_parts
from unbraid.families.family_table import FAMILIES
from unbraid.families.networks import network_pair
from unbraid.runs.live.program import Program
from unbraid.runs.live.tracing import NotTraced, traced

SCRIPT = (files("unbraid.show") / "templates" / "decoder.js").read_text(encoding="utf-8")
RUN = """async ({program, codes}) => {
  const decode = await makeDecoder(program);
  return codes.map((code) => Array.from(decode(code)));
}"""


def in_browser(browser: Browser, folder: Path, program: Program, codes: Tensor) -> Tensor:
    page = folder / "decoder.html"
    page.write_text(f"<!doctype html><title>decoder</title><script>{SCRIPT}</script>", encoding="utf-8")
    with shown(browser, page) as tab:
        told = {"program": json.loads(json.dumps(program.to_dict())), "codes": codes.tolist()}
        return torch.tensor(tab.evaluate(RUN, told), dtype=torch.float64).view(len(codes), *program.steps[-1].shape)


def codes_for(n_codes: int) -> Tensor:
    return torch.randn(3, n_codes, generator=torch.Generator().manual_seed(1))


def rounded(module: nn.Module) -> nn.Module:
    """Matrices and kernels in half precision, without the code under test."""
    with torch.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            if tensor.dim() > 1:
                tensor.copy_(tensor.half().float())
    return module


def network(name: str, shape: tuple[int, ...], n_codes: int = 6) -> nn.Module:
    """A decoder whose batch norms have seen something, so that they do something."""
    torch.manual_seed(0)
    decoder = network_pair(name, shape, 2 * n_codes, n_codes)[1]
    with torch.no_grad():
        for _ in range(3):
            decoder(torch.randn(8, n_codes))
    return decoder.eval()


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        pytest.param("conv", (32, 32, 1), marks=pytest.mark.lengthy),
        pytest.param("conv", (64, 64, 3), marks=pytest.mark.slow),
        pytest.param("conv", (128, 128, 1), marks=pytest.mark.slow),
        ("conv", (33, 50, 3)),
        ("dense", (20, 30, 1)),
        pytest.param("resnet", (33, 32, 3), marks=pytest.mark.slow),
    ],
)
def test_networks_draw_in_the_browser_what_pytorch_draws(
    browser: Browser, tmp_path: Path, name: str, shape: tuple[int, ...]
) -> None:
    decoder, codes = network(name, shape), codes_for(6)
    program = traced(lambda code: decoder(code).sigmoid(), 6)
    with torch.no_grad():
        expected = rounded(decoder)(codes).sigmoid()
    assert float(expected.std()) > 1e-3
    drawn = in_browser(browser, tmp_path, program, codes)
    assert float((drawn - expected).abs().max()) < 1e-5


@pytest.mark.lengthy
def test_the_decoder_of_every_family_draws_in_the_browser_what_pytorch_draws(browser: Browser, tmp_path: Path) -> None:
    """In one page, since the browser is the slow part; a family whose decoder a page cannot run would fail here.

    Of the families that decode by the same function, one.
    """
    page = tmp_path / "decoders.html"
    page.write_text(f"<!doctype html><title>decoders</title><script>{SCRIPT}</script>", encoding="utf-8")
    with shown(browser, page) as tab:
        distinct = {id(family.decode): (name, family) for name, family in FAMILIES.items()}
        for name, family in distinct.values():
            chosen = member(name)
            settings = structural_settings(family, [chosen], blocks().space)
            modules = build_member(family, (32, 32, 1), settings, 0).eval()
            decode = partial(family.decode, modules, settings=settings)
            codes = codes_for(sum(part.size for part in code_parts(family, settings)))
            if name == "pca":
                torch.nn.init.normal_(modules["pca"].components, std=0.1)  # pyright: ignore[reportArgumentType]
                torch.nn.init.uniform_(modules["pca"].mean)  # pyright: ignore[reportArgumentType]
            program = traced(decode, codes.shape[1])
            with torch.no_grad():
                rounded(modules)
                expected = decode(codes)
            told = {"program": json.loads(json.dumps(program.to_dict())), "codes": codes.tolist()}
            drawn = torch.tensor(tab.evaluate(RUN, told)).view(expected.shape)
            assert float((drawn - expected).abs().max()) < 1e-4, name
            assert float(expected.std()) > 0, name


class _Strange(nn.Module):
    """A user's own decoder with an operation that the page has not."""

    def forward(self, codes: Tensor) -> Tensor:
        return torch.cumsum(codes, 1).repeat(1, 4).view(-1, 1, 4, 6)


def _by_value(codes: Tensor) -> Tensor:
    return (codes if float(codes[0, 0]) > 0 else -codes).view(-1, 1, 2, 3)


@pytest.mark.parametrize(
    ("decode", "reason"),
    [
        (_Strange(), "the operation cumsum"),
        (_by_value, "the operation _local_scalar_dense"),
        (lambda codes: torch.ones(len(codes), 1, 2, 2), "makes no images out of codes"),
        (lambda codes: codes, "makes no images out of codes"),
        (lambda codes: (codes[:, :3] - codes[:, 3:]).view(-1, 1, 1, 3), "operation sub in a way"),
        (lambda codes: (codes + codes.clone().zero_()).view(-1, 1, 2, 3), "operation zero"),
        (lambda codes: functional.interpolate(codes.view(-1, 1, 2, 3), (4, 6), mode="bilinear"), "upsample_bilinear2d"),
    ],
)
def test_what_a_page_cannot_run_is_refused_with_its_reason(decode: Callable[[Tensor], Tensor], reason: str) -> None:
    with pytest.raises(NotTraced, match=reason):
        traced(decode, 6)


def _mutated(codes: Tensor) -> Tensor:
    wide = codes * 2
    narrow = wide[:, :3]
    narrow.relu_()  # changes `wide` as well, which the steps do not show
    return wide.view(-1, 1, 2, 3)


def test_steps_that_do_not_repeat_the_decoder_are_never_used() -> None:
    with pytest.raises(NotTraced, match="do not repeat"):
        traced(_mutated, 6)


def _around(linear: nn.Linear, codes: Tensor) -> Tensor:
    """Angles on circles, moved about, scaled, shifted and mixed: what small decoders do before their networks."""
    angles, rest = codes[:, :2], codes[:, 2:]
    circles = torch.stack([angles.cos(), angles.sin()], -1).flatten(1)
    mixed = torch.cat([1.5 * circles, functional.leaky_relu(rest, 0.1), rest.tanh() * rest.exp()], 1).flip(1)
    grown = linear((mixed + torch.arange(12.0)) / 2).view(-1, 3, 2, 2)
    scaled = functional.interpolate(grown * torch.tensor([1.0, -2.0, 0.5]).view(1, 3, 1, 1), (3, 5))
    return (1 - scaled + scaled).transpose(2, 3).sigmoid()


def test_what_comes_before_a_network_runs_in_the_browser_too(browser: Browser, tmp_path: Path) -> None:
    torch.manual_seed(0)
    linear, codes = nn.Linear(12, 12), codes_for(6)
    program = traced(partial(_around, linear), 6)
    with torch.no_grad():
        expected = _around(rounded(linear), codes)  # pyright: ignore[reportArgumentType]
    assert float((in_browser(browser, tmp_path, program, codes) - expected).abs().max()) < 1e-6


def test_half_precision_is_for_matrices_that_it_can_hold() -> None:
    large = torch.full((3, 6), 1e6)
    program = traced(lambda codes: functional.linear(codes, large, torch.tensor([0.1, 0.2, 0.3])).view(-1, 1, 1, 3), 6)
    kinds = [each["kind"] for each in program.to_dict()["constants"]["arrays"]]
    assert kinds == ["single", "single"]
    small = traced(lambda codes: functional.linear(codes, large / 3e6).view(-1, 1, 1, 3), 6)
    assert [each["kind"] for each in small.to_dict()["constants"]["arrays"]] == ["half"]


def test_every_half_is_read_as_numpy_reads_it(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "halves.html"
    page.write_text(f"<!doctype html><title>halves</title><script>{SCRIPT}</script>", encoding="utf-8")
    bits = np.arange(65536, dtype=np.uint16)
    values = bits.view(np.float16).astype(np.float64)
    finite = np.isfinite(values)
    with shown(browser, page) as tab:
        # As one text: number by number they take a second to come.
        text = tab.evaluate("JSON.stringify(Array.from({length: 65536}, (_, i) => half(i)))")
    read = np.array(json.loads(text), dtype=float)
    assert np.array_equal(read[finite], values[finite])


def test_the_shared_decoder_takes_eight_million_multiplications_and_less_than_a_megabyte() -> None:
    decoder = network("conv", (64, 64, 1), 10)
    program = traced(lambda code: decoder(code).sigmoid(), 10)
    by_hand = 10 * 256 + 256 * 1024 + 16 * (64 * 64 * 16 + 64 * 32 * 64 + 32 * 32 * 256 + 32 * 1 * 1024)
    assert program.multiplications == by_hand == pytest.approx(8.1e6, rel=0.01)
    assert len(json.dumps(program.to_dict())) < 1_000_000
