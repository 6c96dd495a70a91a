"""Score cards: the scores of one representation, shown, saved and loaded."""

import json
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, make_dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from unbraid.base.arguments import check_number
from unbraid.base.arrays import array_digest
from unbraid.base.counted import counted
from unbraid.base.repr import with_names
from unbraid.base.suggest import suggestion
from unbraid.base.types import DataFrame, FloatArray, Progress
from unbraid.base.version import VERSION
from unbraid.data import SUFFIXES, Representation
from unbraid.data.guessing import ranks_of
from unbraid.data.representation import NARROWEST
from unbraid.files.score_file import (
    LARGEST_ARRAY,
    LONGEST_TEXT,
    Decision,
    SavedInput,
    SavedMetric,
    SavedNull,
    SavedScores,
    read_scores_file,
    storable,
)
from unbraid.files.whole_files import write_text
from unbraid.metrics import BLOCKED, METRICS, Metric
from unbraid.metrics._shared.chance import UNREADABLE, Noise, notes_on_noise
from unbraid.metrics._shared.metric_arguments import find_metric
from unbraid.metrics._shared.provenance import of_another_version
from unbraid.metrics._shared.resampling import UNCHECKED, Resampling
from unbraid.scoring.baselines import baseline_notes
from unbraid.scoring.card_text import card_text
from unbraid.scoring.diagnosis import Diagnosis, diagnosis_of
from unbraid.scoring.interval import Interval, Intervals, rows_needed
from unbraid.scoring.null import Null
from unbraid.scoring.unwanted import factor_of, row_of_unwanted

ROWS = {**METRICS, **BLOCKED}  # of metrics that a card may hold
NO_INTERVAL = Interval(np.nan, np.nan, np.nan)
# Columns of `ScoreCard.to_frame` beside those of baselines, which are called as these are.
COLUMNS = {
    "metric", "name", "factor", "value", *Interval._fields, "by_seed", "null", "p", "above_null", "direction",
    "headline", "version", "seconds",
}  # fmt: skip

COLLAPSED = (
    "collapsed or untrained: by their log-variances, all codes together have less than one bit of information on a "
    "row; metrics use the means, which differ far less than the posteriors are wide, and may still give high scores"
)
# Of codes without log-variances.
NARROW = (
    f"perhaps collapsed: no code has a standard deviation above {NARROWEST:g}; if these are posterior means of a VAE, "
    "whose prior has 1, they have almost no information, but may get high scores; log-variances would show which"
)
OF_AS_MANY = (
    "intervals are for the mean score of new samples of {:,} rows, as many as here: with more rows the score itself "
    "can lie outside"
)


@dataclass(frozen=True, eq=False)
class Scored:
    """One metric of a score card."""

    metric: Metric
    result: Any
    seconds: float
    objects: Representation | None = None  # what was scored in place of the card's representation
    chance: Noise | None = None  # what independent noise scores, where the metric states it
    null: Null | None = None  # what the same rows score when they are moved, where that was asked for
    intervals: Intervals | None = None  # of each number, where that was asked for
    no_interval: str = ""  # why there is none, though it was asked for
    no_null: str = ""  # likewise
    baselines: Mapping[str, float] = field(default_factory=dict)  # what codes that learnt nothing score, by name
    no_baselines: Mapping[str, str] = field(default_factory=dict)  # by name, why a baseline could not be scored
    factors: tuple[str, ...] = ()  # their names, by which notes call them; none where the notes do so already
    codes: tuple[str, ...] = ()  # likewise
    other_version: str = ""  # what to say where a file holds the number of another version of the metric

    @property
    def headline(self) -> float:
        return getattr(self.result, self.metric.headline)

    @property
    def values(self) -> dict[str, float]:
        """Every number of the result, the headline first."""
        numbers = {name: value for name, value in fields_of(self.result) if isinstance(value, float | np.floating)}
        first = {self.metric.headline: numbers[self.metric.headline]}
        return {name: float(value) for name, value in (first | numbers).items()}

    @property
    def arrays(self) -> dict[str, FloatArray]:
        return {name: value for name, value in fields_of(self.result) if isinstance(value, np.ndarray)}

    @property
    def unchecked(self) -> bool:
        """Whether it has an interval that no simulation has checked."""
        method = self.metric.interval
        return self.intervals is not None and isinstance(method, Resampling) and not method.checked

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before reading the number."""
        raw = (*getattr(self.result, "notes", ()), *notes_on_noise(self.chance, self.headline))
        notes = [with_names(note, self.factors, self.codes) for note in raw]
        if self.objects is not None:
            notes.insert(0, f"on {len(self.objects):,} images of whole objects, encoded for it")
        if self.other_version:
            notes.insert(0, self.other_version)
        if self.null is not None:
            notes.append(self.null.note)
        notes += baseline_notes(self.metric.higher_is_better, self.headline, self.baselines)
        if self.unchecked:
            notes.append(UNCHECKED)
        if self.intervals is not None and self.intervals.by_seed is not None:
            share = self.intervals.by_seed.get(self.metric.headline)
            if share is not None:
                seeds = round(100 * share)
                notes.append(
                    f"{seeds} % of its variance comes from the metric's seed, {100 - seeds} % from sampling rows"
                )
        missing = {"interval": self.no_interval, "null": self.no_null}
        missing |= {f"score of the baseline {name}": reason for name, reason in self.no_baselines.items()}
        missing_notes = [f"no {what}: {reason}" for what, reason in missing.items() if reason]
        notes += [with_names(note, self.factors, self.codes) for note in missing_notes]
        return tuple(dict.fromkeys(notes))  # a card that was read has them among those of its result

    @property
    def facts(self) -> tuple[str, ...]:
        """Notes on how the metric reads the data, without those on this number."""
        own = {UNCHECKED, *baseline_notes(self.metric.higher_is_better, self.headline, self.baselines)}
        own |= set() if self.null is None else {self.null.note}
        return tuple(note for note in self.notes if note not in own and not note.startswith(UNREADABLE))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of the notes that change how the number is read."""
        missing = ("no interval: ", "no null: ", "no score of the baseline ")
        return tuple(
            note for note in self.notes
            if UNREADABLE in note or note in (UNCHECKED, self.other_version) or note.startswith(missing)
        )  # fmt: skip

    @property
    def mean_over(self) -> str:
        """The factors or codes that the headline is a mean over, where these are not all."""
        return with_names(getattr(self.result, "mean_over", ""), self.factors, self.codes)


@dataclass(frozen=True)
class FailedMetric:
    """A metric that raised an error."""

    reason: str  # one line
    details: str = ""  # the traceback

    @classmethod
    def from_error(cls, error: Exception) -> "FailedMetric":
        details = "".join(traceback.format_exception(error))
        return cls(storable(f"{type(error).__name__}: {error}"), storable(details[-LONGEST_TEXT:], lines=True))


Outcome: TypeAlias = Scored | FailedMetric | str  # of a metric; the last says why it has no meaning here


def card_of(
    representation: Representation, outcomes: Mapping[str, Outcome], metrics: Mapping[str, Metric], seed: int,
    **more: Any,
) -> "ScoreCard":  # fmt: skip
    """The card of what came of each metric, whose rows are to be shown so; `more` are further fields of the card.

    Raises:
        ValueError: no metric gave a number, with the reason of each.
    """
    scored = {name: replace(each, metric=metrics[name]) for name, each in outcomes.items() if isinstance(each, Scored)}
    skipped = {name: each for name, each in outcomes.items() if isinstance(each, str)}
    failed = {name: each for name, each in outcomes.items() if isinstance(each, FailedMetric)}
    if not scored and not representation.names:
        how = "`unbraid score` takes --labels, and --html for a page"
        labels = f"give labels ({how}); `rank` compares models without them"
        raise ValueError(f"these codes have no factors to score against: {labels}")
    if outcomes and not scored:
        reasons = skipped | {name: f"failed: {failure.reason}" for name, failure in failed.items()}
        raise ValueError(
            f"none of the metrics could be computed: {'; '.join(f'{name}: {why}' for name, why in reasons.items())}"
        )
    return ScoreCard(representation, scored, skipped, seed, failed=failed, **more)


@dataclass(frozen=True, eq=False, repr=False)
class ScoreCard(Mapping[str, Any]):
    """The scores of one representation.

    A mapping from the id of each metric that was scored to its Result: `card["mig"]`, `card.get("mig")`,
    `"mig" in card`, `dict(card)`. `scored` maps each to its result and the seconds it took, `skipped` each metric that
    has no meaning here to the reason, and `failed` each that raised an error to a `FailedMetric`, with the `reason` in
    one line and the traceback. `computed_with` says of each what its number depends on beside codes and factors (see
    `unbraid.metrics._shared.provenance`).
    """

    representation: Representation
    scored: Mapping[str, Scored]
    skipped: Mapping[str, str]
    seed: int
    held_out: str | None = None  # as text, where it was given so
    path: str | None = None
    chosen_factors: tuple[str, ...] = ()  # of the file at `path`; empty: all of them
    failed: Mapping[str, FailedMetric] = field(default_factory=dict)  # metrics that raised an error
    computed_with: Mapping[str, Decision] = field(default_factory=dict)
    described: Mapping[str, Any] | None = None  # of a card that was read: its `input`
    of_codes: int | None = None  # how many were scored, where `representation` holds those that matter
    wide_codes: Any = field(default=None, repr=False)  # all of these, which no file holds
    options: tuple[str, ...] = ()  # of the command that scored the file at `path`: its labels, and what they are
    diagnosing: Callable[[], Diagnosis] | None = field(default=None, repr=False)

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """Which factors are in the codes, where, and what is wrong; None of a card that was read without it.

        As `unbraid.diagnose` of the same codes, factors and seed, computed when it is first asked for.
        """
        return None if self.diagnosing is None else self.diagnosing()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the whole card: rows left out, kinds guessed, collapsed codes, what intervals are for."""
        if self.described is not None:
            return tuple(self.described.get("notes", ()))
        notes = [*self.representation.notes]
        if self.representation.tells_nothing():
            notes.append(COLLAPSED)
        elif self.representation.varies_little():
            notes.append(NARROW)
        if any(each.intervals is not None for each in self.scored.values()):
            notes.append(OF_AS_MANY.format(self.n_samples))
        return tuple(notes)

    @property
    def footnotes(self) -> dict[str, tuple[str, ...]]:
        """Notes that several metrics share, each with the names of these."""
        metrics: dict[str, list[str]] = {}
        for name, scored in self.scored.items():
            for note in scored.facts:
                metrics.setdefault(note, []).append(name)
        return {note: tuple(names) for note, names in metrics.items() if len(names) > 1}

    def row_notes(self) -> dict[str, list[str]]:
        """The notes of each metric without the footnotes."""
        shared = self.footnotes
        return {name: [note for note in scored.notes if note not in shared] for name, scored in self.scored.items()}

    def note_lines(self) -> list[str]:
        """Footnotes, and what holds for the whole card."""
        return [*(f"{', '.join(names)}: {note}" for note, names in self.footnotes.items()), *self.notes]

    @property
    def n_samples(self) -> int:
        """Rows that were scored, also of a card that was read without them."""
        return len(self.representation) if self.described is None else int(self.described["n_samples"])

    def __iter__(self) -> Iterator[str]:
        """Ids of the metrics that were scored."""
        return iter(self.scored)

    def __len__(self) -> int:
        return len(self.scored)

    def __getitem__(self, metric: str) -> Any:
        if metric in self.skipped:
            raise KeyError(f"{metric} was skipped: {self.skipped[metric]}")
        if metric in self.failed:
            raise KeyError(f"{metric} failed: {self.failed[metric].reason}")
        if metric not in self.scored:
            known = metric in ROWS
            how = f"score(..., metrics=[{metric!r}]) does" if known else suggestion(str(metric), [*self.scored, *ROWS])
            raise KeyError(f"{metric} was not scored; {how}")
        return self.scored[metric].result

    def to_dict(self) -> dict[str, Any]:
        """The card as plain numbers, strings, lists and dictionaries: what the JSON file holds."""
        names = self.representation.names
        factors = {"factors": list(self.chosen_factors)} if self.chosen_factors else {}
        metrics = {name: metric_entry(scored, names) for name, scored in self.scored.items()}
        footnotes = self.footnotes
        for entry in metrics.values():
            entry["notes"] = [note for note in entry["notes"] if note not in footnotes]
        return {
            "unbraid": VERSION,
            "seed": int(self.seed),
            **({} if self.held_out is None else {"held_out": self.held_out}),
            "input": self.saved_input,
            "metrics": metrics,
            **({"footnotes": {note: list(of) for note, of in footnotes.items()}} if footnotes else {}),
            "skipped": dict(self.skipped),
            **({"failed": {name: asdict(each) for name, each in self.failed.items()}} if self.failed else {}),
            **({"diagnosis": known.to_dict()} if (known := self._known_diagnosis()) is not None else {}),
            "computed_with": {name: {**factors, **each} for name, each in self.computed_with.items()},
        }

    def _known_diagnosis(self) -> Diagnosis | None:
        """The diagnosis, where it was asked for before or comes from a file."""
        return self.diagnosis if self.described is not None else self.__dict__.get("diagnosis")

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame with one row per number, and how to read it.

        Columns: metric; name of the value; factor ("" for all); value; low, high, deviation, bias (NaN where it was not
        checked) and degrees of its `Interval`, and by_seed, the share of its variance that another seed makes, NaN
        where none was asked for or there is none; null, the mean of the headline with rows moved, p and above_null, of
        headlines for which a null was asked (p also of each factor), else NaN; what each baseline scores, by its name,
        where there are any, NaN beside what is no headline; direction, "higher" or "lower" where one is better, ""
        where neither is; headline, whether it is the metric's score; version and seconds of the metric that computed
        it: on a card that was read the version may be another than that in `unbraid.metrics.METRICS`.
        """
        import pandas

        rows: list[dict[str, Any]] = []
        baselines = dict.fromkeys(name for each in self.scored.values() for name in each.baselines)
        for metric, scored in self.scored.items():
            per_factor = getattr(scored.result, "per_factor", ())
            known = scored.intervals
            shares = {} if known is None or known.by_seed is None else known.by_seed
            numbers = [
                (name, "", number, None if known is None else known.values.get(name))
                for name, number in scored.values.items()
            ]
            between = (known and known.per_factor) or [None] * len(per_factor)
            names = self.representation.names
            numbers += [("per_factor", *each) for each in zip(names, per_factor, between, strict=False)]
            chances = scored.null.p_per_factor if scored.null is not None else None
            of_factors = {} if chances is None else dict(zip(names, chances.tolist(), strict=True))
            for name, factor, number, bounds in numbers:
                interval = NO_INTERVAL if bounds is None else bounds
                higher, headline = scored.metric.direction(name), name == scored.metric.headline
                null = scored.null if headline else None
                above = None if null is None else null.above
                rows.append(
                    {
                        "metric": metric, "name": name, "factor": factor, "value": float(number),
                        **{key: np.nan if each is None else each for key, each in interval._asdict().items()},
                        "by_seed": shares.get(name, np.nan),
                        "null": np.nan if null is None else null.mean,
                        "p": of_factors.get(factor, np.nan) if null is None else null.p,
                        "above_null": np.nan if above is None else above,
                        **{each: scored.baselines.get(each, np.nan) if headline else np.nan for each in baselines},
                        "direction": {True: "higher", False: "lower", None: ""}[higher],
                        "headline": headline,
                        "version": scored.metric.version, "seconds": scored.seconds,
                    }
                )  # fmt: skip
        return pandas.DataFrame(rows)

    def to_latex(self) -> str:
        """The headlines as a LaTeX table (booktabs): metric, value, and interval and p where there are any."""
        return self._headlines().to_latex(index=False, float_format="%.3f", escape=True)

    def to_markdown(self) -> str:
        """The same table in Markdown."""
        return self._headlines().to_markdown(index=False, floatfmt=".3f")

    def _headlines(self) -> DataFrame:
        frame = self.to_frame()
        optional = [name for name in ("low", "high", "p") if np.isfinite(frame[name].to_numpy(dtype=float)).any()]
        return frame.loc[frame["headline"], ["metric", "value", *optional]]

    def per_code(
        self, null: int | str = 999, *, seed: int | None = None, progress: Progress | None = None
    ) -> DataFrame:
        """A pandas DataFrame with a row for each code: its best factor, its information and whether that is luck.

        As `unbraid.scoring.per_code`, which says what its columns are; `seed` is that of the card by default.

        Raises:
            ValueError: the card holds no codes or no factors, or `null` is 0 or moves nothing.
        """
        from unbraid.scoring.per_code import per_code

        chosen = self.seed if seed is None else seed
        return per_code(self.representation, codes=self.wide_codes, null=null, seed=chosen, progress=progress)

    def rows_needed(self, half_width: float) -> dict[str, int]:
        """How many rows each metric needs for an interval that reaches so far to either side of its headline.

        From the deviations that `score(..., confidence=...)` found, which fall as 1 / sqrt(n_samples), for an interval
        of as many parts of the rows: a forecast, good to a factor of two where the estimate rests on few trainings.
        Metrics without interval are left out. Of groups of rows it takes as many more groups as rows.

        Raises:
            ValueError: `half_width` is not above 0.
        """
        check_number("half_width", half_width, above=0)
        rows = {}
        for name, scored in self.scored.items():
            if (known := scored.intervals) is not None:
                interval = known.values[scored.metric.headline]
                degrees = known.times - 1 if interval.degrees is None else interval.degrees
                rows[name] = rows_needed(interval.deviation, self.n_samples, known.confidence, half_width, degrees)
        return rows

    def to_hf(
        self,
        path: str | Path | None = None,
        *,
        model: str,
        dataset: str,
        dataset_id: str | None = None,
        config: str | None = None,
        split: str | None = None,
        revision: str | None = None,
        task: str = "feature-extraction",
    ) -> dict[str, Any]:
        """The scores as the evaluation results of a model card on the Hugging Face Hub: its key `model-index`.

        Each number of which one end is better is a metric of the index, called as in tables of results ("mig.score").
        Its `args` hold its direction and range, its interval and its level by chance where they were asked for, and
        what it was computed with; those of the dataset hold the number of rows and the names of the factors.

        Args:
            path: of a README.md, to write the results into its front matter (this needs huggingface_hub); its text,
                and results on other datasets or by other metrics, stay. A file that is not there yet begins with a
                table of the scores.
            model: what the index calls the model.
            dataset: what the images are called. Name rendered images as such, and not by the dataset they follow.
            dataset_id: of the dataset on the Hub, "owner/name"; by default `dataset` in letters that an id may have.
            config, split, revision: of the dataset on the Hub, where it has them.
            task: a task of the Hub.

        Returns:
            {"model-index": [...]}, which `huggingface_hub.ModelCardData` takes as keyword arguments.

        Raises:
            ValueError: no metric was scored, a name is empty, the front matter of the file cannot be read, or it has
                results of another model.
            FileNotFoundError: the folder of `path` does not exist.
            ImportError: `path` is given, and huggingface_hub is not installed.
        """
        from unbraid.scoring.model_index import model_index, write_to_readme

        scores = SavedScores.model_validate(self.to_dict())
        index = model_index(
            scores, model=model, dataset=dataset, dataset_id=dataset_id, config=config, split=split,
            revision=revision, task=task,
        )  # fmt: skip
        if path is not None:
            write_to_readme(Path(path), index, scores)
        return index

    def save(self, path: str | Path) -> None:
        """Write the card as .json, or as one standalone .html page. Whole or not at all.

        Raises:
            ValueError: the suffix is neither.
            FileNotFoundError: the folder does not exist.
        """
        write_text(path, self.text(path))

    def text(self, path: str | Path) -> str:
        """What `save` writes to a file of this name.

        Raises:
            ValueError: the suffix is neither .json nor .html.
        """
        suffix = Path(path).suffix
        if suffix == ".json":
            _ = self.diagnosis  # which belongs into the file
            return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"
        if suffix == ".html":
            from unbraid.scoring.score_page import page

            return page(self)
        raise ValueError(f"{path}: a score card is saved as .json or .html")

    def __repr__(self) -> str:
        n_samples, n_codes = self.n_samples, self.of_codes or self.representation.codes.shape[1]
        scores = ", ".join(f"{name} {scored.headline:z.3f}" for name, scored in list(self.scored.items())[:4])
        more = f" and {len(self) - 4} more" if len(self) > 4 else ""
        failed = f"; failed: {', '.join(self.failed)}" if self.failed else ""
        return f"<ScoreCard of {counted(n_samples, 'sample')}, {counted(n_codes, 'code')}: {scores}{more}{failed}>"

    @classmethod
    def load(cls, path: str | Path, representation: Representation | None = None) -> "ScoreCard":
        """The score card that `save` wrote as JSON.

        Args:
            path: of the .json file.
            representation: what was scored, where it is at hand; without it the card holds no samples, and a page of
                it no figures of them.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is no score card, or that of another representation; the message names the file.
        """
        path = Path(path)
        saved = read_scores_file(path)
        names = tuple(factor.name for factor in saved.input.factors)
        try:
            shared = {name: [note for note, of in saved.footnotes.items() if name in of] for name in saved.metrics}
            scored = {name: _scored(name, metric, names, shared[name]) for name, metric in saved.metrics.items()}
            scored_codes = (
                _without_rows(saved.input) if representation is None else _fitting(representation, saved.input)
            )
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        failed = {name: FailedMetric(each.reason, each.details) for name, each in saved.failed.items()}
        return cls(
            scored_codes, scored, saved.skipped, saved.seed, held_out=saved.held_out, path=saved.input.path,
            chosen_factors=tuple(saved.input.chosen_factors), failed=failed, computed_with=saved.decisions(),
            described=saved.input.model_dump(exclude_unset=True), of_codes=saved.input.of_codes,
            options=tuple(saved.input.options),
            diagnosing=None if saved.diagnosis is None else partial(diagnosis_of, saved.diagnosis),
        )  # fmt: skip

    def skipped_by_reason(self) -> dict[str, list[str]]:
        """The names of skipped metrics by why they were."""
        names_by_reason: dict[str, list[str]] = {}
        for name, reason in self.skipped.items():
            names_by_reason.setdefault(reason, []).append(name)
        return names_by_reason

    def __str__(self) -> str:
        """The diagnosis, one line per metric, and what changes how a number is read; `details` has the rest."""
        return card_text(self)

    def details(self) -> str:
        """As `str`, with the other values and all notes of each metric."""
        return card_text(self, details=True)

    def _repr_html_(self) -> str:
        from unbraid.scoring.score_page import table

        return table(self)

    @cached_property
    def saved_input(self) -> dict[str, Any]:
        """What the JSON file says of the codes and factors."""
        if self.described is not None:
            return dict(self.described)
        codes, factors = self.representation.codes, self.representation.factors
        kinds = self.representation.kinds
        stated_sizes = self.representation.sizes or (0,) * len(kinds)
        measured = [
            kind == "continuous" or (kind == "cyclic" and bool((column != np.rint(column)).any()))
            for kind, column in zip(kinds, factors.T, strict=True)
        ]
        present = [None if real else len(np.unique(ranks_of(c))) for real, c in zip(measured, factors.T, strict=True)]
        sizes = [size or count for size, count in zip(stated_sizes, present, strict=True)]
        levels = self.representation.levels or ((),) * len(kinds)
        described = zip(self.representation.names, kinds, sizes, levels, strict=True)
        return {
            "path": self.path,
            "n_samples": len(codes),
            "n_codes": codes.shape[1],
            "sha256": {"codes": array_digest(codes), "factors": array_digest(factors)},
            **({} if self.of_codes is None else {"of_codes": self.of_codes}),
            "factors": [
                {"name": name, "kind": kind, "size": size, **({"levels": list(levels)} if levels else {})}
                for name, kind, size, levels in described
            ],
            **({"code_names": list(self.representation.code_names)} if self.representation.code_names else {}),
            **({"notes": list(self.notes)} if self.notes else {}),
            **({"collapsed": True} if self.representation.tells_nothing() else {}),
            **({"chosen_factors": list(self.chosen_factors)} if self.chosen_factors else {}),
            **({"options": list(self.options)} if self.options else {}),
        }


def load_beside(path: str | Path) -> "ScoreCard":
    """`ScoreCard.load`, with the scored codes where the same folder has a file codes.*.

    Raises:
        FileNotFoundError, ValueError: as `ScoreCard.load`.
    """
    candidates = (Path(path).with_name(f"codes{suffix}") for suffix in SUFFIXES)
    codes = next((candidate for candidate in candidates if candidate.is_file()), None)
    return ScoreCard.load(path, None if codes is None else Representation.load(codes))


def without_samples(card: ScoreCard) -> ScoreCard:
    """The same card with no codes and factors in memory, as one that was read without them."""
    described = card.saved_input
    empty = _without_rows(SavedInput.model_validate(described))
    known = card._known_diagnosis()
    diagnosing = None if known is None else partial(Diagnosis, **vars(known))
    return replace(card, described=described, representation=empty, wide_codes=None, diagnosing=diagnosing)


def fields_of(result: Any) -> list[tuple[str, Any]]:
    """Names and values of the fields of a Result."""
    return [(field.name, getattr(result, field.name)) for field in fields(result)]


def metric_entry(scored: Scored, factor_names: Sequence[str]) -> dict[str, Any]:
    """What `ScoreCard.to_dict` has of one metric."""
    per_factor = getattr(scored.result, "per_factor", None)
    described: dict[str, Any] = {
        "headline": scored.metric.headline,
        "higher_is_better": scored.metric.higher_is_better,
        "version": scored.metric.version,
        "seconds": round(scored.seconds, 4),
        **({} if scored.chance is None else {"chance": scored.chance._asdict()}),
        **({} if scored.null is None else {"null": scored.null.to_dict()}),
        **({"baselines": dict(scored.baselines)} if scored.baselines else {}),
        **({} if scored.intervals is None else {"intervals": scored.intervals.to_dict(factor_names)}),
        **({"no_interval": scored.no_interval} if scored.no_interval else {}),
        **({"no_null": scored.no_null} if scored.no_null else {}),
        **({"no_baselines": dict(scored.no_baselines)} if scored.no_baselines else {}),
        "values": scored.values,
    }
    if per_factor is not None:
        described["per_factor"] = {name: float(v) for name, v in zip(factor_names, per_factor, strict=True)}
    described["notes"] = list(replace(scored, other_version="").notes)  # whoever reads the file compares versions
    # What there is for each row says nothing without the rows, and those of whole objects are not kept.
    of_rows = len(scored.objects) if scored.objects is not None else -1
    small = {
        name: array.tolist()
        for name, array in scored.arrays.items()
        if array.size <= LARGEST_ARRAY and of_rows not in array.shape and array.dtype.kind in "biufU"
    }
    described["arrays"] = {name: values for name, values in small.items() if name != "per_factor"}
    return described


def _scored(name: str, saved: SavedMetric, factors: tuple[str, ...], footnotes: Sequence[str]) -> Scored:
    arrays = {field: np.asarray(values) for field, values in saved.arrays.items()}
    texts = [field for field, array in arrays.items() if array.dtype.kind == "U"]
    if texts and name in ROWS:
        raise ValueError(f"metric {name}: {texts[0]} is no array of numbers")
    numbers = {field: array for field, array in arrays.items() if field not in texts}
    fields: dict[str, Any] = {**numbers, "notes": (*footnotes, *saved.notes), **saved.values}
    if saved.per_factor is not None:
        if set(saved.per_factor) != set(factors):
            raise ValueError(f"metric {name}: per_factor is not for the factors {', '.join(factors)}")
        fields["per_factor"] = np.array([saved.per_factor[factor] for factor in factors], dtype=float)
    chance = None if saved.chance is None else Noise(saved.chance.score, saved.chance.spread)
    null = None if saved.null is None else _null(saved.null)
    result = make_dataclass("Saved", fields)(**fields)
    return Scored(
        _row(name, saved), result, saved.seconds, chance=chance, null=null,
        intervals=_intervals(name, saved, factors), no_interval=saved.no_interval, no_null=saved.no_null,
        baselines=saved.baselines, no_baselines=saved.no_baselines,
        other_version=of_another_version(name, saved.version),
    )  # fmt: skip


def _null(saved: SavedNull) -> Null:
    own = None if saved.p_per_factor is None else np.array(saved.p_per_factor)
    return Null(saved.score, np.array(saved.scores), saved.p, saved.above, saved.moved, own)


def _intervals(name: str, saved: SavedMetric, factors: tuple[str, ...]) -> Intervals | None:
    if (made := saved.intervals) is None:
        return None
    if not {*made.values, *(made.by_seed or ())} <= {*saved.values} or saved.headline not in made.values:
        raise ValueError(f"metric {name}: intervals are not of its values {', '.join(saved.values)}")
    per_factor = made.per_factor
    if (per_factor is None) != (saved.per_factor is None) or {*(per_factor or factors)} != {*factors}:
        raise ValueError(f"metric {name}: intervals are not for the factors {', '.join(factors)}")
    values = {value: Interval(**dict(each)) for value, each in made.values.items()}
    own = None if per_factor is None else tuple(Interval(**dict(per_factor[factor])) for factor in factors)
    return Intervals(made.confidence, made.times, values, own, made.by_seed)


def _row(name: str, saved: SavedMetric) -> Metric:
    """The row of the table, or for a metric of the user's own as much as the file says."""
    known = ROWS.get(name) or (find_metric(name) if name.partition("(")[0] in ROWS else None)
    if known is not None and known.headline == saved.headline:
        return replace(known, version=saved.version)
    if (factor := factor_of(name)) is not None and (row := row_of_unwanted(factor)).headline == saved.headline:
        return replace(row, version=saved.version)
    return Metric(
        _forgotten, title=name, headline=saved.headline, best=np.nan, higher_is_better=saved.higher_is_better,
        range=(-np.inf, np.inf), summary="A metric that this version of unbraid has not.", limitations="",
        source=name, version=saved.version,
    )  # fmt: skip


def _forgotten(*_: Any) -> float:
    raise ValueError("a saved metric cannot be computed again")


def _without_rows(saved: SavedInput) -> Representation:
    return Representation(
        np.empty((0, saved.n_codes)),
        np.empty((0, len(saved.factors))),
        names=tuple(factor.name for factor in saved.factors),
        kinds=tuple(factor.kind for factor in saved.factors),
        code_names=tuple(saved.code_names),
    )


def _fitting(representation: Representation, saved: SavedInput) -> Representation:
    """Its factors that were scored."""
    scored = representation.keep_factors([factor.name for factor in saved.factors])
    if (len(scored), scored.codes.shape[1]) != (saved.n_samples, saved.n_codes):
        raise ValueError(
            f"these are the scores of {saved.n_samples} samples of {saved.n_codes} codes; "
            f"the representation beside it holds {len(scored)} of {scored.codes.shape[1]}"
        )
    for what, known in () if saved.sha256 is None else saved.sha256:
        if array_digest(getattr(scored, what)) != known:
            raise ValueError(f"these are the scores of other {what}: those of the representation beside it differ")
    return scored
