"""Score codes against factors by many metrics at once, sharing the work between them."""

import inspect
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from unbraid._arguments import check_entries, check_whole
from unbraid._arrays import as_array, column_names
from unbraid._encoding import encoded, encoded_objects
from unbraid._labels import is_plain
from unbraid._null import null_of, shuffled
from unbraid._shown import with_names
from unbraid._suggest import suggestion
from unbraid._trust import imported, is_code, trusting
from unbraid.factors import predicate
from unbraid.metrics import LABEL_FREE, METRICS, PRESETS, Metric, NotDefined
from unbraid.metrics._compiled import interruptible
from unbraid.metrics._inputs import Inputs, check_inputs, check_matrix
from unbraid.metrics._sharing import Store, alone, sharing
from unbraid.metrics.deciding import decision
from unbraid.representation import POSTERIOR, Representation
from unbraid.scorecard import ScoreCard, Scored, fields_of
from unbraid.types import ArrayLike, BoolArray, FloatArray, Kind, Progress

if TYPE_CHECKING:
    from unbraid.datasets.base import FactorDataset

Objects = Callable[[], Representation]
Gap = str | BoolArray | Callable[[FloatArray], BoolArray]
UNKEPT_GAP = "an array or a function"  # in place of a gap that was not given as text


def score(
    codes: ArrayLike | Representation,
    factors: Any = None,
    *,
    metrics: str | Sequence[str] = "standard",
    seed: int = 0,
    log_variances: ArrayLike | None = None,
    kinds: Mapping[str, Kind] | Sequence[Kind] | None = None,
    names: Sequence[str] | None = None,
    sizes: Sequence[int] | None = None,
    period: Mapping[str, float] | None = None,
    missing: Any = None,
    gap: Gap | None = None,
    objects: Objects | None = None,
    null: int = 0,
    progress: Progress | None = None,
) -> ScoreCard:
    """Score codes by the metrics named, or by the standard ones.

    Args:
        codes: (n_samples, n_codes) real: an array, tensor, frame or sparse matrix; or a Representation that holds
            everything else as well.
        factors: (n_samples, n_factors) whole-numbered levels, or real values of continuous factors; or labels as
            `Representation.of` takes them: a frame or a mapping of columns of text, categories, booleans, dates and
            numbers. Rows that lack any label are left out of the whole card, so that all its numbers are of the same
            rows; `card.notes` say how many.
        metrics: ids of `unbraid.metrics.METRICS`; names of its `PRESETS`, which answer one question each ("standard",
            "identifiability", "disentanglement", "symmetry", "all", ...); or "package.module:function" for a
            function of your own that takes (codes, factors) and returns a number or a Result with a `score`.
        seed: same seed, same numbers.
        log_variances: (n_samples, n_codes) of the posterior; `mig_exact` and `elbo_terms` need them.
        kinds: kind of each factor, in order or by name, {"hue": "cyclic"}; see `unbraid.metrics`. Others are guessed,
            and `card.notes` say what was.
        names: name of each factor, for the page and the JSON.
        sizes: number of levels of each factor where it exceeds those present.
        period: of factors that are angles, by name, {"hue": 360}; their kind is cyclic. Cyclic factors without one
            are whole steps, or radians where they are not whole.
        missing: a value, several, or a mapping from names to them, that stand for no label, as NaN and None do.
        gap: rows that `zero_shot` keeps out of training: a mask (n_samples,), a function from factors to such a
            mask, or a condition such as "elevation > 0.79 and red > green + 0.15".
        objects: encodes whole objects, such as the method of that name of a run. It is called once a metric needs them
            (`d_lsbd`) and `codes` are those of images drawn at random, which leave gaps.
        null: how often every metric is computed again with the rows of the codes shuffled against those of the factors,
            to tell each score from what codes of this shape get by luck; it takes as many times as long. The p-value is
            at least 1 / (null + 1), so that 19 is the least that can show a score above its null. Metrics that need
            no factors have none.
        progress: called as progress(metric, done, total) before each metric, of shuffles as well.

    Returns:
        ScoreCard. What has no meaning on this input is under `skipped` with the reason. Of a Representation without
        factors that is every metric that needs them.

    Raises:
        ValueError: unsound input, named by argument, row and column; an unknown metric; nothing could be scored.

    Example:
        >>> grid = np.repeat(FactorSpace(("a", "b"), (4, 3), ("ordinal", "ordinal")).grid(), 2, axis=0)
        >>> print(score(grid, grid, metrics=["mig", "d_lsbd"]))
        mig                      1.000   higher is better, 0 to 1
        d_lsbd                       -   needs at least one cyclic factor
        note: kinds guessed: factor_0 ordinal, factor_1 ordinal; kinds= says otherwise
    """
    check_whole("seed", seed, 0)
    check_whole("null", null, 0)
    representation = _representation(codes, factors, log_variances, kinds, names, sizes, period, missing)
    chosen = choose(trusting(metrics if isinstance(metrics, str) else list(metrics)))
    scored: dict[str, Scored] = {}
    skipped: dict[str, str] = {}
    with closing(score_each(representation, chosen, seed=seed, gap=gap, objects=objects, progress=progress)) as results:
        for name, result in results:
            if isinstance(result, NotDefined):
                skipped[name] = with_names(str(result), representation.names, representation.code_names)
            elif isinstance(result, Exception):
                raise result
            else:
                scored[name] = result
    if not scored:
        if not representation.names:
            without = "give labels; `rank` compares models without them"
            raise ValueError(f"these codes have no factors to be measured against: {without}")
        reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
        raise ValueError(f"none of the metrics could be computed: {reasons}")
    if null:
        scored = _beside_null(representation, scored, null, seed, gap, progress)
    told = gap if gap is None or isinstance(gap, str) else UNKEPT_GAP
    decided_by = {name: decision(name, metric, seed=seed, gap=told) for name, metric in chosen.items()}
    text = gap if isinstance(gap, str) else None
    return ScoreCard(representation, scored, skipped, seed, gap=text, decided_by=decided_by)


def _beside_null(
    representation: Representation,
    scored: Mapping[str, Scored],
    n_shuffles: int,
    seed: int,
    gap: Gap | None,
    progress: Progress | None,
) -> dict[str, Scored]:
    """The same with the null of each metric that looks at factors."""
    draws: dict[str, list[float]] = {name: [] for name, each in scored.items() if each.metric.needs_factors}
    apart = [name for name in draws if scored[name].objects is not None]
    sources = [(representation, [name for name in draws if name not in apart], gap)]
    sources += [(held, [name], None) for name in apart if (held := scored[name].objects) is not None]
    for done in range(n_shuffles):

        def told(name: str, _: int, __: int, done: int = done) -> None:
            if progress is not None:
                progress(f"{name}, shuffled", done, n_shuffles)

        for held, names, its_gap in sources:
            rows = {name: scored[name].metric for name in names}
            for name, each in score_each(shuffled(held, [seed, done]), rows, seed=seed, gap=its_gap, progress=told):
                if isinstance(each, Exception):
                    raise each
                draws[name].append(each.headline)
    nulls = {name: null_of(scored[name].metric, scored[name].headline, np.array(each)) for name, each in draws.items()}
    return {name: replace(each, null=nulls.get(name)) for name, each in scored.items()}


def score_each(
    representation: Representation,
    chosen: Mapping[str, Metric],
    *,
    seed: int = 0,
    gap: Gap | None = None,
    objects: Objects | None = None,
    progress: Progress | None = None,
) -> Generator[tuple[str, Scored | Exception], None, None]:
    """Each metric with what came of it: its result, NotDefined with the reason, or what else it raised.

    Args:
        representation: what to score.
        chosen: rows by name, as `choose` gives them.
        seed, gap, objects, progress: as for `score`.

    Raises:
        ValueError: unsound input.
    """
    context, inputs = _context(representation, seed, gap), _inputs(representation)
    work: Store = {}
    for done, (name, metric) in enumerate(chosen.items()):
        if progress is not None:
            progress(name, done, len(chosen))
        started = time.perf_counter()
        seen, store, held = inputs, work, None
        try:
            try:
                result = _call(name, metric, inputs, context, store)
            except NotDefined:
                if not metric.whole_objects or objects is None or "cyclic" not in inputs.kinds:
                    raise
                held = objects()
                seen, store = _inputs(held), {}
                result = _call(name, metric, seen, _context(held, seed, None), store)
            with sharing(store):
                chance = None if metric.chance is None else metric.chance(seen)
            told = representation if held is None else held
            scored = Scored(
                metric, result, time.perf_counter() - started, held, chance,
                factors=told.names, codes=told.code_names,
            )  # fmt: skip
            _refuse_unsound(name, scored, inputs.factors.shape[1])
        except Exception as error:
            yield name, error
        else:
            yield name, scored


def score_encoder(
    encode: Callable[[Any], Any],
    dataset: "FactorDataset | str",
    *,
    n_samples: int = 10_000,
    batch_size: int = 256,
    seed: int = 0,
    **arguments: Any,
) -> ScoreCard:
    """Encode images of a dataset with your own encoder, then score the codes.

    Args:
        encode: from images, uint8 (n, height, width, channels), to codes (n, n_codes), or to the pair
            (codes, log_variances), and third, where the prior is not the standard normal, `prior_kl` of
            `Representation`. NumPy arrays or torch tensors.
        dataset: a `FactorDataset`, as `unbraid.datasets.load` returns, or the name of one.
        n_samples: images drawn uniformly without replacement; all of them where the dataset is smaller. As many again
            make up whole objects for metrics that need these.
        batch_size: images per call of `encode`.
        seed: of the draw and of the metrics.
        **arguments: passed on to `score`.

    Returns:
        ScoreCard, as `score` gives.

    Raises:
        ValueError: `encode` returns another number of rows than it was given.
    """
    for name, count in (("n_samples", n_samples), ("batch_size", batch_size)):
        check_whole(name, count, 1)
    check_whole("seed", seed, 0)
    if isinstance(dataset, str):
        from unbraid.datasets import load

        dataset = load(dataset)
    opened = dataset

    def objects() -> Representation:
        return encoded_objects(encode, opened, n_samples, batch_size, seed)

    representation = encoded(encode, dataset, n_samples, batch_size, seed)
    return score(representation, seed=seed, **{"objects": objects, **arguments})


def _representation(
    codes: ArrayLike | Representation,
    factors: Any,
    log_variances: ArrayLike | None,
    kinds: Mapping[str, Kind] | Sequence[Kind] | None,
    names: Sequence[str] | None,
    sizes: Sequence[int] | None,
    period: Mapping[str, float] | None,
    missing: Any,
) -> Representation:
    if isinstance(codes, Representation):
        given = {
            "factors": factors, "log_variances": log_variances, "kinds": kinds, "names": names, "sizes": sizes,
            "period": period, "missing": missing,
        }  # fmt: skip
        twice = [name for name, value in given.items() if value is not None]
        if twice:
            raise ValueError(f"a Representation brings its own {' and '.join(twice)}; give one or the other")
        representation = codes
    elif factors is None:
        matrix = check_matrix(codes, "codes", "n_codes")
        representation = Representation.of(matrix, log_variances=log_variances, code_names=column_names(codes))
    elif period is None and missing is None and not isinstance(kinds, Mapping) and is_plain(factors):
        representation = _of_numbers(codes, factors, log_variances, kinds, names, sizes)
    else:
        matrix = check_matrix(codes, "codes", "n_codes")
        representation = Representation.of(
            matrix, factors, names=names, kinds=kinds, period=period, missing=missing, log_variances=log_variances,
            code_names=column_names(codes),
        )  # fmt: skip
        if sizes is not None:
            check_entries("sizes", sizes, len(representation.names))
            representation = replace(representation, sizes=tuple(sizes))
    given = {name: getattr(representation, name) for name in POSTERIOR}
    checked = {name: check_matrix(array, name, "n_codes") for name, array in given.items() if array is not None}
    representation = replace(representation, **checked)
    return representation


def _of_numbers(
    codes: ArrayLike,
    factors: ArrayLike,
    log_variances: ArrayLike | None,
    kinds: Sequence[Kind] | None,
    names: Sequence[str] | None,
    sizes: Sequence[int] | None,
) -> Representation:
    # Checked before the Representation is built, so that every wrong argument is named as score names it.
    inputs = check_inputs(codes, factors, kinds)
    for name, entries in (("names", names), ("sizes", sizes)):
        if entries is not None:
            check_entries(name, entries, inputs.n_factors)
    return Representation(
        inputs.codes,
        as_array(factors),
        log_variances=None if log_variances is None else as_array(log_variances),
        names=tuple(names or ()),
        kinds=() if kinds is None else inputs.kinds,
        sizes=None if sizes is None else tuple(sizes),
        code_names=column_names(codes),
    )


def choose(metrics: str | Sequence[str]) -> dict[str, Metric]:
    """The rows of the metrics named, alone or by a preset; the user's own as `Trusted` names only.

    Raises:
        ValueError: a name is unknown, cannot be imported, or was not given by the user.
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    if not names:
        raise ValueError("metrics is empty; name at least one, or say 'all'")
    return {name: _own(name) if is_code(name) else _known(name) for name in without_presets(names)}


def without_presets(names: Sequence[str]) -> tuple[str, ...]:
    """Each metric once, those of a preset in its place."""
    return tuple(dict.fromkeys(name for each in names for name in PRESETS.get(each, (each,))))


def _known(name: str) -> Metric:
    if name in LABEL_FREE:
        raise ValueError(f"{name} compares several models and needs no labels: see unbraid.rank")
    if name not in METRICS:
        raise ValueError(f"unknown metric {name!r}; {suggestion(name, [*METRICS, *PRESETS])}")
    return METRICS[name]


def _own(name: str) -> Metric:
    """A row for a function of the user's: only what its caller can know."""
    found = imported(name, "metric", f"name it yourself: metrics=[{name!r}]")
    return Metric(
        found,
        title=name,
        headline="score",
        best=np.nan,
        higher_is_better=True,
        range=(-np.inf, np.inf),
        means=(inspect.getdoc(found) or "A metric of your own.").splitlines()[0],
        misses="",
        source=name,
    )


def _context(representation: Representation, seed: int, gap: Gap | None) -> dict[str, Any]:
    """What metrics may ask for by parameter name beyond codes and factors."""
    if isinstance(gap, str):
        gap = predicate(gap, representation.names)
    elif callable(gap):
        gap = alone(gap)
    context = {
        "kinds": representation.kinds,
        "seed": seed,
        **{name: getattr(representation, name) for name in POSTERIOR},
        "sizes": representation.sizes,
        "gap": gap,
    }
    return {name: value for name, value in context.items() if value is not None}


def _inputs(representation: Representation) -> Inputs:
    codes, factors = representation.codes, representation.factors
    if not representation.names:
        matrix = check_matrix(codes, "codes", "n_codes")
        return Inputs(matrix, np.empty((len(matrix), 0)), ())
    return check_inputs(codes, factors, representation.kinds)


def _call(name: str, metric: Metric, inputs: Inputs, context: Mapping[str, Any], store: Store) -> Any:
    accepted = inspect.signature(metric.function).parameters
    chosen = {name: value for name, value in context.items() if name in accepted}
    if not inputs.n_factors:
        if metric.needs_factors:
            raise NotDefined("needs factors, and these images have none")
        chosen.pop("kinds", None)
        with interruptible(), sharing(store):
            result = _of_its_own(metric.function(inputs.codes, **chosen))
    elif ":" in name:
        codes, factors = _read_only(inputs.codes), _read_only(inputs.factors)
        chosen = {name: _read_only(value) if isinstance(value, np.ndarray) else value for name, value in chosen.items()}
        with interruptible():
            result = alone(metric.function)(codes, factors, **chosen)
    else:
        with interruptible(), sharing(store):
            result = _of_its_own(metric.function(inputs.codes, inputs.factors, **chosen))
    if isinstance(result, int | float | np.number):
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


def _of_its_own(result: Any) -> Any:
    """The result with copies of its arrays, which other results may hold as well."""
    if not is_dataclass(result) or isinstance(result, type):
        return result
    return replace(result, **{name: each.copy() for name, each in fields_of(result) if isinstance(each, np.ndarray)})


@dataclass(frozen=True)
class _Number:
    score: float


def _refuse_unsound(name: str, scored: Scored, n_factors: int) -> None:
    """Raises ArithmeticError for numbers that are not finite, or one per factor that is missing.

    ValueError where the metric is one of the user's own.
    """
    fault = ValueError if ":" in name else ArithmeticError
    per_factor = np.asarray(getattr(scored.result, "per_factor", np.zeros(n_factors)))
    if per_factor.shape != (n_factors,):
        raise fault(f"metric {name} gave per_factor of shape {per_factor.shape}; expected one number per factor")
    if per_factor.dtype.kind not in "biuf":
        raise fault(f"metric {name} gave per_factor of {per_factor.dtype}; expected one number per factor")
    notes = getattr(scored.result, "notes", ())
    if not isinstance(notes, tuple | list) or not all(isinstance(note, str) for note in notes):
        raise fault(f"metric {name} gave notes that are no list of texts: {notes!r:.100}")
    for value, number in {**scored.arrays, "per_factor": per_factor, **scored.values}.items():
        number = np.asarray(number)
        if number.dtype.kind == "f" and not np.isfinite(number).all():
            place = tuple(np.argwhere(~np.isfinite(number))[0].tolist())
            where = f"{value}{list(place) if place else ''}"
            raise fault(
                f"metric {name} gave {where} = {number[place]}; every number of a score must be finite (what has no "
                "meaning here is skipped by unbraid.metrics.NotDefined with the reason)"
            )
