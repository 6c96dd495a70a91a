"""The metrics of a score card as its JSON file holds them, and read back."""

from collections.abc import Mapping, Sequence
from dataclasses import make_dataclass, replace
from typing import Any

import numpy as np

from unbraid.base.arrays import array_digest
from unbraid.data import Representation
from unbraid.files.score_file import LARGEST_ARRAY, SavedInput, SavedMetric, SavedNull
from unbraid.metrics import BLOCKED, METRICS, Metric
from unbraid.metrics._shared.chance import Noise
from unbraid.metrics._shared.metric_arguments import find_metric
from unbraid.metrics._shared.provenance import of_another_version
from unbraid.scoring.interval import Interval, Intervals
from unbraid.scoring.null import Null
from unbraid.scoring.scored import Scored
from unbraid.scoring.unwanted import factor_of, row_of_unwanted

ROWS: Mapping[str, Metric] = {**METRICS, **BLOCKED}  # of metrics that a card may hold


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


def scored_of(name: str, saved: SavedMetric, factors: tuple[str, ...], footnotes: Sequence[str]) -> Scored:
    """A metric as the file holds it.

    Raises:
        ValueError: what the file says of it does not fit together.
    """
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


def without_rows(saved: SavedInput) -> Representation:
    return Representation(
        np.empty((0, saved.n_codes)),
        np.empty((0, len(saved.factors))),
        names=tuple(factor.name for factor in saved.factors),
        kinds=tuple(factor.kind for factor in saved.factors),
        code_names=tuple(saved.code_names),
    )


def matching_rows(representation: Representation, saved: SavedInput) -> Representation:
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
