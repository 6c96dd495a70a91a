"""Score cards: the scores of one representation, shown, saved and loaded."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.arguments import check_number
from unbraid.base.arrays import array_digest
from unbraid.base.counted import counted
from unbraid.base.suggest import suggestion
from unbraid.base.types import DataFrame, Progress
from unbraid.base.version import VERSION
from unbraid.data import SUFFIXES, Representation
from unbraid.data.guessing import ranks_of
from unbraid.data.representation import NARROWEST
from unbraid.files.score_file import Decision, SavedInput, SavedScores, read_scores_file
from unbraid.files.whole_files import write_text
from unbraid.metrics import Metric
from unbraid.scoring.card_text import card_text
from unbraid.scoring.diagnosis import Diagnosis, diagnosis_of
from unbraid.scoring.interval import Interval, rows_needed
from unbraid.scoring.saved_card import ROWS, matching_rows, metric_entry, scored_of, without_rows
from unbraid.scoring.scored import FailedMetric, Outcome, Scored

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
            scored = {name: scored_of(name, metric, names, shared[name]) for name, metric in saved.metrics.items()}
            known = without_rows(saved.input) if representation is None else matching_rows(representation, saved.input)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        failed = {name: FailedMetric(each.reason, each.details) for name, each in saved.failed.items()}
        return cls(
            known, scored, saved.skipped, saved.seed, held_out=saved.held_out, path=saved.input.path,
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
    empty = without_rows(SavedInput.model_validate(described))
    known = card._known_diagnosis()
    diagnosing = None if known is None else partial(Diagnosis, **vars(known))
    return replace(card, described=described, representation=empty, wide_codes=None, diagnosing=diagnosing)
