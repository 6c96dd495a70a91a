"""Compute the metrics of one representation, one after the other, sharing the work between them."""

import inspect
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from unbraid.base.repr import with_names
from unbraid.base.types import BoolArray, FloatArray, IntArray, Progress
from unbraid.data import POSTERIOR, Representation, predicate
from unbraid.files.trust import Untrusted, exits_as_errors
from unbraid.files.whole_files import disk_is_full
from unbraid.metrics import Metric, NotDefined
from unbraid.metrics._shared.compiled import interruptible
from unbraid.metrics._shared.inputs import (
    TURN,
    Inputs,
    check_gap,
    check_inputs,
    check_matrix,
    finite_matrix,
    known_as_checked,
)
from unbraid.metrics._shared.sharing import Store, sharing, without_sharing
from unbraid.scoring.scored import FailedMetric, Outcome, Scored, fields_of

Objects: TypeAlias = Callable[[], Representation]
# Most levels of a factor for metrics that fit a model to each level, or to each class of a categorical factor: 60 000
# rows then take up to 10 seconds and 1 GB.
PER_LEVEL: dict[str, int] = dict.fromkeys(("dci_boosted", "linear_accuracy", "mlp_accuracy", "nk"), 100)
PER_CLASS: dict[str, int] = {
    **dict.fromkeys(("dci_forest", "infomec", "latent_matching", "mcc", "r2", "tmex"), 100),
    "dci_es": 50,
}

# Seconds for 10 000 rows of 10 codes and 5 factors, and the powers of rows and of few codes that they grow by.
SECONDS: dict[str, tuple[float, float, float]] = {
    "beta_vae_score": (0.25, 0.0, 0.3),
    "dci_boosted": (0.7, 0.65, 0.75),
    "dci_es": (2.5, 1.2, 0.5),
    "dci_forest": (0.3, 1.1, 0.5),
    "explicitness": (0.1, 1.0, 0.45),
    "factorised_support": (0.6, 1.0, 1.9),
    "independence_score": (0.2, 1.0, 1.05),
    "infomec": (0.2, 0.7, 0.45),
    "irs": (0.15, 1.0, 0.5),
    "latent_matching": (0.2, 1.0, 0.45),
    "linear_accuracy": (0.7, 0.9, 0.4),
    "mig_exact": (0.5, 0.8, 1.0),
    "mlp_accuracy": (0.5, 0.95, 0.6),
    "nk": (1.0, 1.0, 0.55),
}
OTHERWISE = 0.05, 1.0, 0.6
MANY = 250  # codes from which on they grow faster

Gap: TypeAlias = str | BoolArray | Callable[[FloatArray], BoolArray]


@dataclass(frozen=True)
class ScoreSettings:
    """Arguments that all scores of a card share."""

    seed: int
    held_out: Gap | None = None
    progress: Progress | None = None
    on_error: Literal["keep", "raise"] = "keep"

    def expect(self, costs: Sequence[float], later: float = 0.0) -> None:
        """Seconds that the steps to come may take, and those of all that follows, for a progress that forecasts."""
        if (expect := getattr(self.progress, "expect", None)) is not None:
            expect(costs, later)

    def followed_by(self, seconds: float) -> "ScoreSettings":
        """The same for a part of the work that other work of so many seconds follows."""
        return self if self.progress is None else replace(self, progress=_Followed(self, seconds))

    def tell(self, what: str, done: int, total: int) -> None:
        if self.progress is not None and done < total:
            self.progress(what, done, total)

    def telling(self, what: str, done: int, total: int) -> Progress | None:
        """Tells of rounds over all metrics in place of metrics."""
        tell = self.progress
        return None if tell is None else lambda name, _, __: tell(f"{name}, {what}", done, total)

    def failure(self, name: str, error: Exception) -> FailedMetric:
        """The error of a metric as a card keeps it; ValueError with the name of the metric where it is to be raised."""
        failure = FailedMetric.from_error(error)
        if self.on_error == "raise":
            raise ValueError(f"metric {name} failed: {failure.reason}") from error
        return failure


@dataclass(frozen=True)
class _Followed:
    settings: ScoreSettings
    seconds: float

    def __call__(self, what: str, done: int, total: int) -> None:
        self.settings.tell(what, done, total)

    def expect(self, costs: Sequence[float], later: float = 0.0) -> None:
        self.settings.expect(costs, later + self.seconds)


def expected_seconds(metrics: Iterable[str], representation: Representation) -> dict[str, float]:
    """About how long each metric takes."""
    n_rows, n_codes = representation.codes.shape
    expected = {}
    for name in metrics:
        seconds, by_rows, by_codes = _seconds_row(name)
        of_factor = seconds / 5 * (n_rows / 10_000) ** by_rows
        of_factor *= (n_codes / 10) ** by_codes * (1 + (n_codes / MANY) ** 2)
        expected[name] = of_factor * max(len(representation.names), 1)
    return expected


def seconds_of_half(name: str) -> float:
    """About how long half of the rows take, of the time of all of them."""
    return 0.5 ** _seconds_row(name)[1]


def _seconds_row(name: str) -> tuple[float, float, float]:
    return SECONDS.get(name.partition("(")[0], OTHERWISE)


def outcomes(
    representation: Representation,
    metrics: Mapping[str, Metric],
    settings: ScoreSettings,
    objects: Objects | None = None,
) -> dict[str, Outcome]:
    """What comes of each metric: its score, why it has no meaning on these codes and factors, or its error."""
    results: dict[str, Outcome] = {}
    settings.expect([*expected_seconds(metrics, representation).values()])
    for name, result in score_each(
        representation, metrics, seed=settings.seed, held_out=settings.held_out, objects=objects,
        progress=settings.progress,
    ):  # fmt: skip
        if isinstance(result, Scored):
            results[name] = result
        elif isinstance(result, NotDefined):
            results[name] = with_names(str(result), representation.names, representation.code_names)
        else:
            failure = settings.failure(name, result)
            reason = with_names(failure.reason, representation.names)
            results[name] = replace(failure, reason=reason) if isinstance(result, ValueError) else failure
    return results


def score_each(
    representation: Representation,
    chosen: Mapping[str, Metric],
    *,
    seed: int = 0,
    held_out: Gap | None = None,
    objects: Objects | None = None,
    with_chance: bool = True,
    progress: Progress | None = None,
) -> Generator[tuple[str, Scored | Exception], None, None]:
    """Each metric with its result, NotDefined with the reason, or the error that it raised.

    Args:
        representation: what to score.
        chosen: rows by name, as `choose` gives them.
        seed, held_out, objects, progress: as for `score`.
        with_chance: whether to state what independent noise scores.

    Raises:
        ValueError: unsound input, or a model that makes `objects` is not trusted.
        OSError: the disk is full.
    """
    context, inputs = context_of(representation, seed, held_out), inputs_of(representation)
    work: Store = {}
    for done, (name, metric) in enumerate(chosen.items()):
        if progress is not None:
            progress(name, done, len(chosen))
        started = time.perf_counter()
        seen, store, whole = inputs, work, None
        try:
            try:
                _refuse_many_models(name, inputs)
                result = call(metric, inputs, context, store)
            except NotDefined:
                unable = "cyclic" not in inputs.kinds or representation.weights is not None
                if not metric.whole_objects or objects is None or unable:
                    raise
                whole = objects()
                seen, store = inputs_of(whole), {}
                result = call(metric, seen, context_of(whole, seed, None), store)
            with sharing(store):
                stated = metric.chance if with_chance and representation.weights is None else None
                chance = None if stated is None else stated(seen)
            described = representation if whole is None else whole
            scored = Scored(
                metric, result, time.perf_counter() - started, whole, chance,
                factors=described.names, codes=described.code_names,
            )  # fmt: skip
            validate(name, scored, inputs.factors.shape[1])
        except Exception as error:
            if of_no_metric(error):
                raise
            yield name, error
        else:
            yield name, scored


def _refuse_many_models(name: str, inputs: Inputs) -> None:
    """Raises NotDefined where a metric would fit too many models."""
    plain = name.partition("(")[0]
    for column, kind in enumerate(inputs.kinds):
        most = PER_LEVEL.get(plain, PER_CLASS.get(plain) if kind == "categorical" else None)
        if most is None or kind == "continuous" or column in inputs.angles:
            continue
        if (n_levels := len(np.unique(inputs.factors[:, column]))) > most:
            raise NotDefined(
                f"fits a model to each level, of {most} at most, and factor {column} has {n_levels:,}; if it is "
                "measured, its kind is continuous"
            )


def metric_list(names: Collection[str]) -> str:
    """Of many metrics their number."""
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} metrics"


def of_no_metric(error: Exception) -> bool:
    """Whether an error ends the whole card, since every other metric would raise it as well."""
    return isinstance(error, Untrusted) or disk_is_full(error)


def context_of(representation: Representation, seed: int, held_out: Gap | None) -> dict[str, Any]:
    """What metrics may ask for by parameter name beyond codes and factors."""
    if isinstance(held_out, str):
        held_out = _condition(held_out, representation)
    elif callable(held_out):
        held_out = without_sharing(held_out)
    elif held_out is not None:
        held_out = check_gap(held_out, len(representation))
    context = {
        "kinds": representation.kinds,
        "seed": seed,
        **{name: getattr(representation, name) for name in POSTERIOR},
        "sizes": representation.sizes,
        "held_out": held_out,
        "weights": representation.weights,
        "groups": representation.groups,
    }
    return {name: value for name, value in context.items() if value is not None}


def gap_of_rows(held_out: Gap | None, n_samples: int, rows: IntArray | None) -> Gap | None:
    """The same of these rows, None for all, where it is a mask of all of them.

    Raises:
        ValueError: a mask is not one boolean per row.
    """
    if rows is None or held_out is None or isinstance(held_out, str) or callable(held_out):
        return held_out
    return check_gap(held_out, n_samples)[rows]


def _condition(text: str, representation: Representation) -> Callable[[FloatArray], BoolArray]:
    """A function from its factors to the rows that meet a condition on the labels that these stand for."""
    holds = predicate(text, representation.names)
    numbers = list(map(_numbers, representation.levels, representation.factors.T))
    units = [period / TURN if period else 1.0 for period in representation.periods]

    def rows(factors: FloatArray) -> BoolArray:
        labels = np.array(factors, dtype=np.float64)
        for column, unit in enumerate(units):
            labels[:, column] *= unit
        for column, values in enumerate(numbers):
            if values is not None:
                labels[:, column] = values[labels[:, column].astype(np.int64)]
        return holds(labels)

    return rows


def _numbers(names: tuple[str, ...], levels: FloatArray | IntArray) -> FloatArray | None:
    """What levels stand for that are called by numbers; None of others."""
    try:
        numbers = np.array(names, dtype=np.float64)
    except ValueError:
        return None
    return numbers if len(names) > levels.max() and levels.min() >= 0 and np.isfinite(numbers).all() else None


def inputs_of(representation: Representation) -> Inputs:
    codes, factors = representation.codes, representation.factors
    if not representation.names:
        matrix = finite_matrix(codes, "codes", "n_codes")
        return Inputs(matrix, np.empty((len(matrix), 0)), ())
    try:
        return check_inputs(codes, factors, representation.kinds, groups=representation.groups)
    except ValueError as error:
        raise ValueError(with_names(str(error), representation.names)) from None


def call(metric: Metric, inputs: Inputs, context: Mapping[str, Any], store: Store) -> Any:
    accepted = inspect.signature(metric.function).parameters
    if "weights" in context and "weights" not in accepted:
        raise NotDefined("does not support weighted rows")
    chosen = {name: value for name, value in context.items() if name in accepted}
    if not inputs.n_factors:
        if metric.needs_factors:
            raise NotDefined("needs factors, and these images have none")
        chosen.pop("kinds", None)
        with interruptible(), sharing(store):
            result = _with_own_arrays(metric.function(inputs.codes, **chosen))
    elif metric.own:
        codes, factors = _read_only(inputs.codes), _read_only(inputs.factors)
        chosen |= {name: check_matrix(chosen[name], name, "n_codes") for name in POSTERIOR if name in chosen}
        chosen = {name: _read_only(value) if isinstance(value, np.ndarray) else value for name, value in chosen.items()}
        with interruptible(), exits_as_errors():
            result = without_sharing(metric.function)(codes, factors, **chosen)
    else:
        with interruptible(), sharing(store):
            known_as_checked(inputs)
            result = _with_own_arrays(metric.function(inputs.stored, inputs.factors, **chosen))
    if isinstance(result, int | float | np.number) or getattr(result, "ndim", None) == 0:
        return _Number(float(result))
    if not is_dataclass(result) or not isinstance(getattr(result, metric.headline, None), float | np.floating):
        raise ValueError(
            f"metric {metric.source} gave {type(result).__name__}; expected a number, or a dataclass with a float "
            f"{metric.headline!r}"
        )
    return result


def _read_only(array: FloatArray) -> FloatArray:
    view = array.view()
    view.flags.writeable = False
    return view


def _with_own_arrays(result: Any) -> Any:
    """The result with its arrays copied, since other results may share them."""
    if not is_dataclass(result) or isinstance(result, type):
        return result
    return replace(result, **{name: each.copy() for name, each in fields_of(result) if isinstance(each, np.ndarray)})


@dataclass(frozen=True)
class _Number:
    score: float


def validate(name: str, scored: Scored, n_factors: int) -> None:
    """Raises ValueError for numbers that are not finite, or one per factor that is missing."""
    per_factor = np.asarray(getattr(scored.result, "per_factor", np.zeros(n_factors)))
    if per_factor.shape != (n_factors,):
        raise ValueError(f"metric {name} gave per_factor of shape {per_factor.shape}; expected one number per factor")
    if per_factor.dtype.kind not in "biuf":
        raise ValueError(f"metric {name} gave per_factor of {per_factor.dtype}; expected one number per factor")
    notes = getattr(scored.result, "notes", ())
    if not isinstance(notes, tuple | list) or not all(isinstance(note, str) for note in notes):
        raise ValueError(f"metric {name} gave notes that are no list of texts: {notes!r:.100}")
    for value, number in {**scored.arrays, "per_factor": per_factor, **scored.values}.items():
        number = np.asarray(number)
        if number.dtype.kind == "f" and not np.isfinite(number).all():
            place = tuple(np.argwhere(~np.isfinite(number))[0].tolist())
            where = f"{value}{list(place) if place else ''}"
            raise ValueError(
                f"metric {name} gave {where} = {number[place]}; every number of a score must be finite (what has no "
                "meaning here is skipped by unbraid.metrics.NotDefined with the reason)"
            )
