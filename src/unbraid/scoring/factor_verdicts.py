"""From what is known of each factor to what is said of it, and of each code."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from unbraid.base.types import FloatArray, IntArray
from unbraid.files.score_file import FactorKind
from unbraid.scoring.code_choice import relatedness
from unbraid.scoring.correlation import holm
from unbraid.scoring.diagnosis import LIKELY, CodeDiagnosis, Diagnosis, FactorDiagnosis, either_words
from unbraid.scoring.factor_evidence import ALL, LINE, MOST_SINGLE, NEARLY_ALL, RESAMPLES, CodeSearch, Evidence, agree
from unbraid.scoring.presence import LEVEL
from unbraid.scoring.readings import curve_reading, places_of

AS_MUCH = 0.9  # of what the best code holds alone, from which on another is a copy
ABOUT, LEAST = 0.3, 0.05  # of what all codes tell of a factor, and of all of it, from which on a code is about it
HARDLY = 0.02  # strength above chance below which a factor is hardly in the codes, sure as it may be
RELATED = 0.03  # share of a factor that a line in a code explains, from which on it is asked what the code tells
SPREADS = 3  # standard errors that a code must tell more of a factor than next to nothing, to be about it
COPY = 0.7  # of what all codes tell, that a copy with noise of its own holds alone
AVERAGED = 0.75  # of what copies with noise of their own would still miss together, from which on they are copies
RING = 0.85  # likewise of a circle
FOLLOWS = 0.5  # strength by another factor from which on a factor follows from it
IN_TIME = (
    "neighbouring rows are alike and taken as a time series, which is parted in stretches and tested by shifts; "
    "shuffle the rows if their order means nothing"
)


class Verdicts:
    """What is said of each factor and each code, by what a search has shown."""

    def __init__(self, search: CodeSearch) -> None:
        self.search, self.evidence = search, search.evidence

    def diagnosis(self, dead: IntArray, n_samples: int, n_codes: int, unwanted: Sequence[str]) -> Diagnosis:
        representation = self.search.sample.representation
        names = representation.names
        present = np.array(holm([each.p for each in self.evidence])) <= LEVEL
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
                    codes=tuple(int(self.search.live[code]) for code in verdict.codes),
                    shared_with=tuple(names[int(other)] for other in verdict.shared_with),
                    unwanted=names[place] in unwanted,
                )
        verdicts = {
            name: replace(verdict, text=", ".join(filter(None, verdict.columns(representation.code_names))))
            for name, verdict in verdicts.items()
        }
        return Diagnosis(
            verdicts,
            self._codes(dead, verdicts, shares, between),
            n_samples,
            n_codes,
            representation.code_names,
            self._notes(n_samples, n_codes, between),
        )

    def _between_factors(self) -> FloatArray:
        """(n_factors, n_factors) how much of each factor (column) follows from another (row), where any."""
        targets = [evidence.target for evidence in self.evidence]
        values = [self.search.sample.representation.factors[:, place].astype(float) for place in range(len(targets))]
        related = relatedness(np.column_stack(values), targets, [self.search.all_rows])[0]
        between = np.zeros((len(targets), len(targets)))
        least = max(0.02, 12.0 / len(self.search.all_rows))
        splits = self.search.held_out.splits
        for other, column in enumerate(values):
            places = places_of(column, splits)
            for place in np.flatnonzero(related[:, other] > least):
                if other != place:
                    between[other, place] = max(curve_reading(places, targets[place], splits, (other,)).score, 0.0)
        return between

    def _shares(self, strengths: FloatArray) -> FloatArray:
        """(n_codes, n_factors) of what all codes tell of each factor, how much each code tells alone.

        Where codes are very many, only of those that hold some factor.
        """
        search = self.search
        shares, surely = np.zeros((search.n_codes, len(strengths))), ABOUT / 3 * strengths
        holding = {code for evidence in self.evidence for code in self._holding(evidence)}
        for code in holding if search.is_wide else range(search.n_codes):
            for place in np.flatnonzero(strengths):
                evidence = self.evidence[place]
                each = evidence.alone.get(code)
                if each is None and search.related[ALL, search.number[id(evidence.target)], code] > RELATED:
                    each = search.held_out.by_curve(code, evidence.target)
                if each is not None and each.score - SPREADS * each.error > surely[place]:
                    shares[code, place] = each.score
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(strengths > 0, np.clip(shares, 0.0, None) / strengths, 0.0)

    def _holding(self, evidence: Evidence) -> list[int]:
        """Codes in which a factor may be."""
        ranked = sorted(evidence.alone, key=lambda code: -evidence.alone[code].score)
        return [*ranked[:3], *evidence.chosen, *evidence.copies]

    def _factors_of(self, code: int, shares: FloatArray, between: FloatArray) -> list[int]:
        """Factors that a code is about: it tells of them, and more than follows from a factor that it tells more of.

        A code that tells little is still about the factor that it tells most of, if that is 5 % of it.
        """
        listed = [
            int(place) for place in np.argsort(-shares[code], kind="stable") if shares[code, place] >= self.least[place]
        ]
        first = int(shares[code].argmax())
        if not listed and shares[code, first] * self.evidence[first].strength >= LEAST:
            return [first]
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
        table, may_copy = Resampled(evidence), self._own_copies(evidence, place, shares, between)
        scores = table.scores(np.ones((1, len(self.search.all_rows)), dtype=np.float32))
        statement = table.decide(scores, 0, may_copy, self.search.kinds[place])
        resampled = table.scores(self.search.resamples)
        drawn = Counter(table.decide(resampled, draw, may_copy, self.search.kinds[place]) for draw in range(RESAMPLES))
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
        alone = [evidence.alone[code].score for code in codes if code in evidence.alone] if kind == "spread" else []
        best_alone = max(alone or [each.score for each in evidence.alone.values()])
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
            (kind, [int(self.search.live[code]) for code in codes]) for (kind, codes), _ in drawn.most_common(2)
        ]
        detail = either_words(alternatives, self.search.sample.representation.code_names)
        return replace(verdict, kind="unclear", codes=(), mixture="", shared_with=(), detail=detail)

    def _own_copies(self, evidence: Evidence, place: int, shares: FloatArray, between: FloatArray) -> frozenset[int]:
        """Codes that may be copies: what they tell of the factor does not merely follow from another factor."""
        first = max(evidence.alone, key=lambda code: evidence.alone[code].score)
        return frozenset(
            code
            for code in evidence.alone
            if place in self._factors_of(code, shares, between) and (code == first or agree(evidence, first, code))
        )

    def _absent(self, evidence: Evidence, unwanted: bool) -> FactorDiagnosis:
        classes = evidence.target.classes is not None
        chance = 1.0 - evidence.target.chance if classes else 0.0
        score = max((each.score for each in evidence.together), default=0.0)
        return FactorDiagnosis(
            "absent", strength=float(chance + (1 - chance) * max(score, 0.0)) if classes else float(max(score, 0.0)),
            chance=chance, p=evidence.p, measure="accuracy" if classes else "R²", unwanted=unwanted,
            detail="hardly" if evidence.p < LEVEL else "",
        )  # fmt: skip

    def _codes(
        self, dead: IntArray, verdicts: Mapping[str, FactorDiagnosis], shares: FloatArray,
        between: FloatArray,
    ) -> dict[int, CodeDiagnosis]:  # fmt: skip
        names = self.search.sample.representation.names
        codes = {int(code): CodeDiagnosis("dead") for code in dead}
        for place, column in enumerate(self.search.live):
            factors = {names[k]: float(min(shares[place, k], 1.0)) for k in self._factors_of(place, shares, between)}
            for name, verdict in verdicts.items():
                if int(column) in verdict.codes and name not in factors and verdict.kind in ("spread", "circle"):
                    factors[name] = float(min(shares[place, names.index(name)], 1.0))
            if not factors and self.search.is_wide:
                continue
            kind = "none of these factors" if not factors else "one factor" if len(factors) == 1 else "several factors"
            codes[int(column)] = CodeDiagnosis(kind, factors)
        return dict(sorted(codes.items()))

    def _notes(self, n_samples: int, n_codes: int, between: FloatArray) -> tuple[str, ...]:
        names = self.search.sample.representation.names
        follows = between >= FOLLOWS
        pairs = [
            f"{names[other]} and {names[place]} follow from each other"
            if follows[place, other]
            else f"{names[place]} follows from {names[other]}"
            for other, place in np.argwhere(follows)
            if other < place or not follows[place, other]
        ]
        notes = [f"{'; '.join(pairs[:4])}: a code of one tells of the other"] if pairs else []
        if self.search.sample.in_time:
            notes.append(IN_TIME)
        if len(self.search.all_rows) < n_samples:
            notes.append(f"by {len(self.search.all_rows):,} of {n_samples:,} rows, drawn at random")
        if self.search.is_wide:
            notes.append(f"of {n_codes:,} codes only those that hold a factor are listed")
        return tuple(notes)


class Resampled:
    """What each set of codes misses of a factor, row by row, so that resamples of the rows can be judged."""

    def __init__(self, evidence: Evidence) -> None:
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
        if self.copies is not None and alone[first] >= COPY * strength and self._averaged(by_squares, may_copy):
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
