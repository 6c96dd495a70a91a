"""What the models of a study must reach before a claim is judged by them: models that have not learnt decide nothing.

Gates stand in evidence/studies/claims beside the rules. Each comes from the paper's own numbers, not from what the study gave.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from effects import matches

STATISTICS = {
    "mean": "mean {}",
    "median": "median {}",
    "best": "highest {}",
    "agreement": "mean rank correlation of {}",
}


@dataclass(frozen=True)
class Gate:
    """A statistic of a study's runs and the bound that it must reach."""

    study: str
    statistic: str  # one of STATISTICS
    columns: tuple[str, ...]  # one, or several of which all pairs are correlated ("agreement")
    rows: dict[str, Any]
    why: str  # where the bound comes from
    at_least: float | None = None
    at_most: float | None = None

    def value(self, runs: pd.DataFrame) -> float:
        """The statistic on the runs of its study; NaN where none of these rows has the columns."""
        if not set(self.columns) <= set(runs.columns):
            return float("nan")
        values = runs.loc[matches(runs, self.rows), list(self.columns)]
        if self.statistic == "agreement":
            ranked = values.corr("spearman")
            return float(np.mean([ranked.loc[x, y] for x, y in combinations(self.columns, 2)]))
        column = values[self.columns[0]]
        return float({"mean": column.mean, "median": column.median, "best": column.max}[self.statistic]())

    def failure(self, runs: pd.DataFrame) -> str:
        """Why these models have not learnt; empty where they have."""
        value = self.value(runs)
        reached = value >= self.at_least if self.at_least is not None else value <= self.at_most
        if reached:
            return ""
        statistic = STATISTICS[self.statistic].format(" and ".join(f"`{column}`" for column in self.columns))
        asked = f"at least {self.at_least:g}" if self.at_least is not None else f"at most {self.at_most:g}"
        return f"{statistic} of {self.study} is {value:.3g}, and must be {asked}: {self.why}"


def read_gates(known: list[dict[str, Any]], file: str) -> list[Gate]:
    """The gates of a file of evidence/studies/claims.

    Raises:
        ValueError: a gate lacks something or has what no gate has.
    """
    gates = []
    for given in known:
        if given.get("statistic") not in STATISTICS:
            raise ValueError(f"{file}, gates: statistic must be one of {', '.join(STATISTICS)}; got {given}")
        if ("at_least" in given) == ("at_most" in given):
            raise ValueError(f"{file}, gates: needs one of at_least and at_most; got {given}")
        try:
            gates.append(Gate(**{"rows": {}, **given, "columns": tuple(given["columns"])}))
        except (TypeError, KeyError) as error:
            raise ValueError(f"{file}, gates: {error}; got {given}") from None
    return gates
