"""Scores as the evaluation results of a model card: the key `model-index` of a README.md on the Hugging Face Hub.

The Hub has a second form, files in .eval_results/, for numbers on data that it lists as a benchmark with a
leaderboard. It has no place for intervals, and datasets of disentanglement are hardly listed.

Reference: https://huggingface.co/docs/hub/model-cards#evaluation-results, as huggingface_hub 2.4 reads it.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from unbraid.metrics._shared.provenance import of_another_version
from unbraid.sharing.front_matter import read_front_matter, with_keys
from unbraid.sharing.numbers import Number, in_markdown, numbers_of, score_table, slug
from unbraid.storage.files import atomic_write
from unbraid.storage.score_file import SavedScores

KEY = "model-index"
TASK_NAME = "Disentangled representation"


def model_index(
    scores: SavedScores,
    *,
    model: str,
    dataset: str,
    dataset_id: str | None = None,
    config: str | None = None,
    split: str | None = None,
    revision: str | None = None,
    task: str = "feature-extraction",
) -> dict[str, Any]:
    """Arguments, result and errors: as for `ScoreCard.to_hf`."""
    for name, given in (("model", model), ("dataset", dataset), ("task", task)):
        if not given.strip():
            raise ValueError(f"{name} must be a name; got {given!r}")
    about = {"rows": scores.input.n_samples, "factors": [factor.name for factor in scores.input.factors]}
    known = {"config": config, "split": split, "revision": revision}
    result = {
        "task": {"type": task, "name": TASK_NAME},
        "dataset": {
            "name": dataset,
            "type": dataset_id or slug(dataset),
            **{name: value for name, value in known.items() if value is not None},
            "args": about,
        },
        "metrics": [
            {
                "type": each.column,
                "name": each.title,
                "value": each.value,
                "args": dict(_arguments(each, scores.unbraid)),
            }
            for each in numbers_of(scores)
        ],
    }
    return {KEY: [{"name": model, "results": [result]}]}


def write_to_readme(path: Path, metadata: Mapping[str, Any], scores: SavedScores) -> None:
    """Write the evaluation results into a README.md; one that is not there yet begins with a table of them.

    Raises:
        FileNotFoundError: the folder does not exist.
        ValueError: the name does not end in .md, or its front matter cannot be read.
    """
    if path.suffix != ".md":
        raise ValueError(f"{path}: a model card is a README.md; give a name that ends in .md")
    (entry,) = metadata[KEY]
    if path.exists():
        text = _text(path)
        results = merged(read_front_matter(text, str(path)).get(KEY), entry, str(path))
    else:
        text, results = f"# {in_markdown(entry['name'])}\n\n{scores_section(scores)}", [entry]
    with atomic_write(path) as temporary:
        temporary.write_bytes(with_keys(text, {KEY: results}, str(path)).encode())


def _text(path: Path) -> str:
    """With the ends of its lines as they are."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not text in UTF-8") from None


def scores_section(scores: SavedScores) -> str:
    """A section in Markdown: the table of scores, and what its columns are."""
    numbers = list(numbers_of(scores))
    confidence = next((each.confidence for each in numbers if each.interval is not None), None)
    said = f"Scores of {scores.input.n_samples:,} rows, computed with unbraid {scores.unbraid}."
    if confidence is not None:
        said += f" Intervals ({100 * confidence:g} %) are over rows, not over trainings with other seeds."
    if any(each.by_chance is not None for each in numbers):
        said += " *By chance* is what the metric gives codes that have nothing to do with the factors."
    others = [of_another_version(name, each.version) for name, each in scores.metrics.items()]
    listed = "".join(f"- {in_markdown(each)}\n" for each in others if each)
    return f"## Scores\n\n{score_table(numbers)}\n{said}\n" + (listed and f"\n{listed}")


def merged(existing: Any, entry: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """A model index with the results of a model added; numbers of the same metric, task and dataset are replaced.

    Raises:
        ValueError: what is there is no model index.
    """
    if existing is None:
        return [dict(entry)]
    if not isinstance(existing, list) or not all(map(_is_entry, existing)):
        raise ValueError(f"{where}: {KEY} must be a list of models with name and results; correct or delete it")
    if all(each["name"] != entry["name"] for each in existing):
        return [*existing, dict(entry)]
    return [
        each if each["name"] != entry["name"] else {**each, "results": _with_results(each["results"], entry["results"])}
        for each in existing
    ]


def _with_results(there: list[Any], added: list[Any]) -> list[Any]:
    results = list(there)
    for result in added:
        same = next((place for place, each in enumerate(results) if _key(each) == _key(result)), None)
        if same is None:
            results.append(result)
            continue
        new = {each["type"] for each in result["metrics"]}
        kept = [each for each in results[same]["metrics"] if each["type"] not in new]
        results[same] = {**results[same], **result, "metrics": [*kept, *result["metrics"]]}
    return results


def _key(result: Mapping[str, Any]) -> tuple[Any, ...]:
    """By which the Hub tells results of one model apart."""
    dataset = result["dataset"]
    return result["task"]["type"], dataset["type"], *(dataset.get(name) for name in ("config", "split", "revision"))


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("name"), str)
        and isinstance(entry.get("results"), list)
        and all(map(_is_result, entry["results"]))
    )


def _is_result(result: Any) -> bool:
    if not isinstance(result, dict) or not isinstance(result.get("metrics"), list):
        return False
    described = [result.get("task"), result.get("dataset"), *result["metrics"]]
    return all(isinstance(each, dict) and "type" in each for each in described)


def _arguments(number: Number, version: str) -> Iterator[tuple[str, Any]]:
    """What there is to know of a number beside its name."""
    yield "higher_is_better", number.higher_is_better
    if math.isfinite(sum(map(abs, number.range))):
        yield "range", [float(end) for end in number.range]
    if (between := number.interval) is not None:
        yield "confidence", number.confidence
        yield "low", between.low
        yield "high", between.high
    if number.by_chance is not None:
        yield "by_chance", number.by_chance
    if number.is_headline and number.saved.null is not None:
        yield "p", number.saved.null.p
    if number.is_headline and number.saved.baselines:
        yield "baselines", dict(number.saved.baselines)
    for name, value in number.decided.items():
        yield ("metric_version", value) if name == "version" else (name, value)
    yield "unbraid", version
