"""Networks, objectives and families of a user's own, by "module:object": the example, and what is refused."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.conftest import Cli
from tests.training.training_examples import TINY
from unbraid import Study, load_run, train
from unbraid.cli.app import untrusted_line
from unbraid.families.building import Member
from unbraid.families.family import completed
from unbraid.families.family_table import find_family
from unbraid.files.trust import Trusted, UntrustedCode
from unbraid.runs.model_card import model_card
from unbraid.runs.run import Run, probe_images
from unbraid.scoring.score_numbers import in_markdown
from unbraid.training.loop import Plan, train_here

EXAMPLES = Path(__file__).parents[2] / "examples"
FAMILY, OBJECTIVE, NETWORK = "own_family:SPARSE_VAE", "own_family:sparse", "own_family:small_pair"
SETTINGS: dict[str, Any] = {
    "network": NETWORK, "latents": 3, "learning_rate": 1e-2, "steps": 6, "batch_size": 8, "processes": 0,
    "precision": "float32",
}  # fmt: skip


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In the folder of the example, from which its module is imported; nothing stays imported."""
    monkeypatch.chdir(EXAMPLES)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name in ("own_family", "mine"):
            del sys.modules[name]


def weights(run: Run) -> dict[str, torch.Tensor]:
    return run.modules.state_dict()


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    assert all(torch.equal(value, other[name]) for name, value in one.items())


def test_an_objective_without_its_penalty_is_that_of_the_vae(tmp_path: Path) -> None:
    (vae,) = train("vae", TINY, out=tmp_path, **SETTINGS)
    for family in (FAMILY, OBJECTIVE):
        plain, sparse = train(family, TINY, out=tmp_path, weight=[0, 3], **SETTINGS)
        for name, value in weights(plain).items():
            torch.testing.assert_close(value, weights(vae)[name], rtol=1e-5, atol=1e-6)
        assert sparse.status["last"]["penalty"] < 0.9 * plain.status["last"]["penalty"]
        assert sparse.config["family"] == family


def test_stacked_members_are_those_that_were_trained_alone() -> None:
    name = Trusted(FAMILY)
    row = find_family(name)
    defaults = completed(row, {key: each.default for key, each in row.hyperparameters.items()})
    settings = {**defaults, "network": Trusted(NETWORK), "latents": 3, "learning_rate": 1e-2}
    members = [Member(seed, {**settings, "weight": weight}) for seed, weight in ((0, 0.1), (1, 5.0))]
    plan = Plan(name, 6, 8, "cpu", "float32")
    stacked = train_here(plan, members, TINY)
    for member, one in zip(members, stacked, strict=True):
        (alone,) = train_here(plan, [member], TINY)
        for key, value in alone.weights.items():
            torch.testing.assert_close(one.weights[key], value, rtol=1e-5, atol=1e-6)


def test_interrupted_it_ends_with_the_weights_it_would_have_had(tmp_path: Path) -> None:
    def stop(sent: Any) -> None:
        if any(step >= 3 for step in sent.steps_taken.values()):
            raise KeyboardInterrupt

    (whole,) = train(FAMILY, TINY, out=tmp_path / "whole", **SETTINGS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unbraid.training.loop.REPORT_SECONDS", 0.0)
        with pytest.raises(KeyboardInterrupt):
            train(FAMILY, TINY, out=tmp_path / "runs", progress=stop, checkpoint_every=0, **SETTINGS)
    (part,) = (tmp_path / "runs").glob("*.part")
    assert (part / "checkpoint.safetensors").is_file()
    (resumed,) = train(FAMILY, TINY, out=tmp_path / "runs", **SETTINGS)
    assert_same(weights(resumed), weights(whole))


def test_a_run_is_opened_where_its_code_is_named(tmp_path: Path) -> None:
    (run,) = train(FAMILY, TINY, out=tmp_path, **SETTINGS)
    del sys.modules["own_family"]
    both = f"names code of its own, '{FAMILY}' and '{NETWORK}', and opening the run would execute"
    with pytest.raises(UntrustedCode, match=both) as told:
        load_run(run.path)
    assert untrusted_line(told.value).endswith(f": if you trust it, add --trust-code {FAMILY} --trust-code {NETWORK}")
    with pytest.raises(UntrustedCode, match=f"names code of its own, '{FAMILY}', and opening the run would"):
        load_run(run.path, trust=[NETWORK])
    with pytest.raises(UntrustedCode, match=f"names a network of its own, '{NETWORK}'"):
        load_run(run.path, trust=[FAMILY])
    assert_same(weights(load_run(run.path, trust=[FAMILY, NETWORK])), weights(run))


STUDY = f"""
name: mine
dataset: {{name: square, positions: 8, shrink: 8}}
families: [{{name: "{FAMILY}", network: "{NETWORK}", latents: 2, weight: [0.1, 1]}}]
seeds: 1
steps: 2
batch_size: 8
precision: float32
executor: {{name: local, processes: 0}}
"""


@pytest.mark.lengthy
def test_in_a_study_and_by_the_commands(unbraid_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbraid.training.workers.n_cores", lambda: 0)
    (tmp_path / "study.yaml").write_text(STUDY)
    folder = str(tmp_path / "study")
    code, _, error = unbraid_cli("study", "run", str(tmp_path / "study.yaml"), "--out", folder)
    assert code == 0, error
    for command in (("study", "status", folder), ("export", folder, "--out", str(tmp_path / "a.csv"))):
        code, _, error = unbraid_cli(*command)
        assert (code, error.count("\n"), f"--trust-code {FAMILY}" in error) == (2, 1, True)
        assert unbraid_cli(*command, "--trust-code", FAMILY)[0] == 0
    study = Study.load(folder, trust=[FAMILY, NETWORK])
    assert [run.hyperparameters["weight"] for run in study.runs()] == [0.1, 1]
    assert [(run.state, run.reason) for run in study.runs()] == [("finished", None)] * 2
    assert [run.setting.count("weight=") for run in study.runs()] == [0, 1], "a default is not named"
    run = str(study.runs()[0].path)
    assert load_run(run, trust=[FAMILY, NETWORK]).path == Path(run)
    with pytest.raises(UntrustedCode):
        load_run(run)
    picture = ("figure", "traversals", run, "--out", str(tmp_path / "grid.png"), "--trust-code", NETWORK)
    code, _, error = unbraid_cli(*picture)
    assert (code, f"--trust-code {FAMILY}" in error) == (2, True)
    assert unbraid_cli(*picture, "--trust-code", FAMILY)[0] == 0
    command = ("train", OBJECTIVE, "square", "--data", "positions=8", "--data", "shrink=8", "--steps", "2")
    settings = ("--set", "network=dense", "--set", "weight=1,2", "--out", str(tmp_path / "runs"))
    code, printed, error = unbraid_cli(*command, *settings)
    assert (code, printed.count("finished")) == (0, 2), error
    own = load_run(next((tmp_path / "runs").glob("*/config.json")).parent, trust=[OBJECTIVE])
    assert f"| family | VAE by {in_markdown(OBJECTIVE)} |\n" in model_card(own, "mine")
    assert unbraid_cli("report", str(own.path), "--out", str(tmp_path / "own.html"), "--trust-code", OBJECTIVE)[0] == 0
    assert f">VAE by {OBJECTIVE}. In bold" in (tmp_path / "own.html").read_text(encoding="utf-8")
    assert unbraid_cli("families", OBJECTIVE)[1].splitlines()[0] == f"VAE by {OBJECTIVE}"
    code, printed, _ = unbraid_cli("families", FAMILY)
    assert printed.startswith(f"{FAMILY}: VAE with sparse means (")
    assert (code, "VAE with sparse means" in printed, "of the penalty" in printed) == (0, True, True)


# What a module of the user's holds, and what is said of it.
MODULE = """
import torch
from dataclasses import replace
from torch import nn
from unbraid.families import *
from own_family import SPARSE_VAE, sparse, sparse_loss, small_pair
"""
BAD_FAMILIES = {
    "no decode": ("FAMILY = Family('t', build_vae, (), {}, encode_vae, source='s')", "missing 1 .*'decode'"),
    "no optimizer step": ("FAMILY = replace(SPARSE_VAE, optimizer_steps=())", "has neither optimizer steps nor fit"),
    "no rate": (
        "FAMILY = replace(SPARSE_VAE, hyperparameters={'latents': COMMON['latents']})",
        "optimizer step 'vae' takes learning_rate for Adam, no hyperparameter",
    ),
    "an error": ("FAMILY = 1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
    "nothing": ("OTHER = 1", "cannot be imported: module 'mine' has no attribute 'FAMILY'"),
    "its loss is no number": (
        "def FAMILY(modules, batch, hyper, step, context): return sparse(modules, batch, hyper, step, context)[0]",
        r"VAE by mine:FAMILY cannot be trained on images .*: its loss must return \(loss, logs, kept\); .* Tensor",
    ),
    "its loss is of each image": (
        "def FAMILY(modules, batch, hyper, step, context): return batch['images'].mean((1, 2, 3)), {}, {}",
        r"cannot be trained on images .*: RuntimeError: element 0 of tensors does not require grad",
    ),
    "its log is in place of the loss": (
        "def FAMILY(modules, batch, hyper, step, context): "
        "return batch['images'].mean(), {'loss/vae': torch.ones(())}, {}",
        r"cannot be trained on images .*: logs of its loss must have names of their own; 'loss/vae' is a column",
    ),
    "codes of another width": (
        "FAMILY = replace(SPARSE_VAE, encode=lambda modules, images, settings: (torch.zeros(len(images), 7), None))",
        r"VAE with sparse means does not fit images .8, 8, 1.: the encoder gives codes \(8, 7\), expected \(8, 10\)",
    ),
}


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def write(text: str) -> None:
        (tmp_path / "mine.py").write_text(MODULE + text + "\n")

    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(tmp_path)
    return write


@pytest.mark.parametrize("case", BAD_FAMILIES)
def test_a_family_that_lacks_something_is_refused_before_anything_is_trained(
    case: str,
    module: Callable[[str], None],
    unbraid_cli: Cli,
) -> None:
    text, said = BAD_FAMILIES[case]
    module(text)
    tried = "images" in said  # and not only read
    given: dict[str, Any] = {"network": "dense"} if tried else {}
    with pytest.raises(ValueError, match=said):
        train("mine:FAMILY", TINY, out="runs", steps=2, **given)
    assert not Path("runs").exists()
    if not tried:
        code, _, error = unbraid_cli("train", "mine:FAMILY", "square", "--data", "positions=8", "--out", "runs")
        assert (code, error.count("\n"), error.startswith("unbraid: ")) == (2, 1, True)


def test_a_network_that_takes_no_noise_is_kept_and_opened(module: Callable[[str], None]) -> None:
    """Logarithms of the pixels are finite for images without black, and not for the noise that tells networks apart."""
    module(
        "class Logarithms(nn.Module):\n"
        "    def forward(self, images): return images.log()\n"
        "def pair(shape, n, m):\n"
        "    encoder, decoder = small_pair(shape, n, m)\n"
        "    return nn.Sequential(Logarithms(), encoder), decoder"
    )
    images = np.random.default_rng(0).integers(1, 256, (40, 8, 8, 1), dtype=np.uint8)
    (run,) = train("vae", images, out="runs", steps=2, batch_size=8, network="mine:pair", processes=0)
    opened = load_run(run.path, network="mine:pair")
    np.testing.assert_allclose(opened.encode(images), run.codes().codes, rtol=1e-4, atol=1e-5)
    assert not np.isfinite(opened.encode(probe_images((8, 8, 1)))).all()
