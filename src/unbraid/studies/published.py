"""Numbers of papers beside those that the runs of a study reached."""

from collections.abc import Iterator
from typing import Any

from unbraid.metrics._shared.arguments import find_metric
from unbraid.studies.expand import metric_names
from unbraid.studies.schema import PublishedSection, StudyConfig
from unbraid.studies.snapshot import RunView, StudySnapshot
from unbraid.types import DataFrame


def check_published(config: StudyConfig) -> None:
    """Raises ValueError for a number that no run of the study can be compared with; the path of the key comes first."""
    families = {each.name for each in config.families}
    metrics = (*metric_names(config), "udr", "compositional", "zero_shot")
    for number, each in enumerate(config.published):
        if each.family not in families:
            known = ", ".join(sorted(families))
            raise ValueError(f"published[{number}].family: the study has no {each.family}; it has {known}")
        metric, _, value = each.column.rpartition(".")
        if metric.partition(".")[0] not in metrics and metric not in metrics:
            raise ValueError(f"published[{number}].column: the study does not compute {metric!r}")
        if (known := find_metric(metric)) is not None and not value:
            raise ValueError(f"published[{number}].column: write {metric}.{known.headline}")


def published_columns(snapshot: StudySnapshot) -> dict[str, dict[str, Any]]:
    """published.<column> of each run that a number of a paper is of; `published` says where it stands, and why ours may
    differ."""
    found: dict[str, dict[str, Any]] = {}
    for run, each in _pairs(snapshot):
        cells = found.setdefault(run.id, {"published": {}})
        cells[f"published.{each.column}"] = each.value
        cells["published"][each.column] = {"source": each.source, "reason": each.reason}
    return found


def beside_published(snapshot: StudySnapshot, frame: DataFrame) -> list[dict[str, Any]]:
    """For each number of a paper: how many runs it is of, their mean and standard deviation, and the difference."""
    rows = []
    for each in snapshot.config.published:
        own = [run.id for run, other in _pairs(snapshot) if other is each]
        held = frame.loc[frame["run"].isin(own), each.column].dropna() if each.column in frame.columns else []
        mean = float(held.mean()) if len(held) else None  # pyright: ignore[reportAttributeAccessIssue]
        spread = float(held.std()) if len(held) > 1 else None  # pyright: ignore[reportAttributeAccessIssue]
        rows.append(
            {
                "family": each.family, "setting": dict(each.setting), "column": each.column, "runs": len(held),
                "measured": mean, "deviation": spread, "published": each.value,
                "difference": None if mean is None else mean - each.value, "source": each.source,
                "reason": each.reason,
            }
        )  # fmt: skip
    return rows


def _pairs(snapshot: StudySnapshot) -> Iterator[tuple[RunView, PublishedSection]]:
    for run in snapshot.runs:
        for each in snapshot.config.published:
            if run.family == each.family and each.setting.items() <= dict(run.hyperparameters).items():
                yield run, each
