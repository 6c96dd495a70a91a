"""Score codes against factors by many metrics at once."""

import inspect
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from unbraid._utils.arguments import check_entries, check_number, check_whole
from unbraid._utils.arrays import array_digest, as_array, as_full, check_weights, column_names, in_full, is_wide
from unbraid._utils.memory import BY_COLUMNS, COPIES, check_memory
from unbraid._utils.repr import with_names
from unbraid.confidence.baselines import Baseline
from unbraid.confidence.dependence import note_on_neighbours
from unbraid.confidence.interval import FEWEST_GROUPS, FEWEST_ROWS
from unbraid.confidence.null import asked_shuffle, shuffle_of
from unbraid.metrics import BLOCKED, LABEL_FREE, MEASURES, PRESETS, Metric, NotDefined
from unbraid.metrics._shared.arguments import find_metric, full_name, metric_hint
from unbraid.metrics._shared.inputs import check_inputs, check_matrix, finite_matrix
from unbraid.metrics._shared.provenance import decision
from unbraid.metrics.own import own, row_of
from unbraid.representation import POSTERIOR, Representation
from unbraid.representation.labels import check_groups, is_plain
from unbraid.representation.representation import grouped_by
from unbraid.representation.row_index import match_rows
from unbraid.scoring.blocks import Blocks, Given, blocks_of
from unbraid.scoring.card import ON_ERROR, FailedMetric, ScoreCard, Scored
from unbraid.scoring.columnwise import score_wide
from unbraid.scoring.encoding import encoded, encoded_objects
from unbraid.scoring.engine import Gap, Objects, score_each
from unbraid.scoring.pixels import baselines_of
from unbraid.scoring.uncertainty import with_baselines, with_intervals, with_nulls
from unbraid.storage.trust import imported, is_code, trusting
from unbraid.types import ArrayLike, FloatArray, Kind, Progress

if TYPE_CHECKING:
    from unbraid.datasets.base import FactorDataset

Named: TypeAlias = str | Metric | Callable[..., Any]
Baselines: TypeAlias = Mapping[str, Baseline | Representation | ArrayLike]

UNKEPT_GAP = "an array or a function"  # in place of a gap that was not given as text
FEWEST_PARTS = 2  # whose spread can be told


def score(
    codes: ArrayLike | Representation,
    factors: Any = None,
    *,
    metrics: Named | Sequence[Named] = "standard",
    seed: int = 0,
    log_variances: ArrayLike | None = None,
    kinds: Mapping[str, Kind] | Sequence[Kind] | None = None,
    names: Sequence[str] | None = None,
    sizes: Sequence[int] | None = None,
    period: Mapping[str, float] | None = None,
    missing: Any = None,
    weights: ArrayLike | None = None,
    groups: ArrayLike | str | None = None,
    key: str | None = None,
    gap: Gap | None = None,
    objects: Objects | None = None,
    code_blocks: Given = None,
    factor_blocks: Given = None,
    null: int | str = 0,
    baselines: Baselines | None = None,
    confidence: float | None = None,
    resamples: int | None = None,
    on_error: Literal["keep", "raise"] = "keep",
    dense: bool = False,
    progress: Progress | None = None,
) -> ScoreCard:
    """Score codes by the metrics named, or by the standard ones.

    Args:
        codes: (n_samples, n_codes) real: an array, tensor, frame or sparse matrix; or a Representation that holds
            everything else as well. Sparse codes stay sparse and are read by columns: by `mig`, `med`, `sap`, `snc`,
            `modularity` and `mcc`; other metrics are skipped, unless `dense` is true.
        factors: (n_samples, n_factors) whole-numbered levels, or real values of continuous factors; or labels as
            `Representation.of` takes them: a frame or a mapping of columns of text, categories, booleans, dates and
            numbers. Rows that lack any label are left out of the whole card, so that all its numbers are of the same
            rows; `card.notes` say how many. Where codes and factors are pandas objects with an index, their rows are
            matched by it, and so are those of all other arguments that have one; all else goes by position.
        metrics: ids of `unbraid.metrics.METRICS`, with arguments where others than the defaults are meant,
            "mig(bins=10)"; names of its `PRESETS`, which answer one question each ("standard", "identifiability",
            "disentanglement", "symmetry", "all", ...). A function of your own is taken as well, itself or as
            "package.module:function": from (codes, factors) to a number or a Result with a `score`, higher is better;
            `unbraid.metrics.own` says another direction.
        seed: same seed, same numbers.
        log_variances: (n_samples, n_codes) of the posterior; `mig_exact` and `elbo_terms` need them.
        kinds: kind of each factor, in order or by name, {"hue": "cyclic"}; see `unbraid.metrics`. Others are guessed,
            and `card.notes` say what was.
        names: name of each factor, for the page and the JSON.
        sizes: number of levels of each factor where it exceeds those present.
        period: of factors that are angles, by name, {"hue": 360}; their kind is cyclic. Cyclic factors without one
            are whole steps, or radians where they are not whole.
        missing: a value, several, or a mapping from names to them, that stand for no label, as NaN and None do.
        weights: (n_samples,) how many rows each row stands for, whole or not, such as where some images are rarer in
            the sample than in the world. Metrics of counts and moments take them (mig, mig_sup, med, modularity,
            factor_leakage, jemmig, dcimig, tad, and sap of ordered factors: whole weights give what repeated rows
            give); others are skipped. Parts and shuffles of the rows move rows together with what they stand for.
        groups: (n_samples,) of which trial, animal, video or session each row is, text or numbers, where rows of one
            hang together; or the name of a column of `factors`, which is no factor then. Whatever is trained is tested
            on other groups than it was trained on, parts of the rows for intervals are of whole groups (10 at least),
            and `null` shuffles whole groups.
        key: column that names the rows in the frames of codes and factors both, such as "cell": rows are matched by it.
            For frames without an index, as those of polars.
        gap: rows that `zero_shot` keeps out of training: a mask (n_samples,), a function from factors to such a
            mask, or a condition such as "elevation > 0.79 and red > green + 0.15".
        objects: encodes whole objects, such as the method of that name of a run. It is called once a metric needs them
            (`d_lsbd`) and `codes` are those of images drawn at random, which leave gaps.
        code_blocks: which codes belong together, such as [[0, 1], [2]], or as text "0-1,2"; columns in no block are
            left out. With blocks `block_r2` and `block_mcc` are scored as well; all other metrics read single columns,
            and `card.notes` say so.
        factor_blocks: likewise by names or columns, {"position": ["x", "y"], "shape": ["shape"]}, or as text
            "position=x+y,shape". Without it, or without `code_blocks`, each column is a block.
        null: how often every metric is computed again with the rows of the codes shuffled against those of the factors,
            to tell each score from what codes of this shape get by luck; it takes as many times as long. The p-value is
            at least 1 / (null + 1), so that 19 is the least that can show a score above its null. Metrics that need
            no factors have none. With `groups` whole groups change places (5 at least), each begun again where it is
            shorter than the one it stands for: right if groups are alike but for their length, and none knows of
            another. "shift", or "shift:200" for as many, is for time series, whose neighbouring rows are alike: the
            codes are moved against the factors by a tenth of the length or more, within groups where these are given,
            around the circle of the series there and back; right if the series goes on in the same way throughout.
        baselines: codes of the same rows without training, by name, {"PCA": pca_codes}, as arrays or Representations;
            their scores are shown next to each score. `score_encoder` and `Run.baselines` make them from images.
        confidence: such as 0.95: an interval for every number, which holds the mean of the metric over fresh samples of
            as many rows from the same source. From the scores of parts of the rows; see `unbraid.metrics.METRICS` for
            how many, and for the metrics that have none.
        resamples: how many parts, 2 or more, in place of what the table of metrics says.
        on_error: what a metric that raises an error costs: "keep", its own row, and `card.failed` has the reason; or
            "raise", the whole card, and the error names the metric.
        dense: whether sparse codes are made a full array, if it fits into memory, so that every metric can be scored.
        progress: called as progress(metric, done, total) before each metric, of shuffles and of parts as well.

    Returns:
        ScoreCard. What has no meaning on this input is under `skipped` with the reason. Of a Representation without
        factors that is every metric that needs them. What raised an error is under `failed`, likewise; a null, an
        interval or a baseline's score that could not be computed is missing from its metric, whose `notes` say why.

    Raises:
        ValueError: unsound input, named by argument, row and column; an unknown metric; nothing could be scored; it
            needs more memory than is free; or, with `on_error="raise"`, a metric failed.

    Example:
        >>> grid = np.repeat(FactorSpace(("a", "b"), (4, 3), ("ordinal", "ordinal")).grid(), 2, axis=0)
        >>> print(score(grid, grid, metrics=["mig", "d_lsbd"]))
        mig                      1.000   higher is better, 0 to 1
        d_lsbd                       -   needs at least one cyclic factor
        note: kinds guessed: factor_0 ordinal, factor_1 ordinal; pass kinds= (--kinds) to change
    """
    check_whole("seed", seed, 0)
    asked_shuffle(null)
    check_confidence(confidence)
    if on_error not in ON_ERROR:
        raise ValueError(f"on_error must be 'keep' or 'raise'; got {on_error!r}")
    failing = ON_ERROR[on_error]
    if resamples is not None:
        check_whole("resamples", resamples, FEWEST_PARTS)
        if confidence is None:
            raise ValueError("resamples are for intervals: give confidence, such as 0.95")
    of_rows: tuple[str, ...] = ()
    if not isinstance(codes, Representation):
        rows = {"codes": codes, "factors": factors, "log_variances": log_variances, "weights": weights, "gap": gap}
        rows, of_rows = match_rows({**rows, "groups": groups, **_called(baselines or {})}, key)
        codes, factors, log_variances, weights, gap, groups, *others = rows.values()
        baselines = None if baselines is None else dict(zip(baselines, others, strict=True))
    elif key is not None:
        raise ValueError("key is for frames: the rows of a Representation are matched already")
    if dense:
        codes = as_full(codes)
    elif not isinstance(codes, Representation) and is_wide(codes):
        given = {"null": null or None, "confidence": confidence, "log_variances": log_variances, "sizes": sizes}
        given |= {"weights": weights, "groups": groups, "baselines": baselines}
        given |= {"code_blocks": code_blocks, "factor_blocks": factor_blocks}
        if found := [name for name, value in given.items() if value is not None]:
            asked = f"{' and '.join(found)} need a full array"
            raise ValueError(
                f"{asked}, and codes {in_full(np.shape(codes))}: give dense=True (--dense), or leave them out"
            )
        chosen = choose(trusting(metrics))
        card = score_wide(codes, factors, chosen, seed=seed, names=names, kinds=kinds, period=period, missing=missing)
        held = card.representation
        return replace(card, representation=replace(held, notes=(*of_rows, *held.notes)))
    about = (factors, kinds, names, sizes, period, missing, weights, groups)
    representation = _representation(codes, factors, log_variances, *about[1:])
    representation = replace(representation, notes=(*of_rows, *representation.notes))
    blocks = blocks_of(representation, code_blocks, factor_blocks)
    if blocks is not None:
        representation = replace(representation, notes=(*representation.notes, blocks.note))
    if confidence is not None:
        check_enough(representation)
    chosen = choose(trusting(metrics), blocks)
    if not {name.partition("(")[0] for name in chosen} <= {*BY_COLUMNS}:
        advice = f"give fewer rows, or metrics that hold few columns at a time ({', '.join(BY_COLUMNS)})"
        check_memory(8 * COPIES * representation.codes.size, advice)
    shuffle, notes = shuffle_of(null, representation)
    by_rows = shuffle is not None and shuffle.moved == "rows"
    notes += note_on_neighbours(representation, null=by_rows, confidence=confidence is not None)
    if representation.groups is not None:
        blind = "takes no groups of rows: what it trains may be tested on groups that it was trained on"
        notes += tuple(f"{name} {blind}" for name in _blind(chosen))
    representation = replace(representation, notes=(*representation.notes, *notes))
    beside = {name: _baseline(name, each, codes, about) for name, each in (baselines or {}).items()}
    scored: dict[str, Scored] = {}
    skipped: dict[str, str] = {}
    failed: dict[str, FailedMetric] = {}
    with closing(score_each(representation, chosen, seed=seed, gap=gap, objects=objects, progress=progress)) as results:
        for name, result in results:
            if isinstance(result, NotDefined):
                skipped[name] = with_names(str(result), representation.names, representation.code_names)
            elif isinstance(result, Exception):
                failed[name] = failing(name, result)
            else:
                scored[name] = result
    if not scored:
        if not representation.names:
            without = "give labels; `rank` compares models without them"
            raise ValueError(f"these codes have no factors to be measured against: {without}")
        lost = skipped | {name: f"failed: {each.reason}" for name, each in failed.items()}
        reasons = "; ".join(f"{name}: {reason}" for name, reason in lost.items())
        raise ValueError(f"none of the metrics could be computed: {reasons}")
    if shuffle is not None:
        scored = with_nulls(representation, scored, shuffle, seed, gap, progress, failing)
    scored = with_baselines(scored, beside, seed, gap, progress, failing) if beside else scored
    if confidence is not None:
        scored = with_intervals(representation, scored, confidence, resamples, seed, gap, progress, failing)
    told = gap if gap is None or isinstance(gap, str) else UNKEPT_GAP
    decided_by = {name: decision(name, metric, seed=seed, gap=told) for name, metric in chosen.items()}
    if representation.weights is not None:
        counted = {"weights": array_digest(representation.weights)}
        decided_by = {name: {**each, **counted} for name, each in decided_by.items()}
    if representation.groups is not None:
        parted = {"groups": array_digest(representation.groups)}
        decided_by = {
            name: {**each, **(parted if takes_groups(chosen[name]) else {})} for name, each in decided_by.items()
        }
    if blocks is not None:
        by_blocks = {"code_blocks": blocks.text_of_codes, "factor_blocks": blocks.text_of_factors}
        decided_by = {name: {**each, **(by_blocks if name in BLOCKED else {})} for name, each in decided_by.items()}
    text = gap if isinstance(gap, str) else None
    return ScoreCard(representation, scored, skipped, seed, gap=text, failed=failed, decided_by=decided_by)


def score_encoder(
    encode: Callable[[Any], Any],
    dataset: "FactorDataset | str",
    *,
    n_samples: int = 10_000,
    batch_size: int = 256,
    seed: int = 0,
    baselines: bool = False,
    untrained: Callable[[Any], Any] | None = None,
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
        baselines: whether to score baselines without training as well, on the same images: a random projection of the
            pixels to as many codes, as many of their principal components, and the encoder `untrained`. It takes three
            or four times as long. Scores no better than the best baseline are marked in every view.
        untrained: what encodes as `encode` did before it was trained, for the baselines.
        **arguments: passed on to `score`.

    Returns:
        ScoreCard, as `score` gives.

    Raises:
        ValueError: `encode` returns another number of rows than it was given.
    """
    for name, count in (("n_samples", n_samples), ("batch_size", batch_size)):
        check_whole(name, count, 1)
    check_whole("seed", seed, 0)
    if untrained is not None and not baselines:
        raise ValueError("untrained is one of the baselines: give baselines=True")
    if isinstance(dataset, str):
        from unbraid.datasets import load

        dataset = load(dataset)
    opened = dataset

    def objects() -> Representation:
        return encoded_objects(encode, opened, n_samples, batch_size, seed)

    representation = encoded(encode, dataset, n_samples, batch_size, seed)
    beside = None
    if baselines:
        width = representation.codes.shape[1]
        beside = baselines_of(dataset, width, n_samples, batch_size, seed, untrained)
        if untrained is None:
            said = "the untrained encoder is not among the baselines: untrained= takes it"
            representation = replace(representation, notes=(*representation.notes, said))
    return score(representation, seed=seed, baselines=beside, **{"objects": objects, **arguments})


def _called(baselines: Baselines) -> dict[str, Any]:
    return {f"baselines[{name!r}]": each for name, each in baselines.items()}


def _baseline(name: str, given: Any, codes: Any, about: tuple[Any, ...]) -> Baseline:
    """Of the rows of `codes`, with what `about` says of these, as `_representation` takes it but for the posterior."""
    held, objects = given if isinstance(given, Baseline) else (given, None)
    own = held if isinstance(held, Representation) else Representation(check_matrix(held, f"baselines[{name!r}]", "n"))
    n_samples = len(codes) if isinstance(codes, Representation) else len(as_array(codes))
    if len(own) != n_samples:
        raise ValueError(f"baselines[{name!r}] must have the rows of codes, {n_samples}; got {len(own)}")
    factors, *others = about
    if not isinstance(codes, Representation):
        return Baseline(_representation(own.codes, factors, own.log_variances, *others), objects)
    known = [factor for factor in codes.names if factor in own.names]
    if known and not np.array_equal(own.keep_factors(known).factors, codes.keep_factors(known).factors):
        raise ValueError(f"baselines[{name!r}] is of other rows than codes: the factors differ")
    posterior = {part: getattr(own, part) for part in POSTERIOR}
    alike = replace(codes, codes=own.codes, code_names=own.code_names, **posterior)
    of_names = None if objects is None else (lambda: objects().keep_factors(codes.names))
    return Baseline(_representation(alike, factors, None, *others), of_names)


def _representation(
    codes: ArrayLike | Representation,
    factors: Any,
    log_variances: ArrayLike | None,
    kinds: Mapping[str, Kind] | Sequence[Kind] | None,
    names: Sequence[str] | None,
    sizes: Sequence[int] | None,
    period: Mapping[str, float] | None,
    missing: Any,
    weights: ArrayLike | None,
    groups: ArrayLike | str | None,
) -> Representation:
    if isinstance(codes, Representation):
        given = {
            "factors": factors, "log_variances": log_variances, "kinds": kinds, "names": names, "sizes": sizes,
            "period": period, "missing": missing, **({} if codes.weights is None else {"weights": weights}),
            **({} if codes.groups is None else {"groups": groups}),
        }  # fmt: skip
        twice = [name for name, value in given.items() if value is not None]
        if twice:
            raise ValueError(f"a Representation brings its own {' and '.join(twice)}; give one or the other")
        representation = codes if weights is None else replace(codes, weights=weights)
        if isinstance(groups, str):
            representation = grouped_by(representation, groups)
        elif groups is not None:
            representation = replace(representation, groups=groups)
    elif factors is None:
        matrix = _kept(finite_matrix(codes, "codes", "n_codes"))
        representation = Representation.of(
            matrix, log_variances=log_variances, code_names=column_names(codes), weights=weights, groups=groups
        )
    elif (
        not isinstance(groups, str)
        and period is None
        and missing is None
        and not isinstance(kinds, Mapping)
        and is_plain(factors)
    ):
        representation = _of_numbers(codes, factors, log_variances, kinds, names, sizes, weights, groups)
    else:
        matrix = _kept(finite_matrix(codes, "codes", "n_codes"))
        representation = Representation.of(
            matrix, factors, names=names, kinds=kinds, period=period, missing=missing, log_variances=log_variances,
            code_names=column_names(codes), weights=weights, groups=groups,
        )  # fmt: skip
        if sizes is not None:
            check_entries("sizes", sizes, len(representation.names))
            representation = replace(representation, sizes=tuple(sizes))
    given = {name: getattr(representation, name) for name in POSTERIOR}
    checked = {name: finite_matrix(array, name, "n_codes") for name, array in given.items() if array is not None}
    representation = replace(representation, **checked).without_idle_rows()
    if representation.weights is not None:
        said = (
            f"weighted: {len(representation):,} rows stand for {representation.weights.sum():,.6g}; "
            "figures show each row once"
        )
        representation = replace(representation, notes=(*representation.notes, said))
    if representation.groups is not None:
        said = f"rows in {int(representation.groups.max()) + 1:,} groups, which are never parted"
        representation = replace(representation, notes=(*representation.notes, said))
    return representation


def takes_groups(metric: Metric) -> bool:
    """Whether it parts rows, and keeps those of one group together."""
    return "groups" in inspect.signature(metric.function).parameters


def _blind(chosen: Mapping[str, Metric]) -> list[str]:
    """Metrics of the user's own that may part rows, and take no groups."""
    return [name for name, metric in chosen.items() if metric.own and not takes_groups(metric)]


def check_enough(representation: Representation) -> None:
    """
    Raises:
        ValueError: rows, or groups of them, are too few for intervals.
    """
    if len(representation) < FEWEST_ROWS:
        raise ValueError(f"intervals need {FEWEST_ROWS} rows or more; there are {len(representation)}")
    groups = representation.groups
    if groups is not None and (n_groups := int(groups.max()) + 1) < FEWEST_GROUPS:
        raise ValueError(f"intervals need {FEWEST_GROUPS} groups of rows or more; there are {n_groups}")


def _of_numbers(
    codes: ArrayLike,
    factors: ArrayLike,
    log_variances: ArrayLike | None,
    kinds: Sequence[Kind] | None,
    names: Sequence[str] | None,
    sizes: Sequence[int] | None,
    weights: ArrayLike | None,
    groups: ArrayLike | None,
) -> Representation:
    # Checked before the Representation is built, so that every wrong argument is named as score names it.
    inputs = check_inputs(codes, factors, kinds)
    for name, entries in (("names", names), ("sizes", sizes)):
        if entries is not None:
            check_entries(name, entries, inputs.n_factors)
    return Representation(
        _kept(inputs.held),
        as_array(factors),
        log_variances=None if log_variances is None else as_array(log_variances),
        names=tuple(names or ()),
        kinds=() if kinds is None else inputs.kinds,
        sizes=None if sizes is None else tuple(sizes),
        code_names=column_names(codes),
        weights=None if weights is None else check_weights(weights, inputs.n_samples),
        groups=None if groups is None else check_groups(groups, inputs.n_samples),
    )


def _kept(codes: Any) -> FloatArray:
    """Floats as precise as they came, since in double precision they would take the more memory; all else as these."""
    return codes if codes.dtype.kind == "f" else codes.astype(np.float64)


def choose(metrics: Named | Sequence[Named], blocks: Blocks | None = None) -> dict[str, Metric]:
    """The rows of the metrics named, alone or by a preset; the user's own as functions, rows, or `Trusted` names.

    With `blocks`, those that read blocks as well, in front.

    Raises:
        ValueError: a name is unknown, cannot be imported, was not given by the user, or is that of two metrics.
    """
    asked = [metrics] if isinstance(metrics, str | Metric) or callable(metrics) else list(metrics)
    if not asked:
        raise ValueError("metrics is empty; name at least one, or say 'all'")
    rows = {} if blocks is None else blocks.rows
    found: dict[str, Metric] = {}
    for each in asked:
        for name, row in _rows(each, rows):
            if name in found and found[name] != row:
                raise ValueError(f"two metrics are called {name!r}; name one otherwise by unbraid.metrics.own")
            found[name] = row
    return rows | found


def _rows(asked: Named, blocked: Container[str]) -> Iterator[tuple[str, Metric]]:
    """Names and rows of what was asked for: a name, of one or a preset, a function, or a row."""
    if isinstance(asked, str):
        for name in without_presets([asked]):
            if name not in blocked:
                yield name, _own(name) if is_code(name) else _known(name)
        return
    row = asked if isinstance(asked, Metric) else own(asked)
    if row.own and (row.name in MEASURES or row.name in BLOCKED or row.name in PRESETS):
        raise ValueError(f"{row.name!r} is a metric of unbraid; name yours otherwise by unbraid.metrics.own")
    yield row.name, row


def without_presets(names: Sequence[str]) -> tuple[str, ...]:
    """Each metric once, those of a preset in its place."""
    return tuple(dict.fromkeys(name for each in names for name in PRESETS.get(each, (full_name(each),))))


def _known(name: str) -> Metric:
    if name in LABEL_FREE:
        raise ValueError(f"{name} compares several models and needs no labels: see unbraid.rank")
    if name in BLOCKED:
        raise ValueError(f"{name} {BLOCKED[name].needs}: give code_blocks or factor_blocks to unbraid.score")
    if (row := find_metric(name)) is None:
        cut = "; in a list, write a metric with arguments in quotes" if ("(" in name) != (")" in name) else ""
        raise ValueError(f"unknown metric {name!r}; {metric_hint(name)}{cut}")
    return row


def _own(name: str) -> Metric:
    return row_of(imported(name, "metric", f"name it yourself: metrics=[{name!r}]"), name)


def check_confidence(confidence: float | None) -> None:
    """
    Raises:
        ValueError: it is neither None nor inside (0, 1).
    """
    if confidence is not None:
        check_number("confidence", confidence, above=0, below=1)
