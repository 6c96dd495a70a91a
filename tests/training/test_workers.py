"""Members in processes of their own."""

import errno
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.processes import workers_of
from tests.training.training_examples import blocks, member
from unbraid.data.image_dataset import ArrayDataset
from unbraid.files.run_files import CHECKPOINT
from unbraid.training import workers
from unbraid.training.checkpoints import CheckpointError
from unbraid.training.loop import Plan, Report, train_here
from unbraid.training.workers import TookTooLong, WorkerDied, train_members

DATASET = blocks()
PLAN = Plan("beta_vae", steps=25, batch_size=8, device="cpu", precision="float32")
MEMBERS = [member("beta_vae", seed, latents=latents) for seed, latents in ((0, 10), (1, 4), (2, 10))]


@pytest.mark.lengthy
def test_workers_give_to_the_bit_what_this_process_gives():
    """Members of different structure; the second dataset is large enough to be mapped by the worker."""
    dataset = blocks(side=64, channels=2)
    assert dataset.array.nbytes > workers.LARGE
    sent: list[Report] = []
    plan = replace(PLAN, steps=8)
    done = dict(train_members(plan, MEMBERS[:2], dataset, report=sent.append, processes=1))
    assert sorted(done) == [0, 1]
    assert {report.members for report in sent} == {(0,), (1,)}
    for number, trained in done.items():
        here = train_here(plan, [MEMBERS[number]], dataset)[0]
        assert all(torch.equal(trained.weights[name], here.weights[name]) for name in here.weights)
        assert trained.curves["kl"].tolist() == here.curves["kl"].tolist()


@pytest.mark.lengthy
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_interrupt_saves_what_every_worker_has_and_the_same_call_continues(tmp_path, n):
    # The first report comes after half a second, when a fast processor has made more than a hundred steps.
    plan, members = replace(PLAN, steps=250), MEMBERS[:n]
    folders = [tmp_path / str(number) for number in range(n)]
    for folder in folders:
        folder.mkdir()
    seen: set[int] = set()

    def report(sent: Report) -> None:
        seen.update(sent.members)
        if len(seen) == n:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        dict(train_members(plan, members, DATASET, folders=folders, report=report, processes=n))
    kept = [load_file(folder / CHECKPOINT)["model/vae.encoder.0.weight"] for folder in folders]
    done = dict(train_members(plan, members, DATASET, folders=folders, processes=0))
    whole = train_here(plan, members[:1], DATASET)[0]
    assert all(torch.equal(done[0].weights[name], whole.weights[name]) for name in whole.weights)
    assert not any(torch.equal(done[number].weights["vae.encoder.0.weight"], kept[number]) for number in range(n))


@pytest.mark.lengthy
def test_a_worker_that_is_killed_is_named_and_no_other_begins_its_work():
    """The kernel kills a process that asks for too much memory just like this."""
    killed = set[int]()

    def report(_: Report) -> None:
        for process in workers_of(os.getpid()):
            killed.add(process)
            os.kill(process, signal.SIGKILL)

    with pytest.raises(WorkerDied, match=r"its process was killed \(signal 9\)"):
        dict(train_members(replace(PLAN, steps=100_000), MEMBERS[:1], DATASET, report=report, processes=1))
    assert len(killed) == 1


class Unbuildable(Exception):
    """Pickled by its one argument, and built of two."""

    def __init__(self, name: str, value: int) -> None:
        super().__init__(f"{name} is {value}")


class Unpicklable(Exception):
    def __init__(self, name: str, value: int) -> None:
        super().__init__(f"{name} is {value}")
        self.lock = threading.Lock()


@pytest.mark.parametrize("error", [Unbuildable("beta", 4), Unpicklable("beta", 4)])
def test_an_error_that_cannot_travel_sends_what_it_says(error: Exception):
    def fails(*_: object) -> None:
        raise error

    sent = pickle.loads(pickle.dumps(workers._answer(fails, None, None, lambda _: None)[1]))
    assert (type(sent), str(sent)) == (RuntimeError, f"{type(error).__name__}: beta is 4")
    assert "in fails" in sent.__notes__[0]


def test_members_of_one_structure_are_stacked():
    assert sorted(workers._packs(PLAN, MEMBERS)) == [[0, 2], [1]]


@pytest.mark.slow
def test_an_error_in_a_worker_is_raised_here_with_its_traceback(tmp_path):
    (tmp_path / CHECKPOINT).write_bytes(b"not a checkpoint")
    with pytest.raises(CheckpointError, match="damaged") as caught:
        dict(train_members(PLAN, MEMBERS[:1], DATASET, folders=[tmp_path], processes=1))
    assert "load_checkpoint" in caught.value.__notes__[0]


@pytest.mark.lengthy
def test_what_only_this_process_knows_is_trained_in_it():
    class Local(ArrayDataset):
        """Cannot be pickled: no other process could import it."""

    here = train_here(PLAN, MEMBERS[:1], DATASET)[0]
    done = dict(train_members(PLAN, MEMBERS[:1], Local(DATASET.array, DATASET.space), processes=2))
    assert all(torch.equal(done[0].weights[name], here.weights[name]) for name in here.weights)


def sleep(_: None, seconds: float, report: Callable[[Any], None]) -> tuple[float, str | None]:
    report("begun")
    time.sleep(seconds)
    return seconds, os.environ.get("UNBRAID_PLACE")


@pytest.mark.lengthy
def test_a_job_whose_time_is_over_gives_its_place_to_the_next():
    """One process at a time: without the limit the second job would wait for ever."""
    own = [{"UNBRAID_PLACE": "3"}]
    done = dict(workers.run_jobs(sleep, [3000.0, 0.0], None, n_workers=1, tries=3, limit=0.3, variables=own))
    assert done[1] == (0.0, "3")  # also in the process that takes the place
    assert isinstance(done[0], TookTooLong)
    assert str(done[0]) == "it took longer than 0.3 s"
    assert not workers_of(os.getpid())


def test_a_system_without_room_for_a_process_is_an_error(monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    jobs = workers._Workers(sleep, [0.0], (b"", []), None, tries=2, limit=None)
    jobs.waiting.put(0)
    monkeypatch.setattr("unbraid.training.workers.subprocess.Popen", refuse)
    jobs._drive({})
    kind, _, error = jobs.inbox.get_nowait()
    assert kind == "fatal"
    assert isinstance(error, WorkerDied)
    assert "no process for training could start: " in str(error)
    assert "Resource temporarily unavailable" in str(error)


def test_a_job_whose_process_dies_is_begun_as_often_as_it_may_be():
    """In place of workers, processes that end at once."""
    jobs = workers._Workers(sleep, [0.0], (b"", []), None, tries=2, limit=None)
    jobs.waiting.put(0)
    for again in (True, False):
        command = [sys.executable, "-I", "-S", "-c", "raise SystemExit(3)"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.wait()
        jobs.running.append(process)
        jobs._serve(process)
        assert jobs.waiting.empty() is not again
    kind, number, error = jobs.inbox.get_nowait()
    assert (kind, number, str(error)) == ("error", 0, "its process ended with code 3")
    assert isinstance(error, WorkerDied)
    assert jobs.inbox.empty()
    jobs._close()
