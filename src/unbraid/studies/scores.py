"""scores.json of a run: only what it lacks is computed."""

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from unbraid._files import atomic_write
from unbraid.datasets.base import FactorDataset
from unbraid.metrics import METRICS, NotDefined
from unbraid.representation import Representation
from unbraid.runs.folder import CODES, SCORES, WEIGHTS, damaged
from unbraid.runs.objects import objects_of
from unbraid.scoring import Progress, ScoreCard, Scored, choose, score_each


def complete_scores(
    folder: Path,
    metrics: Sequence[str],
    *,
    gap: str | None = None,
    seed: int = 0,
    dataset: FactorDataset | None = None,
    progress: Progress | None = None,
) -> None:
    """Add to scores.json the metrics that it lacks, or has by an older version of the metric.

    Interrupted, it keeps those that are done. `progress` as for `unbraid.score`. `dataset` is that of a run, which
    encodes whole objects of it where a metric needs them; by default opened by its name.

    Raises:
        ValueError: a metric that cannot be computed, named; the others are kept.
    """
    kept = read_scores(folder)
    missing = missing_metrics(kept, metrics)
    if not missing:
        return
    representation = Representation.load(_codes(folder))
    scored: dict[str, Scored] = {}
    skipped: dict[str, str] = {}
    failed: dict[str, Exception] = {}
    objects = objects_of(folder, dataset) if (folder / WEIGHTS).is_file() else None
    working = score_each(representation, choose(missing), seed=seed, gap=gap, objects=objects, progress=progress)
    try:
        with closing(working) as results:
            for name, result in results:
                if isinstance(result, NotDefined):
                    skipped[name] = str(result)
                elif isinstance(result, Exception):
                    failed[name] = result
                else:
                    scored[name] = result
    finally:
        if scored or skipped or failed:
            _keep(folder, kept, missing, ScoreCard(representation, scored, skipped, seed, gap=gap, path=folder.name))
    for name, error in failed.items():
        raise ValueError(f"metric {name}: {type(error).__name__}: {error}") from error


def _keep(folder: Path, kept: dict[str, Any], missing: Sequence[str], card: ScoreCard) -> None:
    content = card.to_dict()
    for part in ("metrics", "skipped"):
        others = {name: entry for name, entry in kept.get(part, {}).items() if name not in missing}
        content[part] = {**others, **content[part]}
    with atomic_write(folder / SCORES) as temporary:
        temporary.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def missing_metrics(scores: dict[str, Any], metrics: Sequence[str]) -> list[str]:
    """Those of `metrics` that the content of a scores.json does not hold, or holds by another version."""
    have = {
        name
        for name, entry in scores.get("metrics", {}).items()
        if name not in METRICS or entry.get("version") == METRICS[name].version
    }
    return [name for name in metrics if name not in have | set(scores.get("skipped", {}))]


def read_scores(folder: Path) -> dict[str, Any]:
    """The content of scores.json; {} where there is none.

    Raises:
        ValueError: it is damaged.
    """
    path = folder / SCORES
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error}); delete it and it is computed again") from None
    if not isinstance(content, dict) or not isinstance(content.get("metrics"), dict):
        raise ValueError(f"{path} is damaged (it holds no scores); delete it and it is computed again")
    return content


def _codes(folder: Path) -> Path:
    """A run keeps its codes in one format, and an added representation in another."""
    for name in (CODES, "codes.npz"):
        if (folder / name).is_file():
            return folder / name
    raise damaged(folder / CODES, "it is missing")
