"""The id of a run follows the source of the user's own network, and a run is opened with no other."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import unbraid
from tests.training.training_examples import TINY
from unbraid.files.trust import UntrustedCode
from unbraid.metrics._shared import provenance
from unbraid.runs.run import Run, open_run, probe_images

SOURCE = """
from torch import nn
from unbraid.families.networks import dense_pair

def pair(shape, n_outputs, n_latents):
    encoder, decoder = dense_pair(shape, n_outputs, n_latents)
    return nn.Sequential(encoder, nn.{activation}(), nn.Linear(n_outputs, n_outputs)), decoder
"""
GIVEN = {"network": "mynet_of_a_test:pair", "latents": 3, "batch_size": 8, "precision": "float32", "processes": 0}


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A function that writes the module, as a user between two programs does."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(activation: str, more: str = "") -> None:
        (tmp_path / "mynet_of_a_test.py").write_text(SOURCE.format(activation=activation) + more)
        sys.modules.pop("mynet_of_a_test", None)
        provenance._SOURCES.clear()

    yield write
    sys.modules.pop("mynet_of_a_test", None)


def test_another_source_is_another_run_and_no_stale_one_is_opened(tmp_path: Path, written) -> None:
    def trained() -> unbraid.Run:
        return unbraid.train("vae", TINY, steps=3, out=tmp_path / "runs", **GIVEN)[0]

    written("ReLU")
    relu = trained()
    assert trained().path == relu.path
    codes = unbraid.load_run(relu.path, network=GIVEN["network"]).encode(TINY.array[:5])
    written("Tanh")
    with pytest.raises(ValueError, match="mynet_of_a_test:pair is not the code that this run was trained with"):
        unbraid.load_run(relu.path, network=GIVEN["network"])
    with pytest.raises(ValueError, match="the source of mynet_of_a_test:pair has changed since; train it again"):
        unbraid.continue_run(open_run(relu.path, trust=[GIVEN["network"]]), 6, dataset=TINY, processes=0)
    with pytest.raises(UntrustedCode, match="names a network of its own, 'mynet_of_a_test:pair'"):
        unbraid.continue_run(open_run(relu.path), 6, dataset=TINY, processes=0)
    tanh = trained()
    assert tanh.path != relu.path
    assert not np.allclose(tanh.encode(TINY.array[:5]), codes, atol=1e-3)
    written("ReLU", "# a remark\n")  # another source that computes the same: another id, but the run can be read
    np.testing.assert_array_equal(unbraid.load_run(relu.path, network=GIVEN["network"]).encode(TINY.array[:5]), codes)
    assert trained().path not in (relu.path, tanh.path)


def test_the_codes_that_tell_the_source_are_those_of_the_cpu(tmp_path: Path, monkeypatch, written) -> None:
    """A GPU rounds convolutions to TF32, by more than the check at opening lets pass."""
    encode = Run.encode

    def rounded(run: Run, images: np.ndarray) -> np.ndarray:
        return encode(run, images) * (1.0 if run.device == "cpu" else 1.01)

    monkeypatch.setattr(Run, "encode", rounded)
    monkeypatch.setattr(Run, "on_cpu", lambda run: replace(run, device="cpu").with_weights(run.modules.state_dict()))
    monkeypatch.setattr("unbraid.training.writing.Run", lambda *given: Run(*given[:3], "auto"))  # "auto": a GPU here
    written("Tanh")
    (run,) = unbraid.train("vae", TINY, steps=1, out=tmp_path, **GIVEN)
    opened = unbraid.load_run(run.path, network=GIVEN["network"], device="cpu")
    np.testing.assert_allclose(opened.config["probe"], opened.encode(probe_images(TINY.image_shape)), rtol=1e-6)


def test_runs_of_our_own_networks_have_neither(tmp_path: Path) -> None:
    given = {**GIVEN, "network": "dense"}
    (run,) = unbraid.train("vae", TINY, steps=1, out=tmp_path, **given)
    assert not {"code", "probe"} & run.config.keys()
