"""What is known of a factor: how much of it each code tells, all codes together, and the smallest set that does."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unbraid.base.arrays import is_sparse
from unbraid.base.types import FloatArray, IntArray
from unbraid.scoring.code_choice import best_pairs, ranks_of, relatedness, smallest_set
from unbraid.scoring.diagnosed_rows import Sample
from unbraid.scoring.presence import LEVEL, presence_p
from unbraid.scoring.readings import HeldOut, Reading, Target, best, targets_of

NEARLY_ALL = 0.9  # of what all codes tell of a factor
MOST_CODES = 24  # that are fitted together by pieces and products
SCREENED, SCREENED_LINE = 16, 64  # codes of each factor among more than these
MOST_SINGLE = 6  # codes of each factor that are tried alone, where they are many
WIDE = 512  # codes, of more than which only those most related to a factor are looked at
ENOUGH = 0.8  # strength from which on no other way to read a factor is tried
ALL = -1  # in place of a split: all rows
RESAMPLES = 200
CHOICES = 3  # by which p is multiplied, since each learner chose its penalty by the rows that it predicts
GOOD = 0.8  # of what the best code holds alone, from which on another may be a copy with noise of its own
AGREEING = 0.8  # correlation of what two codes predict, of the most that two copies could have
LINE = 0.9  # of a set's strength, from which on a linear regression is enough


@dataclass
class Evidence:
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


class CodeSearch:
    """Of each factor the codes that tell of it, alone and together.

    Args:
        sample: codes and factors.
        live: columns of the codes that vary.
        parts: (n_rows,) of which each is predicted from the others.
        rng: of the resamples.
    """

    def __init__(self, sample: Sample, live: IntArray, parts: IntArray, rng: np.random.Generator) -> None:
        representation = sample.representation
        self.kinds, self.views = representation.kinds, targets_of(representation)
        targets = [target for views in self.views for _, target in views]
        self.number = {id(target): place for place, target in enumerate(targets)}
        self.all_rows = np.arange(len(parts))
        row_sets = [*(np.flatnonzero(parts != part) for part in range(int(parts.max()) + 1)), self.all_rows]
        self.related = relatedness(sample.matrix[:, live], targets, row_sets)
        # Of codes that tell nothing, the one most related to a factor seldom reaches this.
        self.by_chance = 4.0 * np.log(3.0 * len(live)) / len(parts) if len(live) > MOST_CODES else 0.0
        self.is_wide = len(live) > WIDE
        if self.is_wide:
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
        self.resamples = draws[:, groups].astype(float)  # (RESAMPLES, n_rows) how often each row is drawn
        self.evidence = [self._best_view(views) for views in self.views]

    def _best_view(self, views: Sequence[tuple[str, Target]]) -> Evidence:
        """What is known in the first way to read a factor, unless another is much better."""
        if np.ptp(views[0][1].columns, axis=0).max() == 0:
            return Evidence("", views[0][1], {}, [], 1.0)
        first = self._look(*views[0])
        evidence = [first]
        if first.p >= LEVEL or first.strength <= ENOUGH:
            evidence += [self._look(*view) for view in views[1:]]
        least = 0.1 + max(first.strength, 0.0)
        better = [each for each in evidence[1:] if each.p < LEVEL and each.strength > least]
        chosen = max(better, key=lambda evidence: evidence.strength) if better else first
        if chosen is not first and first.p < LEVEL and first.strength > 0.5 * chosen.strength:
            chosen = first
        self._choose(chosen)
        return chosen

    def _look(self, words: str, target: Target) -> Evidence:
        held_out = self.held_out
        splits = range(len(held_out.splits))
        of_splits = [self._screened(target, split, SCREENED, MOST_CODES) for split in splits]
        most_of_line = SCREENED_LINE if len(self.live) <= WIDE else SCREENED
        lines = [self._screened(target, split, most_of_line, SCREENED_LINE) for split in splits]
        codes = self._screened(target, ALL, MOST_SINGLE, MOST_CODES)
        firsts = [each[0] for each in of_splits]
        curves = {code: held_out.by_curve(code, target) for code in {*codes, *firsts}}
        alone = {code: curves[code] for code in codes}
        for code in sorted(alone, key=lambda code: -alone[code].score)[:2]:
            one = [[code]] * len(held_out.splits)
            alone[code] = best([alone[code], held_out.by_line(one, target), held_out.by_pieces(one, target)])
        together = [held_out.by_line(lines, target)]
        if max(each.score for each in [*alone.values(), *together]) < 0.97:
            together.append(held_out.by_pieces(of_splits, target))
        together.append(self._joined([curves[first] for first in firsts]))
        ceiling = max(each.score for each in [*alone.values(), *together])
        if self.n_codes > 1 and max(each.score for each in alone.values()) < NEARLY_ALL and ceiling < 0.97:
            pairs = [
                pair
                for (train, _), some in zip(held_out.splits, of_splits, strict=True)
                for pair in best_pairs(self.ranks, target, train, some, 1)
            ]
            if len(pairs) == len(held_out.splits):
                of_pairs = {pair: held_out.by_neighbours(pair, target) for pair in set(pairs)}
                together.append(self._joined([of_pairs[pair] for pair in pairs]))
        tests = [
            presence_p(target, each, held_out.splits, self.sample.groups, in_time=self.sample.in_time)
            for each in together
        ]
        p = min(1.0, CHOICES * len(together) * min(tests))
        return Evidence(words, target, alone, together, p)

    def _screened(self, target: Target, split: int, most: int, few: int) -> list[int]:
        """All codes where they are few, else those most related on the rows that a split fits on, the best first."""
        order = np.argsort(-self.related[split, self.number[id(target)]], kind="stable")
        return order[: self.n_codes if self.n_codes <= few else most].tolist()

    def _joined(self, readings: Sequence[Reading]) -> Reading:
        """One reading of which each part is by the codes that were chosen without it."""
        first = readings[0]
        predictions, errors = first.predictions.copy(), first.errors.copy()
        for (_, test), each in zip(self.held_out.splits, readings, strict=True):
            predictions[test], errors[test] = each.predictions[test], each.errors[test]
        return replace(first, predictions=predictions, errors=errors)

    def _choose(self, evidence: Evidence) -> None:
        """The smallest set of codes that holds nearly all of a factor, where no code does so alone."""
        if evidence.p >= 5 * LEVEL:
            return
        held_out, target, alone = self.held_out, evidence.target, evidence.alone
        first = max(alone, key=lambda code: alone[code].score)
        if alone[first].score >= NEARLY_ALL * evidence.strength and alone[first].score >= NEARLY_ALL:
            return
        candidates = self._screened(target, ALL, SCREENED, MOST_CODES)
        linear = evidence.together[0].score >= LINE * max(each.score for each in evidence.together)
        if linear and self.n_codes > MOST_CODES:
            candidates = self._screened(target, ALL, SCREENED_LINE, SCREENED_LINE)
        related = self.related[ALL, self.number[id(target)]]
        candidates = [code for code in candidates if related[code] > self.by_chance]
        if len(candidates) < 2:
            return
        sets = [smallest_set(held_out, target, candidates, NEARLY_ALL, pieces=not linear)]
        sets += [list(pair) for pair in best_pairs(self.ranks, target, self.all_rows, candidates, 2)]
        of_sets = {tuple(sorted(each)): self._of_set(sorted(each), target) for each in sets if len(each) > 1}
        if not of_sets:
            return
        readings = {codes: best(each) for codes, each in of_sets.items()}
        most = max([evidence.strength, *(each.score for each in readings.values())])
        enough = [codes for codes, each in readings.items() if each.score >= NEARLY_ALL * most]
        evidence.chosen = min(enough, key=len) if enough else max(readings, key=lambda codes: readings[codes].score)
        evidence.of_chosen, evidence.line_of_chosen = readings[evidence.chosen], of_sets[evidence.chosen][0]
        evidence.copies = self._noisy_copies(evidence)
        if evidence.copies:
            evidence.of_copies = best(self._of_set(evidence.copies, target))

    def _of_set(self, codes: Sequence[int], target: Target) -> list[Reading]:
        """What all these codes together tell, the line first."""
        each_split = [list(codes)] * len(self.held_out.splits)
        readings = [self.held_out.by_line(each_split, target)]
        if len(codes) <= MOST_CODES:
            readings.append(self.held_out.by_pieces(each_split, target))
        if len(codes) <= 3:
            readings.append(self.held_out.by_neighbours(codes, target))
        return readings

    def _noisy_copies(self, evidence: Evidence) -> tuple[int, ...]:
        """Codes that hold about as much as the best, and whose predictions agree as those of copies would."""
        alone = evidence.alone
        first = max(alone, key=lambda code: alone[code].score)
        good = [code for code, each in alone.items() if each.score >= GOOD * alone[first].score]
        copies = [code for code in good if code == first or agree(evidence, first, code)]
        return tuple(sorted(copies)) if len(copies) > 1 else ()


def explained_share(reading: Reading, columns: FloatArray) -> float:
    return 1.0 - float(((columns - reading.predictions) ** 2).sum() / (columns**2).sum())


def agree(evidence: Evidence, first: int, second: int) -> bool:
    """Whether what two codes predict agrees as it would if each were the factor with noise of its own."""
    one, other = evidence.alone[first], evidence.alone[second]
    reached = explained_share(one, evidence.target.columns) * explained_share(other, evidence.target.columns)
    return reached > 0 and agreement(one.predictions, other.predictions) >= AGREEING * np.sqrt(reached)


def agreement(first: FloatArray, second: FloatArray) -> float:
    """Correlation of two predictions, their columns together."""
    first, second = first - first.mean(axis=0), second - second.mean(axis=0)
    return float((first * second).sum() / np.sqrt((first**2).sum() * (second**2).sum() + 1e-300))
