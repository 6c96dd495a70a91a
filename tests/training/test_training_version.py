"""Ids: a precision left open is one id on every machine, another training version another, and nothing mixes."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

import unbraid
from tests.training.training_examples import TINY
from unbraid import Study
from unbraid.base.device import faster_in_bfloat16, gains_by_bfloat16
from unbraid.families.building import weights_of
from unbraid.families.family_table import FAMILIES
from unbraid.families.vae import VAE
from unbraid.metrics._shared import provenance
from unbraid.runs.folder import run_id
from unbraid.runs.run import Run
from unbraid.studies.status import study_status

DENSE = {"network": "dense", "latents": 3, "batch_size": 8, "processes": 0}
WEIGHTS = "weights.safetensors"
STUDY = """
name: n
dataset: {name: square, positions: 8, shrink: 4}
families: [{name: vae, network: NETWORK, latents: 3}]
steps: 2
batch_size: 8
device: cpu
"""


def trained(out: Path, precision: str = "auto", **more: Any) -> Run:
    return unbraid.train("vae", TINY, out=out, precision=precision, **{"steps": 12, **DENSE, **more})[0]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """A function that makes this machine one that multiplies bfloat16, or one that does not."""

    def become(multiplies: bool) -> None:
        monkeypatch.setattr("unbraid.base.device._multiplies_bfloat16", lambda: multiplies)
        monkeypatch.setattr("unbraid.base.device.DENSE_GAINS", 0)

    return become


@pytest.fixture
def raised() -> Iterator[Callable[[], None]]:
    """A function that raises the training version of the VAE."""
    yield lambda: object.__setattr__(VAE, "version", 2)
    object.__setattr__(VAE, "version", 1)


def test_a_precision_left_open_is_one_id_on_every_machine(tmp_path, machine) -> None:
    machine(True)
    half = trained(tmp_path / "half")
    machine(False)
    single = trained(tmp_path / "single")
    assert half.path.name == single.path.name
    assert [run.config["precision"] for run in (half, single)] == ["bfloat16", "float32"]
    assert {run.config["requested_precision"] for run in (half, single)} == {"auto"}
    # What is there is not trained again by the other machine, and what was asked for has an id of its own.
    assert trained(tmp_path / "half").config["precision"] == "bfloat16"
    asked = trained(tmp_path / "single", "float32")
    assert asked.path != single.path
    assert "requested_precision" not in asked.config
    assert (asked.path / WEIGHTS).read_bytes() == (single.path / WEIGHTS).read_bytes()


def test_dense_networks_take_bfloat16_from_a_size_on(tmp_path, machine, monkeypatch) -> None:
    """By weights times images of a batch, 8 here; what was asked for by name, and what was begun, stays."""
    machine(True)
    begun = trained(tmp_path / "half")
    weights = sum(value.numel() for value in load_file(begun.path / WEIGHTS).values())
    monkeypatch.setattr("unbraid.base.device.DENSE_GAINS", 8 * weights)
    assert trained(tmp_path / "large").config["precision"] == "bfloat16"
    monkeypatch.setattr("unbraid.base.device.DENSE_GAINS", 8 * weights + 1)
    small = trained(tmp_path / "small")
    assert small.path.name == begun.path.name
    assert small.config["precision"] == "float32"
    asked = trained(tmp_path / "asked", "float32")
    assert (asked.path / WEIGHTS).read_bytes() == (small.path / WEIGHTS).read_bytes()
    assert trained(tmp_path / "asked", "bfloat16").config["precision"] == "bfloat16"
    assert unbraid.continue_run(begun, 15, dataset=TINY, processes=0).config["precision"] == "bfloat16"


def test_which_networks_and_processors_gain_by_bfloat16() -> None:
    """Small dense ones do not; convolutions, and the wide discriminator of FactorVAE, do."""
    gains = {}
    for family, network, batch_size in [
        ("vae", "dense", 64), ("vae", "dense", 1024), ("vae", "dense_norm", 64), ("vae", "conv", 1),
        ("vae", "resnet", 1), ("factor_vae", "dense", 64), ("beta_tcvae", "dense", 64),
    ]:  # fmt: skip
        row = FAMILIES[family]
        settings = {name: each.default for name, each in row.hyperparameters.items()} | {"network": network}
        weights = weights_of(row, (32, 32, 1), settings, 0)
        gains[family, network, batch_size] = gains_by_bfloat16(weights.values(), batch_size)
    assert [each for each, yes in gains.items() if yes] == [
        ("vae", "dense", 1024), ("vae", "conv", 1), ("vae", "resnet", 1), ("factor_vae", "dense", 64),
    ]  # fmt: skip
    told = "vendor_id\t: {}\nmodel name\t: some\nflags\t\t: fpu {}\n\nvendor_id\t: {}\nflags\t\t: none\n"
    for vendor, flags, yes in [
        ("GenuineIntel", "avx512_bf16 amx_bf16", True), ("GenuineIntel", "avx512_bf16", False),
        ("AuthenticAMD", "avx512_bf16", True), ("AuthenticAMD", "avx512f", False),
    ]:  # fmt: skip
        assert faster_in_bfloat16(told.format(vendor, flags, vendor)) is yes
    assert not faster_in_bfloat16("CPU implementer : 0x41\nFeatures : fp asimd bf16\n")


def test_what_was_begun_elsewhere_goes_on_in_its_precision(tmp_path, machine, monkeypatch) -> None:
    def stop(sent: Any) -> None:
        if max(sent.steps_taken.values(), default=0) >= 5:
            raise KeyboardInterrupt

    machine(True)
    whole = trained(tmp_path / "whole")
    monkeypatch.setattr("unbraid.training.loop.REPORT_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "moved", progress=stop, checkpoint_every=0)
    machine(False)
    moved = trained(tmp_path / "moved")
    assert moved.config == whole.config
    assert (moved.path / WEIGHTS).read_bytes() == (whole.path / WEIGHTS).read_bytes()
    longer = unbraid.continue_run(moved, 15, dataset=TINY, processes=0)
    assert longer.config["precision"] == "bfloat16"
    assert longer.path.name == trained(tmp_path / "straight", steps=15).path.name


def test_another_training_version_is_another_id(tmp_path, raised) -> None:
    first = trained(tmp_path)
    assert first.config["training_version"] == 1
    before = {name: value for name, value in first.config.items() if name not in ("training_version", "supervision")}
    assert run_id(before) == first.path.name  # as that of runs from before there were versions
    (first.path / "config.json").write_text(json.dumps(before))
    assert unbraid.load_run(first.path).config == before
    raised()
    second = trained(tmp_path)
    assert second.path != first.path
    assert second.config["training_version"] == 2
    with pytest.raises(ValueError, match="is of training version 1 of vae, here it is 2, which gives other weights"):
        unbraid.continue_run(first, 24, dataset=TINY, processes=0)


def test_a_study_does_not_mix_training_versions(tmp_path, raised) -> None:
    yaml = tmp_path / "study.yaml"
    yaml.write_text(STUDY.replace("NETWORK", "dense"))
    study = Study.load(yaml, out=tmp_path / "out")
    (first,) = study.run(processes=0)
    raised()
    assert [run.state for run in Study.load(tmp_path / "out").runs()] == ["finished"]
    more = Study.load(yaml, out=tmp_path / "out")
    with pytest.raises(ValueError, match="models of vae are of training version 1, this unbraid has 2, .* --retrain"):
        more.run(processes=0)
    (second,) = more.run(processes=0, retrain=True)
    assert second.id != first.id
    assert study_status(more.snapshot()).left == 1
    assert more.run(processes=0) == [second]
    assert more.snapshot().environment.training == {"vae": 2}


def test_a_study_follows_the_source_of_its_network(tmp_path, monkeypatch) -> None:
    source = "from unbraid.families.networks import dense_pair as pair\n"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yaml = tmp_path / "study.yaml"
    yaml.write_text(STUDY.replace("NETWORK", "net_of_a_study:pair"))
    found = []
    for text in (source, source + "# a remark\n"):
        (tmp_path / "net_of_a_study.py").write_text(text)
        sys.modules.pop("net_of_a_study", None)
        provenance._SOURCES.clear()
        (run,) = Study.load(yaml, out=tmp_path / "out").run(processes=0)
        found.append(run.id)
        sys.modules.pop("net_of_a_study", None)
        (told,) = Study.load(tmp_path / "out").runs()  # nothing is imported for it
        assert (told.id, told.state) == (run.id, "finished")
        assert "net_of_a_study" not in sys.modules
    assert found[0] != found[1]
