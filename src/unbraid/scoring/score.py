"""Score codes against factors by many metrics at once."""

import inspect
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

from unbraid.base.arguments import check_number, check_whole
from unbraid.base.arrays import array_digest
from unbraid.base.threads import n_cores
from unbraid.base.types import ArrayLike, Progress
from unbraid.data import Representation
from unbraid.files.json_records import MOST
from unbraid.files.score_file import Decision
from unbraid.files.trust import code_of, imported, is_code, trusting
from unbraid.metrics import BLOCKED, LABEL_FREE, MEASURES, PRESETS, RECONSTRUCTED, Metric
from unbraid.metrics._shared.metric_arguments import find_metric, full_name, lower_is_better, metric_hint
from unbraid.metrics._shared.provenance import decision
from unbraid.metrics.own_metric import custom_metric, row_of
from unbraid.scoring.card import COLUMNS, ScoreCard, card_of
from unbraid.scoring.card_memory import check_memory_of_scores
from unbraid.scoring.columnwise import notes_on_signs, score_wide
from unbraid.scoring.dependence import note_on_neighbours
from unbraid.scoring.diagnose import diagnose_representation
from unbraid.scoring.engine import Gap, ScoreSettings, expected_seconds, outcomes
from unbraid.scoring.interval import FEWEST_GROUPS, FEWEST_ROWS
from unbraid.scoring.named_blocks import Blocks
from unbraid.scoring.null import Shuffle, parse_null, shuffle_of
from unbraid.scoring.null_scores import with_nulls
from unbraid.scoring.score_data import Baselines, Confidence, Data, Interval, read_data
from unbraid.scoring.scored import Outcome, Scored
from unbraid.scoring.uncertainty import seconds_of_parts, with_baselines, with_intervals
from unbraid.scoring.unwanted import row_against_null, row_of_unwanted

Named: TypeAlias = str | Metric | Callable[..., Any]

NO_METRICS = "none"  # the diagnosis alone
UNKEPT = "an array or a function"  # in place of `held_out` that was not given as text
FEWEST_PARTS = 2  # whose spread can be told


def score(
    codes: ArrayLike | Representation,
    factors: Any = None,
    *,
    metrics: Named | Sequence[Named] = "standard",
    seed: int = 0,
    confidence: Confidence | None = None,
    null: int | str = 0,
    baselines: Baselines | None = None,
    held_out: Gap | None = None,
    on_error: Literal["keep", "raise"] = "keep",
    progress: Progress | None = None,
    **description: Any,
) -> ScoreCard:
    """Score codes by the metrics named, or by the standard ones.

    Args:
        codes: (n_samples, n_codes) real: an array, tensor, frame or sparse matrix; or a Representation that holds
            everything else as well. Sparse codes stay sparse and are read by columns: by `mig`, `med`, `sap`, `snc`,
            `modularity` and `mcc`; other metrics are skipped, unless `dense` is true. Those of 128 columns or fewer
            become a full array where `unwanted`, `groups`, `null` or another argument needs one.
        factors: (n_samples, n_factors) whole-numbered levels, or real values of continuous factors; or labels as
            `Representation.of` takes them: a frame or a mapping of columns of text, categories, booleans, dates and
            numbers. Rows that lack any label are left out of the whole card; `card.notes` say how many. Rows of pandas
            objects with an index are matched by it; all else goes by position.
        metrics: ids of `unbraid.metrics.METRICS`, with arguments where others than the defaults are meant,
            "mig(bins=10)"; names of its `PRESETS`, which answer one question each ("standard", "identifiability",
            "disentanglement", "symmetry", "all", ...), or take little time ("fast"); "none" for the diagnosis alone. A
            function of your own is taken as well, itself or as "package.module:function": from (codes, factors) to a
            number or a Result with a `score`, higher is better; `unbraid.metrics.custom_metric` says another direction,
            and so does "package.module:function(direction=lower)".
        seed: same seed, same numbers.
        confidence: such as 0.95: an interval for every number, which holds the mean of the metric over fresh samples of
            as many rows from the same source, from the scores of parts of the rows; (0.95, 20) takes 20 parts.
        null: how often every metric is computed again with the rows of the codes shuffled against those of the factors,
            to tell each score from what codes of this shape get by luck; it takes as many times as long. The p-value is
            at least 1 / (null + 1), so that 19 is the least that can show a score above its null. Metrics that need
            no factors have none. With `groups` whole groups change places (5 at least). "shift", or "shift:200" for as
            many, is for time series: the middle half of the factors meets any other stretch of the codes that is as
            long, within groups where these are given, and p compares with the score of the middle half (the linear
            shift of Harris 2020, "Nonsense correlations in neuroscience").
        baselines: codes of the same rows without training, by name, {"PCA": pca_codes}, as arrays or Representations;
            their scores are shown next to each score. `score_encoder` and `Run.baselines` make them from images.
        held_out: rows that `zero_shot` keeps out of training: a mask (n_samples,), a function from factors to such a
            mask, or a condition on the labels such as "elevation > 0.79 and red > green + 0.15". It compares labels
            that are numbers as they are, angles in their own unit; levels that are text, and those of a dataset's
            grid, by their position, counted from 0, text in the order of the alphabet unless it has another.
        on_error: what a metric that raises an error costs: "keep", its own row, and `card.failed` has the reason; or
            "raise", the whole card, and the error names the metric.
        progress: called as progress(metric, done, total) before each metric, of shuffles and of parts as well.
            `unbraid.progress_bar` makes one that shows the time left.
        **description: what describes the data, as `Representation.of` takes it: names, kinds, sizes, period, missing,
            columns, key, groups, weights, log_variances, prior_kl, code_names, code_blocks, factor_blocks, orbits and
            dense. A Representation brings its own; groups, weights, blocks and orbits may be added to it. Beside these,
            unwanted: names of factors that codes should not tell of, such as "batch". No metric sees them; each has a
            row `unwanted(batch)`, its `explicitness`: 0 is best, and 1 is that of codes on which a linear classifier
            finds every level. Its null says whether codes tell of it at all.
            units: "pca" for codes of several numbers per unit (a token, a slot), (n_samples, n_units, size), or columns
            in `code_blocks`: every metric sees one code for each unit, its first principal component.

    Returns:
        ScoreCard. `card.diagnosis` says which factors are in the codes, where, and what is wrong (see
        `unbraid.diagnose`). What has no meaning on this input is under `skipped` with the reason. Of a Representation
        without factors that is every metric that needs them. What raised an error is under `failed`, likewise; a null,
        an interval or a baseline's score that could not be computed is missing from its metric, whose `notes` say why.

    Raises:
        TypeError: `description` has a name that `Representation.of` does not.
        ValueError: unsound input, named by argument, row and column; an unknown metric; nothing could be scored; it
            needs more memory than is free; or, with `on_error="raise"`, a metric failed.

    Example:
        >>> grid = np.repeat(FactorSpace(("a", "b"), (4, 3), ("ordinal", "ordinal")).grid(), 2, axis=0)
        >>> print(score(grid, grid, metrics=["mig", "d_lsbd"]))
        24 samples, 2 codes, 2 factors
        <BLANKLINE>
        factor_0  unclear  fewer than 40 rows
        factor_1  unclear  fewer than 40 rows
        In short: 0 of 2 factors have a code of their own, 2 are unclear.
        <BLANKLINE>
        metric   score   better   range
        mig      1.000   higher   0 to 1
        d_lsbd   not defined here: needs at least one cyclic factor
        note: kinds guessed: factor_0 ordinal, factor_1 ordinal; pass kinds= (--kinds) to change
    """
    _check_arguments(seed, null, baselines, on_error)
    interval = None if confidence is None else parse_confidence(confidence)
    settings = ScoreSettings(seed, progress=progress, on_error=on_error)
    data = read_data(codes, factors, description, null=null, interval=interval, baselines=baselines, held_out=held_out)
    if data.wide is not None:
        return score_wide(data, choose(trusting(metrics)), settings)
    plan = _plan_metrics(metrics, data, null, interval, settings)
    return _make_card(data, plan, _scores(plan, data, interval), seed)


def _check_arguments(seed: int, null: int | str, baselines: Baselines | None, on_error: str) -> None:
    """
    Raises:
        ValueError: an argument that does not depend on the data is none.
    """
    check_whole("seed", seed, 0, MOST)
    parse_null(null)
    if not isinstance(baselines, Mapping | None):
        expected = "codes of the same rows by name, {'PCA': pca_codes}; score_encoder makes them of images by itself"
        raise ValueError(f"baselines must be {expected}; got {type(baselines).__name__}")
    if columns := sorted({*(baselines or {})} & COLUMNS):
        raise ValueError(f"baselines: {columns[0]!r} is a column of to_frame() already; choose another name")
    if on_error not in ("keep", "raise"):
        raise ValueError(f"on_error must be 'keep' or 'raise'; got {on_error!r}")


class _Plan(NamedTuple):
    """Which metrics are computed, of what, and against which shuffles."""

    metrics: Mapping[str, Metric]  # as the card shows them, those of the unwanted factors among them
    representation: Representation  # with notes on what was chosen
    views: Sequence[tuple[Representation, Mapping[str, Metric], ScoreSettings]]  # metrics by what they see
    shuffle: Shuffle | None


def _plan_metrics(
    metrics: Named | Sequence[Named], data: Data, null: int | str, interval: Interval | None, settings: ScoreSettings
) -> _Plan:
    """All factors but the unwanted ones, and each of these alone, of which `held_out` knows nothing.

    Raises:
        ValueError: a metric is unknown, rows are too few for intervals, or memory is.
    """
    if interval is not None:
        check_enough(data.representation)
    chosen = choose(trusting(metrics), data.blocks)
    check_memory_of_scores([*chosen, *data.unwanted], data.representation.codes, len(data.every.names))
    shuffle, notes = shuffle_of(null, data.every)
    moves_rows = shuffle is not None and shuffle.moved == "rows"
    notes += note_on_neighbours(data.every, null=moves_rows, confidence=interval is not None)
    if data.representation.groups is not None:
        blind = "takes no groups of rows: what it trains may be tested on groups that it was trained on"
        notes += tuple(f"{name} {blind}" for name, metric in chosen.items() if metric.own and not takes_groups(metric))
    notes += notes_on_signs(data.representation.codes, chosen)
    representation = replace(data.representation, notes=(*data.representation.notes, *notes))
    views = [(representation, chosen, replace(settings, held_out=data.held_out))]
    views += [(factor, {name: row_against_null(*factor.names)}, settings) for name, factor in data.unwanted.items()]
    unwanted = {name: row_of_unwanted(*factor.names) for name, factor in data.unwanted.items()}
    return _Plan({**chosen, **unwanted}, representation, views, shuffle)


def _scores(plan: _Plan, data: Data, interval: Interval | None) -> dict[str, Outcome]:
    """What came of each metric; scores with their null, those of the baselines and their intervals."""
    compared: dict[str, Outcome] = {}
    for representation, metrics, settings in plan.views:
        objects = data.objects if representation is plan.representation else None
        later = sum(_seconds_after(plan, data, interval, metrics, expected_seconds(metrics, representation)))
        uncompared = outcomes(representation, metrics, settings.followed_by(later), objects)
        scored = {name: each for name, each in uncompared.items() if isinstance(each, Scored)}
        costs = {name: each.seconds for name, each in scored.items()}
        rows = {name: metrics[name] for name in scored}
        _, of_baselines, of_intervals = _seconds_after(plan, data, interval, rows, costs)
        if scored and plan.shuffle is not None:
            scored = with_nulls(representation, scored, plan.shuffle, settings.followed_by(of_baselines + of_intervals))
        if scored and data.baselines:
            baselines = {name: codes.keep_factors(representation.names) for name, codes in data.baselines.items()}
            scored = with_baselines(scored, baselines, settings.followed_by(of_intervals))
        if scored and interval is not None:
            scored = with_intervals(representation, scored, *interval, settings)
        compared |= uncompared | scored
    return compared


def _seconds_after(
    plan: _Plan, data: Data, interval: Interval | None, metrics: Mapping[str, Metric], costs: Mapping[str, float]
) -> tuple[float, float, float]:
    """About how long the null, the baselines and the intervals take, where the scores themselves take so long."""
    shuffles = 0 if plan.shuffle is None else plan.shuffle.times
    null = shuffles * sum(costs[name] for name, metric in metrics.items() if metric.needs_factors) / n_cores()
    baselines = len(data.baselines or ()) * sum(costs[name] for name in metrics)
    intervals = 0.0 if interval is None else sum(seconds_of_parts(metrics, costs, interval[1]).values())
    return null, baselines, intervals


def _make_card(data: Data, plan: _Plan, by_metric: Mapping[str, Outcome], seed: int) -> ScoreCard:
    condition = data.held_out if isinstance(data.held_out, str) else None
    in_words = UNKEPT if condition is None and data.held_out is not None else condition
    every = replace(data.every, orbits=None)
    unwanted = tuple(name for factor in data.unwanted.values() for name in factor.names)
    return card_of(
        plan.representation, by_metric, plan.metrics, seed, held_out=condition,
        computed_with=_computed_with(plan, data, seed, in_words),
        chosen_factors=plan.representation.names if unwanted else (),
        diagnosing=partial(diagnose_representation, every, seed=seed, unwanted=unwanted) if every.names else None,
    )  # fmt: skip


def _computed_with(plan: _Plan, data: Data, seed: int, held_out: str | None) -> dict[str, Decision]:
    """Of each metric what decides its number beside codes and factors."""
    weights, groups = (
        {} if (rows := getattr(plan.representation, name)) is None else {name: array_digest(rows)}
        for name in ("weights", "groups")
    )
    blocks = {}
    if data.blocks is not None:
        blocks = {"code_blocks": data.blocks.text_of_codes, "factor_blocks": data.blocks.text_of_factors}
    return {
        name: {
            **decision(name, metric, seed=seed, held_out=held_out),
            **weights,
            **(groups if takes_groups(metric) else {}),
            **(blocks if name in BLOCKED else {}),
            **({"factors": list(data.unwanted[name].names)} if name in data.unwanted else {}),
        }
        for name, metric in plan.metrics.items()
    }


def takes_groups(metric: Metric) -> bool:
    """Whether it parts rows, and keeps those of one group together."""
    return "groups" in inspect.signature(metric.function).parameters


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


def choose(metrics: Named | Sequence[Named], blocks: Blocks | None = None) -> dict[str, Metric]:
    """The rows of the metrics named, alone or by a preset; the user's own as functions, rows, or `Trusted` names.

    With `blocks`, those that read blocks as well, in front.

    Raises:
        ValueError: a name is unknown, cannot be imported, was not given by the user, or is that of two metrics.
    """
    if metrics is None or isinstance(metrics, bool | int | float):
        raise ValueError(f"metrics must be a name, a function or a list of such; got {metrics!r}")
    requested = [metrics] if isinstance(metrics, str | Metric) or callable(metrics) else list(metrics)
    if requested == [NO_METRICS]:
        return {}
    if not requested:
        raise ValueError("metrics is empty; name at least one, or say 'all'")
    rows = {} if blocks is None else blocks.rows
    chosen: dict[str, Metric] = {}
    for metric in requested:
        for name, row in _rows(metric, rows):
            if name in chosen and chosen[name] != row:
                raise ValueError(
                    f"two metrics are called {name!r}; give one another name with unbraid.metrics.custom_metric"
                )
            chosen[name] = row
    return rows | chosen


def _rows(metric: Named, blocked: Container[str]) -> Iterator[tuple[str, Metric]]:
    """Names and rows of what was asked for: a name, of one or a preset, a function, or a row."""
    if isinstance(metric, str):
        for name in without_presets([metric]):
            if name not in blocked:
                yield name, _user_metric(name) if is_code(code_of(name)) else _known(name)
        return
    row = metric if isinstance(metric, Metric) else custom_metric(metric)
    if row.own and (row.name in MEASURES or row.name in BLOCKED or row.name in PRESETS):
        raise ValueError(
            f"{row.name!r} is a metric of unbraid; give yours another name with unbraid.metrics.custom_metric"
        )
    yield row.name, row


def without_presets(names: Sequence[str]) -> tuple[str, ...]:
    """Each metric once, those of a preset in its place."""
    return tuple(dict.fromkeys(name for each in names for name in PRESETS.get(each, (full_name(each),))))


def _known(name: str) -> Metric:
    if name in LABEL_FREE:
        raise ValueError(f"{name} compares several models and needs no labels: see unbraid.rank")
    if name in RECONSTRUCTED:
        raise ValueError(f"{name} {RECONSTRUCTED[name].needs}: call unbraid.metrics.{name}")
    if name in BLOCKED:
        raise ValueError(f"{name} {BLOCKED[name].needs}: give code_blocks or factor_blocks to unbraid.score")
    if (row := find_metric(name)) is None:
        cut = "; in a list, write a metric with arguments in quotes" if ("(" in name) != (")" in name) else ""
        several = [each.strip() for each in name.split(",")]
        if len(several) > 1 and all(map(find_metric, several)):
            raise ValueError(f"metrics={name!r} names several: give a list, {several}")
        raise ValueError(f"unknown metric {name!r}; {metric_hint(name)}{cut}")
    return row


def _user_metric(name: str) -> Metric:
    function = imported(name, "metric", f"name it yourself: metrics=[{name!r}]")
    if not (callable(function) or isinstance(function, Metric)):
        raise ValueError(f"metric {name!r} is {type(function).__name__}, and must be a function of (codes, factors)")
    return row_of(function, name, higher_is_better=not lower_is_better(name))


def parse_confidence(confidence: Confidence) -> Interval:
    """The level of the intervals asked for, and from how many parts of the rows, where it is said.

    Raises:
        ValueError: the level is not inside (0, 1), or the parts are fewer than two.
    """
    level, n_parts = confidence if isinstance(confidence, tuple) and len(confidence) == 2 else (confidence, None)
    check_number("confidence", level, above=0, below=1)
    if n_parts is not None:
        check_whole("the number of parts beside confidence", n_parts, FEWEST_PARTS)
    return float(level), None if n_parts is None else int(n_parts)
