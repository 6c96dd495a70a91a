"""Numbers of papers beside those that the runs of a study reached."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unbraid._utils.suggest import suggestion
from unbraid.analysis.columns import HELD_OUT
from unbraid.families.base import check_value
from unbraid.families.building import completed
from unbraid.families.table import FAMILIES, find_family
from unbraid.metrics import METRICS
from unbraid.metrics._shared.arguments import values_of
from unbraid.studies.expand import metric_names, setting_text
from unbraid.studies.schema import PublishedSection, StudyConfig
from unbraid.studies.snapshot import Planned, RunView, StudySnapshot
from unbraid.types import DataFrame

LEAVE = "add it, or remove this entry of `published`"  # as where a study was cut down
GENERALISATION = ("compositional", "zero_shot")  # whose columns have more parts


def check_published(config: StudyConfig, planned: Sequence[Planned]) -> None:
    """Raises ValueError for a number that no run of the study can be compared with; the path of the key comes first.

    Args:
        config: of the study.
        planned: its runs.
    """
    families = list(dict.fromkeys(each.name for each in config.families))
    metrics = [*metric_names(config), "udr"]
    for number, each in enumerate(config.published):
        where = f"published[{number}]"
        if each.family not in families:
            raise ValueError(f"{where}.family: the study has no {each.family}; {_advice(each.family, families)}")
        known = find_family(each.family).hyperparameters
        for name, value in each.setting.items():
            if name not in known:
                raise ValueError(f"{where}.setting.{name}: unknown; {suggestion(name, known)}")
            try:
                check_value(name, known[name], value)
            except ValueError as error:
                raise ValueError(f"{where}.setting.{error}") from None
        if not any(_is_of(each, run.family, run.config["hyperparameters"]) for run in planned):
            named = setting_text(each.setting, each.setting)
            raise ValueError(f"{where}.setting: no run of {each.family} has {named}; {LEAVE}")
        metric, _, value = each.column.rpartition(".")
        if metric.partition(".")[0] in GENERALISATION:
            continue
        if metric not in metrics:
            raise ValueError(f"{where}.column: the study does not compute {metric!r}; {_advice(metric, metrics)}")
        values = _values(metric)
        if values and value not in values:
            raise ValueError(f"{where}.column: {metric} has no {value!r}; {suggestion(value, values)}")


def _advice(name: str, known: Sequence[str]) -> str:
    said = suggestion(name, known)
    return said if said.startswith("did you mean") else f"{said}; {LEAVE}"


def _values(metric: str) -> list[str]:
    """What the columns of a metric are called; none of a function of the user's, whose result is known once it runs."""
    if metric == "udr":
        return ["score", "informative"]
    row = METRICS.get(metric.partition("(")[0])
    known = [] if row is None else values_of(row)
    return [*known, HELD_OUT] if known else []


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
            if _is_of(each, run.family, run.hyperparameters, whole=not run.is_added):
                yield run, each


def _is_of(each: PublishedSection, family: str, kept: Mapping[str, Any], *, whole: bool = True) -> bool:
    """Whether a number is of a run with these hyperparameters; of a `whole` config those left out are at defaults."""
    row = FAMILIES.get(family) if whole else None
    hyper = dict(kept) if row is None else completed(row, kept)
    return family == each.family and all(
        # A text that looks like a number, such as `classes: 3`, is a number in the YAML.
        name in hyper and hyper[name] == (str(value) if isinstance(hyper[name], str) else value)
        for name, value in each.setting.items()
    )
