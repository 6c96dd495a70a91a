"""Work that is shared out among cores."""

import threading
import time

import numpy as np
import pytest

from tests.examples import grid_factors, rotated_codes
from unbraid._utils import threads
from unbraid._utils.threads import at_once, in_threads
from unbraid.metrics import dci_boosted, dci_es, dci_forest, infomec, linear_accuracy, mig_exact, nk
from unbraid.metrics._shared import probes


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_results_are_in_the_order_of_their_tasks(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "n_cores", lambda: cores)
    in_turn: list[int] = []

    def listed(work, places):
        in_turn.extend(places)
        return in_threads(work, in_turn)

    monkeypatch.setattr(threads, "in_threads", listed)

    def work(task: int, _: threading.Event) -> int:
        time.sleep(0.001 * task)
        return 10 * task

    assert at_once(work, [3, 1, 4, 2], [3, 1, 4, 2]) == [30, 10, 40, 20]
    assert in_turn == ([] if cores == 1 else [2, 0, 3, 1]), "the costliest first"


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


@pytest.mark.parametrize("metric", [nk, dci_boosted, dci_forest, dci_es, linear_accuracy, infomec, exact])
def test_metrics_have_the_same_bits_on_any_number_of_cores(metric, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "EPOCHS", 3)
    factors = grid_factors(6)
    codes = rotated_codes(factors, noise=0.3)
    found = []
    for cores in (1, 2, 3):
        monkeypatch.setattr(threads, "n_cores", lambda cores=cores: cores)
        found.append(metric(codes, factors))
    for each in found[1:]:
        for name, value in vars(found[0]).items():
            np.testing.assert_array_equal(getattr(each, name), value)
