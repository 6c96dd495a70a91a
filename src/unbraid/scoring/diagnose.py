"""Which factors are in the codes, where, and what is wrong: `unbraid.diagnose`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from unbraid.base.arrays import finite_sparse, is_sparse
from unbraid.base.types import ArrayLike, BoolArray, FloatArray, IntArray
from unbraid.data import Representation
from unbraid.data.labels import read_labels
from unbraid.data.representation import INFORMATIVE
from unbraid.files.score_file import FactorKind
from unbraid.scoring.dependence import neighbours_alike, with_repeats_as_groups
from unbraid.scoring.diagnosis import (
    LIKELY,
    CodeDiagnosis,
    Diagnosis,
    FactorDiagnosis,
    either_words,
)
from unbraid.scoring.readings import (
    HeldOut,
    Reading,
    Target,
    best,
    best_pairs,
    class_target,
    curve_readings,
    number_target,
    ranks_of,
    relatedness,
    smallest_set,
)
from unbraid.scoring.score_data import align_rows, full_codes, read_data

MOST_ROWS = 5_000  # that are looked at, drawn at random
FEWEST_ROWS = 40
FEWEST_GROUPS = 5  # of rows
PARTS_OF_FEW, PARTS = 5, 3  # of which each is predicted from the others
FEW_ROWS = 1_500
NEARLY_ALL = 0.9  # of what all codes tell of a factor
AS_MUCH = 0.9  # of what the best code holds alone, from which on another is a copy
ABOUT, LEAST = 0.3, 0.05  # of what all codes tell of a factor, and of all of it, from which on a code is about it
HARDLY = 0.02  # strength above chance below which a factor is hardly in the codes, sure as it may be
MOST_CODES = 24  # that are fitted together by pieces and products
SCREENED, SCREENED_LINE = 16, 64  # codes of each factor among more than these
MOST_SINGLE = 6  # codes of each factor that are tried alone, where they are many
WIDE = 512  # codes, of more than which only those most related to a factor are looked at
FEWEST_OF_MANY, MANY_FACTORS = 2_000, 20  # rows that are looked at where factors are many, and how many that is
RELATED = 0.03  # share of a factor that a line in a code explains, from which on it is asked what the code tells
ENOUGH = 0.8  # strength from which on no other way to read a factor is tried
LEVEL = 0.01  # of the test that a factor is present, over all factors
ALL = -1  # in place of a split: all rows
RESAMPLES = 200
SPREADS = 3  # standard errors that a code must tell more of a factor than next to nothing, to be about it
CHOICES = 3  # by which p is multiplied, since each learner chose its penalty by the rows that it predicts
SHUFFLES = 4_000  # of labels, where two approximations of p disagree
ENOUGH_SHUFFLED = 20  # of which so many do as well
FEWEST_IN_TIME = 700  # rows, whose shifts are enough for a test at `LEVEL`
IN_TIME = (
    "neighbouring rows are alike and taken as a time series, which is parted in stretches and tested by shifts; "
    "shuffle the rows if their order means nothing"
)
STRETCHES = 5  # parts, where neighbouring rows are alike: each predicted from the others, and shifted in itself
GOOD = 0.8  # of what the best code holds alone, from which on another may be a copy with noise of its own
AVERAGED = 0.75  # of what copies with noise of their own would still miss together, from which on they are copies
AGREEING = 0.8  # correlation of what two codes predict, of the most that two copies could have
LINE = 0.9  # of a set's strength, from which on a linear regression is enough
RING = 0.85  # likewise of a circle
FOLLOWS = 0.5  # strength by another factor from which on a factor follows from it


def diagnose(codes: ArrayLike | Representation, factors: Any = None, *, seed: int = 0, **description: Any) -> Diagnosis:
    """Say which factors are in the codes, where, and what is wrong.

    Every statement rests on held-out predictions. All codes together, and small sets of them, predict each factor: by
    local means, by a ridge regression, and by one on pieces and products of codes. A factor is present where
    predictions are better than of shuffled labels (level .01 over all factors, corrected by Holm; of whole groups where
    rows are in groups, and by shifts where neighbouring rows are alike). Its codes are the smallest set that
    holds 90 % of what all codes tell of it.

    Args:
        codes: (n_samples, n_codes) real, or a Representation, as `score` takes them. At most 5 000 rows are looked at.
        factors: (n_samples, n_factors), as `score` takes them.
        seed: of the parts of the rows and of their resamples; same seed, same answer.
        **description: what describes the data, as `score` takes it: names, kinds, groups, weights, unwanted, units, ...

    Returns:
        Diagnosis. `print` shows it; `factors[name]` has `kind`, `codes`, `strength`, `p`, `mixture`, `stability` and
        `text`, `codes[column]` what each code is about.

    Raises:
        TypeError: `description` has a name that `score` does not.
        ValueError: unsound input, or no factors.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> factors = rng.random((2000, 2))
        >>> codes = np.column_stack([factors[:, 0], rng.standard_normal(2000)])
        >>> diagnosis = diagnose(codes, factors, names=["x", "y"])
        >>> diagnosis.factors["x"].kind, diagnosis.factors["x"].codes, diagnosis.factors["y"].kind
        ('own code', (0,), 'absent')
    """
    rows = align_rows(codes, factors, None, None, description)
    full = full_codes(rows, 0, None)
    if full is None:
        return diagnose_columns(rows.codes, rows.factors, seed=seed, **rows.description)
    data = read_data(rows._replace(codes=full), 0, None)
    return diagnose_representation(data.every, seed=seed, unwanted=rows.unwanted)


def diagnose_representation(
    representation: Representation, *, seed: int = 0, unwanted: Sequence[str] = ()
) -> Diagnosis:
    """`diagnose` of what `score` has read already.

    Raises:
        ValueError: there are no factors.
    """
    if not representation.names:
        raise ValueError("these codes have no factors to look for: give labels")
    dead = _dead(representation)
    return _diagnosis(_sample(representation, seed), dead, len(representation), unwanted, seed)


def diagnose_columns(codes: Any, labels: Any, *, seed: int = 0, **description: Any) -> Diagnosis:
    """`diagnose` of sparse codes, or of those on the disk, which never become a full array.

    Args:
        codes: (n_samples, n_codes) sparse, SciPy's or a torch tensor; or numbers on the disk (numpy.memmap).
        labels: as `Representation.of` takes them.
        seed: as `diagnose`.
        **description: of the labels, as `Representation.of` takes it.

    Raises:
        ValueError: there are no labels, or they have other rows.
    """
    if labels is None:
        raise ValueError("these codes have no factors to look for: give labels")
    read = read_labels(labels, **description)
    if len(read.used) != codes.shape[0]:
        raise ValueError(f"codes have {codes.shape[0]} rows, and labels {len(read.used)}; both need the same")
    used = np.flatnonzero(read.used)
    most = _most_rows(len(read.names))
    drawn = np.arange(len(used))
    if len(used) > most:
        drawn = np.sort(np.random.default_rng(seed).choice(len(used), most, replace=False))
    rows = used[drawn]
    matrix = finite_sparse(codes, read.used).tocsr()[drawn].tocsc() if is_sparse(codes) else np.asarray(codes[rows])
    representation = Representation(
        np.empty((len(rows), 0)), read.factors[drawn], names=read.names, kinds=read.kinds, sizes=read.sizes
    )
    sample = _Sample(representation, matrix, None, in_time=False)
    return _diagnosis(sample, np.array([], dtype=int), len(used), (), seed)


def _diagnosis(sample: "_Sample", dead: IntArray, n_samples: int, unwanted: Sequence[str], seed: int) -> Diagnosis:
    n_rows, n_codes = sample.matrix.shape
    if len(dead) == n_codes:
        return _nothing(sample, dead, n_samples, unwanted, "absent", "all codes are dead")
    if n_rows < FEWEST_ROWS:
        return _nothing(sample, dead, n_samples, unwanted, "unclear", f"fewer than {FEWEST_ROWS} rows")
    if sample.in_time and n_rows < FEWEST_IN_TIME:
        return _nothing(sample, dead, n_samples, unwanted, "unclear", "too few rows of a time series")
    rng = np.random.default_rng(seed)
    parts = _parts(sample, rng)
    few = sample.groups is not None and sample.groups.max() + 1 < FEWEST_GROUPS
    if few or n_rows - np.bincount(parts).max() < FEWEST_ROWS // 2:
        return _nothing(sample, dead, n_samples, unwanted, "unclear", "too few groups of rows")
    live = np.setdiff1d(np.arange(n_codes), dead)
    return _Study(sample, live, parts, rng).diagnosis(dead, n_samples, n_codes, unwanted)


def _most_rows(n_factors: int) -> int:
    return min(MOST_ROWS, max(FEWEST_OF_MANY, MOST_ROWS * MANY_FACTORS // max(n_factors, 1)))


class _Sample(NamedTuple):
    """The rows that are looked at."""

    representation: Representation
    matrix: Any  # (n_rows, n_codes) codes, as an array or sparse
    groups: IntArray | None  # rows that are never parted
    in_time: bool  # whether neighbouring rows are alike


def _sample(representation: Representation, seed: int) -> _Sample:
    """At most `MOST_ROWS` rows in their order, drawn by weight where rows have weights."""
    data = with_repeats_as_groups(representation)
    in_time = data.groups is None and neighbours_alike(data)
    rng, groups, most = np.random.default_rng(seed), data.groups, _most_rows(len(data.names))
    if data.weights is not None:
        rows = np.sort(rng.choice(len(data), min(len(data), most), p=data.weights / data.weights.sum()))
        groups = rows if groups is None else groups[rows]
    else:
        rows = np.arange(len(data))
        if len(data) > most:
            rows = np.sort(rng.choice(len(data), most, replace=False))
        groups = None if groups is None else groups[rows]
    if groups is not None:
        groups = np.unique(groups, return_inverse=True)[1]
    data = data if len(rows) == len(data) and data.weights is None else data.keep_rows(rows)
    return _Sample(data, data.codes, groups, in_time)


def _dead(representation: Representation) -> IntArray:
    """Codes that do not vary or, where log-variances are known, have next to no information on a row."""
    low, high = representation.codes.min(axis=0), representation.codes.max(axis=0)
    idle = high.astype(float) - low <= 1e-12 * np.maximum(np.abs(low), np.abs(high))
    signal = representation.signal()
    return np.flatnonzero(idle if signal is None else idle | (signal <= INFORMATIVE))


def _parts(sample: _Sample, rng: np.random.Generator) -> IntArray:
    """(n_rows,) the part of each row: whole groups, or stretches where neighbouring rows are alike."""
    n_rows = len(sample.representation)
    n_parts = PARTS_OF_FEW if n_rows < FEW_ROWS else PARTS
    if sample.in_time:
        return np.arange(n_rows) * STRETCHES // n_rows
    if sample.groups is None:
        return rng.permutation(np.arange(n_rows) % n_parts)
    sizes = np.bincount(sample.groups)
    order = rng.permutation(len(sizes))
    of_groups = np.empty(len(sizes), dtype=int)
    of_groups[order] = np.minimum(np.cumsum(sizes[order]) * n_parts // (n_rows + 1), n_parts - 1)
    return np.unique(of_groups[sample.groups], return_inverse=True)[1]


def _targets(representation: Representation) -> list[list[tuple[str, Target]]]:
    """Of each factor the ways to read it: itself first, then what a fold or a circle wound twice leaves of it."""
    targets = []
    sizes = representation.known_sizes() or (0,) * len(representation.names)
    for values, kind, size in zip(representation.factors.T, representation.kinds, sizes, strict=True):
        values = values.astype(float)
        if kind == "categorical":
            targets.append([("", class_target(values))])
        elif kind == "cyclic":
            whole = (values == np.rint(values)).all()
            angles = values * (2 * np.pi / (size or values.max() + 1)) if whole else values
            turns = [("", 1), ("wound twice", 2), ("wound three times", 3)]
            targets.append(
                [
                    (words, number_target(np.column_stack([np.cos(k * angles), np.sin(k * angles)])))
                    for words, k in turns[: 1 if whole and (size or 9) < 6 else 3]
                ]
            )
        else:
            levels = values if kind == "continuous" else np.unique(values, return_inverse=True)[1].astype(float)
            views = [("", number_target(levels))]
            if len(np.unique(levels)) > 2:
                views.append(("as its distance from the middle", number_target(np.abs(levels - np.median(levels)))))
            targets.append(views)
    return targets


@dataclass
class _Evidence:
    """What is known of one factor in one way to read it."""

    words: str
    target: Target
    alone: dict[int, Reading]  # by code
    together: list[Reading]  # by all codes, chosen without the rows that are predicted
    p: float
    chosen: tuple[int, ...] = ()  # the smallest set, where no code alone will do
    of_chosen: Reading | None = None
    line_of_chosen: Reading | None = None
    copies: tuple[int, ...] = ()  # codes that may be copies with noise of their own
    of_copies: Reading | None = None

    @property
    def strength(self) -> float:
        return max(reading.score for reading in self.readings())

    def readings(self) -> list[Reading]:
        more = [each for each in (self.of_chosen, self.of_copies) if each is not None]
        return [*self.together, *self.alone.values(), *more]


class _Study:
    """One look at codes and factors."""

    def __init__(self, sample: _Sample, live: IntArray, parts: IntArray, rng: np.random.Generator) -> None:
        representation = sample.representation
        self.kinds, self.views = representation.kinds, _targets(representation)
        targets = [target for views in self.views for _, target in views]
        self.number = {id(target): place for place, target in enumerate(targets)}
        self.all_rows = np.arange(len(parts))
        row_sets = [*(np.flatnonzero(parts != part) for part in range(int(parts.max()) + 1)), self.all_rows]
        self.related = relatedness(sample.matrix[:, live], targets, row_sets)
        # Of codes that tell nothing, the one most related to a factor seldom reaches this.
        self.by_chance = 4.0 * np.log(3.0 * len(live)) / len(parts) if len(live) > MOST_CODES else 0.0
        if len(live) > WIDE:
            first = np.argsort(-self.related, axis=2, kind="stable")[:, :, :SCREENED]
            chosen = np.unique(first)
            live, self.related = live[chosen], self.related[:, :, chosen]
        self.sample, self.live = sample, live
        columns = sample.matrix[:, live]
        columns = np.asarray(columns.toarray() if is_sparse(columns) else columns, dtype=float)
        centre, spread = columns.mean(axis=0), columns.std(axis=0)
        self.held_out = HeldOut((columns - centre) / np.where(spread > 0, spread, 1.0), parts)
        self.ranks, self.n_codes = ranks_of(columns), columns.shape[1]
        groups = np.arange(len(columns)) if sample.groups is None else sample.groups
        if sample.in_time:
            groups = np.arange(len(columns)) * 50 // len(columns)
        n_groups = int(groups.max()) + 1
        draws = rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), RESAMPLES)
        self.resamples = draws[:, groups].astype(np.float32)  # (RESAMPLES, n_rows) how often each row is drawn
        self.groups = groups
        self.evidence = [self._best_view(views) for views in self.views]

    def _best_view(self, views: Sequence[tuple[str, Target]]) -> _Evidence:
        """What is known in the first way to read a factor, unless another is much better."""
        if np.ptp(views[0][1].columns, axis=0).max() == 0:
            return _Evidence("", views[0][1], {}, [], 1.0)
        first = self._look(*views[0])
        evidence = [first, *([] if first.p < LEVEL and first.strength > ENOUGH else map(self._look_again, views[1:]))]
        least = 0.1 + max(first.strength, 0.0)
        better = [each for each in evidence[1:] if each.p < LEVEL and each.strength > least]
        chosen = max(better, key=lambda evidence: evidence.strength) if better else first
        if chosen is not first and first.p < LEVEL and first.strength > 0.5 * chosen.strength:
            chosen = first
        self._choose(chosen)
        return chosen

    def _look_again(self, view: tuple[str, Target]) -> _Evidence:
        return self._look(*view)

    def _look(self, words: str, target: Target) -> _Evidence:
        held_out = self.held_out
        splits = range(len(held_out.splits))
        of_splits = [self._screened(target, split, SCREENED, MOST_CODES) for split in splits]
        most_of_line = SCREENED_LINE if len(self.live) <= WIDE else SCREENED
        lines = [self._screened(target, split, most_of_line, SCREENED_LINE) for split in splits]
        codes = self._screened(target, ALL, MOST_SINGLE, MOST_CODES)
        alone = {code: held_out.by_curve(code, [target])[0] for code in codes}
        for code in sorted(alone, key=lambda code: -alone[code].score)[:2]:
            one = [[code]] * len(held_out.splits)
            alone[code] = best([alone[code], held_out.by_line(one, target), held_out.by_pieces(one, target)])
        together = [held_out.by_line(lines, target)]
        if max(each.score for each in [*alone.values(), *together]) < 0.97:
            together.append(held_out.by_pieces(of_splits, target))
        firsts = [each[0] for each in of_splits]
        together.append(self._joined(target, [{first} for first in firsts]))
        ceiling = max(each.score for each in [*alone.values(), *together])
        if self.n_codes > 1 and max(each.score for each in alone.values()) < NEARLY_ALL and ceiling < 0.97:
            pairs = [
                set(pair)
                for (train, _), some in zip(held_out.splits, of_splits, strict=True)
                for pair in best_pairs(self.ranks, target, train, some, 1)
            ]
            if len(pairs) == len(held_out.splits):
                together.append(self._joined(target, pairs))
        p = min(1.0, CHOICES * len(together) * min(self._p(target, each) for each in together))
        return _Evidence(words, target, alone, together, p)

    def _screened(self, target: Target, split: int, most: int, few: int) -> list[int]:
        """All codes where they are few, else those most related on the rows that a split fits on, the best first."""
        order = np.argsort(-self.related[split, self.number[id(target)]], kind="stable")
        return order[: self.n_codes if self.n_codes <= few else most].tolist()

    def _joined(self, target: Target, codes: Sequence[set[int]]) -> Reading:
        """One reading of which each part is by the codes that were chosen without it."""
        chosen = [tuple(sorted(each)) for each in codes]
        by_codes = {
            each: self.held_out.by_curve(each[0], [target])[0]
            if len(each) == 1
            else self.held_out.by_neighbours(each, target)
            for each in set(chosen)
        }
        first = by_codes[chosen[0]]
        if len(by_codes) == 1:
            return first
        predictions, errors = first.predictions.copy(), first.errors.copy()
        for (_, test), each in zip(self.held_out.splits, chosen, strict=True):
            predictions[test], errors[test] = by_codes[each].predictions[test], by_codes[each].errors[test]
        return replace(first, codes=chosen[0], predictions=predictions, errors=errors)

    def _p(self, target: Target, reading: Reading) -> float:
        """Of labels that have nothing to do with the predictions, being predicted as well.

        Predictions and labels, each less the mean of its part, are multiplied. Their sum over groups of rows is
        compared with its own spread, or with that of the same sum when labels are shifted in time.
        """
        from scipy.special import stdtr

        scale = np.sqrt(np.maximum((target.columns**2).mean(axis=0), 1e-12))
        predicted, true = reading.predictions / scale, target.columns / scale
        for _, test in self.held_out.splits:
            predicted[test] -= predicted[test].mean(axis=0)
        if self.sample.in_time:
            return self._shifted(predicted, true)
        true = true.copy()
        for _, test in self.held_out.splits:
            true[test] -= true[test].mean(axis=0)
        products = np.bincount(self.groups, weights=(predicted * true).sum(axis=1))
        total, spread = float(products.sum()), float(np.sqrt((products**2).sum()))
        if spread == 0 or total <= 0:
            return 1.0
        by_products = float(stdtr(len(products) - 1, -total / spread))
        if self.sample.groups is not None:
            return by_products
        # The spread over all orders of the labels, in which a few rows of a rare class count for what they are.
        orders = np.sqrt(((predicted.T @ predicted) * (true.T @ true)).sum() / (len(true) - 1))
        by_orders = float(stdtr(1e6, -total / orders))
        if max(by_products, by_orders) < LEVEL / 100 or min(by_products, by_orders) > 5 * LEVEL:
            return max(by_products, by_orders)
        return self._shuffled(predicted, true, total)

    def _shifted(self, predicted: FloatArray, true: FloatArray) -> float:
        """By the sums of products when labels are shifted against predictions, within each part."""
        from scipy.special import stdtr

        shortest = min(len(test) for _, test in self.held_out.splits)
        sums = np.zeros(shortest)
        for _, test in self.held_out.splits:
            part = test[:shortest]
            known, answer = predicted[part], true[part] - true[part].mean(axis=0)
            spectrum = np.fft.rfft(known - known.mean(axis=0), axis=0).conj() * np.fft.rfft(answer, axis=0)
            sums += np.fft.irfft(spectrum.sum(axis=1), shortest)
        margin = shortest // 10
        shifted = sums[margin : shortest - margin]
        by_rank = float((1 + (shifted >= sums[0]).sum()) / (1 + len(shifted)))
        by_spread = float(stdtr(1e6, -(sums[0] - shifted.mean()) / max(float(shifted.std()), 1e-300)))
        return by_spread if by_rank <= LEVEL else max(by_rank, by_spread)

    def _shuffled(self, predicted: FloatArray, true: FloatArray, total: float) -> float:
        """Share of orders of the labels, within parts, in which the products sum to as much.

        No more are drawn once it is plain that the share is above `LEVEL` / 2 (Besag and Clifford 1991, "Sequential
        Monte Carlo p-values").
        """
        rng, at_least = np.random.default_rng(0), 0
        for batch in range(SHUFFLES // 100):
            order = np.empty((100, len(true)), dtype=int)
            for _, test in self.held_out.splits:
                order[:, test] = rng.permuted(np.tile(test, (100, 1)), axis=1)
            products = [column[order] @ answer for column, answer in zip(predicted.T, true.T, strict=True)]
            at_least += np.count_nonzero(np.sum(products, axis=0) >= total * (1 - 1e-9))
            if at_least >= ENOUGH_SHUFFLED:
                return at_least / (100 * (batch + 1))
        return (1 + at_least) / (1 + SHUFFLES)

    def _choose(self, evidence: _Evidence) -> None:
        """The smallest set of codes that holds nearly all of a factor, where no code does so alone."""
        if evidence.p >= 5 * LEVEL:
            return
        held_out, target, alone = self.held_out, evidence.target, evidence.alone
        first = max(alone, key=lambda code: alone[code].score)
        if alone[first].score >= NEARLY_ALL * evidence.strength and alone[first].score >= NEARLY_ALL:
            return
        candidates = self._screened(target, ALL, SCREENED, MOST_CODES)
        line = held_out.by_line([candidates] * len(held_out.splits), target)
        together = max(evidence.together, key=lambda reading: reading.score)
        linear = max(line.score, evidence.together[0].score) >= LINE * together.score
        if linear and self.n_codes > MOST_CODES:
            candidates = self._screened(target, ALL, SCREENED_LINE, SCREENED_LINE)
        related = self.related[ALL, self.number[id(target)]]
        candidates = [code for code in candidates if related[code] > self.by_chance]
        if len(candidates) < 2:
            return
        sets = [smallest_set(held_out, target, candidates, NEARLY_ALL, pieces=not linear)]
        sets += [list(pair) for pair in best_pairs(self.ranks, target, self.all_rows, candidates, 2)]
        readings = {tuple(sorted(each)): self._of_set(sorted(each), target) for each in sets if len(each) > 1}
        if not readings:
            return
        most = max([evidence.strength, *(each.score for each in readings.values())])
        enough = [codes for codes, each in readings.items() if each.score >= NEARLY_ALL * most]
        evidence.chosen = min(enough, key=len) if enough else max(readings, key=lambda codes: readings[codes].score)
        evidence.of_chosen = readings[evidence.chosen]
        evidence.line_of_chosen = held_out.by_line([evidence.chosen] * len(held_out.splits), target)
        evidence.copies = self._noisy_copies(evidence)
        if evidence.copies:
            evidence.of_copies = self._of_set(evidence.copies, target)

    def _of_set(self, codes: Sequence[int], target: Target) -> Reading:
        each_split = [list(codes)] * len(self.held_out.splits)
        readings = [self.held_out.by_line(each_split, target)]
        if len(codes) <= MOST_CODES:
            readings.append(self.held_out.by_pieces(each_split, target))
        if len(codes) <= 3:
            readings.append(self.held_out.by_neighbours(codes, target))
        return best(readings)

    def _noisy_copies(self, evidence: _Evidence) -> tuple[int, ...]:
        """Codes that hold about as much as the best, and whose predictions agree as those of copies would."""
        alone = evidence.alone
        first = max(alone, key=lambda code: alone[code].score)
        good = [code for code, each in alone.items() if each.score >= GOOD * alone[first].score]
        copies = [code for code in good if code == first or _agree(evidence, first, code)]
        return tuple(sorted(copies)) if len(copies) > 1 else ()

    def diagnosis(self, dead: IntArray, n_samples: int, n_codes: int, unwanted: Sequence[str]) -> Diagnosis:
        representation = self.sample.representation
        names = representation.names
        present = _holm([each.p for each in self.evidence])
        between = self._between_factors()
        strengths = np.where(present, [max(each.strength, 1e-9) if each.alone else 0.0 for each in self.evidence], 0.0)
        self.least = np.maximum(ABOUT, LEAST / np.maximum(strengths, 1e-9))  # share by which a code is about a factor
        shares = self._shares(strengths)
        verdicts = {}
        for place, evidence in enumerate(self.evidence):
            if not present[place] or evidence.strength < HARDLY:
                verdicts[names[place]] = self._absent(evidence, names[place] in unwanted)
            else:
                verdict = self._verdict(place, shares, between)
                verdicts[names[place]] = replace(
                    verdict,
                    codes=tuple(int(self.live[code]) for code in verdict.codes),
                    shared_with=tuple(names[int(other)] for other in verdict.shared_with),
                    unwanted=names[place] in unwanted,
                )
        verdicts = {
            name: replace(verdict, text=", ".join(filter(None, verdict.columns(representation.code_names))))
            for name, verdict in verdicts.items()
        }
        return Diagnosis(
            verdicts,
            self._codes(dead, n_codes, verdicts, shares, between),
            n_samples,
            n_codes,
            representation.code_names,
            self._notes(n_samples, n_codes, between),
        )

    def _between_factors(self) -> FloatArray:
        """(n_factors, n_factors) how much of each factor (column) follows from another (row), where any."""
        targets = [evidence.target for evidence in self.evidence]
        values = [self.sample.representation.factors[:, place].astype(float) for place in range(len(targets))]
        related = relatedness(np.column_stack(values), targets, [self.all_rows])[0]
        between = np.zeros((len(targets), len(targets)))
        least = max(0.02, 12.0 / len(self.all_rows))
        for place, target in enumerate(targets):
            for other in np.flatnonzero(related[place] > least):
                if other != place:
                    (each,) = curve_readings(values[other], [target], self.held_out.splits, (int(other),))
                    between[other, place] = max(each.score, 0.0)
        return between

    def _shares(self, strengths: FloatArray) -> FloatArray:
        """(n_codes, n_factors) of what all codes tell of each factor, how much each code tells alone.

        Where codes are many, only of those that hold some factor.
        """
        shares = np.zeros((self.n_codes, len(strengths)))
        surely = ABOUT / 3 * strengths
        if self.n_codes <= MOST_CODES:
            for place, evidence in enumerate(self.evidence):
                for code, each in evidence.alone.items():
                    shares[code, place] = each.score if each.score - SPREADS * each.error > surely[place] else 0.0
        else:
            for code in {code for evidence in self.evidence for code in self._holding(evidence)}:
                related = [
                    place
                    for place in np.flatnonzero(strengths)
                    if self.related[ALL, self.number[id(self.evidence[place].target)], code] > RELATED
                ]
                targets = [self.evidence[place].target for place in related]
                readings = self.held_out.by_curve(code, targets) if targets else []
                for place, each in zip(related, readings, strict=True):
                    shares[code, place] = each.score if each.score - SPREADS * each.error > surely[place] else 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(strengths > 0, np.clip(shares, 0.0, None) / strengths, 0.0)

    def _holding(self, evidence: _Evidence) -> list[int]:
        """Codes in which a factor may be."""
        ranked = sorted(evidence.alone, key=lambda code: -evidence.alone[code].score)
        return [*ranked[:3], *evidence.chosen, *evidence.copies]

    def _factors_of(self, code: int, shares: FloatArray, between: FloatArray) -> list[int]:
        """Factors that a code is about: it tells of them, and more than follows from a factor that it tells more of."""
        listed = [
            int(place) for place in np.argsort(-shares[code], kind="stable") if shares[code, place] >= self.least[place]
        ]
        factors: list[int] = []
        for place in listed:
            evidence = self.evidence[place]
            score = shares[code, place] * evidence.strength
            follows = max((between[other, place] for other in factors), default=0.0)
            if score - follows >= ABOUT * evidence.strength or (not factors and score > 0):
                factors.append(place)
        return factors

    def _verdict(self, place: int, shares: FloatArray, between: FloatArray) -> FactorDiagnosis:
        evidence = self.evidence[place]
        table, may_copy = _Table(evidence), self._own_copies(evidence, place, shares, between)
        scores = table.scores(np.ones((1, len(self.all_rows)), dtype=np.float32))
        statement = table.decide(scores, 0, may_copy, self.kinds[place])
        resampled = table.scores(self.resamples)
        drawn = Counter(table.decide(resampled, draw, may_copy, self.kinds[place]) for draw in range(RESAMPLES))
        stability = drawn[statement] / RESAMPLES
        kind, codes = statement
        shared_with: list[int] = []
        if kind == "own code":
            shared_with = [
                other
                for other in self._factors_of(codes[0], shares, between)
                if other != place and shares[codes[0], other] * self.evidence[other].strength - between[place, other]
                >= ABOUT * self.evidence[other].strength
            ]  # fmt: skip
            kind = "shared code" if shared_with else kind
        best_alone = max(each.score for each in evidence.alone.values())
        mixture = ""
        if kind == "spread" and evidence.of_chosen is not None and evidence.line_of_chosen is not None:
            mixture = "linear" if evidence.line_of_chosen.score >= LINE * evidence.of_chosen.score else "curved"
        classes = evidence.target.classes is not None
        chance = 1.0 - evidence.target.chance if classes else 0.0
        strength = chance + (1 - chance) * evidence.strength if classes else evidence.strength
        verdict = FactorDiagnosis(
            kind, codes, float(min(strength, 1.0)), chance, evidence.p,
            float(np.clip(best_alone / evidence.strength, 0, 1)), stability, mixture, tuple(map(str, shared_with)),
            "accuracy" if classes else "R²", evidence.words,
        )  # fmt: skip
        if stability >= LIKELY:
            return verdict
        alternatives: list[tuple[FactorKind, list[int]]] = [
            (kind, [int(self.live[code]) for code in codes]) for (kind, codes), _ in drawn.most_common(2)
        ]
        detail = either_words(alternatives, self.sample.representation.code_names)
        return replace(verdict, kind="unclear", codes=(), mixture="", shared_with=(), detail=detail)

    def _own_copies(self, evidence: _Evidence, place: int, shares: FloatArray, between: FloatArray) -> frozenset[int]:
        """Codes that may be copies: what they tell of the factor does not merely follow from another factor."""
        first = max(evidence.alone, key=lambda code: evidence.alone[code].score)
        return frozenset(
            code
            for code in evidence.alone
            if place in self._factors_of(code, shares, between) and (code == first or _agree(evidence, first, code))
        )

    def _absent(self, evidence: _Evidence, unwanted: bool) -> FactorDiagnosis:
        classes = evidence.target.classes is not None
        chance = 1.0 - evidence.target.chance if classes else 0.0
        score = max((each.score for each in evidence.together), default=0.0)
        return FactorDiagnosis(
            "absent", strength=float(chance + (1 - chance) * max(score, 0.0)) if classes else float(max(score, 0.0)),
            chance=chance, p=evidence.p, measure="accuracy" if classes else "R²", unwanted=unwanted,
            detail="hardly" if evidence.p < LEVEL else "",
        )  # fmt: skip

    def _codes(
        self, dead: IntArray, n_codes: int, verdicts: Mapping[str, FactorDiagnosis], shares: FloatArray,
        between: FloatArray,
    ) -> dict[int, CodeDiagnosis]:  # fmt: skip
        names = self.sample.representation.names
        codes = {int(code): CodeDiagnosis("dead") for code in dead}
        for place, column in enumerate(self.live):
            factors = {names[k]: float(min(shares[place, k], 1.0)) for k in self._factors_of(place, shares, between)}
            for name, verdict in verdicts.items():
                if int(column) in verdict.codes and name not in factors and verdict.kind in ("spread", "circle"):
                    factors[name] = float(min(shares[place, names.index(name)], 1.0))
            if not factors and n_codes > WIDE:
                continue
            kind = "none of these factors" if not factors else "one factor" if len(factors) == 1 else "several factors"
            codes[int(column)] = CodeDiagnosis(kind, factors)
        return dict(sorted(codes.items()))

    def _notes(self, n_samples: int, n_codes: int, between: FloatArray) -> tuple[str, ...]:
        names = self.sample.representation.names
        follows = between >= FOLLOWS
        pairs = [
            f"{names[other]} and {names[place]} follow from each other"
            if follows[place, other]
            else f"{names[place]} follows from {names[other]}"
            for other, place in np.argwhere(follows)
            if other < place or not follows[place, other]
        ]
        notes = [f"{'; '.join(pairs[:4])}: a code of one tells of the other"] if pairs else []
        if self.sample.in_time:
            notes.append(IN_TIME)
        if len(self.all_rows) < n_samples:
            notes.append(f"by {len(self.all_rows):,} of {n_samples:,} rows, drawn at random")
        if n_codes > WIDE:
            notes.append(f"of {n_codes:,} codes only those that hold a factor are listed")
        return tuple(notes)


class _Table:
    """What each set of codes misses of a factor, row by row, so that resamples of the rows can be judged."""

    def __init__(self, evidence: _Evidence) -> None:
        ranked = sorted(evidence.alone, key=lambda code: -evidence.alone[code].score)[:MOST_SINGLE]
        self.codes, self.evidence = ranked, evidence
        readings = [evidence.alone[code] for code in ranked]
        readings.append(max(evidence.together, key=lambda reading: reading.score))
        self.chosen = self.copies = None
        if evidence.of_chosen is not None and evidence.line_of_chosen is not None:
            self.chosen = len(readings)
            readings += [evidence.of_chosen, evidence.line_of_chosen]
        if evidence.of_copies is not None:
            self.copies = len(readings)
            readings.append(evidence.of_copies)
        self.errors = np.stack([each.errors for each in readings], axis=1)
        self.baseline = readings[0].baseline
        columns = evidence.target.columns
        self.squares = np.stack([((columns - each.predictions) ** 2).sum(axis=1) for each in readings], axis=1)
        self.squared_baseline = (columns**2).sum(axis=1)

    def scores(self, draws: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n_draws, n_readings) score of each reading, and the same by squared errors."""
        low = 1e-12
        return (
            1.0 - (draws @ self.errors) / np.maximum(draws @ self.baseline, low)[:, None],
            1.0 - (draws @ self.squares) / np.maximum(draws @ self.squared_baseline, low)[:, None],
        )

    def decide(
        self, scores: tuple[FloatArray, FloatArray], draw: int, may_copy: frozenset[int], kind: str
    ) -> tuple[FactorKind, tuple[int, ...]]:
        """The kind and the codes, before it is asked whether the one code is shared."""
        by_score, by_squares = scores[0][draw], scores[1][draw]
        alone = by_score[: len(self.codes)]
        first = int(alone.argmax())
        strength = float(by_score.max())
        if alone[first] >= NEARLY_ALL * strength or self.chosen is None:
            copies = [
                code for place, code in enumerate(self.codes)
                if place == first or (alone[place] >= AS_MUCH * alone[first] and code in may_copy)
            ]  # fmt: skip
            return ("copied", tuple(sorted(copies))) if len(copies) > 1 else ("own code", (self.codes[first],))
        if self.copies is not None and self._averaged(by_squares, may_copy):
            return "copied", self.evidence.copies
        if kind == "cyclic" and len(self.evidence.chosen) == 2:
            line = by_score[self.chosen + 1]
            if line >= RING * by_score[self.chosen]:
                return "circle", self.evidence.chosen
        return "spread", self.evidence.chosen

    def _averaged(self, by_squares: FloatArray, may_copy: frozenset[int]) -> bool:
        """Whether codes together miss as much as copies with noise of their own would, and no code of them less."""
        if not set(self.evidence.copies) <= may_copy or self.copies is None:
            return False
        own = np.clip(
            [by_squares[self.codes.index(code)] for code in self.evidence.copies if code in self.codes], 0, 0.999
        )
        expected = 1.0 / (1.0 + (own / (1.0 - own)).sum())
        missed = 1.0 - max(float(by_squares[self.copies]), float(by_squares.max()))
        return missed >= AVERAGED * expected


def _explained(reading: Reading, columns: FloatArray) -> float:
    return 1.0 - float(((columns - reading.predictions) ** 2).sum() / (columns**2).sum())


def _agree(evidence: _Evidence, first: int, second: int) -> bool:
    """Whether what two codes predict agrees as it would if each were the factor with noise of its own."""
    one, other = evidence.alone[first], evidence.alone[second]
    reached = _explained(one, evidence.target.columns) * _explained(other, evidence.target.columns)
    return reached > 0 and _agreement(one.predictions, other.predictions) >= AGREEING * np.sqrt(reached)


def _agreement(first: FloatArray, second: FloatArray) -> float:
    """Correlation of two predictions, their columns together."""
    first, second = first - first.mean(axis=0), second - second.mean(axis=0)
    return float((first * second).sum() / np.sqrt((first**2).sum() * (second**2).sum() + 1e-300))


def _holm(p_values: Sequence[float]) -> BoolArray:
    """Which hypotheses are refused at `LEVEL` over all of them, after Holm."""
    order = np.argsort(p_values, kind="stable")
    refused = np.zeros(len(p_values), dtype=bool)
    for place, index in enumerate(order):
        if p_values[index] > LEVEL / (len(order) - place):
            break
        refused[index] = True
    return refused


def _nothing(
    sample: _Sample, dead: IntArray, n_samples: int, unwanted: Sequence[str], kind: FactorKind, detail: str
) -> Diagnosis:
    """The same of all factors, where nothing can be predicted."""
    verdict = FactorDiagnosis(kind, detail=detail)
    text = f"{verdict.columns()[0]}, {detail}"
    factors = {name: replace(verdict, unwanted=name in unwanted, text=text) for name in sample.representation.names}
    codes = {int(code): CodeDiagnosis("dead") for code in dead}
    notes = (IN_TIME,) if sample.in_time else ()
    return Diagnosis(factors, codes, n_samples, sample.matrix.shape[1], sample.representation.code_names, notes)
