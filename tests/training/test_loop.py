"""Stopping, resuming and failing of a training."""

import json
import os
import shutil
import signal
import time
from collections import namedtuple
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.processes import forked
from tests.training.training_examples import TINY, member
from unbraid.base.signals import Terminated, stop_requests
from unbraid.families.building import Member
from unbraid.files.run_files import CHECKPOINT
from unbraid.training import loop
from unbraid.training.checkpoints import CheckpointError
from unbraid.training.loop import Plan, Report, Trained, train_here

DATASET = TINY
PLAN = Plan("beta_vae", steps=30, batch_size=8, device="cpu", precision="float32")
SHORT = replace(PLAN, steps=3)
MEMBERS = [
    member("beta_vae", seed, network="dense", learning_rate=1e-3, beta=beta) for seed, beta in ((0, 1.0), (1, 8.0))
]


def assert_same(one: Trained, other: Trained) -> None:
    assert one.weights.keys() == other.weights.keys()
    assert all(torch.equal(one.weights[name], other.weights[name]) for name in one.weights)
    assert one.curve_steps.tolist() == other.curve_steps.tolist()
    assert [(name, values.tolist()) for name, values in one.curves.items()] == [
        (name, values.tolist()) for name, values in other.curves.items()
    ]


@pytest.fixture(params=[1, 2], ids=["alone", "stacked"])
def members(request):
    return MEMBERS[: request.param]


@pytest.fixture
def folders(members, tmp_path):
    paths = [tmp_path / str(number) for number in range(len(members))]
    for path in paths:
        path.mkdir()
    return paths


@pytest.fixture
def coarse_curves(monkeypatch):
    # A point every 7 steps or so, so that sums are pending wherever a training is stopped.
    monkeypatch.setattr(loop, "CURVE_POINTS", 4)


def interrupted_at(step: int, asked: int = signal.SIGINT):
    """A report that asks to stop once the training has come so far."""

    def report(sent: Report) -> None:
        if sent.step >= step:
            signal.raise_signal(asked)

    return report


def test_sigterm_saves_and_leaves_handlers_as_they_were(members, folders, monkeypatch):
    monkeypatch.setattr(loop, "REPORT_SECONDS", 0.0)
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(Terminated):
        train_here(PLAN, members[:1], DATASET, folders=folders[:1], report=interrupted_at(5, signal.SIGTERM))
    assert json.loads(_metadata(folders[0])["progress"])["step"] in (5, 6)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_second_request_of_the_same_kind_stops_at_once() -> None:
    with stop_requests() as asked:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert asked == [signal.SIGTERM, signal.SIGINT]
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.usefixtures("coarse_curves")
@pytest.mark.parametrize("stops", [pytest.param((11,), marks=pytest.mark.slow), (3, 20),
                                   pytest.param((1, 2, 29), marks=pytest.mark.slow)])  # fmt: skip
def test_interrupted_trainings_end_with_the_weights_of_one_never_stopped(members, folders, stops, monkeypatch):
    monkeypatch.setattr(loop, "REPORT_SECONDS", 0.0)
    whole = train_here(PLAN, members, DATASET)
    for stop in stops:
        with pytest.raises(KeyboardInterrupt):
            train_here(PLAN, members, DATASET, folders=folders, report=interrupted_at(stop))
        assert stop <= json.loads(_metadata(folders[0])["progress"])["step"] <= stop + 1
    resumed = train_here(PLAN, members, DATASET, folders=folders)
    for one, other in zip(whole, resumed, strict=True):
        assert_same(one, other)
        assert one.curve_steps.tolist() == [7, 14, 21, 28, 30]
        assert one.step == 30


def _metadata(folder: Path) -> dict[str, str]:
    data = (folder / CHECKPOINT).read_bytes()
    found = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    return {name: value for name, value in found.items() if name != "checksum"}


def test_curves_are_the_means_of_the_steps_between_their_points(monkeypatch):
    every_step = train_here(PLAN, MEMBERS[:1], DATASET)[0]
    assert every_step.curve_steps.tolist() == list(range(1, 31))
    monkeypatch.setattr(loop, "CURVE_POINTS", 4)
    coarse = train_here(PLAN, MEMBERS[:1], DATASET)[0]
    bounds = [0, 7, 14, 21, 28, 30]
    for name, values in coarse.curves.items():
        means = [every_step.curves[name][low:high].mean() for low, high in zip(bounds, bounds[1:], strict=False)]
        np.testing.assert_allclose(values, means, rtol=1e-6)
    assert coarse.curves["loss/vae"][-1] < 0.9 * coarse.curves["loss/vae"][0]


@pytest.mark.lengthy
@pytest.mark.usefixtures("coarse_curves")
@pytest.mark.parametrize("second", [12, None])
def test_a_pack_killed_between_its_checkpoints_goes_on_as_the_pack_that_it_was(tmp_path, monkeypatch, second):
    """One stacked member's file is older than the other's, which may have come to its end; not a bit differs."""
    monkeypatch.setattr(loop, "REPORT_SECONDS", 0.0)
    folders = [tmp_path / "0", tmp_path / "1"]
    for folder in folders:
        folder.mkdir()
    whole = train_here(PLAN, MEMBERS, DATASET, stacked=True)
    with pytest.raises(KeyboardInterrupt):
        train_here(PLAN, MEMBERS, DATASET, folders=folders, report=interrupted_at(5), stacked=True)
    old = (folders[0] / CHECKPOINT).read_bytes()
    if second:
        with pytest.raises(KeyboardInterrupt):
            train_here(PLAN, MEMBERS, DATASET, folders=folders, report=interrupted_at(second), stacked=True)
    else:
        train_here(PLAN, MEMBERS, DATASET, folders=folders, stacked=True)
    (folders[0] / CHECKPOINT).write_bytes(old)
    steps: list[int] = []
    caught_up = train_here(
        PLAN, MEMBERS, DATASET, folders=folders, report=lambda sent: steps.append(sent.step), stacked=True
    )
    assert steps[0] in (6, 7)
    for one, other in zip(whole, caught_up, strict=True):
        assert all(torch.equal(value, other.weights[name]) for name, value in one.weights.items())
        assert one.curve_steps.tolist() == other.curve_steps.tolist()
        assert all(np.array_equal(values, other.curves[name]) for name, values in one.curves.items())


PROGRAM = """
import sys
from pathlib import Path
from dataclasses import replace
from tests.training.test_loop import DATASET, MEMBERS, PLAN, train_here
folder = Path(sys.argv[1])
plan = replace(PLAN, steps=150, checkpoint_seconds=0.0)
train_here(plan, MEMBERS[:1], DATASET, folders=[folder])
"""


@pytest.mark.lengthy
def test_killed_at_any_moment_it_continues_to_the_same_weights(tmp_path):
    """A process that saves after every step is killed outright, in the middle of whatever it does."""
    plan = replace(PLAN, steps=150)
    with forked(PROGRAM, str(tmp_path)):
        deadline = time.monotonic() + 60
        while not (tmp_path / CHECKPOINT).exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.07)
    assert 0 < json.loads(_metadata(tmp_path)["progress"])["step"] < 150
    (tmp_path / f".{CHECKPOINT}.half.part").write_bytes(b"what a killed process may leave")
    whole = train_here(plan, MEMBERS[:1], DATASET)[0]
    assert_same(train_here(plan, MEMBERS[:1], DATASET, folders=[tmp_path])[0], whole)
    assert os.listdir(tmp_path) == [CHECKPOINT]


def checkpoint(folder: Path) -> Path:
    train_here(SHORT, MEMBERS[:1], DATASET, folders=[folder])
    return folder / CHECKPOINT


def again(folder: Path, plan: Plan = SHORT, members: Sequence[Member] = MEMBERS[:1]) -> None:
    train_here(plan, members, DATASET, folders=[folder])


@pytest.mark.parametrize("size", [0, 5, 100, -1])
def test_a_truncated_checkpoint_is_refused_and_kept(tmp_path, size):
    path = checkpoint(tmp_path)
    data = path.read_bytes()[:size]
    path.write_bytes(data)
    with pytest.raises(
        CheckpointError, match=r"checkpoint.safetensors is damaged .* delete it to train from the start"
    ):
        again(tmp_path)
    assert path.read_bytes() == data


def test_a_checkpoint_of_another_version_is_refused(tmp_path):
    path = checkpoint(tmp_path)
    save_file(load_file(path), path, {**_metadata(tmp_path), "format": "99"})
    with pytest.raises(CheckpointError, match="format 99, this version of unbraid reads 3"):
        again(tmp_path)


def test_a_checkpoint_for_another_architecture_is_refused(tmp_path):
    path = checkpoint(tmp_path)
    tensors = load_file(path)
    tensors["model/vae.encoder.1.weight"] = tensors["model/vae.encoder.1.weight"][:-1].clone()
    position = json.loads(_metadata(tmp_path)["progress"])
    save_file(tensors, path, {**_metadata(tmp_path), "progress": json.dumps({**position, "step": 2})})
    with pytest.raises(CheckpointError, match="another architecture"):
        again(tmp_path)


def test_a_checkpoint_of_another_training_says_what_differs(tmp_path):
    checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="its steps is 3, here it is 4"):
        again(tmp_path, replace(PLAN, steps=4))
    with pytest.raises(CheckpointError, match="its seed is 0, here it is 5"):
        again(tmp_path, members=[member("beta_vae", 5, network="dense", learning_rate=1e-3, beta=1.0)])


def test_too_little_disk_is_noticed_before_training(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")(10, 0, 1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(OSError, match="1 MiB are free"):
        checkpoint(tmp_path)
    assert not os.listdir(tmp_path)


def test_a_disk_that_fills_up_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    path = checkpoint(tmp_path)
    data = path.read_bytes()

    def full(path: Path, data: bytes) -> None:
        with path.open("wb") as file:
            file.write(data[:100])
        raise OSError(28, "(?i)no space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    monkeypatch.setattr("unbraid.training.loop.load_checkpoint", lambda *_: loop.Checkpoint())
    with pytest.raises(OSError, match="(?i)no space left"):
        again(tmp_path)
    assert path.read_bytes() == data
    assert os.listdir(tmp_path) == [CHECKPOINT]


def test_a_diverged_member_is_recorded_and_not_tried_again(tmp_path):
    wild = member("vae", 1, network="dense", learning_rate=1.0)
    plan = Plan("vae", 3000, 8, "cpu", "float32")
    done = train_here(plan, [wild], DATASET, folders=[tmp_path])[0]
    assert done.diverged is not None
    assert done.step == done.diverged.step + 1 < 3000
    assert all(np.isfinite(values).all() for values in done.curves.values())
    assert all(torch.isfinite(value).all() for value in done.weights.values())
    again = train_here(plan, [wild], DATASET, folders=[tmp_path], report=lambda _: pytest.fail("trained again"))[0]
    assert again.diverged == done.diverged
    assert_same(again, done)


@pytest.mark.parametrize("stacked", [False, True])
def test_who_diverges_before_the_first_point_of_the_curves_has_the_steps_until_then(monkeypatch, stacked):
    wild, tame = (member("vae", 1, network="dense", learning_rate=rate, rate_warmup=10) for rate in (1.0, 1e-4))
    plan = Plan("vae", 20, 8, "cpu", "float32")
    chosen = [tame, wild] if stacked else [wild]
    every_step = train_here(plan, chosen, DATASET)[-1]
    assert every_step.diverged
    taken = every_step.diverged.step
    monkeypatch.setattr(loop, "CURVE_POINTS", 1)
    done = train_here(plan, chosen, DATASET)
    assert done[-1].diverged == every_step.diverged
    assert done[-1].curve_steps.tolist() == [taken]
    assert taken > 5
    for name, values in done[-1].curves.items():
        np.testing.assert_allclose(values, [every_step.curves[name][:taken].mean()], rtol=1e-6)
    assert [each.curve_steps.tolist() for each in done[:-1]] == [[20]] * stacked


def test_no_steps_leave_the_initial_weights():
    done = train_here(Plan("vae", 0, 8, "cpu"), [member("vae", 3, network="dense")], DATASET)[0]
    assert done.step == 0
    assert not done.curves


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan("beta_va", 1), "unknown family 'beta_va'"),
        (Plan("vae", 1, device="abacus"), "device 'abacus' cannot be used here"),
        (Plan("vae", 1, device="cuda:1"), "device 'cuda:1': write cuda, and CUDA_VISIBLE_DEVICES=1"),
        (Plan("vae", 1, precision="int8"), "one of auto, float32, bfloat16"),
    ],
)
def test_plans_that_cannot_be(plan, message):
    with pytest.raises(ValueError, match=message):
        train_here(plan, [member("vae")], DATASET)
