"""Correlations of metrics with each other, with UDR, with generalisation and with hyperparameters."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from unbraid.base.arguments import check_number, list_of
from unbraid.base.counted import counted
from unbraid.base.natural_order import natural
from unbraid.base.types import BoolArray, DataFrame, FloatArray, IntArray
from unbraid.scoring.correlation import (
    Method,
    Test,
    correlation,
    correlation_difference,
    correlation_interval,
    holm,
    p_of_few,
)
from unbraid.scoring.result_columns import (
    LEAST_RUNS,
    agreement_columns,
    check_columns,
    higher_is_better,
    hyperparameter_columns,
    numbers,
    texts,
    why_not,
)

__all__ = ["Agreement", "Correlation", "LeftOut", "Prediction", "Predictors", "agreement", "predictors"]

EVERYTHING = "all"
SETTINGS_OF = ("label", "dataset", "content", "family")  # what settings of one name may be of


@dataclass(frozen=True)
class Correlation:
    """One pair of columns within one group of runs."""

    group: str  # a family, or "all"
    first: str
    second: str
    value: float  # in [-1, 1]
    low: float  # interval by Fisher's transformation, with settings counted as independent runs
    high: float
    p: float  # two-sided, of no correlation, counting settings likewise
    p_holm: float  # the same, corrected for all pairs of the group
    n: int  # runs that have both
    settings: int  # of these runs; runs of one setting are alike, so settings count as independent


@dataclass(frozen=True)
class LeftOut:
    """What could not be compared, and why."""

    group: str
    columns: tuple[str, ...]  # one that is compared with nothing, or two
    reason: str


@dataclass(frozen=True)
class Agreement:
    """Correlations of columns of a study's results, for all runs and within each family."""

    columns: tuple[str, ...]
    groups: tuple[str, ...]
    method: Method
    correlations: tuple[Correlation, ...]
    left_out: tuple[LeftOut, ...]

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame, one row per pair: group, first, second, value, low, high, p, p_holm, n, settings."""
        import pandas

        return pandas.DataFrame(map(asdict, self.correlations), columns=list(Correlation.__annotations__))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def matrix(self, group: str = EVERYTHING) -> tuple[list[str], FloatArray, FloatArray]:
        """Names, correlations and corrected p values (k, k) of a group, as `plot_correlations` draws them.

        Columns that are compared with nothing are absent; NaN where a single pair is left out.
        """
        own = [pair for pair in self.correlations if pair.group == group]
        present = {name for pair in own for name in (pair.first, pair.second)}
        names = [name for name in self.columns if name in present]
        values, p = np.full((2, len(names), len(names)), np.nan)
        np.fill_diagonal(values, 1.0)
        np.fill_diagonal(p, 0.0)
        for pair in own:
            i, j = names.index(pair.first), names.index(pair.second)
            values[i, j] = values[j, i] = pair.value
            p[i, j] = p[j, i] = pair.p_holm
        return names, values, p


def agreement(
    frame: DataFrame,
    columns: str | Sequence[str] | None = None,
    *,
    method: Method = "spearman",
    by: str | None = "family",
    confidence: float = 0.95,
) -> Agreement:
    """Correlate columns of results with each other, over all runs and within each group.

    Args:
        frame: the results of a study (pandas), one row per run. Runs that lack either of two columns, such as those
            that diverged, do not count for that pair.
        columns: their names, or that of one; default the headline of every metric, udr.score, the columns of
            compositional and zero-shot generalisation, and the numeric hyperparameters that vary. Two hyperparameters
            are not compared.
        method: "spearman" for order, "pearson" for straight lines (SNC/NK).
        by: column that groups the runs; None: all runs together only.
        confidence: of the intervals, in (0, 1).

    Returns:
        Agreement. Correlations are over runs. Runs of one setting are alike, so intervals and p count settings: they
        are those of as many independent runs as there are settings, which is on the safe side where seeds matter too.
        Where no column "setting" tells, runs count. `p_holm` is corrected for all pairs of its group. A column that is
        constant within a group, or that fewer than three runs have, is under `left_out` with the reason. Signs are as
        measured: a metric that is better when lower correlates negatively.

    Raises:
        ValueError: a column is unknown or does not hold numbers; confidence is out of range.

    Reference:
        Duan et al. 2020 (UDR), tables 1 and 6; Mahon et al. 2023 (SNC/NK), table 4 and figure 14.
    """
    check_number("confidence", confidence, above=0, below=1)
    names = agreement_columns(frame) if columns is None else list_of("columns", columns, single=True)
    chosen = tuple(dict.fromkeys(names))
    table = {name: numbers(frame, name) for name in chosen}
    hyper = set(hyperparameter_columns(frame))
    correlations: list[Correlation] = []
    missing: list[LeftOut] = []
    groups, settings = _groups(frame, by), _settings(frame)
    for group, rows in groups.items():
        pairs: list[Correlation] = []
        own = {name: values[rows] for name, values in table.items()}
        faults = {name: fault for name, values in own.items() if (fault := why_not(values))}
        missing += [LeftOut(group, (name,), fault) for name, fault in faults.items()]
        for first, second in combinations([name for name in chosen if name not in faults], 2):
            if first in hyper and second in hyper:
                continue
            both = np.isfinite(own[first]) & np.isfinite(own[second])
            fault = why_not(own[first][both]) or why_not(own[second][both])
            if fault:
                missing.append(LeftOut(group, (first, second), f"where both are known, one {fault}"))
                continue
            value, p = correlation(own[first][both], own[second][both], method)
            n, units = int(both.sum()), len(np.unique(settings[rows][both]))
            low, high = (-1.0, 1.0) if units < LEAST_RUNS else correlation_interval(value, units, confidence, method)
            if units < n:
                p = 1.0 if units < LEAST_RUNS else p_of_few(value, units)
            pairs.append(Correlation(group, first, second, value, low, high, p, 1.0, n, units))
        corrected = holm([pair.p for pair in pairs])
        correlations += [replace(pair, p_holm=p_holm) for pair, p_holm in zip(pairs, corrected, strict=True)]
    return Agreement(chosen, tuple(groups), method, tuple(correlations), tuple(missing))


@dataclass(frozen=True)
class Prediction:
    """How sure it is that one metric predicts the target better than another."""

    first: str
    second: str
    first_value: float  # correlation of the first with the target, both turned so that higher is better
    second_value: float
    z: float
    p: float  # one-sided, of the first not being the stronger, as of so many independent runs as there are settings
    n: int  # runs that have all three
    settings: int  # that these runs are of


@dataclass(frozen=True)
class Predictors:
    """Which columns correlate most with a target, and whether the differences are more than chance."""

    target: str
    method: Method
    test: Test
    values: dict[str, float]  # correlation of each column with the target, over all runs that have both
    n: dict[str, int]  # how many these are
    predictions: tuple[Prediction, ...]  # every ordered pair
    left_out: tuple[LeftOut, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def matrix(self) -> tuple[list[str], FloatArray]:
        """Names, the best predictor first, and p (k, k) that the row is not stronger than the column (figure 15)."""
        names = sorted({prediction.first for prediction in self.predictions}, key=lambda name: -self.values[name])
        p = np.full((len(names), len(names)), np.nan)
        for prediction in self.predictions:
            p[names.index(prediction.first), names.index(prediction.second)] = prediction.p
        return names, p


def predictors(
    frame: DataFrame,
    target: str,
    columns: str | Sequence[str] | None = None,
    *,
    method: Method = "pearson",
    test: Test = "dependent",
) -> Predictors:
    """Compare how well metrics predict a target, such as compositional generalisation.

    Args:
        frame: results, one row per run; `setting_means` gives one per setting, as the paper has.
        target: column to be predicted.
        columns: their names; default as for `agreement`, without hyperparameters and without other columns of the
            target's kind.
        method: "pearson" as the paper, or "spearman".
        test: of the difference of two correlations; see `correlation_difference`.

    Returns:
        Predictors. Of each pair, all runs that have both and the target count, which may be fewer than those that one
        of them has; pairs that cannot be compared are under `left_out` with the reason. Tests count settings, of which
        four are needed, as `agreement` does. Columns that are better when lower, the target among them, are turned
        round: the stronger correlation is the one that predicts a better target.

    Raises:
        ValueError: a column is unknown or does not hold numbers, or there are not two to compare.

    Reference:
        Mahon et al. 2023 (SNC/NK), section 5.3 and appendix I.
    """
    check_columns(frame, [target])
    named = _predicting(frame, target) if columns is None else list_of("columns", columns, single=True)
    chosen = [name for name in dict.fromkeys(named) if name != target]
    if len(chosen) < 2:
        raise ValueError(f"two columns are needed to predict {target!r}; there are {', '.join(chosen) or 'none'}")
    goal, table = _turned(frame, target), {name: _turned(frame, name) for name in chosen}
    predictions: list[Prediction] = []
    missing: list[LeftOut] = []
    alone, n_alone, settings = {}, {}, _settings(frame)
    for name in chosen:
        both = np.isfinite(goal) & np.isfinite(table[name])
        if not (why_not(goal[both]) or why_not(table[name][both])):
            alone[name], n_alone[name] = correlation(table[name][both], goal[both], method)[0], int(both.sum())
    for first, second in combinations(chosen, 2):
        known = np.isfinite(goal) & np.isfinite(table[first]) & np.isfinite(table[second])
        x, y, z = table[first][known], table[second][known], goal[known]
        fault = next(
            (f"{name} {fault}" for name, v in ((first, x), (second, y), (target, z)) if (fault := why_not(v))), ""
        )
        n, units = len(x), len(np.unique(settings[known]))
        if fault or units < LEAST_RUNS + 1:
            few = f"{counted(units, 'setting')} with all three; {LEAST_RUNS + 1} are needed"
            missing.append(LeftOut(EVERYTHING, (first, second), fault or few))
            continue
        a, b, between = (correlation(*pair, method)[0] for pair in ((x, z), (y, z), (x, y)))
        try:
            ahead = correlation_difference(a, b, units, between=between, test=test)
            behind = correlation_difference(b, a, units, between=between, test=test)
        except ValueError as error:
            missing.append(LeftOut(EVERYTHING, (first, second), str(error)))
            continue
        predictions.append(Prediction(first, second, a, b, ahead.z, ahead.p, n, units))
        predictions.append(Prediction(second, first, b, a, behind.z, behind.p, n, units))
    return Predictors(target, method, test, alone, n_alone, tuple(predictions), tuple(missing))


def _turned(frame: DataFrame, column: str) -> FloatArray:
    return -numbers(frame, column) if higher_is_better(column) is False else numbers(frame, column)


def _predicting(frame: DataFrame, target: str) -> list[str]:
    kind = target.partition(".")[0] + "."
    return [
        name
        for name in agreement_columns(frame)
        if name != target and not name.startswith(("hyper.", "compositional.", kind))
    ]


def _settings(frame: DataFrame) -> IntArray:
    """(n_runs,) the number of each run's setting, of its family and dataset; runs without one are each their own."""
    known = [name for name in (*SETTINGS_OF, "setting") if name in frame.columns]
    if "setting" not in known:
        return np.arange(len(frame))
    return frame.groupby(known, dropna=False, sort=False).ngroup().to_numpy()


def _groups(frame: DataFrame, by: str | None) -> dict[str, BoolArray]:
    groups = {EVERYTHING: np.ones(len(frame), dtype=bool)}
    if by is not None:
        check_columns(frame, [by])
        labels = np.array(texts(frame, by))
        if len(known := sorted(set(labels.tolist()) - {""}, key=natural)) > 1:
            groups |= {label: labels == label for label in known}
    return groups
