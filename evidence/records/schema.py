"""What a file of results may hold: numbers that a paper reports, and numbers that were measured, in one form."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, FiniteFloat, model_validator
from pydantic_core import PydanticCustomError

from unbraid.files.json_records import LONGEST, Count, Natural, Record, Seconds, Text

SCHEMA, BESIDE = 1, 2  # BESIDE: what is known beside a number, such as its chance level, may stand with it
# In place of a commit: of a paper, of code that was never committed, of runs of more than one commit.
EXTERNAL, UNCLEAN, SEVERAL = "external", "unclean", "several"
COMMIT = "[0-9a-f]{40}"
MODEL = "[A-Za-z0-9][A-Za-z0-9.-]*__[A-Za-z0-9][A-Za-z0-9._+-]*"  # ORG__NAME
STUDY = "[A-Za-z0-9][A-Za-z0-9._+-]*"
SHORT = 12  # digits of a commit that name a folder

Said: TypeAlias = Annotated[str, Field(max_length=LONGEST, pattern=r"\S")]  # more than spaces
Name: TypeAlias = Annotated[str, Field(max_length=200, pattern=f"^{STUDY}$")]
Width: TypeAlias = Annotated[FiniteFloat, Field(ge=0)]
Day: TypeAlias = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
NEW = (
    "chance",
    "baselines",
    "seconds",
    "supervision",
    "date",
    "metric_version",
)  # of a measured number, in files of schema BESIDE


class Source(Record):
    """The paper that reports the numbers."""

    title: Said
    authors: Said
    year: Count
    arxiv: Text = ""


class Reported(Record):
    """A number as a paper has it; `printed` as it stands there, `place` the table, figure or section."""

    value: FiniteFloat
    spread: Width | None = None
    spread_is: Literal["standard deviation", "standard error", "95 % interval", "range", "not said"] | None = None
    n: Count | None = None
    place: Said
    printed: Said


class Measured(Record):
    """A number that was measured, with its 95 % interval where it has one."""

    value: FiniteFloat
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None
    units: Count
    unit: Said
    commit: Annotated[str, Field(pattern=f"^({COMMIT})?$")]
    study: Said
    seeds: list[Natural]
    machine: Text
    chance: FiniteFloat | None = None  # of shuffled rows
    baselines: dict[Said, FiniteFloat] | None = None  # of what was not trained, by name
    seconds: Seconds | None = None  # of one training
    supervision: Said | None = None  # what it was told: "512 pairs"
    date: Day | None = None  # on which the last training ended
    metric_version: Count | None = None  # of the metric that computed it; older records, and own metrics, have none


class Score(Record):
    """One number of one model, reported, measured, or both."""

    metric: Annotated[str, Field(max_length=200, pattern=r"^\S+( \S+)*$")]
    dataset: Said
    setting: Text
    reported: Reported | None = None
    measured: Measured | None = None
    reason: Said | None = None


class Change(Record):
    """When something was recorded or replaced, and why."""

    date: Day
    reason: Said


class Results(Record):
    """One file."""

    version: Annotated[int, Field(alias="schema", ge=SCHEMA, le=BESIDE)]
    model: Annotated[str, Field(max_length=200, pattern=f"^{MODEL}$")]
    revision: Annotated[str, Field(pattern=f"^({EXTERNAL}|{UNCLEAN}|{SEVERAL}|[0-9a-f]{{{SHORT}}})$")]
    study: Name
    source: Source | None = None
    scores: Annotated[list[Score], Field(min_length=1)]
    history: Annotated[list[Change], Field(min_length=1)]

    @model_validator(mode="after")
    def _of_its_schema(self) -> "Results":
        if self.version < BESIDE and any(
            beside(each.measured.model_fields_set) for each in self.scores if each.measured
        ):
            names = ", ".join(NEW)
            raise PydanticCustomError("schema", "{names} are of schema {later}", {"names": names, "later": BESIDE})
        return self


def in_order(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a file with its keys in the order in which they are written."""
    return _ordered(content, Results.model_validate(content).model_dump(by_alias=True, exclude_unset=True))


def _ordered(value: Any, like: Any) -> Any:
    if isinstance(like, dict):
        return {key: _ordered(value[key], each) for key, each in like.items()}
    if isinstance(like, list):
        return [_ordered(own, each) for own, each in zip(value, like, strict=True)]
    return value


def key_of(score: Mapping[str, Any]) -> tuple[str, str, str]:
    """What a score is of; a file has one of each."""
    return score["metric"], score["dataset"], score["setting"]


def named(score: Mapping[str, Any]) -> str:
    """The same in words."""
    metric, dataset, setting = key_of(score)
    return f"{metric} of {dataset}" + (f" ({setting})" if setting else "")


def beside(measured: Collection[str]) -> bool:
    """Whether a measured number has what only files of schema BESIDE hold."""
    return any(name in measured for name in NEW)


def differing(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """The first thing in which two numbers differ: its name, what it was and what it is."""
    name = next(name for name in {**then, **now} if then.get(name) != now.get(name))
    return name, then.get(name, "nothing"), now.get(name, "nothing")


def apart(score: Mapping[str, Any]) -> bool:
    """Whether the reported number lies outside the interval of the measured one, or is another where that has none."""
    reported, measured = score.get("reported"), score.get("measured")
    if reported is None or measured is None:
        return False
    low, high = (measured.get(end, measured["value"]) for end in ("low", "high"))
    return not low <= reported["value"] <= high
