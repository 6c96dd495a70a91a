"""Scores as the evaluation results of a model card: the key `model-index` of a README.md on the Hugging Face Hub.

The Hub has a second form, files in .eval_results/, for numbers on data that it lists as a benchmark with a
leaderboard. It has no place for intervals, and datasets of disentanglement are hardly listed.

Reference: https://huggingface.co/docs/hub/model-cards#evaluation-results, as huggingface_hub 2.4 reads it.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from yaml import YAMLError

from unbraid.base.optional import require
from unbraid.base.suggest import one_line
from unbraid.files.score_file import SavedScores
from unbraid.files.whole_files import write_text
from unbraid.metrics._shared.provenance import of_another_version
from unbraid.scoring.score_numbers import Number, in_markdown, numbers_of, score_table, slug

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
    for name, text in (("model", model), ("dataset", dataset), ("task", task)):
        if not text.strip():
            raise ValueError(f"{name} must be a name; got {text!r}")
    dataset_args = {"rows": scores.input.n_samples, "factors": [factor.name for factor in scores.input.factors]}
    known = {"config": config, "split": split, "revision": revision}
    result = {
        "task": {"type": task, "name": TASK_NAME},
        "dataset": {
            "name": dataset,
            "type": dataset_id or slug(dataset),
            **{name: value for name, value in known.items() if value is not None},
            "args": dataset_args,
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

    Numbers of the same metric, task and dataset are replaced, all others stay. The rest of the front matter keeps its
    keys and values, but not its comments.

    Raises:
        FileNotFoundError: the folder does not exist.
        ImportError: huggingface_hub is not installed.
        ValueError: the name does not end in .md, the front matter cannot be read, or its results are of another model.
    """
    hub = require("huggingface_hub", "hub", "writing scores into a README.md")
    if path.suffix != ".md":
        raise ValueError(f"{path}: a model card is a README.md; give a name that ends in .md")
    added = hub.ModelCardData(**metadata)
    text = _text(path) if path.exists() else f"\n# {in_markdown(added.model_name)}\n\n{scores_section(scores)}"
    if not text.lstrip().startswith("---"):
        text = f"---\n\n---\n{text}"
    try:
        card = hub.ModelCard(text)
    except (ValueError, YAMLError) as error:
        raise ValueError(f"{path}: the front matter cannot be read: {one_line(error)}") from None
    if card.data.model_name not in (None, added.model_name):
        raise ValueError(f"{path} has the results of {card.data.model_name}, not of {added.model_name}")
    keys = {_key(result) for result in added.eval_results}
    card.data.model_name = added.model_name
    card.data.eval_results = [
        *(result for result in card.data.eval_results or [] if _key(result) not in keys),
        *added.eval_results,
    ]
    write_text(path, str(card))


def _key(result: Any) -> tuple[Any, ...]:
    """By which the Hub tells results of one model apart."""
    return *result.unique_identifier, result.metric_type


def _text(path: Path) -> str:
    """With the ends of its lines as they are."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not text in UTF-8") from None


def scores_section(scores: SavedScores) -> str:
    """A section in Markdown: the table of scores, and what its columns are."""
    numbers = list(numbers_of(scores))
    confidence = next((each.confidence for each in numbers if each.interval is not None), None)
    text = f"Scores of {scores.input.n_samples:,} rows, computed with unbraid {scores.unbraid}."
    if confidence is not None:
        text += f" Intervals ({100 * confidence:g} %) are over rows, not over trainings with other seeds."
    if any(each.by_chance is not None for each in numbers):
        text += " *By chance* is what the metric gives codes that have nothing to do with the factors."
    version_notes = [of_another_version(name, each.version) for name, each in scores.metrics.items()]
    listed = "".join(f"- {in_markdown(each)}\n" for each in version_notes if each)
    return f"## Scores\n\n{score_table(numbers)}\n{text}\n" + (listed and f"\n{listed}")


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
