"""A study whose models have not learnt decides nothing."""

from importlib import import_module
from typing import Any

import pandas as pd
import pytest

gates: Any = import_module("gates")

RUNS = pd.DataFrame(
    {
        "family": ["a", "a", "b"],
        "mig.score": [0.1, 0.3, 0.5],
        "sap.score": [0.3, 0.2, 0.1],
        "snc.score": [0.1, 0.2, 0.3],
    }
)


def gate(**given: Any) -> Any:
    return gates.read_gates([{"study": "s", "why": "table 1", **given}], "x.yaml")[0]


@pytest.mark.parametrize(
    ("statistic", "columns", "rows", "value"),
    [
        ("mean", ["mig.score"], {"family": "a"}, 0.2),
        ("mean", ["mig.score"], {}, 0.3),
        ("median", ["sap.score"], {}, 0.2),
        ("best", ["mig.score"], {"family": "a"}, 0.3),
        # Ranks 123, 321, 123: correlations -1, 1, -1.
        ("agreement", ["mig.score", "sap.score", "snc.score"], {}, -1 / 3),
    ],
)
def test_statistics_by_hand(statistic: str, columns: list[str], rows: dict[str, str], value: float) -> None:
    known = gate(statistic=statistic, columns=columns, rows=rows, at_least=value - 1e-6)
    assert known.value(RUNS) == pytest.approx(value)
    assert known.failure(RUNS) == ""
    assert gate(statistic=statistic, columns=columns, rows=rows, at_least=value + 0.01).failure(RUNS)
    assert gate(statistic=statistic, columns=columns, rows=rows, at_most=value - 0.01).failure(RUNS)


def test_what_was_not_measured_fails() -> None:
    assert gate(statistic="mean", columns=["nk.score"], at_most=1.0).failure(RUNS)


def test_a_gate_that_lacks_its_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="one of at_least and at_most"):
        gate(statistic="mean", columns=["mig.score"])
