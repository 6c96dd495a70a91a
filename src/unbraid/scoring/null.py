"""Null distributions: scores of the same rows with codes moved against factors, so that the two are independent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from unbraid.base.arguments import check_whole
from unbraid.base.repr import WITHIN, p_equals
from unbraid.base.types import FloatArray, IntArray, Moved
from unbraid.data import POSTERIOR, Representation
from unbraid.metrics import Metric

IN_WORDS: Mapping[Moved, str] = {"rows": "shuffled", "groups": "shuffled by groups", "shift": "shifted"}
SHIFTS = 100
SHORTEST = 10  # rows of a series that can be shifted
FEWEST_GROUPS = 5  # that can be shuffled: four have but 24 orders, one of which is their own
ROUNDING = 1e-11  # of the largest score: orders of the rows that come to the same differ by the order of their sums


@dataclass(frozen=True, eq=False)
class Null:
    """A headline beside those of moved rows.

    `score` is what moved rows are compared with: the headline, found as theirs is (of `mig_exact` by quadrature), or,
    where rows are shifted, that of the middle half of the rows; `scores` (n_shuffles,); `p` the share of them that are
    at least as good, the rows as they are counted as one of them, so that it is never below 1 / (n_shuffles + 1);
    `above` (score - mean) / (best - mean), 1 for the best value of the metric and 0 for the mean of the null, None
    where the metric has no best value beyond that mean.
    """

    score: float
    scores: FloatArray
    p: float
    above: float | None
    moved: Moved = "rows"
    p_per_factor: FloatArray | None = None  # (n_factors,) as `p`, of what the metric says of each factor

    @property
    def mean(self) -> float:
        return float(self.scores.mean())

    @property
    def spread(self) -> float:
        """Standard deviation from one shuffle to another; 0 of a single one."""
        return float(self.scores.std(ddof=1)) if len(self.scores) > 1 else 0.0

    @property
    def note(self) -> str:
        fewest = round(1 / WITHIN) - 1  # with fewer, p is above WITHIN whatever they score
        takes = f", which takes {fewest} times or more" if len(self.scores) < fewest else ""
        within = f"not significant{takes}: " if self.p > WITHIN else ""
        middle = f"middle half of the rows {self.score:z.3f}, " if self.moved == "shift" else ""
        moved = f"with rows {IN_WORDS[self.moved]} {self.mean:z.3f} ± {self.spread:z.3f}"
        return f"{within}{middle}{moved} ({len(self.scores)} times, {p_equals(self.p)})"

    @property
    def of_what(self) -> str:
        """What its scores are those of."""
        return "shuffled rows" if self.moved == "rows" else f"rows {IN_WORDS[self.moved]}"

    @property
    def option(self) -> str:
        """The value of `null` (--null) that repeats it."""
        return f"shift:{len(self.scores)}" if self.moved == "shift" else str(len(self.scores))

    def to_dict(self) -> dict[str, object]:
        """As the JSON file has it."""
        numbers = {name: getattr(self, name) for name in ("score", "mean", "spread", "p", "above")}
        moved = {} if self.moved == "rows" else {"moved": self.moved}
        own = {} if self.p_per_factor is None else {"p_per_factor": self.p_per_factor.tolist()}
        return {"scores": self.scores.tolist(), **numbers, **moved, **own}


@dataclass(frozen=True)
class Shuffle:
    """How the rows of the codes are moved against those of the factors, and how often."""

    moved: Moved
    times: int

    def apply(self, representation: Representation, seed: int, which: int) -> Representation:
        """The codes, with their posteriors, beside factors of other rows; the same rows for the same seed and number.

        Where single rows are shuffled, codes stay in their places: what is known of them holds for every shuffle.

        Shifts leave the middle half of the factors, and put beside it any other stretch of the codes as long. All
        `times` of them together go evenly through the distances, so that few are no more near or far by luck.
        """
        factor_rows, moved = self.rows(representation.groups, len(representation), seed, which)
        target, names, rows = representation, ("codes", *POSTERIOR), moved
        if self.moved == "rows":
            names, rows = ("factors", "weights", "groups"), np.argsort(moved)
        elif factor_rows is not None:
            target = representation.keep_rows(factor_rows)
        arrays = {name: getattr(representation, name) for name in names}
        return replace(target, **{name: array[rows] for name, array in arrays.items() if array is not None})

    def labels(self, groups: IntArray | None, n_samples: int, seed: int, which: int) -> IntArray | None:
        """Rows whose factors `apply` takes; None where all factors stay in place."""
        factor_rows, moved = self.rows(groups, n_samples, seed, which)
        return np.argsort(moved) if self.moved == "rows" else factor_rows

    def rows(self, groups: IntArray | None, n_samples: int, seed: int, which: int) -> tuple[IntArray | None, IntArray]:
        """Which rows of the factors stay, None for all of them, and which rows of the codes come beside these."""
        draw, members = np.random.default_rng([seed, which]), _members(groups, n_samples)
        if self.moved == "shift":
            orders = np.random.default_rng([seed, self.times]).permuted(
                np.tile(np.arange(self.times), (len(members), 1)), axis=1
            )
            places = (orders[:, which % self.times] + draw.random(len(members))) / self.times
            return _stretches(members), _stretches(members, places)
        if self.moved == "groups" and groups is not None:
            return None, _exchanged(members, draw)
        return None, draw.permutation(n_samples)

    def unmoved(self, representation: Representation) -> Representation:
        """What moved rows are compared with: all rows, or of shifts the middle half of them."""
        if self.moved != "shift":
            return representation
        return representation.keep_rows(_stretches(_members(representation.groups, len(representation))))


def parse_null(null: int | str) -> tuple[bool, int]:
    """Whether rows are to be shifted, and how often: 99, "shift" (100 times) or "shift:200".

    Raises:
        ValueError: it is neither.
    """
    if isinstance(null, str):
        word, colon, times = null.partition(":")
        if word == "shift" and (not colon or times.isascii() and times.isdigit() and int(times[:9]) > 0):
            return True, int(times[:9]) if colon else SHIFTS
        raise ValueError(f"null must be a whole number, such as 99, 'shift' or 'shift:200'; got {null!r}")
    return False, check_whole("null", null, 0)


def shuffle_of(null: int | str, representation: Representation) -> tuple[Shuffle | None, tuple[str, ...]]:
    """How these rows are moved, None where not at all, and what has to be said of it.

    Raises:
        ValueError: as `parse_null`; or so moved, nothing would change.
    """
    shifts, times = parse_null(null)
    groups = representation.groups
    members = _members(groups, len(representation))
    if not times:
        return None, ()
    if shifts:
        notes = _notes_on_shifts(representation, members)
        if (different := _stretches_there_are(members)) < times:
            notes += (f"shifted {different} times: no more stretches of these rows differ",)
        return Shuffle("shift", min(times, different)), notes
    if groups is None:
        return Shuffle("rows", times), ()
    if len(members) < FEWEST_GROUPS:
        raise ValueError(
            f"null={null} shuffles whole groups of rows, of which it needs {FEWEST_GROUPS}; there are {len(members)}. "
            "null='shift' moves rows within groups"
        )
    first = representation.factors[members[0]]
    if representation.names and all(np.array_equal(representation.factors[each], first) for each in members[1:]):
        raise ValueError(
            f"null={null} shuffles whole groups of rows, and every group has the same factors, row by row: nothing "
            "would change. null='shift' moves rows within groups"
        )
    return Shuffle("groups", times), ()


def _stretches_there_are(members: Sequence[IntArray]) -> int:
    """Ways to choose a stretch in each group that is not the middle one: a null of more draws would repeat itself."""
    return prod(2 * (len(own) // 4) for own in members if len(own) >= SHORTEST)


def _notes_on_shifts(representation: Representation, members: Sequence[IntArray]) -> tuple[str, ...]:
    """Raises ValueError where shifts change nothing."""
    long = [each for each in members if len(each) >= SHORTEST]
    if not long:
        what = "groups of rows" if representation.groups is not None else "rows"
        raise ValueError(f"null='shift' needs {what} of {SHORTEST} or more; the longest has {max(map(len, members))}")
    still = [
        name
        for name, column in zip(representation.names, representation.factors.T, strict=True)
        if all((column[each] == column[each[0]]).all() for each in long)
    ]
    if representation.names and len(still) == len(representation.names):
        raise ValueError(
            "null='shift' moves rows within groups, where every factor is constant: nothing would change. A number, "
            f"null={SHIFTS}, shuffles whole groups"
        )
    notes = []
    if still:
        notes.append(f"constant within groups, so that shifts leave them as they are: {', '.join(still)}")
    if len(long) < len(members):
        few = len(members) - len(long)
        notes.append(f"{few} of {len(members)} groups have fewer than {SHORTEST} rows, too few to be shifted")
    return tuple(notes)


def _members(groups: IntArray | None, n_samples: int) -> list[IntArray]:
    """Rows of each group, in order; all of them where there are no groups."""
    if groups is None:
        return [np.arange(n_samples)]
    return np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])


def _stretches(members: Sequence[IntArray], places: FloatArray | None = None) -> IntArray:
    """A half of the rows of each group: the middle one, or the other stretch as long at a place from 0 to 1.

    No stretch is joined to another, so that under independence each has the law of the middle one, in a series that
    drifts as a random walk does, too. Around a circle it has not: there the end meets the start.
    """
    rows = []
    for number, own in enumerate(members):
        margin = len(own) // 4 if len(own) >= SHORTEST else 0
        start = margin
        if places is not None and margin:
            start = int(2 * margin * places[number])
            start += start >= margin  # the middle one itself is left out
        rows.append(own[start : start + len(own) - 2 * margin])
    return np.concatenate(rows)


def _exchanged(members: Sequence[IntArray], draw: np.random.Generator) -> IntArray:
    """(n_samples,) likewise, each group in the place of another: begun again where that is longer, else cut short."""
    rows = np.empty(sum(map(len, members)), dtype=np.int64)
    for own, other in zip(members, draw.permutation(len(members)), strict=True):
        rows[own] = np.resize(members[other], len(own))
    return rows


def null_of(
    metric: Metric,
    score: float,
    scores: FloatArray,
    moved: Moved = "rows",
    per_factor: tuple[FloatArray, FloatArray] | None = None,
) -> Null:
    """Of a score of a metric, and those of moved rows that are compared with it.

    Args:
        metric: whose headline it is.
        score: what moved rows are compared with.
        scores: (n_shuffles,) of moved rows.
        moved: how they were moved.
        per_factor: likewise (n_factors,) of each factor, and (n_shuffles, n_factors).
    """
    sign = 1 if metric.higher_is_better else -1
    room = metric.best - scores.mean()
    above = (score - scores.mean()) / room if np.isfinite(room) and sign * room > 1e-9 else None
    of_factors = None if per_factor is None else _chance(sign * per_factor[0], sign * per_factor[1])
    p = float(_chance(np.array(sign * score), sign * scores))
    return Null(score, scores, p, None if above is None else float(above), moved, of_factors)


def _chance(score: FloatArray, drawn: FloatArray) -> FloatArray:
    """The share of draws, along the first axis, at least as great but for rounding; `score` counts as one of them."""
    largest = np.maximum(np.abs(score), np.abs(drawn).max(axis=0, initial=0.0))
    return (1 + (drawn >= score - ROUNDING * largest).sum(axis=0)) / (1 + len(drawn))
