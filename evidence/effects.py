"""Effects with intervals over units, from the table of a study: what the rules of evidence/studies/claims hold papers to.

A unit is what varies independently: a seed (every run is one), a setting (the mean of its seeds), or a model on a
dataset (likewise). An interval over smaller units than those that vary would promise too much.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
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
        beside = isinstance(self.less, str) and self.less != "pairs"
        return [each for each in found if each not in ("median", "best")] + [self.less] * beside


def measured(measure: Measure, frame: pd.DataFrame) -> Effect:
    """The effect in a table of runs.

    Raises:
        ValueError: the table lacks a column, or no run has the rows that the measure names.
    """
    return KINDS[measure.kind].effect(measure, frame)


def without_effect(measure: Measure, frame: pd.DataFrame, bound: float, rng: np.random.Generator) -> pd.DataFrame:
    """A table in which there is nothing to find.

    What goes with what is drawn by chance, and groups lie apart by the bound; of a mean or a share alone, units are
    drawn about the bound itself.
    """
    return KINDS[measure.kind].null(measure, frame, bound, rng)


# ---- units


def chosen(frame: pd.DataFrame, rows: Rows) -> pd.DataFrame:
    """The rows that have these values.

    Raises:
        ValueError: there are none.
    """
    keep = np.ones(len(frame), bool)
    for column, value in rows.items():
        if column not in frame:
            raise ValueError(f"no column {column!r}")
        keep &= frame[column].isin(value if isinstance(value, list) else [value]).to_numpy()
    if not keep.any():
        raise ValueError(f"no run has {dict(rows)}")
    return frame[keep].reset_index(drop=True)


def by_unit(frame: pd.DataFrame, unit: str) -> list[IntArray]:
    """The positions of each unit's runs."""
    columns = [each for each in (*UNITS[unit], "of_first") if each in frame]
    return [np.asarray(index) for index in frame.groupby(columns, dropna=False).indices.values()]


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


def _ratio(measure: Measure, frame: pd.DataFrame) -> Effect:
    """Of two means over the same units, with Fieller's interval; unbounded where the lower one may be 0."""
    values = of_units(chosen(frame, measure.rows), [measure["x"], measure["of"]], measure.unit)
    units, (a, b) = len(values), values.mean(axis=0)
    if units < 2 or b == 0:
        return Effect(float(a / b) if b else 0.0, -np.inf, np.inf, units)
    (v_a, c), (_, v_b) = np.cov(values.T) / units
    square = stats.t.ppf((1 + CONFIDENCE) / 2, units - 1) ** 2
    # All q with (a - q b)^2 <= t^2 (v_a - 2 q c + q^2 v_b) lie between the roots of a parabola.
    lead, middle, rest = b**2 - square * v_b, a * b - square * c, a**2 - square * v_a
    if lead <= 0:
        return Effect(float(a / b), -np.inf, np.inf, units)
    half = np.sqrt(max(middle**2 - lead * rest, 0.0))
    return Effect(float(a / b), float((middle - half) / lead), float((middle + half) / lead), units)


def _correlation(measure: Measure, frame: pd.DataFrame) -> Effect:
    values = of_units(chosen(frame, measure.rows), [measure["x"], measure["y"]], measure.unit)
    return _of_correlation(correlation(values[:, 0], values[:, 1], measure.kind), len(values), measure.kind)


def _spearman_by_family(measure: Measure, frame: pd.DataFrame) -> Effect:
    """Spearman's correlation of a column with each of several, over the runs of a family and dataset; families count.

    Less what another column gives, or what the several give among themselves ("pairs").
    """
    known = _complete(measure, chosen(frame, measure.rows))
    found: dict[Any, list[float]] = {}
    for (family, *_), own in known.groupby(["family", *(["dataset"] if "dataset" in known else [])]):
        ys = [own[each].to_numpy(float) for each in measure["ys"]]
        value = np.mean([correlation(own[measure["x"]].to_numpy(float), y, "spearman") for y in ys])
        if measure.less == "pairs":
            value -= np.mean([correlation(one, other, "spearman") for one, other in combinations(ys, 2)])
        elif measure.less is not None:
            value -= np.mean([correlation(own[str(measure.less)].to_numpy(float), y, "spearman") for y in ys])
        found.setdefault(family, []).append(float(value))
    return _student(np.array([np.mean(each) for each in found.values()]))


def _spread(measure: Measure, frame: pd.DataFrame) -> Effect:
    """Standard deviation over the seeds of a setting, mean over settings, less that of others or of another column."""

    def of(rows: Rows, column: str) -> FloatArray:
        known = _complete(measure, chosen(frame, rows))
        values = known[column].to_numpy(float)
        return np.array([values[index].std(ddof=1) for index in by_unit(known, "setting") if len(index) > 1])

    if isinstance(measure.less, str):
        return _student(of(measure.rows, measure["x"]) - of(measure.rows, measure.less))
    return _welch(*(of(rows, measure["x"]) for rows in measure.groups))


def _best_of_seed(measure: Measure, frame: pd.DataFrame) -> Effect:
    """For each seed the highest of any run, mean over seeds, less that of other rows."""
    return _welch(
        *(
            _complete(measure, chosen(frame, rows)).groupby("seed")[measure["x"]].max().to_numpy(float)
            for rows in measure.groups
        )
    )


def _variance_ratio(measure: Measure, frame: pd.DataFrame) -> Effect:
    """Of two columns of the same units, with the interval of Pitman and Morgan 1939."""
    first, second = of_units(chosen(frame, measure.rows), [measure["x"], measure["of"]], measure.unit).T
    units = len(first)
    if units < 3 or np.ptp(second) == 0:
        return Effect(0.0, -np.inf, np.inf, units)
    ratio, r = float(first.var() / second.var()), correlation(first, second, "pearson")
    t = stats.t.ppf((1 + CONFIDENCE) / 2, units - 2)
    k = 1 + 2 * (1 - r**2) * t**2 / (units - 2)
    reach = np.sqrt(k**2 - 1)
    return Effect(ratio, float(ratio * (k - reach)), float(ratio * (k + reach)), units)


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


def _pick_share(measure: Measure, table: Table) -> float:
    """In how many of several columns' orders, on average, the pick stands above a run: 0 to 1; ties count half."""
    values = np.stack([table.values[each] for each in measure["ys"]], axis=1)
    pick = values[table.values[measure["by"]].argmax()]
    return float(((values < pick).mean(axis=0) + (values == pick).mean(axis=0) / 2).mean())


def _disagreement(measure: Measure, table: Table) -> float:
    """The largest difference, over runs, between the share of runs below it by one column and by another."""
    places = [(stats.rankdata(table.values[measure[name]]) - 0.5) / len(table.setting) for name in "xy"]
    return float((places[0] - places[1]).max())


def _best_setting(measure: Measure, table: Table) -> float:
    """The highest mean of a setting among some rows, less that among others."""
    return float(table.means(measure["x"]).max() - table.means(measure["x"], of_first=False).max())


def _cost_of_best(measure: Measure, table: Table) -> float:
    """What the setting of the highest mean of one column has in another, less the highest mean of any setting."""
    best, x = table.means(measure["best"]), table.means(measure["x"])
    return float(x[best.argmax()] - x.max())


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


# ---- tables in which there is nothing to find


def _shuffled(*names: str) -> "Null":
    """The columns of these names go to other units, together."""

    def null(measure: Measure, frame: pd.DataFrame, _: float, rng: np.random.Generator) -> pd.DataFrame:
        known = pd.concat([_complete(measure, chosen(frame, rows)) for rows in measure.groups], ignore_index=True)
        columns = [each for name in names for each in np.atleast_1d(measure[name]).tolist()]
        units, values = by_unit(known, measure.unit), known[columns].to_numpy()
        moved = values.copy()
        for to, source in zip(units, rng.permutation(len(units)), strict=True):
            moved[to] = values[np.resize(units[source], len(to))]
        return known.assign(**dict(zip(columns, moved.T, strict=True)))

    return null


def _apart_by_bound(measure: Measure, frame: pd.DataFrame, bound: float, rng: np.random.Generator) -> pd.DataFrame:
    """The column goes to other units, and those of the first rows get the bound on top."""
    dealt, column = _shuffled("x")(measure, frame, bound, rng), measure["x"]
    first, second = (chosen(dealt, rows) for rows in measure.groups)
    return pd.concat([first.assign(**{column: first[column] + bound}), second], ignore_index=True)


def _shuffled_within(measure: Measure, frame: pd.DataFrame, _: float, rng: np.random.Generator) -> pd.DataFrame:
    """A column goes to other seeds of the same setting."""
    known, column = _complete(measure, chosen(frame, measure.rows)), measure["y"]
    values = known[column].to_numpy(copy=True)
    for index in by_unit(known, "setting"):
        values[index] = values[rng.permutation(index)]
    return known.assign(**{column: values})


def _swapped(measure: Measure, frame: pd.DataFrame, _: float, rng: np.random.Generator) -> pd.DataFrame:
    """In half of the units a pair changes its sides."""
    known = _complete(measure, chosen(frame, measure.rows))
    first, second = measure["x"], str(measure.less)
    values = known[[first, second]].to_numpy(float, copy=True)
    for index in by_unit(known, measure.unit):
        if rng.integers(2):
            values[index] = values[index][:, ::-1]
    return known.assign(**{first: values[:, 0], second: values[:, 1]})


def _moved_to_bound(measure: Measure, frame: pd.DataFrame, bound: float, rng: np.random.Generator) -> pd.DataFrame:
    """Units drawn anew about a mean that is the bound itself."""
    known, column = _complete(measure, chosen(frame, measure.rows)), measure["x"]
    values = of_units(known, [column], measure.unit)[:, 0]
    at = bound
    rest = []
    if isinstance(measure.less, Mapping):
        rest = [chosen(frame, measure.less)]
        at += float(rest[0][column].iloc[0])
    drawn = rng.choice(values, len(values)) - values.mean() + at
    kept = known.loc[[index[0] for index in by_unit(known, measure.unit)]]
    return pd.concat([kept.assign(**{column: drawn}), *rest], ignore_index=True)


def _ratio_at_bound(measure: Measure, frame: pd.DataFrame, bound: float, rng: np.random.Generator) -> pd.DataFrame:
    """Units whose first column is the second times the bound, and what is left of it is drawn anew."""
    known = _complete(measure, chosen(frame, measure.rows))
    places = [index[0] for index in by_unit(known, measure.unit)]
    first, second = of_units(known, [measure["x"], measure["of"]], measure.unit).T
    rest = first - second * (first.mean() / second.mean())
    made = {measure["x"]: bound * second + rng.choice(rest, len(rest)), measure["of"]: second}
    return known.loc[places].assign(**made)


def _alike(measure: Measure, frame: pd.DataFrame, _: float, rng: np.random.Generator) -> pd.DataFrame:
    """Two columns have one order, in units that are drawn anew."""
    known = _complete(measure, chosen(frame, measure.rows))
    units = by_unit(known, measure.unit)
    drawn = np.concatenate([units[k] for k in rng.integers(0, len(units), len(units))])
    return known.loc[drawn].reset_index(drop=True).assign(**{measure["y"]: known[measure["x"]].to_numpy()[drawn]})


def _variance_at_bound(measure: Measure, frame: pd.DataFrame, bound: float, rng: np.random.Generator) -> pd.DataFrame:
    """Two columns of this ratio of variances: they change sides in half of the units, at one scale."""
    known = _complete(measure, chosen(frame, measure.rows))
    places = [index[0] for index in by_unit(known, measure.unit)]
    values = of_units(known, [measure["x"], measure["of"]], measure.unit)
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    swapped = np.where(rng.random(len(values))[:, None] < 0.5, values[:, ::-1], values)
    return known.loc[places].assign(**{measure["x"]: np.sqrt(bound) * swapped[:, 0], measure["of"]: swapped[:, 1]})


def _at_odds(measure: Measure, frame: pd.DataFrame, bound: float, rng: np.random.Generator) -> pd.DataFrame:
    """Of the units, each with the share of the bound as its odds, some pass."""
    known = _complete(measure, chosen(frame, measure.rows))
    edge = measure.columns.get("below", measure.columns.get("above"))
    inside, outside = (edge - 1, edge + 1) if "below" in measure.columns else (edge + 1, edge - 1)
    values = np.empty(len(known))
    for index in by_unit(known, measure.unit):
        values[index] = inside if rng.random() < bound else outside
    return known.assign(**{measure["x"]: values})


def _spread_without_effect(
    measure: Measure, frame: pd.DataFrame, bound: float, rng: np.random.Generator
) -> pd.DataFrame:
    return (_swapped if isinstance(measure.less, str) else _shuffled("x"))(measure, frame, bound, rng)


# ---- all kinds

Null: TypeAlias = Callable[[Measure, pd.DataFrame, float, np.random.Generator], pd.DataFrame]


class Kind(NamedTuple):
    """How an effect is measured, and how a table without it is made."""

    effect: Callable[[Measure, pd.DataFrame], Effect]
    null: Null
    columns: tuple[str, ...] = ("x",)  # what its rule names
    less: str = ""  # what it compares with: "rows", "column", "either", "column or none"


KINDS: Mapping[str, Kind] = {
    "mean": Kind(_mean, _moved_to_bound),
    "difference": Kind(_difference, _apart_by_bound, less="rows"),
    "paired": Kind(_paired, _swapped, less="column"),
    "beyond": Kind(_beyond, _moved_to_bound, less="rows"),
    "ratio": Kind(_ratio, _ratio_at_bound, ("x", "of")),
    "variance_ratio": Kind(_variance_ratio, _variance_at_bound, ("x", "of")),
    "spread": Kind(_spread, _spread_without_effect, less="either"),
    "best_of_seed": Kind(_best_of_seed, _shuffled("x"), less="rows"),
    "spearman_by_family": Kind(_spearman_by_family, _shuffled("ys"), ("x", "ys"), "column or none"),
    "disagreement": Kind(_resampled(_disagreement), _alike, ("x", "y")),
    "share": Kind(_share, _at_odds),
    "spearman": Kind(_correlation, _shuffled("y"), ("x", "y")),
    "pearson": Kind(_correlation, _shuffled("y"), ("x", "y")),
    "spearman_within": Kind(_resampled(_within), _shuffled_within, ("x", "y")),
    "correlation_gap": Kind(_correlation_gap, _shuffled("x", "y"), ("x", "y"), "rows"),
    "lead": Kind(_resampled(_lead), _shuffled("y"), ("x", "others", "y")),
    "pick": Kind(_resampled(_pick), _shuffled("y"), ("by", "y", "against")),
    "pick_share": Kind(_resampled(_pick_share), _shuffled("ys"), ("by", "ys")),
    "best_setting": Kind(_resampled(_best_setting), _shuffled("x"), less="rows"),
    "cost_of_best": Kind(_resampled(_cost_of_best), _shuffled("x"), ("best", "x")),
}
