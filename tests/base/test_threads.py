"""Work that is shared out among cores."""

import _thread
import threading
import time
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.examples import grid_factors, rotated_codes
from unbraid.base import threads
from unbraid.base.threads import at_once, in_threads, map_ordered
from unbraid.metrics import (
    beta_vae_score,
    dci_boosted,
    dci_es,
    dci_forest,
    elbo_terms,
    explicitness,
    infomec,
    linear_accuracy,
    mig_exact,
    nk,
)
from unbraid.metrics._shared import probes
from unbraid.metrics._shared.information import information_of_noise
from unbraid.metrics._shared.inputs import check_inputs
from unbraid.metrics._solvers import logistic


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_results_are_in_the_order_of_their_tasks(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "n_cores", lambda: cores)
    in_turn: list[int] = []

    def listed(work, numbered, most):
        items = list(numbered)
        in_turn.extend(place for _, place in items)
        return in_threads(work, items, most)

    monkeypatch.setattr(threads, "in_threads", listed)

    def work(task: int, _: threading.Event) -> int:
        time.sleep(0.001 * task)
        return 10 * task

    assert at_once(work, [3, 1, 4, 2], [3, 1, 4, 2]) == [30, 10, 40, 20]
    assert in_turn == ([] if cores == 1 else [2, 0, 3, 1]), "the costliest first"


@pytest.mark.parametrize(("cores", "most", "threads_used"), [(1, 3, 1), (3, 1, 1), (3, 2, 2), (2, 5, 2)])
def test_results_come_in_the_order_of_their_tasks(
    cores: int, most: int, threads_used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most so many at a time; what tasks share out in turn stays in their thread, and so do context variables."""
    monkeypatch.setattr(threads, "n_cores", lambda: cores)
    variable = ContextVar("variable", default="")
    under_way, most_at_once = list[int](), list[int]()

    def work(task: int, _: threading.Event) -> tuple[int, bool, str]:
        under_way.append(task)
        most_at_once.append(len(under_way))
        time.sleep(0.002 * task)
        own = threading.current_thread()
        inner = at_once(lambda *_: threading.current_thread() is own, [1, 2], [1, 2])
        under_way.remove(task)
        return 10 * task, all(inner), variable.get()

    tasks = [9, 1, 4, 2, 3, 1]
    variable.set("told")
    found = list(map_ordered(work, tasks, most))
    in_own_thread = threads_used > 1
    assert [(task, ten) for task, (ten, _, _) in found] == [(task, 10 * task) for task in tasks]
    assert all(told == "told" and (alone or not in_own_thread) for _, (_, alone, told) in found)
    assert max(most_at_once) == threads_used


def test_an_error_ends_the_others_and_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "n_cores", lambda: 2)
    told: list[bool] = []

    def work(task: int, stopped: threading.Event) -> int:
        if task == 0:
            raise ValueError("no")
        told.append(stopped.wait(10))
        return task

    with pytest.raises(ValueError, match="^no$"):
        at_once(work, [0, 1], [1, 2])
    assert told == [True]


def exact(codes: np.ndarray, factors: np.ndarray) -> object:
    return mig_exact(codes, factors, log_variances=np.full(codes.shape, -2.0), n_samples=200)


def elbo(codes: np.ndarray, factors: np.ndarray) -> object:
    return elbo_terms(codes, factors, log_variances=np.full(codes.shape, -2.0), n_samples=1500)


def explicit(codes: np.ndarray, factors: np.ndarray) -> object:
    """More levels than the regressions that are fitted together."""
    finer = factors[:, 0] * 8 + factors[:, 2]
    found = explicitness(codes, np.column_stack([factors, finer]))
    return SimpleNamespace(**{**vars(found), "auc_per_class": np.concatenate(found.auc_per_class)})


def noise(codes: np.ndarray, factors: np.ndarray) -> object:
    return SimpleNamespace(information=information_of_noise(check_inputs(codes, factors)))


ON_CORES = (
    nk, pytest.param(dci_boosted, marks=pytest.mark.lengthy), dci_forest, dci_es, linear_accuracy, infomec,
    beta_vae_score, exact, elbo, explicit, noise,
)  # fmt: skip


@pytest.mark.parametrize("metric", ON_CORES)
def test_metrics_have_the_same_bits_on_any_number_of_cores(metric, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "EPOCHS", 3)
    factors = grid_factors(6)
    codes = rotated_codes(factors, noise=0.3)
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(threads, "n_cores", lambda cores=cores: cores)
        found.append(metric(codes, factors))
    for name, value in vars(found[0]).items():
        np.testing.assert_array_equal(getattr(found[1], name), value)


def test_an_interrupt_ends_fits_after_the_step_that_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undisturbed, the fits take many more steps."""
    monkeypatch.setattr(threads, "n_cores", lambda: 2)
    steps, step = list[int](), logistic._conjugate_gradients
    factors = grid_factors(6)
    codes = rotated_codes(factors, noise=0.3)

    def counted(*given: Any) -> object:
        steps.append(1)
        if len(steps) == 2 and interrupting:
            _thread.interrupt_main()
        time.sleep(0.1 * interrupting)
        return step(*given)

    monkeypatch.setattr(logistic, "_conjugate_gradients", counted)
    interrupting = False
    linear_accuracy(codes, factors)
    undisturbed = len(steps)
    assert undisturbed > 12
    steps.clear()
    interrupting = True
    with pytest.raises(KeyboardInterrupt):
        linear_accuracy(codes, factors)
    assert len(steps) < undisturbed - 4
