"""Effects with intervals over seeds, from the table of a study: what docs/claims.py holds published claims to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

RESAMPLES, CONFIDENCE = 1000, 0.95
Rows = Mapping[str, object]  # column to the value that it must have, or to a list of such
ALL: Rows = {}
Statistic = Callable[[pd.DataFrame], float]


@dataclass(frozen=True)
class Effect:
    """A number with its interval; `n` is the number of runs behind it."""

    value: float
    low: float
    high: float
    n: int


Measure = Callable[[pd.DataFrame], Effect]


def mean(column: str, rows: Rows = ALL) -> Measure:
    """The mean over seeds, with Student's interval."""

    def measure(frame: pd.DataFrame) -> Effect:
        values = chosen(frame, rows)[column].to_numpy(float)
        return _student(values.mean(), stats.sem(values) if len(values) > 1 else np.nan, len(values) - 1, len(values))

    return measure


def difference(column: str, first: Rows, second: Rows) -> Measure:
    """Mean of the first runs less mean of the second, with Welch's interval."""

    def measure(frame: pd.DataFrame) -> Effect:
        one, other = (chosen(frame, rows)[column].to_numpy(float) for rows in (first, second))
        found = stats.ttest_ind(one, other, equal_var=False).confidence_interval(CONFIDENCE)
        return Effect(float(one.mean() - other.mean()), float(found.low), float(found.high), len(one) + len(other))

    return measure


def paired(first: str, second: str) -> Measure:
    """Mean over runs of the first column less the second, with Student's interval."""

    def measure(frame: pd.DataFrame) -> Effect:
        gaps = (frame[first] - frame[second]).dropna().to_numpy(float)
        return _student(gaps.mean(), stats.sem(gaps), len(gaps) - 1, len(gaps))

    return measure


def over_runs(first: str, second: str, rows: Rows = ALL) -> Measure:
    """Spearman's correlation over runs; seeds are drawn anew within each setting for the interval."""
    return resampled(lambda frame: _spearman(frame[first], frame[second]), rows)


def within_settings(first: str, second: str) -> Measure:
    """Spearman's correlation of two columns after each setting's mean rank is taken out of both."""

    def statistic(frame: pd.DataFrame) -> float:
        ranks = frame[[first, second]].rank()
        rest = ranks - ranks.groupby([frame["family"], frame["setting"]], dropna=False).transform("mean")
        return float(np.corrcoef(rest[first], rest[second])[0, 1])

    return resampled(statistic)


def over_settings(first: str, second: str, rows: Rows = ALL) -> Measure:
    """Correlation over the settings' means; seeds are drawn anew within each setting for the interval."""

    def statistic(frame: pd.DataFrame) -> float:
        means = frame.groupby(["family", "setting"], dropna=False)[[first, second]].mean()
        return float(means[first].corr(means[second]))

    return resampled(statistic, rows)


def over_pairs(first: str, second: str, rows: Rows = ALL) -> Measure:
    """Pearson's correlation over the means of each model on each dataset; seeds are drawn anew for the interval."""
    return resampled(lambda frame: pearson_of_pairs(frame, first, second), rows)


def pearson_of_pairs(frame: pd.DataFrame, first: str, second: str) -> float:
    """Correlation of the two columns over the means of each setting on each dataset."""
    means = frame.groupby(["dataset", "family", "setting"], dropna=False)[[first, second]].mean()
    return float(means[first].corr(means[second]))


def lead(by: str, column: str) -> Measure:
    """What the run that is best by one column has in the other, less the median run."""
    return resampled(lambda frame: float(frame.loc[frame[by].idxmax(), column] - frame[column].median()))


def best_setting_gap(column: str, first: Rows, second: Rows) -> Measure:
    """Highest mean of a setting among the first runs less that among the second, each found anew in each resample."""

    def statistic(frame: pd.DataFrame) -> float:
        best = [chosen(frame, rows).groupby("setting")[column].mean().max() for rows in (first, second)]
        return float(best[0] - best[1])

    return resampled(statistic)


def resampled(statistic: Statistic, rows: Rows = ALL) -> Measure:
    """A statistic of the table, with the interval of its values when seeds are drawn anew within each setting."""

    def measure(frame: pd.DataFrame) -> Effect:
        known = chosen(frame, rows).reset_index(drop=True)
        by = [each for each in ("family", "setting", "dataset", "dataset_options") if each in known]
        groups = [np.asarray(index) for index in known.groupby(by, dropna=False).indices.values()]
        rng = np.random.default_rng(0)
        drawn = [
            statistic(
                known.loc[np.concatenate([rng.choice(group, len(group)) for group in groups])].reset_index(drop=True)
            )
            for _ in range(RESAMPLES)
        ]
        tail = 50 * (1 - CONFIDENCE)
        low, high = np.nanpercentile(drawn, [tail, 100 - tail])
        value = statistic(known)  # ranks that resamples tie can leave it just outside
        return Effect(value, min(float(low), value), max(float(high), value), len(known))

    return measure


def chosen(frame: pd.DataFrame, rows: Rows) -> pd.DataFrame:
    """The rows that have these values.

    Raises:
        ValueError: there are none.
    """
    keep = np.ones(len(frame), bool)
    for column, value in rows.items():
        keep &= frame[column].isin(value if isinstance(value, list) else [value]).to_numpy()
    if not keep.any():
        raise ValueError(f"no run has {rows}")
    return frame[keep]


def _spearman(first: pd.Series, second: pd.Series) -> float:
    return float(np.corrcoef(first.rank(), second.rank())[0, 1])


def _student(value: float, error: float, degrees: int, n: int) -> Effect:
    width = float(stats.t.ppf((1 + CONFIDENCE) / 2, degrees)) * error if degrees > 0 else np.nan
    return Effect(float(value), float(value - width), float(value + width), n)
