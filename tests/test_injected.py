"""Kills, full disks and damage: the same command then gives the undisturbed result, or says which file is bad.

The whole table of classes and cases is made by evidence/make_faults.py; here is one case of each kind.
"""

from pathlib import Path

import pytest

from tests.injected import DAMAGE, WORKS, Bench, Tally, little_memory

QUICK = {"run": 17, "dataset cache": 5, "ranking": 4, "added codes": 13}  # every which write point


@pytest.mark.lengthy
@pytest.mark.parametrize("name", QUICK)
def test_after_a_fault_the_same_command_gives_the_undisturbed_result(name: str, tmp_path: Path) -> None:
    bench, tally = Bench(name, tmp_path), Tally()
    for number, at in enumerate(range(1, len(bench.counted.points), QUICK[name])):
        bench.interrupted(tally, at, ("kill before", "torn", "SIGTERM", "ENOSPC", "kill after", "EMFILE")[number % 6])
    assert not tally.faults
    assert (tally.same, tally.left) == (tally.cases, 0)


@pytest.mark.lengthy
def test_a_damaged_file_is_named_or_does_no_harm(tmp_path: Path) -> None:
    bench, tally = Bench("study", tmp_path), Tally()
    for number, name in enumerate(bench.files()):
        bench.damaged(tally, name, list(DAMAGE)[number % len(DAMAGE)])
    assert not tally.faults


@pytest.mark.slow
def test_a_run_out_of_memory_fails_alone_and_says_what_to_do(tmp_path: Path) -> None:
    bench, tally = Bench("large study", tmp_path), Tally()
    folder = bench.fresh()
    with little_memory(40 << 20):
        runs = bench.work.act(folder)
    assert isinstance(runs, list)
    assert [run.state for run in runs] == ["finished", "failed", "finished"]
    assert runs[1].reason.startswith("out of memory: a smaller batch_size, smaller networks, or fewer processes at a ")
    assert "; --retry failed goes on from its last checkpoint (" in runs[1].reason
    assert bench.work.again
    tally.judge("memory used up", folder, bench.expected, bench.work.again)
    assert (tally.same, tally.faults) == (1, [])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # deaths in what works beside,
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # which leave files open
@pytest.mark.parametrize("name", WORKS)
def test_every_write_point_and_every_file(name: str, tmp_path: Path) -> None:
    bench, tally = Bench(name, tmp_path), Tally()
    for at in range(len(bench.counted.points)):
        for how in ("kill before", "kill after", "torn", "SIGTERM", "ENOSPC"):
            bench.interrupted(tally, at, how)
    for file in bench.files() if bench.work.use else ():
        for how in DAMAGE:
            bench.damaged(tally, file, how)
    assert not tally.faults
