"""Rankings whose pairs of models are compared on a real Ray cluster."""

import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import Cli
from tests.studies.study_examples import SMALL, written
from unbraid import Study, rank
from unbraid.base import cluster as _cluster
from unbraid.base import threads
from unbraid.base.cluster import on_cluster
from unbraid.base.threads import shared_out
from unbraid.metrics import udr
from unbraid.metrics._shared import udr_pairs as _pairs
from unbraid.ranking.cache import read_ranking
from unbraid.ranking.ranking import Ranking
from unbraid.studies import rank_models as _rank

pytestmark = pytest.mark.lengthy


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    """Seven models of two to five latents, in blocks of a few."""
    monkeypatch.setattr(_pairs, "TARGETS_AT_ONCE", 3)
    monkeypatch.setattr(_pairs, "OTHERS_AT_ONCE", 2)
    rng = np.random.default_rng(0)
    base = rng.standard_normal((200, 5))
    return {
        f"model {seed}": base[:, : 2 + seed % 4] @ rng.standard_normal((2 + seed % 4, 2 + seed % 4))
        for seed in range(7)
    }


@pytest.fixture(scope="module")
def connected(cluster: Any) -> Iterator[None]:
    """As in a notebook that has called ray.init: one connection for all, whose workers stay."""
    import ray

    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    yield
    ray.shutdown()


def same(first: Ranking, second: Ranking) -> None:
    np.testing.assert_array_equal(first.pairs, second.pairs)
    np.testing.assert_array_equal(first.scores, second.scores)
    assert first.matrices.keys() == second.matrices.keys()
    for pair, matrix in first.matrices.items():
        np.testing.assert_array_equal(matrix, second.matrices[pair])
    assert (first.best, first.rotated) == (second.best, second.rotated)


@pytest.mark.parametrize("how", [{}, {"similarity": "spearman"}, {"alpha": "cv"}])
def test_pairs_have_the_same_bits_on_a_cluster(
    how: dict[str, Any], models: dict[str, np.ndarray], cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = rank(models, **how)

    def nothing(*_: Any) -> Any:
        raise AssertionError("this machine compares nothing itself")

    monkeypatch.setattr(_pairs, "by_one_weight", nothing)
    monkeypatch.setattr(_pairs, "cross_validated", nothing)
    told: list[tuple[int, int]] = []
    there = rank(models, executor="ray", address=cluster.address, progress=lambda *counts: told.append(counts), **how)
    same(here, there)
    assert told[:7] == [(done, 7) for done in range(1, 8)]


@pytest.mark.usefixtures("connected")
def test_what_was_found_before_a_stop_is_kept(models: dict[str, np.ndarray], cluster: Any) -> None:
    codes, known = list(models.values()), _pairs.Pairs.unknown(7)

    def stop(_: _pairs.Pairs) -> None:
        raise KeyboardInterrupt

    with on_cluster(cluster.address):
        with pytest.raises(KeyboardInterrupt):
            udr(codes, alpha=0.1, known=known, save=stop)
        n_known = np.isfinite(known.values).sum()
        assert 0 < n_known < 42
        found = udr(codes, alpha=0.1, known=known)
    np.testing.assert_array_equal(found.pairs, udr(codes, alpha=0.1).pairs)


@pytest.mark.usefixtures("connected")
def test_the_command_ranks_files_on_a_cluster(
    models: dict[str, np.ndarray], cluster: Any, tmp_path: Path, unbraid_cli: Cli
) -> None:
    for name, codes in models.items():
        np.save(tmp_path / f"{name.replace(' ', '')}.npy", codes)
    files = [str(path) for path in sorted(tmp_path.glob("*.npy"))]
    here = unbraid_cli("rank", *files, "--json", str(tmp_path / "here.json"))
    there = unbraid_cli(
        "rank", *files, "--json", str(tmp_path / "there.json"), "--executor", "ray", "--address", cluster.address
    )
    assert here[0] == there[0] == 0
    assert (tmp_path / "here.json").read_text() == (tmp_path / "there.json").read_text()


@pytest.mark.usefixtures("connected")
def test_a_study_keeps_what_a_cluster_found(cluster: Any, tmp_path: Path, unbraid_cli: Cli) -> None:
    yaml = written(tmp_path, SMALL)
    here, there = (Study.load(yaml, out=tmp_path / name) for name in ("here", "there"))
    for study in (here, there):
        study.run(processes=0)
    own = rank(here)
    options = "--executor", "ray", "--address", cluster.address
    shown = unbraid_cli("rank", str(tmp_path / "here")), unbraid_cli("rank", str(tmp_path / "there"), *options)
    assert (shown[1][0], shown[1][1]) == (0, shown[0][1])
    (kept,) = (tmp_path / "there" / "udr").glob("*.npz")
    np.testing.assert_array_equal(read_ranking(kept).pairs, own.pairs)


def square(parts: tuple[np.ndarray, int], stopped: threading.Event) -> tuple[float, int]:
    import ray

    assert not stopped.is_set()
    numbers, power = parts
    ray.get_runtime_context().get_node_id()  # an error where it is no node
    return float((numbers**power).sum()), os.getpid()


def fails(parts: tuple[int], _: threading.Event) -> None:
    raise ValueError(f"no good: {parts[0]}")


def dies(_: tuple[int], __: threading.Event) -> None:
    os._exit(1)


@pytest.mark.usefixtures("connected")
def test_what_tasks_share_is_sent_once(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    numbers, sent, put = np.arange(5.0), [], ray.put

    def counted(part: Any) -> Any:
        sent.append(part)
        return put(part)

    monkeypatch.setattr(ray, "put", counted)
    with on_cluster(cluster.address):
        found = {task[1]: value for task, (value, process) in shared_out(square, ((numbers, n) for n in (1, 2, 3)))}
    assert found == {1: 10.0, 2: 30.0, 3: 100.0}
    assert sum(part is numbers for part in sent) == 1
    assert threads._SHARING.get() is threads.in_threads, "afterwards this machine works again"


@pytest.mark.usefixtures("connected")
def test_errors_are_those_of_the_task(cluster: Any) -> None:
    with on_cluster(cluster.address), pytest.raises(ValueError, match="no good: 7"):
        list(shared_out(fails, [(7,)]))


@pytest.mark.usefixtures("connected")
def test_a_process_that_dies_again_and_again_ends_it(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cluster, "TRIES", 1)
    with on_cluster(cluster.address), pytest.raises(ChildProcessError, match="of the cluster died 2 times"):
        list(shared_out(dies, [(7,)]))


@pytest.mark.usefixtures("connected")
def test_another_version_on_a_node_is_refused(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cluster, "VERSION", "0.0.1")
    with (
        on_cluster(cluster.address),
        pytest.raises(ValueError, match=r"has unbraid .*, the machine that asks has 0\.0\.1"),
    ):
        list(shared_out(square, [(np.ones(1), 1)]))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--address", "auto"], "address (--address) goes with executor ray (--executor ray)"),
        (["--executor", "ray", "--top", "3"], "executor 'ray' and top do not go together"),
        (["--executor", "ray", "--address", "nonsense"], "write auto, or host:port"),
    ],
)
def test_what_cannot_be_is_one_line(
    options: list[str], said: str, tmp_path: Path, unbraid_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)  # a connection from before would be taken
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", np.random.default_rng(0).normal(size=(50, 2)))
    code, _, line = unbraid_cli("rank", str(tmp_path / "a.npy"), str(tmp_path / "b.npy"), *options)
    assert code == 2
    assert said in " ".join(line.split())


def test_an_executor_is_one_of_two() -> None:
    with pytest.raises(ValueError, match="executor"):
        _rank.executed("slurm", None)
