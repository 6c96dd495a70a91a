"""Runs of quantized latents: codes, traversals, sliders, draws from the prior, ONNX and going on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.training_examples import TINY
from unbraid import Run, continue_run, train
from unbraid.datasets import load
from unbraid.runs.live.decoder import live_models
from unbraid.runs.live.sliders import sliders
from unbraid.runs.onnx import export_onnx
from unbraid.runs.run_traversals import traverse

SETTINGS: dict[str, Any] = {
    "network": "dense", "steps": 60, "batch_size": 16, "processes": 0, "precision": "float32", "latents": 3,
    "values": 4, "device": "cpu",
}  # fmt: skip
FAMILIES = ("qlae", "qvae")


def books(run: Run) -> list[list[float]]:
    """The values of each latent, rising."""
    values = run.modules["codebook"].values.detach().numpy()
    return [sorted(each.tolist()) for each in np.broadcast_to(values, (run.n_codes, values.shape[1]))]


@pytest.fixture(scope="module", params=FAMILIES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(request.param, TINY, out=tmp_path_factory.mktemp("runs"), **SETTINGS)[0]


def test_codes_are_values_of_their_codebooks(run: Run) -> None:
    assert [(part.kind, part.size) for part in run.parts] == [("quantized", 3)]
    for codes in (run.codes().codes, run.encode(TINY.array)):
        for column, book in zip(codes.T, books(run), strict=True):
            assert set(column.tolist()) <= set(book)


@pytest.mark.parametrize("steps", [3, 9])
def test_traversals_go_over_the_values_that_images_take(run: Run, steps: int) -> None:
    found = traverse(run, TINY, rows=2, steps=steps, shown=2)
    taken = run.codes().codes
    for code, values in zip(found.codes, found.values, strict=True):
        own = sorted(set(taken[:, code].tolist()))
        assert set(values.tolist()) <= set(own)
        assert values.tolist() == sorted(values)
        assert (values[0], values[-1]) == (own[0], own[-1])
        assert steps < len(own) or set(values.tolist()) == set(own)
    codes = np.repeat(run.encode((found.originals * 255).round().astype(np.uint8))[:, None], steps, axis=1)
    codes[:, :, found.codes[0]] = found.values[0]
    images = run.decode(codes.reshape(-1, 3)).reshape(found.images[0].shape)
    np.testing.assert_allclose(found.images[0], images, atol=1e-6)


def test_sliders_stop_at_values(run: Run) -> None:
    for slider in sliders(run.codes(), run.parts):
        column = run.codes().codes[:, slider.codes[0]]
        moved = slider.moved(run.codes().codes[0], np.linspace(0, 1, 50))
        assert set(moved[:, slider.codes[0]].tolist()) <= {float(each) for each in column}
        assert (moved[0, slider.codes[0]], moved[-1, slider.codes[0]]) == (column.min(), column.max())
    moves = [move for (move,) in live_models([run], TINY)["data"]["sliders"]]
    assert all(sorted(move["values"]) == list(move["values"]) for move in moves)


def test_the_prior_draws_every_value_alike(run: Run) -> None:
    codes = run.prior_codes(4000, seed=3)
    for column, book in zip(codes.T, books(run), strict=True):
        shares = [np.isclose(column, value, atol=1e-7).mean() for value in book]
        np.testing.assert_allclose(shares, 0.25, atol=5 * np.sqrt(0.25 * 0.75 / 4000))


@pytest.mark.lengthy
def test_the_encoder_is_written_as_onnx(run: Run, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    path = tmp_path / "encoder.onnx"
    export_onnx(run, path, part="encoder")
    images = np.moveaxis(TINY.array[:5], 3, 1).astype(np.float32) / 255
    (codes,) = runtime.InferenceSession(str(path)).run(None, {"images": images})
    np.testing.assert_allclose(codes, run.encode(TINY.array[:5]), atol=1e-6)


def test_a_training_goes_on_to_the_bit(run: Run, tmp_path: Path) -> None:
    family = run.config["family"]
    short = train(family, TINY, out=tmp_path / "short", **{**SETTINGS, "steps": 30})[0]
    longer = continue_run(short, 60, dataset=TINY, processes=0)
    assert (longer.path / "weights.safetensors").read_bytes() == (run.path / "weights.safetensors").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_sprites_are_reconstructed_from_values(family: str, tmp_path: Path) -> None:
    """16 x 16 sprites: all codes are values of codebooks, most latents use several, and images get clearer."""
    settings = {**SETTINGS, "steps": 400, "batch_size": 64, "latents": 6, "values": 8}
    sprites = load("sprites", shrink=4)
    run = train(family, sprites, out=tmp_path, **settings)[0]
    curve = run.curves()["reconstruction"]
    assert curve[-1] < 0.5 * curve[0]
    taken = [set(column.tolist()) for column in run.codes().codes.T]
    assert all(own <= set(book) for own, book in zip(taken, books(run), strict=True))
    assert np.median([len(own) for own in taken]) > 2
