"""Effects with intervals over units, from the table of a study: what the rules of evidence/studies/claims hold papers to.

A unit is what varies independently: a seed (every run is one), a setting (the mean of its seeds), or a model on a
dataset (likewise). An interval over smaller units than those that vary would promise too much.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from scipy import stats

from unbraid.base.types import BoolArray, FloatArray, IntArray
from unbraid.scoring.result_columns import higher_is_better, within_range

RESAMPLES, CONFIDENCE = 1000, 0.95
Rows: TypeAlias = Mapping[str, Any]  # column to the value that it must have, or to a list of such
UNITS = {
    "seed": ["dataset", "dataset_options", "family", "setting", "seed"],
    "setting": ["dataset", "dataset_options", "family", "setting"],
    "model": ["family", "setting"],
    "dataset_model": ["dataset", "dataset_options", "family", "setting"],
    "family": ["family"],
}


@dataclass(frozen=True)
class Effect:
    """A number with its interval, and the number of units behind it."""

    value: float
    low: float
    high: float
    units: int


@dataclass(frozen=True)
class Measure:
    """What is measured: a kind of KINDS and its columns."""

    kind: str
    unit: str
    rows: Rows
    less: Rows | str | None  # other rows, or another column
    columns: Mapping[str, Any]  # by what they are for: x, y, by, ys, others, best, against; bounds of a share; a method

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    @property
    def groups(self) -> list[Rows]:
        """The rows that are looked at: one group, or two that are compared."""
        return [self.rows, self.less] if isinstance(self.less, Mapping) else [self.rows]

    @property
    def all_columns(self) -> list[str]:
        """That a run needs."""
        found = [each for name in KINDS[self.kind].columns for each in np.atleast_1d(self.columns[name]).tolist()]
        return [each for each in found if each not in ("median", "best")] + [self.less] * isinstance(self.less, str)


def measured(measure: Measure, frame: pd.DataFrame) -> Effect:
    """The effect in a table of runs.

    Raises:
        ValueError: the table lacks a column, or no run has the rows that the measure names.
    """
    return KINDS[measure.kind].effect(measure, frame)


# ---- units


def matches(frame: pd.DataFrame, rows: Rows) -> BoolArray:
    """Which rows have these values.

    Raises:
        ValueError: a column is not there.
    """
    keep = np.ones(len(frame), bool)
    for column, value in rows.items():
        if column not in frame:
            raise ValueError(f"no column {column!r}")
        keep &= frame[column].isin(value if isinstance(value, list) else [value]).to_numpy()
    return keep


def chosen(frame: pd.DataFrame, rows: Rows) -> pd.DataFrame:
    """The rows that have these values.

    Raises:
        ValueError: there are none.
    """
    keep = matches(frame, rows)
    if not keep.any():
        raise ValueError(f"no run has {dict(rows)}")
    return frame[keep].reset_index(drop=True)


def by_unit(frame: pd.DataFrame, unit: str) -> list[IntArray]:
    """The positions of each unit's runs."""
    number = np.zeros(len(frame), int)
    for column in (each for each in (*UNITS[unit], "of_first") if each in frame):
        codes, levels = pd.factorize(frame[column], sort=True, use_na_sentinel=False)
        number = number * len(levels) + codes
    order = np.argsort(number, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number[order])) + 1)


def of_units(frame: pd.DataFrame, columns: Sequence[str], unit: str) -> FloatArray:
    """(n_units, n_columns): means over the runs of each unit that have all columns."""
    for column in columns:
        if column not in frame:
            raise ValueError(f"no column {column!r}")
    known = frame.dropna(subset=list(columns)).reset_index(drop=True)
    if known.empty:
        raise ValueError(f"no run has {', '.join(columns)}")
    values = known[list(columns)].to_numpy(float)
    return np.array([values[index].mean(axis=0) for index in by_unit(known, unit)])


# ---- closed intervals


def _mean(measure: Measure, frame: pd.DataFrame) -> Effect:
    """Cut off at the ends of the metric's range."""
    values = of_units(chosen(frame, measure.rows), [measure["x"]], measure.unit)[:, 0]
    found = _student(values)
    low, high = within_range(measure["x"], values, found.low, found.high)
    return replace(found, low=low, high=high)


def _paired(measure: Measure, frame: pd.DataFrame) -> Effect:
    values = of_units(chosen(frame, measure.rows), [measure["x"], str(measure.less)], measure.unit)
    return _student(values[:, 0] - values[:, 1])


def _beyond(measure: Measure, frame: pd.DataFrame) -> Effect:
    found = _student(of_units(chosen(frame, measure.rows), [measure["x"]], measure.unit)[:, 0])
    constant = float(chosen(frame, measure.groups[1])[measure["x"]].iloc[0])
    return replace(found, value=found.value - constant, low=found.low - constant, high=found.high - constant)


def _difference(measure: Measure, frame: pd.DataFrame) -> Effect:
    return _welch(*(of_units(chosen(frame, rows), [measure["x"]], measure.unit)[:, 0] for rows in measure.groups))


def _welch(one: FloatArray, other: FloatArray) -> Effect:
    """Welch's interval; with a group of one unit, none."""
    value, units = float(one.mean() - other.mean()), len(one) + len(other)
    if min(len(one), len(other)) < 2:
        return Effect(value, -np.inf, np.inf, units)
    if np.ptp(one) == np.ptp(other) == 0:
        return Effect(value, value, value, units)
    if np.ptp(one) == 0 or np.ptp(other) == 0:  # of which SciPy warns; the other group alone varies
        varying, sign = (other, -1) if np.ptp(one) == 0 else (one, 1)
        own = _student(sign * varying)
        return Effect(value, value - own.value + own.low, value - own.value + own.high, units)
    found = stats.ttest_ind(one, other, equal_var=False).confidence_interval(CONFIDENCE)
    return Effect(value, float(found.low), float(found.high), units)


def _share(measure: Measure, frame: pd.DataFrame) -> Effect:
    """Clopper's and Pearson's interval."""
    values = of_units(chosen(frame, measure.rows), [measure["x"]], measure.unit)[:, 0]
    below = measure.columns.get("below")
    held = int((values < below).sum() if below is not None else (values > measure["above"]).sum())
    found = stats.binomtest(held, len(values)).proportion_ci(CONFIDENCE)
    return Effect(held / len(values), float(found.low), float(found.high), len(values))


def _correlation(measure: Measure, frame: pd.DataFrame) -> Effect:
    values = of_units(chosen(frame, measure.rows), [measure["x"], measure["y"]], measure.unit)
    return _of_correlation(correlation(values[:, 0], values[:, 1], measure.kind), len(values), measure.kind)


def _spearman_by_family(measure: Measure, frame: pd.DataFrame) -> Effect:
    """Spearman's correlation of a column with each of several within families and datasets; families are units."""
    known = _complete(measure, chosen(frame, measure.rows))
    by_family: dict[Any, list[float]] = {}
    for (family, *_), own in known.groupby(["family", *(["dataset"] if "dataset" in known else [])]):
        x = own[measure["x"]].to_numpy(float)
        values = [correlation(x, own[y].to_numpy(float), "spearman") for y in measure["ys"]]
        by_family.setdefault(family, []).append(float(np.mean(values)))
    return _student(np.array([np.mean(values) for values in by_family.values()]))


def _spread(measure: Measure, frame: pd.DataFrame) -> Effect:
    """Standard deviation over the seeds of a setting, mean over settings, less that of other rows."""

    def of(rows: Rows) -> FloatArray:
        known = _complete(measure, chosen(frame, rows))
        values = known[measure["x"]].to_numpy(float)
        return np.array([values[index].std(ddof=1) for index in by_unit(known, "setting") if len(index) > 1])

    return _welch(*(of(rows) for rows in measure.groups))


def _best_of_seed(measure: Measure, frame: pd.DataFrame) -> Effect:
    """For each seed the highest of any run, mean over seeds, less that of other rows."""
    return _welch(
        *(
            _complete(measure, chosen(frame, rows)).groupby("seed")[measure["x"]].max().to_numpy(float)
            for rows in measure.groups
        )
    )


def _correlation_gap(measure: Measure, frame: pd.DataFrame) -> Effect:
    """The interval of Zou 2007 (equation 15) for independent correlations, of each one's own interval."""
    one, other = (_correlation(replace(measure, kind="pearson", rows=rows), frame) for rows in measure.groups)
    value = one.value - other.value
    low = value - np.hypot(one.value - one.low, other.high - other.value)
    high = value + np.hypot(one.high - one.value, other.value - other.low)
    return Effect(value, float(low), float(high), one.units + other.units)


def correlation(first: FloatArray, second: FloatArray, method: str) -> float:
    """Pearson's or Spearman's; 0 where a column does not vary."""
    if method == "spearman":
        first, second = stats.rankdata(first), stats.rankdata(second)
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _of_correlation(value: float, units: int, method: str) -> Effect:
    """Fisher's interval; of ranks with the variance of Bonett and Wright 2000. None of fewer than five units."""
    if units < 5:
        return Effect(value, -1.0, 1.0, units)
    variance = (1 + value**2 / 2 if method == "spearman" else 1.0) / (units - 3)
    reach = stats.norm.ppf((1 + CONFIDENCE) / 2) * np.sqrt(variance)
    middle = np.arctanh(np.clip(value, -1 + 1e-12, 1 - 1e-12))
    return Effect(value, float(np.tanh(middle - reach)), float(np.tanh(middle + reach)), units)


def _student(values: FloatArray) -> Effect:
    value = float(values.mean())
    if len(values) < 2:
        return Effect(value, -np.inf, np.inf, len(values))
    width = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * stats.sem(values))
    return Effect(value, value - width, value + width, len(values))


# ---- intervals by drawing units anew


class Table(NamedTuple):
    """Runs as arrays, since they are drawn a thousand times."""

    values: Mapping[str, FloatArray]  # (n_runs,) by column
    setting: IntArray  # (n_runs,) 0, 1, ... of each run
    of_first: BoolArray  # (n_runs,) whether it is of the first of two groups

    def means(self, column: str, of_first: bool = True) -> FloatArray:
        """(n_settings,) over the runs of each setting that is of that group."""
        own = self.of_first == of_first
        counts = np.bincount(self.setting[own])
        sums = np.bincount(self.setting[own], self.values[column][own])
        return sums[counts > 0] / counts[counts > 0]


def _within(measure: Measure, table: Table) -> float:
    """Spearman's correlation after each setting's mean rank is taken out of both columns."""
    rest = []
    for column in (measure["x"], measure["y"]):
        ranks = stats.rankdata(table.values[column])
        means = np.bincount(table.setting, ranks) / np.maximum(np.bincount(table.setting), 1)
        rest.append(ranks - means[table.setting])
    return correlation(*rest, "pearson")


def _lead(measure: Measure, table: Table) -> float:
    """How much better a column goes with another than the best of several does; errors are turned round."""
    of = table.values.__getitem__ if measure.unit == "seed" else table.means
    y, method = of(measure["y"]), measure.columns.get("method", "pearson")
    signs = {each: -1 if higher_is_better(each) is False else 1 for each in (measure["x"], *measure["others"])}
    found = [sign * correlation(of(each), y, method) for each, sign in signs.items()]
    return found[0] - max(found[1:])


def _pick(measure: Measure, table: Table) -> float:
    """What the run that is best by one column has in another, less the median, the best, or another's pick."""
    y, against = table.values[measure["y"]], measure["against"]
    picked = y[table.values[measure["by"]].argmax()]
    if against in ("median", "best"):
        return float(picked - (np.median(y) if against == "median" else y.max()))
    return float(picked - y[table.values[against].argmax()])


def _disagreement(measure: Measure, table: Table) -> float:
    """The largest difference, over runs, between the share of runs below it by one column and by another."""
    places = [(stats.rankdata(table.values[measure[name]]) - 0.5) / len(table.setting) for name in "xy"]
    return float((places[0] - places[1]).max())


def _best_setting(measure: Measure, table: Table) -> float:
    """The highest mean of a setting among some rows, less that among others."""
    return float(table.means(measure["x"]).max() - table.means(measure["x"], of_first=False).max())


def _resampled(statistic: Callable[[Measure, Table], float]) -> Callable[[Measure, pd.DataFrame], Effect]:
    """A statistic, with the middle of its values when units are drawn anew.

    Where seeds are the units, they are drawn anew within each setting. Else whole settings (or models) are drawn with
    all their seeds, within each of the groups that are compared; one that is drawn twice counts as two.
    """

    def effect(measure: Measure, frame: pd.DataFrame) -> Effect:
        groups = [_complete(measure, chosen(frame, rows)) for rows in measure.groups]
        known = pd.concat(groups, ignore_index=True)
        of_first = np.arange(len(known)) < len(groups[0])
        units = by_unit(known.assign(of_first=of_first), "setting" if measure.unit == "seed" else measure.unit)
        values = {column: known[column].to_numpy(float) for column in measure.all_columns}

        def of(drawn: Sequence[IntArray]) -> Table:
            rows = np.concatenate(drawn)
            numbers = np.repeat(np.arange(len(drawn)), [len(each) for each in drawn])
            return Table({name: each[rows] for name, each in values.items()}, numbers, of_first[rows])

        def again() -> list[IntArray]:
            if measure.unit == "seed":
                return [rng.choice(each, len(each)) for each in units]
            strata = ([each for each in units if of_first[each[0]] == first] for first in (True, False))
            return [each[k] for each in strata if each for k in rng.integers(0, len(each), len(each))]

        rng = np.random.default_rng(0)
        drawn = [statistic(measure, of(again())) for _ in range(RESAMPLES)]
        tail = 50 * (1 - CONFIDENCE)
        value, (low, high) = statistic(measure, of(units)), np.percentile(drawn, [tail, 100 - tail])
        n_units = len(known) if measure.unit == "seed" else len(units)
        return Effect(value, min(float(low), value), max(float(high), value), n_units)  # draws can tie ranks

    return effect


def _complete(measure: Measure, frame: pd.DataFrame) -> pd.DataFrame:
    """The runs that have all columns of a measure."""
    for column in measure.all_columns:
        if column not in frame:
            raise ValueError(f"no column {column!r}")
    known = frame.dropna(subset=measure.all_columns).reset_index(drop=True)
    if known.empty:
        raise ValueError(f"no run has {', '.join(measure.all_columns)}")
    return known


# ---- all kinds


class Kind(NamedTuple):
    """How an effect is measured."""

    effect: Callable[[Measure, pd.DataFrame], Effect]
    columns: tuple[str, ...] = ("x",)  # what its rule names
    less: str = ""  # what it compares with: "rows" or "column"


KINDS: Mapping[str, Kind] = {
    "mean": Kind(_mean),
    "difference": Kind(_difference, less="rows"),
    "paired": Kind(_paired, less="column"),
    "beyond": Kind(_beyond, less="rows"),
    "spread": Kind(_spread, less="rows"),
    "best_of_seed": Kind(_best_of_seed, less="rows"),
    "spearman_by_family": Kind(_spearman_by_family, ("x", "ys")),
    "disagreement": Kind(_resampled(_disagreement), ("x", "y")),
    "share": Kind(_share),
    "spearman": Kind(_correlation, ("x", "y")),
    "pearson": Kind(_correlation, ("x", "y")),
    "spearman_within": Kind(_resampled(_within), ("x", "y")),
    "correlation_gap": Kind(_correlation_gap, ("x", "y"), "rows"),
    "lead": Kind(_resampled(_lead), ("x", "others", "y")),
    "pick": Kind(_resampled(_pick), ("by", "y", "against")),
    "best_setting": Kind(_resampled(_best_setting), less="rows"),
}
