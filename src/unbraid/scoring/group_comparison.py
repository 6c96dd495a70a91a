"""Which of several groups of runs scores better: runs are the sample, by ranks, corrected for how much was tried."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbraid.base.arguments import check_number, list_of
from unbraid.base.counted import counted
from unbraid.base.natural_order import natural
from unbraid.base.types import ArrayLike, DataFrame, FloatArray, IntArray
from unbraid.base.version import VERSION
from unbraid.scoring.by_setting import means_with
from unbraid.scoring.correlation import holm, ranks
from unbraid.scoring.result_columns import (
    check_alike,
    check_columns,
    check_rows,
    headline_columns,
    higher_is_better,
    mean_interval,
    numbers,
    texts,
)

__all__ = ["Comparison", "GroupOfRuns", "Shift", "compare_groups", "rank_test", "shift_interval"]

LEAST = 2  # runs of a group
IMAGES = ("label", "dataset", "content", "dataset_options")  # columns by which different images may be compared
EXACT = 2500  # pairs of runs up to which the distribution of ranks is counted out
TIED = 100  # values of both groups, some of them equal, up to which all choices are counted
ROUNDING = 1e-12  # 1 - .9 is less than the .1 of a p value


@dataclass(frozen=True)
class GroupOfRuns:
    """One column over the runs of one group."""

    column: str
    group: str
    n: int
    mean: float
    low: float  # interval of the mean, by Student's t, cut off at the ends of the metric's range
    high: float
    median: float

    @property
    def half(self) -> float:
        """Of the interval, as Student's t gives it: the side that the metric's range does not cut off."""
        return max(self.high - self.mean, self.mean - self.low)


@dataclass(frozen=True)
class Shift:
    """How far the runs of one group lie above those of another."""

    column: str
    first: str
    second: str
    shift: float  # median of all differences first - second (Hodges-Lehmann)
    low: float  # interval of it, by inverting the rank test; infinite where there are too few runs
    high: float
    p: float  # two-sided, Mann-Whitney
    p_holm: float  # the same, corrected for all comparisons made
    better: str  # the group that scores better, where `p_holm` says that one does, else ""


@dataclass(frozen=True)
class Comparison:
    """Groups of runs and their differences, column by column."""

    by: str
    over: str
    confidence: float
    groups: tuple[GroupOfRuns, ...]
    shifts: tuple[Shift, ...]
    notes: tuple[str, ...] = ()
    n_seeds: int = 0  # different seeds among all runs, where they are known

    def table(self, *, digits: int = 3) -> tuple[list[str], list[list[str]]]:
        """Head and rows for a paper: mean ± half of its interval, by column and group.

        Arrows say which way is better. A mean is set in bold (**...**) where its group is better than every other that
        it is compared with, by the rank test, corrected; what a group lacks is "-".
        """
        names = list(dict.fromkeys(each.group for each in self.groups))
        rows = []
        for column in dict.fromkeys(each.column for each in self.shifts):
            own = {each.group: each for each in self.groups if each.column == column}
            wins = [each.better for each in self.shifts if each.column == column]
            upward = higher_is_better(column)
            row = [column if upward is None else f"{column} {'↑' if upward else '↓'}"]
            rivals = Counter(
                name for each in self.shifts if each.column == column for name in (each.first, each.second)
            )
            for name in names:
                if name not in own:
                    row.append("-")
                    continue
                text = f"{own[name].mean:.{digits}f} ± {own[name].half:.{digits}f}"
                row.append(f"**{text}**" if 0 < rivals[name] == wins.count(name) else text)
            rows.append(row)
        return [self.by, *names], rows

    @property
    def footnote(self) -> str:
        """What a reader of the table must know: runs, seeds, version, how sure, what was corrected for."""
        sizes, n = sorted({each.n for each in self.groups}), len(self.shifts)
        each = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        seeds = f" of {self.n_seeds} seeds" if self.n_seeds else ""
        return (
            f"{each} {self.over}{seeds} per {self.by}; mean ± half of its {100 * self.confidence:g} % interval "
            f"(Student's t); bold: better than all others (rank test, Holm over {counted(n, 'comparison')}); "
            f"unbraid {VERSION}."
        )

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame, one row per difference."""
        import pandas

        return pandas.DataFrame([asdict(each) for each in self.shifts])

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers; an interval without an end has None there."""
        shifts = [
            {name: None if value in (np.inf, -np.inf) else value for name, value in asdict(each).items()}
            for each in self.shifts
        ]
        return {
            "by": self.by, "over": self.over, "confidence": self.confidence,
            "groups": [asdict(each) for each in self.groups], "differences": shifts, "notes": list(self.notes),
        }  # fmt: skip


def compare_groups(
    frame: DataFrame,
    by: str,
    columns: str | Sequence[str] | None = None,
    *,
    over: str = "runs",
    within: str | None = None,
    confidence: float = 0.95,
) -> Comparison:
    """Compare the scores of groups of runs, or of settings: every two groups, in every column.

    Args:
        frame: the results of a study, one row per run.
        by: column whose values make the groups, such as "family" or "hyper.beta".
        columns: names of what is compared, or one; default the metrics' headlines.
        over: "runs", or "settings" to compare means of settings over their runs, as `setting_means` gives them.
        within: column of which a group has one value, such as "label" of several datasets; only groups of the same
            value are compared, and named by it: "sprites beta_vae".
        confidence: of the intervals, in (0, 1).

    Returns:
        Comparison. Runs of one setting are alike, so that p values over runs are too small where groups hold several
        settings; a note says so.

    Raises:
        ValueError: runs of different images, or a group of them where groups are of different images; scores of
            unequal numbers of rows, or by different rules; no such column, or over settings one that differs within a
            setting; fewer than two groups of two runs; nothing to compare; confidence out of range.

    Reference:
        Mann & Whitney 1947; Hodges & Lehmann 1963; Holm 1979.
    """
    if over not in ("runs", "settings"):
        raise ValueError(f"over must be runs or settings; got {over!r}")
    grouping = [by] if within is None else [within, by]
    check_columns(frame, grouping)
    runs = frame  # of which settings are averages
    n_seeds = len(set(frame["seed"].dropna().tolist())) if "seed" in frame else 0
    frame = frame if over == "runs" else means_with(frame, grouping)
    check_number("confidence", confidence, above=0, below=1)
    requested = headline_columns(frame) if columns is None else list_of("columns", columns, single=True)
    chosen = list(dict.fromkeys(requested))
    if not chosen:
        raise ValueError("no column to compare: the study has no metrics")
    outer = [""] * len(frame) if within is None else texts(frame, within)
    names = np.array(texts(frame, by))
    parts = {part: np.array([each == part for each in outer]) for part in sorted(set(outer), key=natural)}
    for part in parts.values():
        check_alike(frame.loc[part], chosen, [by] if by in IMAGES else (), conditions=("content",))
    for _, rows in [("", runs)] if within is None else runs.groupby(within, dropna=False):
        check_rows(rows, chosen, known=by in IMAGES)
    varying = [column for column in chosen if np.ptp(numbers(frame, column)) != 0] or chosen
    constant = [column for column in chosen if column not in varying]
    chosen = varying
    scores = [
        _scores_by_group(column, numbers(frame, column)[rows], names[rows], part)
        for column in chosen
        for part, rows in parts.items()
    ]
    groups = [_group(each.column, name, own, confidence) for each in scores for name, own in each.known.items()]
    shifts = [
        _shift(each.column, first, second, each.known, confidence)
        for each in scores
        for first, second in combinations(each.known, 2)
    ]
    left: dict[str, list[str]] = {}  # in which columns a group is left out
    for each in scores:
        for name in each.too_few:
            left.setdefault(name, []).append(each.column)
    without = ", ".join(
        name if len(set(of)) == len(chosen) else f"{name} (of {', '.join(dict.fromkeys(of))})"
        for name, of in sorted(left.items())
    )
    if not shifts:
        raise ValueError(
            f"{by}: needs two groups of at least {LEAST} {over} with a score; there are "
            f"{', '.join(dict.fromkeys(each.group for each in groups)) or 'none'}"
            + (f"; left out: {without}" if without else "")
        )
    corrected = holm([each.p for each in shifts])
    decided = [_decided(each, p_holm, 1 - confidence) for each, p_holm in zip(shifts, corrected, strict=True)]
    notes = _notes(frame, grouping, over, without, constant)
    if unscored := [text for each in scores for text in each.unscored]:
        notes += (f"{over} without a score are in no mean: {', '.join(unscored)}",)
    return Comparison(by, over, confidence, tuple(groups), tuple(decided), notes, n_seeds)


class _Scores(NamedTuple):
    """Those of one column, by group."""

    column: str
    known: Mapping[str, FloatArray]  # of groups that have enough
    too_few: list[str]  # the other groups
    unscored: list[str]  # how many runs of a group its mean leaves out


def _scores_by_group(column: str, values: FloatArray, names: NDArray[np.str_], part: str) -> _Scores:
    by_group = {
        f"{part} {name}".strip() if name else "": values[names == name]
        for name in sorted(set(names.tolist()), key=natural)
    }
    finite = {name: own[np.isfinite(own)] for name, own in by_group.items()}
    known = {name: own for name, own in finite.items() if len(own) >= LEAST and name}
    unscored = [
        f"{len(by_group[name]) - len(own)} of {len(by_group[name])} of {name} ({column})"
        for name, own in known.items()
        if len(own) < len(by_group[name])
    ]
    return _Scores(column, known, [name or "(no value)" for name in finite if name not in known], unscored)


def _group(column: str, name: str, scores: FloatArray, confidence: float) -> GroupOfRuns:
    low, high = mean_interval(column, scores, confidence)
    return GroupOfRuns(column, name, len(scores), float(scores.mean()), low, high, float(np.median(scores)))


def _shift(column: str, first: str, second: str, scores: Mapping[str, FloatArray], confidence: float) -> Shift:
    """Of two groups, not yet corrected for the number of comparisons."""
    p = rank_test(scores[first], scores[second])
    interval = shift_interval(scores[first], scores[second], confidence)
    return Shift(column, first, second, *interval, p, p_holm=p, better="")


def usual_within(frame: DataFrame, by: str) -> str | None:
    """`within` where none is given: in a table of several datasets their labels, unless `by` tells these apart."""
    return "label" if "label" in frame.columns and by not in IMAGES else None


def rank_test(first: ArrayLike, second: ArrayLike) -> float:
    """Two-sided p of the Mann-Whitney test, in [0, 1].

    Exact up to 2 500 pairs, and where values are equal, by their mean ranks, up to 100 values.

    Args:
        first: (n,) real.
        second: (m,) real.
    """
    from scipy.stats import mannwhitneyu

    n = len(np.asarray(first))
    together = ranks(np.concatenate([np.asarray(first, dtype=float), np.asarray(second, dtype=float)]))
    x, y = together[:n], together[n:]
    tied = len(np.unique(together)) < len(together)
    if tied and len(together) <= TIED:
        return _p_of_ties(np.rint(2 * together).astype(int), n)
    method = "asymptotic" if tied or len(x) * len(y) > EXACT else "exact"
    result: Any = mannwhitneyu(x, y, alternative="two-sided", method=method)
    return float(result.pvalue) if np.isfinite(result.pvalue) else 1.0  # all equal: no rank tells anything


def _p_of_ties(ranks: IntArray, n: int) -> float:
    """The share of all choices of n ranks, (n + m,) whole numbers, whose sum is as far from its mean as the first n's.

    Reference:
        Streitberg & Röhmel 1986, "Exact distributions for permutation and rank tests".
    """
    counts = np.zeros((n + 1, ranks.sum() + 1))  # how many choices of so many ranks have a sum
    counts[0, 0] = 1.0
    for rank in ranks.tolist():
        counts[1:, rank:] += counts[:-1, : counts.shape[1] - rank].copy()
    sums, middle = np.arange(counts.shape[1]), n * ranks.mean()
    as_far = np.abs(sums - middle) >= abs(ranks[:n].sum() - middle) - 1e-6
    return float(min(1.0, counts[n, as_far].sum() / counts[n].sum()))


def shift_interval(first: ArrayLike, second: ArrayLike, confidence: float = 0.95) -> tuple[float, float, float]:
    """Hodges and Lehmann's estimate of how far `first` lies above `second`, and the ends of its interval.

    The interval holds the shifts that the rank test does not reject. Its ends are infinite where there are so few runs
    that the test rejects nothing.

    Args:
        first: (n,) real.
        second: (m,) real.
        confidence: in (0, 1).
    """
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    differences = np.sort((x[:, None] - y).ravel())
    cut = _critical(len(x), len(y), (1 - confidence) / 2)
    ends = (-np.inf, np.inf) if cut == 0 else (float(differences[cut - 1]), float(differences[-cut]))
    return float(np.median(differences)), *ends


def _critical(n: int, m: int, tail: float) -> int:
    """The largest c with P(U < c) <= tail, U the number of pairs in which the first is greater."""
    if n * m > EXACT:
        from scipy.stats import norm

        mean, deviation = n * m / 2, np.sqrt(n * m * (n + m + 1) / 12)
        return max(0, int(np.floor(mean + norm.ppf(tail) * deviation)))
    counts = _counts(n, m)
    return int(np.searchsorted(np.cumsum(counts) / counts.sum(), tail + ROUNDING, side="right"))


@lru_cache(maxsize=256)
def _counts(n: int, m: int) -> FloatArray:
    """(n m + 1,) in how many orders of n and m runs U is 0, 1, ...; coefficients of the Gaussian binomial."""
    counts = np.zeros(n * m + 1)
    counts[0] = 1.0
    for k in range(1, n + 1):  # times (1 - q^(m + k)) / (1 - q^k)
        for at in range(n * m, m + k - 1, -1):
            counts[at] -= counts[at - m - k]
        for at in range(k, n * m + 1):
            counts[at] += counts[at - k]
    return counts


def _decided(shift: Shift, p_holm: float, alpha: float) -> Shift:
    upward = higher_is_better(shift.column)
    sure = p_holm <= alpha + ROUNDING and shift.shift != 0 and upward is not None
    ahead = shift.first if (shift.shift > 0) == upward else shift.second
    return replace(shift, p_holm=p_holm, better=ahead if sure else "")


def _notes(frame: DataFrame, grouping: list[str], over: str, left: str, constant: Sequence[str]) -> tuple[str, ...]:
    notes, by = [], grouping[-1]
    if constant:
        notes.append(f"left out, since it is the same for every run: {', '.join(constant)}")
    if left:
        notes.append(f"left out, with fewer than {LEAST} {over} of a score: {left}")
    if by in IMAGES:
        notes.append("groups are of different images; their scores are of as many rows each")
    of_settings = over == "runs" and by != "setting" and {"family", "setting"} <= set(frame.columns)
    if of_settings and any(
        len(rows[["family", "setting"]].drop_duplicates()) > 1 for _, rows in frame.groupby(grouping)
    ):
        notes.append(
            "groups hold several settings, and seeds of one setting are alike, so that p values are too small; "
            "compare settings (--over settings) where there are enough of them"
        )
    return tuple(notes)
