"""Is one model better than another on these images, or did it draw a luckier sample?"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.arguments import list_of
from unbraid.base.counted import counted
from unbraid.base.repr import p_text
from unbraid.base.types import DataFrame, IntArray, Progress
from unbraid.base.version import VERSION
from unbraid.data import Representation
from unbraid.files.table_formats import Table, is_bold, plain, table_text
from unbraid.files.trust import trusting
from unbraid.files.whole_files import write_text
from unbraid.metrics import Metric
from unbraid.scoring.card import ScoreCard
from unbraid.scoring.card_memory import check_memory_of_scores
from unbraid.scoring.card_tables import unchecked
from unbraid.scoring.correlation import holm
from unbraid.scoring.dependence import note_on_neighbours
from unbraid.scoring.engine import Gap, ScoreSettings, expected_seconds
from unbraid.scoring.equal_rows import Sampled, notes_on_subsets, sampled, subsets_of, subsets_of_groups
from unbraid.scoring.interval import student
from unbraid.scoring.matched_models import Models, load_models, match_models
from unbraid.scoring.named_blocks import blocks_of
from unbraid.scoring.score import Named, choose, parse_confidence, score
from unbraid.scoring.score_data import Confidence
from unbraid.scoring.scored import Scored
from unbraid.scoring.uncertainty import seconds_of_parts
from unbraid.scoring.unwanted import split_unwanted

ROUNDING = 1e-12  # of the larger score: codes in another order or unit differ so far, and always to the same side


@dataclass(frozen=True)
class ComparedScore:
    """The headline of a model on as many rows as all others have."""

    score: float  # mean over the subsets of its rows
    low: float  # interval of the mean of scores of fresh samples of `n_rows`
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class ComparedModel:
    """What is compared of a model: its scores, and how many rows these are of."""

    n_rows: int  # of each subset
    n_subsets: int  # disjoint; 1 where it has no more rows than the others
    scores: Mapping[str, ComparedScore]  # by metric


@dataclass(frozen=True)
class Difference:
    """How far the headline of one model lies above that of another."""

    metric: str
    first: str
    second: str
    difference: float  # first - second
    low: float  # interval of its mean over fresh samples of as many rows
    high: float
    p: float  # two-sided, Student's t of the difference over its deviation
    p_holm: float  # the same, corrected for all comparisons made
    better: str  # the model that scores better, where `p_holm` says that one does, else ""


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Models side by side: what each scores, and every difference in every metric that has intervals.

    The cards are of all rows that a model has. What is compared is of as many rows of each, see `compared`; where that
    is all of them, scores and intervals are those of the card.
    """

    cards: Mapping[str, ScoreCard]
    compared: Mapping[str, ComparedModel]
    differences: tuple[Difference, ...]
    confidence: float
    paired: bool  # whether row k of each is of the same image
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"{each.metric:<21} {each.first} - {each.second}: {each.difference:+z.3f} "
            f"({each.low:+z.3f} to {each.high:+z.3f}), p {p_text(each.p_holm)}"
            + (f", {each.better} is better" if each.better else "")
            for each in self.differences
        ]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame, one row per difference."""
        import pandas

        return pandas.DataFrame([asdict(each) for each in self.differences])

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers; the cards by the names of the models."""
        return {
            "unbraid": VERSION, "confidence": self.confidence, "paired": self.paired,
            "compared": {name: asdict(each) for name, each in self.compared.items()},
            "differences": [asdict(each) for each in self.differences], "notes": list(self.notes),
            "models": {name: card.to_dict() for name, card in self.cards.items()},
        }  # fmt: skip

    def table(self, *, digits: int = 3) -> tuple[list[str], list[list[str]]]:
        """Head and rows for a paper: score ± half of its interval, by model.

        Arrows say which way is better. A score is set in bold (**...**) where it is better than that of every other
        model by more than luck explains. Where models have unequal numbers of rows, the head says of how many rows the
        scores beneath are: "b (10 × 300 rows)" is the mean of 10 scores of 300 rows each.
        """
        names = list(self.cards)
        rows = []
        for metric in dict.fromkeys(each.metric for each in self.differences):
            own = [each for each in self.differences if each.metric == metric]
            wins = [sum(each.better == name for each in own) for name in names]
            better = self.cards[names[0]].scored[metric].metric.higher_is_better
            row = [f"{metric} {'↑' if better else '↓'}"]
            for name, won in zip(names, wins, strict=True):
                compared = self.compared[name].scores[metric]
                text = f"{compared.score:.{digits}f} ± {compared.half_width:.{digits}f}"
                row.append(f"**{text}**" if won == len(names) - 1 else text)
            rows.append(row)
        return ["metric", *(f"{name} ({self._rows_of(name)})" if self._thinned else name for name in names)], rows

    @property
    def diagnosis(self) -> str:
        """Which factors are in the codes of each model, in short; `cards[name].diagnosis` has all of it."""
        known = {name: card.diagnosis for name, card in self.cards.items()}
        return "; ".join(f"{name}: {each.column}" for name, each in known.items() if each is not None)

    @property
    def _thinned(self) -> list[str]:
        """Models of which not all rows are compared at once."""
        return [name for name, each in self.compared.items() if each.n_rows < len(self.cards[name].representation)]

    def _rows_of(self, name: str) -> str:
        each = self.compared[name]
        return f"{each.n_subsets} × {each.n_rows:,} rows" if each.n_subsets > 1 else f"{each.n_rows:,} rows"

    @property
    def footnote(self) -> str:
        """What a reader of the table must know: rows, seed, version, how sure, what was corrected for."""
        card = next(iter(self.cards.values()))
        sizes, n = sorted({each.n_rows for each in self.compared.values()}), len(self.differences)
        rows = f"{' or '.join(f'{size:,}' for size in sizes)} rows, {'paired' if self.paired else 'unpaired'}"
        fewer = [f"{name}: {self._rows_of(name)} of {len(self.cards[name].representation):,}" for name in self._thinned]
        parts = [
            *(rows, *fewer),
            f"± half of the {100 * self.confidence:g} % interval; bold: better than all others "
            f"(Holm over {counted(n, 'comparison')})",
            *unchecked(self.cards),
            f"seed {card.seed}; unbraid {VERSION}.",
        ]
        return "; ".join(parts)

    def save(self, path: str | Path) -> None:
        """Write everything as .json, or as one standalone .html page, or the table as .tex, .md or .csv.

        Whole or not at all.

        Raises:
            ValueError: the suffix is another.
            FileNotFoundError: the folder does not exist.
        """
        write_text(path, self.text(path))

    def text(self, path: str | Path) -> str:
        """What `save` writes to a file of this name; raises ValueError as it does."""
        suffix = Path(path).suffix
        if suffix == ".json":
            return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"
        if suffix == ".html":
            from unbraid.show.comparison_page import comparison_page

            return comparison_page(self._shown())
        return table_text(Table(*self.table(), notes=(self.footnote,)), suffix, path)

    def _shown(self) -> dict[str, Any]:
        """What the page shows, as `unbraid.show.comparison_page` takes it."""
        scores, first = [], next(iter(self.cards.values()))
        head, rows = self.table()
        for name, row in zip(dict.fromkeys(each.metric for each in self.differences), rows, strict=True):
            metric = first.scored[name].metric
            cells = [{"text": plain(cell), "bold": is_bold(cell)} for cell in row[1:]]
            shown = {"metric": name, "summary": metric.summary, "higher_is_better": metric.higher_is_better}
            scores.append({**shown, "cells": cells})
        return {
            "unbraid": VERSION, "confidence": self.confidence, "paired": self.paired,
            "notes": (f"Factors with a code of their own: {self.diagnosis}", *self.notes), "footnote": self.footnote,
            "models": list(self.cards), "columns": head[1:],
            "scores": scores, "differences": [asdict(each) for each in self.differences],
        }  # fmt: skip


def compare(
    models: Models,
    *,
    metrics: Named | Sequence[Named] = "standard",
    unwanted: str | Sequence[str] = (),
    confidence: Confidence = 0.95,
    seed: int = 0,
    held_out: Gap | None = None,
    paired: bool | None = None,
    progress: Progress | None = None,
) -> ModelComparison:
    """Compare the codes that two or more models give: which scores better, by how much, and how sure is that?

    The sampling unit is the image: other images might reverse a small difference. Two models cannot show that one
    *method* is better than another, since seeds change a score too; see `Study` and `unbraid compare`.

    Scores depend on the number of rows. Of a model with more rows than the one with the fewest (2 % more, or beyond),
    disjoint subsets of as many rows, or of as many whole groups, are scored, 10 at most, and the mean of their scores
    is compared; `notes` say so. Rows with weights are counted by Kish's effective number.

    Args:
        models: by name, each a Representation or the path of one; or a list of such, where paths are called by their
            names and others model 0, model 1, ...
        metrics: as for `unbraid.score`. Those that one of the models has no interval for are left out; notes say why.
        unwanted: as for `unbraid.score`: factors that the models should not tell of, of which less is better.
        confidence: of the intervals, in (0, 1); a model is called better where its corrected p is at most
            1 - confidence. (0.95, 20) finds the intervals from 20 parts of the rows per metric, shared among the
            subsets of a model, two or more each, in place of what the table of metrics says.
        seed: same seed, same numbers; it also draws the subsets.
        held_out: as for `unbraid.score`.
        paired: whether the rows of all models are of the same images. Default: where their factors match, in order,
            or in another order if no combination of factors occurs twice. The parts of the rows are then the same for
            all, so that what makes an image hard for all models cancels.
        progress: as for `unbraid.score`.

    Returns:
        ModelComparison.

    Raises:
        ValueError: fewer than two models, too few rows, other factors, cyclic ones of other `sizes`, `paired` where
            rows do not match, or weights of rows that not all models have, or that differ on paired rows; it needs
            more memory than is free.

    Reference:
        Holm 1979, for the correction; Kish 1965, for rows with weights; `unbraid.score` for the intervals.
    """
    level, n_parts = parse_confidence(confidence)
    loaded = load_models(models)
    largest = max(loaded.values(), key=lambda model: model.codes.size)
    chosen = choose(trusting(metrics), blocks_of(largest))
    n_bytes = sum(model.codes.nbytes + model.factors.nbytes for model in loaded.values())
    check_memory_of_scores(chosen, largest.codes, len(largest.names), n_bytes)
    matched = match_models(loaded, paired)
    representations = matched.by_name
    grouped = next(iter(representations.values())).groups is not None
    subsets = (subsets_of_groups if grouped else subsets_of)(representations, seed)
    costs = {name: expected_seconds(chosen, model) for name, model in representations.items()}
    parts = {
        name: _seconds_of_parts(chosen, costs[name], model, subsets[name], n_parts)
        for name, model in representations.items()
    }
    cards: dict[str, ScoreCard] = {}
    samples: dict[str, dict[str, Sampled]] = {}
    for place, (name, model) in enumerate(representations.items(), start=1):
        later = sum(sum(costs[other].values()) + parts[other] for other in [*representations][place:])
        card = score(
            model, metrics=metrics, unwanted=unwanted, seed=seed, held_out=held_out,
            progress=ScoreSettings(seed, progress=progress).followed_by(parts[name] + later).progress,
        )  # fmt: skip
        expected = sum(costs[name].values())  # 0 where no metric is named
        later *= sum(each.seconds for each in card.scored.values()) / expected if expected else 0.0
        settings = ScoreSettings(seed, held_out, progress).followed_by(later)
        scored, samples[name] = _with_intervals(model, card, unwanted, subsets[name], level, n_parts, settings)
        cards[name] = replace(card, scored=scored, path=name)
    differences, left_out = _differences(cards, samples, level, matched.paired)
    notes = (
        *matched.notes,
        *_note_on_neighbours(representations),
        *notes_on_subsets(representations, subsets),
        *_notes_on_missing(cards, samples),
        *_notes_on_labels(representations),
        *left_out,
    )
    if not differences:
        raise ValueError(f"nothing to compare: {'; '.join(notes)}")
    everywhere = dict.fromkeys(difference.metric for difference in differences)
    compared = {
        name: ComparedModel(
            len(subsets[name][0]),
            len(subsets[name]),
            {metric: _compared(samples[name][metric], card.scored[metric].metric, level) for metric in everywhere},
        )
        for name, card in cards.items()
    }
    return ModelComparison(cards, compared, differences, level, matched.paired, notes)


def _with_intervals(
    model: Representation,
    card: ScoreCard,
    unwanted: str | Sequence[str],
    subsets: Sequence[IntArray],
    confidence: float,
    n_parts: int | None,
    settings: ScoreSettings,
) -> tuple[dict[str, Scored], dict[str, Sampled]]:
    """As `sampled`, of all metrics of a card: those of unwanted factors by these alone."""
    remaining, alone = split_unwanted(model, list_of("unwanted", unwanted, single=True))
    views = [(remaining, card.scored.keys() - alone.keys(), settings.held_out)]
    views += [(factor, card.scored.keys() & {metric}, None) for metric, factor in alone.items()]
    scored: dict[str, Scored] = {}
    samples: dict[str, Sampled] = {}
    for view, names, gap in views:
        own = {metric: each for metric, each in card.scored.items() if metric in names}
        with_intervals, of_subsets = sampled(view, own, subsets, confidence, n_parts, replace(settings, held_out=gap))
        scored |= with_intervals
        samples |= of_subsets
    return scored, samples


def _differences(
    cards: Mapping[str, ScoreCard], samples: Mapping[str, Mapping[str, Sampled]], confidence: float, paired: bool
) -> tuple[tuple[Difference, ...], list[str]]:
    """Every two models by every metric that all have, and notes on the metrics by which they are not compared."""
    first, *rest = samples.values()
    sets = {
        metric: {name: card.scored[metric].mean_over for name, card in cards.items()}
        for metric in first
        if all(metric in own for own in rest)
    }
    rows = {metric: next(iter(cards.values())).scored[metric].metric for metric in sets}
    differences = [
        _difference(metric, pair, samples, confidence, paired, rows[metric].range)
        for metric, of_models in sets.items()
        for pair in combinations(cards, 2)
        if of_models[pair[0]] == of_models[pair[1]]
    ]
    notes = _notes_on_sets(sets)
    differing = {difference.metric for difference in differences if difference.low or difference.high}
    same = dict.fromkeys(each.metric for each in differences if each.metric not in differing)
    if differing and same:
        scores = [f"{metric} ({first[metric].score:z.3f})" for metric in same]
        notes.append(f"left out, since it is the same for every model: {', '.join(scores)}")
        differences = [difference for difference in differences if difference.metric in differing]
    upward = {metric: row.higher_is_better for metric, row in rows.items()}
    return _decided(differences, upward, 1 - confidence), notes


def _note_on_neighbours(models: Mapping[str, Representation]) -> list[str]:
    """The first that there is, as they are alike."""
    notes = (note_on_neighbours(model, null=True, confidence=True) for model in models.values())
    return next(([note] for own in notes for note in own), [])


def _seconds_of_parts(
    metrics: Mapping[str, Metric], costs: Mapping[str, float], model: Representation, subsets: Sequence[IntArray],
    times: int | None,
) -> float:  # fmt: skip
    """About how long the subsets of a model and their parts take, where all rows take so many seconds."""
    share, seconds = len(subsets[0]) / len(model), sum(seconds_of_parts(metrics, costs, times).values())
    return share * seconds + (share < 1) * len(subsets) * share * sum(costs.values())


def _notes_on_missing(cards: Mapping[str, ScoreCard], models: Mapping[str, Mapping[str, Sampled]]) -> list[str]:
    """Which metrics are not compared, since a model has no interval, and why."""
    metrics_by_reason: dict[str, list[str]] = {}
    for metric in sorted({metric for card in cards.values() for metric in card}):
        without = [name for name in cards if metric not in models[name]]
        if not without:
            continue
        card = cards[without[0]]
        if metric in card.scored:
            why = card.scored[metric].no_interval
        else:
            why = card.failed[metric].reason if metric in card.failed else card.skipped[metric]
        whose = "no model has an interval" if len(without) == len(cards) else f"no interval for {', '.join(without)}"
        metrics_by_reason.setdefault(f"{whose} ({why})", []).append(metric)
    return [f"not compared: {', '.join(metrics)}: {reason}" for reason, metrics in metrics_by_reason.items()]


def _notes_on_sets(sets: Mapping[str, Mapping[str, str]]) -> list[str]:
    """By which metrics models are not compared, since their scores are means over different factors or codes."""
    return [
        f"not compared by {metric}, as scores are means over different sets: "
        + ", ".join(f"{name} over {own or 'all'}" for name, own in of_models.items())
        for metric, of_models in sets.items()
        if len(set(of_models.values())) > 1
    ]


def _notes_on_labels(models: Mapping[str, Representation]) -> list[str]:
    """Notes on the factors, such as on rows without a label, with the models concerned where these are not all."""
    models_by_note: dict[str, list[str]] = {}
    for name, representation in models.items():
        for note in representation.notes:
            models_by_note.setdefault(note, []).append(name)
    return [
        note if len(names) == len(models) else f"{', '.join(names)}: {note}" for note, names in models_by_note.items()
    ]


def _compared(sampled: Sampled, metric: Metric, confidence: float) -> ComparedScore:
    half = float(student(confidence, sampled.degrees) * np.sqrt(sampled.variance))
    (least, most), score = metric.range, sampled.score
    return ComparedScore(score, min(max(score - half, least), score), max(min(score + half, most), score))


def _difference(
    metric: str,
    pair: Sequence[str],
    models: Mapping[str, Mapping[str, Sampled]],
    confidence: float,
    paired: bool,
    reach: tuple[float, float],
) -> Difference:
    """Not yet corrected; the interval is cut off at the largest difference of two scores in the metric's range."""
    from scipy.special import stdtr

    first, second = (models[name][metric] for name in pair)
    difference = first.score - second.score
    if abs(difference) <= ROUNDING * max(abs(first.score), abs(second.score)):
        difference = 0.0
    if paired:
        between = first.parts[0] - second.parts[0]
        deviation, freedom = float(np.sqrt(first.method.variance(between))), float(first.method.degrees(between))
    else:
        own, degrees = np.array([first.variance, second.variance]), np.array([first.degrees, second.degrees])
        deviation = float(np.sqrt(own.sum()))
        freedom = float(own.sum() ** 2 / np.sum(own**2 / degrees)) if own.any() else float(degrees.min())  # Welch
    half = float(student(confidence, freedom)) * deviation
    p = float(2 * stdtr(freedom, -abs(difference) / deviation)) if deviation > 0 else float(difference == 0)
    most = max(reach[1] - reach[0], abs(difference))
    return Difference(
        metric, pair[0], pair[1], difference, max(difference - half, -most), min(difference + half, most), p, p, ""
    )


def _decided(differences: Sequence[Difference], upward: Mapping[str, bool], alpha: float) -> tuple[Difference, ...]:
    """The same with p corrected for all of them, and which model is better.

    Args:
        differences: not yet corrected.
        upward: of each metric, whether higher is better.
        alpha: a corrected p of at most this decides.
    """
    decided = []
    for each, p_holm in zip(differences, holm([each.p for each in differences]), strict=True):
        ahead = each.first if (each.difference > 0) == upward[each.metric] else each.second
        better = ahead if p_holm <= alpha and each.difference != 0 else ""
        decided.append(replace(each, p_holm=p_holm, better=better))
    return tuple(decided)
