"""What came of one metric: its score with all that stands beside it, or the error that it raised."""

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

import numpy as np

from unbraid.base.repr import with_names
from unbraid.base.types import FloatArray
from unbraid.data import Representation
from unbraid.files.score_file import LONGEST_TEXT, storable
from unbraid.metrics import Metric
from unbraid.metrics._shared.chance import UNREADABLE, Noise, notes_on_noise
from unbraid.metrics._shared.resampling import UNCHECKED, Numbers, Resampling
from unbraid.scoring.baselines import baseline_notes
from unbraid.scoring.interval import Intervals
from unbraid.scoring.null import Null


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
    def numbers(self) -> Numbers:
        return Numbers(self.values, np.asarray(getattr(self.result, "per_factor", ()), dtype=float))

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


def fields_of(result: Any) -> list[tuple[str, Any]]:
    """Names and values of the fields of a Result."""
    return [(field.name, getattr(result, field.name)) for field in fields(result)]
