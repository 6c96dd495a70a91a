"""Encoders and decoders as ONNX, against PyTorch."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import unbraid
from tests.training.training_examples import blocks
from unbraid.runs.live.tracing import NotTraced, traced
from unbraid.runs.onnx import export_onnx
from unbraid.runs.run import Run, open_run

pytestmark = pytest.mark.lengthy  # an export takes a second or two

DATA = blocks(channels=3)


def trained(folder: Path, family: str = "vae", precision: str = "float32", **settings: object) -> Run:
    run = unbraid.train(
        family, DATA, steps=2, batch_size=4, out=folder, processes=0, precision=precision, latents=3, **settings
    )[0]
    return open_run(run.path, device="cpu")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(tmp_path_factory.mktemp("runs"))


def test_the_decoder_decodes_any_number_of_codes_as_the_run_does(run: Run, tmp_path: Path) -> None:
    difference = export_onnx(run, tmp_path / "decoder.onnx")
    assert difference is not None
    assert difference < 1e-5
    session = onnxruntime.InferenceSession(tmp_path / "decoder.onnx")
    for n in (1, 5):
        codes = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
        (images,) = session.run(["images"], {"codes": codes})
        assert np.moveaxis(images, 1, -1) == pytest.approx(run.decode(codes), abs=1e-5)
    held = {entry.key: entry.value for entry in onnx.load(tmp_path / "decoder.onnx").metadata_props}
    assert json.loads(held["config"]) == run.config


def test_a_run_in_double_precision_is_written_in_single_whatever_the_users_default_device(tmp_path: Path) -> None:
    """Of convolutions in double precision onnxruntime knows nothing."""
    run = trained(tmp_path, precision="float64")
    with torch.device("meta"):
        export_onnx(run, tmp_path / "encoder.onnx", part="encoder")
    images = DATA.images(np.arange(5))
    given = np.moveaxis(images / np.float32(255), -1, 1)
    codes, _ = onnxruntime.InferenceSession(tmp_path / "encoder.onnx").run(None, {"images": given})
    assert codes == pytest.approx(run.encode(images), abs=1e-5)
    assert {value.dtype for value in run.modules.state_dict().values()} == {torch.float64}


def test_the_encoder_gives_codes_and_log_variances_and_names_no_path_of_this_machine(tmp_path: Path) -> None:
    np.save(tmp_path / "private, of mine.npy", DATA.images(np.arange(8)))
    path = str(tmp_path / "private, of mine.npy")
    run = unbraid.train("vae", path, steps=2, batch_size=4, out=tmp_path / "runs", processes=0, latents=3)[0]
    export_onnx(run, tmp_path / "encoder.onnx", part="encoder")
    session = onnxruntime.InferenceSession(tmp_path / "encoder.onnx")
    images = DATA.images(np.arange(5))
    given = np.moveaxis(images / np.float32(255), -1, 1)
    for one, other in zip(
        session.run(["codes", "log_variances"], {"images": given}), run.posterior(images), strict=True
    ):
        assert one == pytest.approx(other, abs=1e-5)
    content = (tmp_path / "encoder.onnx").read_bytes()
    for place in ("private", tmp_path, Path(unbraid.__file__).parent, Path(torch.__file__).parent):
        assert str(place).encode() not in content
    (config,) = (each.value for each in onnx.load(tmp_path / "encoder.onnx").metadata_props if each.key == "config")
    assert json.loads(config) == {**run.config, "dataset": {**run.config["dataset"], "name": None}}


def test_a_family_without_a_posterior_gives_codes_alone(tmp_path: Path) -> None:
    run = trained(tmp_path, "pca")
    export_onnx(run, tmp_path / "encoder.onnx", part="encoder")
    session = onnxruntime.InferenceSession(tmp_path / "encoder.onnx")
    assert [each.name for each in session.get_outputs()] == ["codes"]
    images = DATA.images(np.arange(4))
    (codes,) = session.run(None, {"images": np.moveaxis(images / np.float32(255), -1, 1)})
    assert codes == pytest.approx(run.encode(images), abs=1e-4)


class _Summed(nn.Module):
    """A decoder with operations that a page has not."""

    def forward(self, codes: Tensor) -> Tensor:
        return torch.cumsum(codes, 1).repeat(1, 1024).view(-1, 3, 32, 32)


def test_a_users_own_decoder_becomes_onnx_though_a_page_cannot_run_it(tmp_path: Path) -> None:
    run = trained(tmp_path, "pca")
    object.__setattr__(run, "decoder", _Summed)
    with pytest.raises(NotTraced, match="cumsum"):
        traced(run.decoder(), 3)
    difference = export_onnx(run, tmp_path / "own.onnx")
    assert difference is not None
    assert difference < 1e-6


def test_what_onnxruntime_makes_otherwise_is_not_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbraid.runs.onnx._exported", lambda *_: SimpleNamespace(model_proto=onnx.ModelProto()))
    monkeypatch.setattr("unbraid.runs.onnx._difference", lambda *_: 0.5)
    with pytest.raises(ValueError, match=r"differs from PyTorch by 0\.5"):
        export_onnx(run, tmp_path / "decoder.onnx")
    monkeypatch.undo()
    monkeypatch.setattr("unbraid.runs.onnx._exported", lambda *_: SimpleNamespace(model_proto=onnx.ModelProto()))
    with pytest.raises(ValueError, match="onnxruntime cannot run its decoder"):
        export_onnx(run, tmp_path / "decoder.onnx")
    assert not list(tmp_path.iterdir())
