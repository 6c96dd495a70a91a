"""Records in the shape of Every Eval Ever, a schema of evaluations that many projects share (version 0.3.0).

One record is one model on one set of data, with each of its scores: metric, direction, range and uncertainty. In that
project's store it is one file, data/<collection>/<developer>/<model>/<uuid>.json.

Reference: https://github.com/evaleval/every_eval_ever, every_eval_ever/schemas/eval.schema.json.
"""

import hashlib
import json
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args
from uuid import UUID

import numpy as np

from unbraid.metrics import Metric
from unbraid.metrics._shared.arguments import arguments_of
from unbraid.sharing.numbers import Number, numbers_of, slug
from unbraid.storage.files import write_text
from unbraid.storage.score_file import SavedInput, SavedIntervals, SavedScores

SCHEMA_VERSION = "0.3.0"
UNKNOWN = "unknown"
Relationship: TypeAlias = Literal["first_party", "third_party", "collaborative", "other"]
Availability: TypeAlias = Literal["open_weights", "closed_weights", "unknown"]


def record(
    results: list[dict[str, Any]],
    *,
    model: str,
    name: str,
    developer: str,
    dataset: str,
    source: Mapping[str, str],
    details: Mapping[str, str],
    version: str,
    now: float,
) -> dict[str, Any]:
    """The record of one model.

    Args:
        results: one for each score, see `result`.
        model: its id, "developer/name", in letters of a path.
        name, developer: as people call them.
        dataset: what the data are called.
        source: `source_name`, `source_organization_name` and `evaluator_relationship`.
        details: what else is known of the model.
        version: of unbraid, which computed the scores.
        now: seconds since 1970, when the record is made.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{slug(f'unbraid-{dataset}')}/{model}/{now:.6f}",
        "retrieved_timestamp": f"{now:.6f}",
        "source_metadata": {"source_type": "evaluation_run", **source},
        "eval_library": {"name": "unbraid", "version": version},
        "model_info": {
            "name": name,
            "id": model,
            "developer": developer,
            "additional_details": {"deployment_type": "self_deployed", "model_availability": UNKNOWN, **details},
        },
        "evaluation_results": results,
    }


def record_path(record: Mapping[str, Any]) -> str:
    """Where a record lies: the same for the same evaluation."""
    collection, model = record["evaluation_id"].rpartition("/")[0].split("/", 1)
    name = UUID(bytes=hashlib.sha256(record["evaluation_id"].encode()).digest()[:16], version=4)
    return f"data/{collection}/{model}/{name}.json"


def write_record(record: Mapping[str, Any], folder: Path) -> None:
    """Write a record below a folder, where that project's store has it.

    Raises:
        FileNotFoundError: the folder does not exist.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: the folder does not exist")
    path = folder / record_path(record)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(record, indent=2, allow_nan=False) + "\n")


def record_of_card(
    scores: SavedScores,
    *,
    model: str,
    dataset: str,
    organisation: str,
    relationship: Relationship,
    source: str | None = None,
    split: str | None = None,
    availability: Availability = UNKNOWN,
    details: Mapping[str, str] | None = None,
    now: float | None = None,
) -> dict[str, Any]:
    """Arguments, result and errors: as for `ScoreCard.to_every_eval_ever`."""
    developer, _, name = model.partition("/")
    if not developer.strip() or not name.strip():
        raise ValueError(f"model must be 'developer/name', as on the Hugging Face Hub; got {model!r}")
    for argument, given in (("dataset", dataset), ("organisation", organisation)):
        if not given.strip():
            raise ValueError(f"{argument} must be a name; got {given!r}")
    for argument, given, known in (
        ("relationship", relationship, get_args(Relationship)), ("availability", availability, get_args(Availability)),
    ):  # fmt: skip
        if given not in known:
            raise ValueError(f"{argument} must be one of {', '.join(known)}; got {given!r}")
    data = _source_data(dataset, source, split, scores.input)
    return record(
        [_of_number(each, data, scores.input.n_samples) for each in numbers_of(scores)],
        model=f"{slug(developer)}/{slug(name)}",
        name=name,
        developer=developer,
        dataset=dataset,
        source={
            "source_name": "unbraid score card",
            "source_organization_name": organisation,
            "evaluator_relationship": relationship,
        },
        details={
            "model_availability": availability,
            "n_codes": str(scores.input.of_codes or scores.input.n_codes),
            **{key: in_text(value) for key, value in (details or {}).items()},
        },
        version=scores.unbraid or UNKNOWN,
        now=time.time() if now is None else now,
    )


def _source_data(dataset: str, source: str | None, split: str | None, scored: SavedInput) -> dict[str, Any]:
    about = {"additional_details": rows_scored(scored) | {"factors": json.dumps([f.name for f in scored.factors])}}
    if source is None:
        kind: dict[str, Any] = {"source_type": "other"}
    elif "://" in source:
        kind = {"source_type": "url", "url": [source]}
    elif source.count("/") == 1 and all(source.split("/")):
        kind = {"source_type": "hf_dataset", "hf_repo": source, "samples_number": scored.n_samples}
    else:
        raise ValueError(f"source must be an address with :// or a dataset of the Hub, 'owner/name'; got {source!r}")
    if split is not None and kind["source_type"] != "hf_dataset":
        raise ValueError("split is of a dataset of the Hub; give source='owner/name' too")
    return {"dataset_name": dataset, **kind, **({} if split is None else {"hf_split": split}), **about}


def _of_number(number: Number, data: Mapping[str, Any], n_samples: int) -> dict[str, Any]:
    return result(
        number.column,
        number.value,
        data=data,
        config=metric_config(
            number.metric, number.name, number.known, higher_is_better=number.higher_is_better, decided=number.decided
        ),
        details=dict(_details(number)),
        uncertain=uncertainty(number.saved.intervals, number.name, n_samples),
    )


def _details(number: Number) -> Iterator[tuple[str, str]]:
    yield "computed_with", json.dumps(dict(number.decided), sort_keys=True)
    if number.by_chance is not None:
        yield "by_chance", repr(number.by_chance)
    if number.is_headline and number.saved.null is not None:
        yield "p", repr(number.saved.null.p)
    if number.is_headline and number.saved.baselines:
        yield "baselines", json.dumps(dict(number.saved.baselines))


def result(
    column: str,
    value: float,
    *,
    data: Mapping[str, Any],
    config: Mapping[str, Any],
    details: Mapping[str, str],
    uncertain: Mapping[str, Any],
    prefix: str = "",
) -> dict[str, Any]:
    """One score of a record: its column in tables of results, where the data are from, and its metric."""
    return {
        "evaluation_result_id": f"{prefix}{column}",
        "evaluation_name": column,
        "source_data": data,
        "metric_config": config,
        "score_details": {"score": float(value), "details": details, **uncertain},
    }


def metric_config(
    metric: str, name: str, known: Metric | None, *, higher_is_better: bool, decided: Mapping[str, Any]
) -> dict[str, Any]:
    """What a record says of a metric.

    Args:
        metric: its name, with arguments or without.
        name: of the value.
        known: its row; None of a metric of the user's own.
        higher_is_better: of this value.
        decided: what the number was computed with.
    """
    kind = metric.partition("(")[0]
    arguments = {**decided, **arguments_of(metric)}
    low, high = known.range if known is not None and known.headline == name else (-math.inf, math.inf)
    return {
        "metric_id": f"unbraid.{kind}.{name}",
        "metric_name": f"{known.title}, {name}" if known is not None else f"{metric} {name}",
        "metric_kind": kind,
        "metric_parameters": {
            key: each if isinstance(each, str | float | int) else in_text(each) for key, each in arguments.items()
        },
        "lower_is_better": not higher_is_better,
        "score_type": "continuous",
        "min_score": _bound(low),
        "max_score": _bound(high),
        **({"evaluation_description": known.summary} if known is not None else {}),
        **({"additional_details": {"source": known.source}} if known is not None else {}),
    }


def rows_scored(scored: SavedInput) -> dict[str, str]:
    """Which rows were scored."""
    digests = {} if scored.sha256 is None else scored.sha256.model_dump()
    return {"samples": str(scored.n_samples)} | {f"{name}_sha256": each for name, each in digests.items()}


def uncertainty(intervals: SavedIntervals | None, name: str, n_samples: int) -> dict[str, Any]:
    """What a record says of the interval of a value; nothing where it has none."""
    if intervals is None or name not in intervals.values:
        return {}
    each, method = intervals.values[name], "parts of the rows"
    between = {"lower": each.low, "upper": each.high, "confidence_level": intervals.confidence}
    return {
        "uncertainty": {
            "standard_error": {"value": each.deviation, "method": method},
            "confidence_interval": {**between, "method": method},
            "num_samples": n_samples,
        }
    }


def _bound(value: float) -> float | str:
    return float(value) if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def in_text(value: Any) -> str:
    """As the text that the schema wants wherever its keys are free."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value, default=str)
