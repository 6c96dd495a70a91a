"""The YAML of a study: what may stand in it, and where it is wrong."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from unbraid._suggest import suggestion

Count: TypeAlias = Annotated[int, Field(ge=1, strict=True)]
Seed: TypeAlias = Annotated[int, Field(ge=0, strict=True)]
Seeds: TypeAlias = Count | Annotated[list[Seed], Field(min_length=1)]
Value: TypeAlias = Annotated[bool, Field(strict=True)] | int | float | str
Pair: TypeAlias = Annotated[list[Seed], Field(min_length=2, max_length=2)]
NotNegative: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Section(BaseModel):
    """A mapping of the YAML whose keys are known."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DatasetSection(Section):
    """`name` and the options of `unbraid.datasets.load`."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class FamilySection(Section):
    """A family, and beside its settings any of its hyperparameters, a value or a list of values each."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str
    preset: str | None = None
    seeds: Seeds | None = None  # those of the study where it has none
    steps: Count | None = None
    batch_size: Count | None = None

    @property
    def hyperparameters(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class UDRSection(Section):
    """How models are ranked without labels; see `unbraid.metrics.udr`."""

    similarity: Literal["lasso", "spearman"] = "lasso"
    compare: Literal["same-hyperparameters", "same-family", "all"] = "same-hyperparameters"
    n_comparisons: Count | None = None
    alpha: Literal["cv"] | Annotated[float, Field(gt=0, allow_inf_nan=False)] = "cv"
    kl_threshold: NotNegative = 0.01
    aggregate: Literal["paper", "dlib"] = "paper"
    seed: Seed = 0


class CompositionalSection(Section):
    """Pairs of levels of two factors held out of training; see `unbraid.studies.holdout.splits`."""

    factors: Annotated[list[str], Field(min_length=2, max_length=2)]
    n_combinations: Count = 5
    n_random: Annotated[int, Field(ge=0, strict=True)] | None = None  # one per combination where it is not given
    combinations: Annotated[list[Pair], Field(min_length=1)] | None = None  # these, instead of drawing any
    n_rows: Count = 10_000  # images at most to train heads on, and to test them on
    seed: Seed = 0


class ZeroShotSection(Section):
    """Images that a condition on their factors keeps out; see `unbraid.studies.holdout.splits.zero_shot_holdout`."""

    gap: str
    n_rows: Count = 10_000  # images at most of each part
    seed: Seed = 0


class ExecutorSection(Section):
    """Where runs are trained; what is not given is as that executor has it. See `unbraid.studies.executors`."""

    name: Literal["local", "ray"]
    processes: Annotated[int, Field(ge=0, strict=True)] | None = None
    pack: Count | None = None
    address: Annotated[str, Field(min_length=1)] | None = None
    gpus_per_run: Annotated[float, Field(gt=0, le=1)] | None = None

    @field_validator("processes", "pack", "address", "gpus_per_run")
    @classmethod
    def _its_own(cls, value: Any, info: ValidationInfo) -> Any:
        name = info.data.get("name")  # absent where it is wrong itself, which is said already
        if name and info.field_name not in OPTIONS[name]:
            own = " and ".join(OPTIONS[name])
            raise PydanticCustomError("option", "no option of {name}, which has {own}", {"name": name, "own": own})
        return value

    @property
    def options(self) -> dict[str, Any]:
        return self.model_dump(exclude={"name"}, exclude_none=True)


OPTIONS = {"local": ("processes", "pack"), "ray": ("address", "gpus_per_run")}  # of each executor


class StudyConfig(Section):
    """All of a study; the YAML file holds these keys."""

    name: Annotated[str, Field(min_length=1)]
    dataset: DatasetSection
    families: Annotated[list[FamilySection], Field(min_length=1)]
    seeds: Seeds = 1
    steps: Count = 30_000
    batch_size: Count = 64
    precision: Literal["auto", "float32", "bfloat16", "float64"] = "auto"
    device: str = "auto"
    metrics: Literal["all"] | list[str] = []
    udr: UDRSection | None = None
    compositional: CompositionalSection | None = None
    zero_shot: ZeroShotSection | None = None
    track: list[Literal["tensorboard", "wandb", "mlflow"]] = []
    executor: ExecutorSection | None = None

    @property
    def gap(self) -> str | None:
        """Rows that the metric zero_shot keeps out of its training."""
        return self.zero_shot.gap if self.zero_shot else None

    def executor_with(self, name: str | None, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """An executor and its options: what is given here, then what the file says of it; by default "local"."""
        planned = self.executor
        chosen = name or (planned.name if planned else "local")
        return chosen, {**(planned.options if planned and planned.name == chosen else {}), **options}

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, given: Any) -> Any:
        """`dataset: sprites`, `executor: ray` and `families: [vae]` say the same as with {name: ...}."""
        if not isinstance(given, Mapping):
            return given
        given = dict(given)
        for section in ("dataset", "executor"):
            if isinstance(given.get(section), str):
                given[section] = {"name": given[section]}
        if isinstance(given.get("families"), list):
            given["families"] = [{"name": each} if isinstance(each, str) else each for each in given["families"]]
        return given


def parse(text: str, where: str) -> StudyConfig:
    """The study that a YAML text describes.

    Args:
        text: YAML.
        where: the file, for errors.

    Raises:
        ValueError: not YAML, or a key or value that a study does not have; one line with the path of the key.
    """
    try:
        content = yaml.load(text, _Loader)  # noqa: S506 (a SafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(f"{where} is not readable as YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{where}: a study is a mapping with name, dataset, families, ...; see docs/studies.md")
    try:
        return StudyConfig.model_validate(content)
    except ValidationError as error:
        raise ValueError(f"{where}: {explain(error)}") from None


def read(path: Path) -> tuple[StudyConfig, str]:
    """The study in a YAML file, and the text.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: as `parse`.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not text in UTF-8") from None
    return parse(text, str(path)), text


def explain(error: ValidationError) -> str:
    """The first fault as `families[1].betta: unknown; did you mean 'beta'?`."""
    faults = error.errors()
    outer = _cleaned(faults[0]["loc"])
    # Of a value that may be one thing or a list, the branch that came furthest knows what is wrong.
    first = max((one for one in faults if _cleaned(one["loc"])[: len(outer)] == outer), key=_depth)
    path = key_path(_cleaned(first["loc"]))
    if first["type"] == "extra_forbidden":
        said = f"unknown; {suggestion(str(first['loc'][-1]), _known_keys(first['loc'][:-1]))}"
    elif first["type"] == "missing":
        said = "is missing"
    else:
        given = "" if isinstance(first["input"], dict | list) else f"; got {first['input']!r}"
        said = first["msg"][0].lower() + first["msg"][1:] + given
    more = len({key_path(_cleaned(one["loc"])) for one in faults} - {path, key_path(outer)})
    return f"{path}: {said}" + (f" (and {more} more)" if more else "")


def _depth(fault: Any) -> int:
    return len(_cleaned(fault["loc"]))


def key_path(keys: tuple[int | str, ...]) -> str:
    """`families[1].beta` of ("families", 1, "beta")."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".") or "the study"


def _cleaned(loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    # pydantic adds the branch of a union that it tried, such as "list[constrained-int]" or "literal['all']".
    return tuple(key for key in loc if isinstance(key, int) or re.fullmatch(r"\w+", key) and key not in _BRANCHES)


_BRANCHES = {"int", "float", "str", "bool", "constrained", "list"}


def _known_keys(loc: tuple[int | str, ...]) -> list[str]:
    sections: dict[str, type[Section]] = {
        "udr": UDRSection,
        "compositional": CompositionalSection,
        "zero_shot": ZeroShotSection,
        "executor": ExecutorSection,
    }
    section = sections.get(str(loc[0]), StudyConfig) if loc else StudyConfig
    return list(section.model_fields)


class _Loader(yaml.SafeLoader):
    """YAML in which 1e-4 is a number and a key given twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            name = self.construct_object(key)
            if name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{name} is given twice", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)
