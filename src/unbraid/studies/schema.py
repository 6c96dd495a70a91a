"""The YAML of a study: its keys and values, and errors that name the key."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from unbraid.base.suggest import suggestion
from unbraid.datasets.recorded import of_everywhere
from unbraid.files.json_records import MOST
from unbraid.files.json_records import explain as first_fault
from unbraid.files.trust import Trusted, code_of, is_code, trusting
from unbraid.files.yaml_files import parse_yaml

Count: TypeAlias = Annotated[int, Field(ge=1, le=MOST, strict=True)]
Whole: TypeAlias = Annotated[int, Field(ge=0, le=MOST, strict=True)]
Seed: TypeAlias = Whole
Seeds: TypeAlias = Count | Annotated[list[Seed], Field(min_length=1)]
Value: TypeAlias = Annotated[bool, Field(strict=True)] | int | float | str
Pair: TypeAlias = Annotated[list[Seed], Field(min_length=2, max_length=2)]
NotNegative: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _metric_name(value: Any) -> Any:
    """`{name: "my_lab:loss", direction: lower}` says the same as "my_lab:loss(direction=lower)"."""
    if not isinstance(value, Mapping):
        return value
    if value.keys() != {"name", "direction"} or not isinstance(value["name"], str):
        raise PydanticCustomError("metric", "write a name, or {name: my_lab.scores:loss, direction: lower}")
    name = value["name"]
    if not is_code(name):
        raise PydanticCustomError(
            "metric", "which way is better of {name} is known; a direction is for your own functions", {"name": name}
        )
    if value["direction"] not in ("higher", "lower"):
        raise PydanticCustomError("metric", "the direction of {name} is higher or lower", {"name": name})
    return f"{name}(direction={value['direction']})"


MetricName: TypeAlias = Annotated[str, BeforeValidator(_metric_name)]
MetricNames: TypeAlias = Literal["all"] | list[MetricName]


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


class RandomSection(Section):
    """How many settings are drawn, and of which values; see `unbraid.studies.expand`."""

    model_config = ConfigDict(extra="allow", frozen=True)
    n: Annotated[int, Field(ge=1, le=100_000, strict=True)]
    seed: Seed = 0


class FamilySection(Section):
    """A family with its settings and any of its hyperparameters, each a value or a list of values."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str
    preset: str | None = None
    seeds: Seeds | None = None  # those of the study where it has none
    steps: Count | None = None
    batch_size: Count | None = None
    zip: Annotated[dict[str, Annotated[list[Value], Field(min_length=1)]], Field(min_length=1)] | None = None
    random: RandomSection | None = None
    exclude: list[Annotated[dict[str, Value], Field(min_length=1)]] = []

    @property
    def hyperparameters(self) -> dict[str, Any]:
        return dict(self.model_extra or {})

    @property
    def code(self) -> list[Any]:
        """Values of `network` and `augment` in the section, in `zip` and in `random`: names, or lists of them."""
        drawn = (self.random.model_extra or {}) if self.random else {}
        parts = self.hyperparameters, self.zip or {}, drawn
        return [part[name] for part in parts for name in ("network", "augment") if name in part]

    def trusting(self, names: Collection[str] | None) -> "FamilySection":
        """The same section with the user's trust in its own code, all or that in `names`."""
        drawn = self.random and self.random.model_copy(update=trusting(dict(self.random.model_extra or {}), names))
        searched = {"zip": trusting(self.zip, names), "random": drawn}
        return self.model_copy(update=trusting({"name": self.name, **self.hyperparameters}, names) | searched)


class UDRSection(Section):
    """How models are ranked without labels; see `unbraid.metrics.udr`."""

    similarity: Literal["lasso", "spearman"] = "lasso"
    compare: Literal["same-hyperparameters", "same-family", "all"] = "all"
    n_comparisons: Count | None = None
    alpha: Literal["cv"] | Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.1
    informative: Literal["signal", "kl"] = "signal"
    kl_threshold: NotNegative = 0.01
    aggregate: Literal["paper", "dlib"] = "paper"
    seed: Seed = 0


class CompositionalSection(Section):
    """Pairs of levels of two factors held out of training; see `unbraid.studies.holdout.splits`."""

    factors: Annotated[list[str], Field(min_length=2, max_length=2)]
    n_combinations: Count = 5
    n_random: Whole | None = None  # one per combination where it is not given
    combinations: Annotated[list[Pair], Field(min_length=1)] | None = None  # these, instead of drawing any
    n_rows: Count = 10_000  # images at most to train heads on, and to test them on
    seed: Seed = 0


class ZeroShotSection(Section):
    """Images that a condition on their factors keeps out; see `unbraid.studies.holdout.splits.zero_shot_holdout`."""

    held_out: str
    n_rows: Count = 10_000  # images at most of each part
    seed: Seed = 0


class ExecutorSection(Section):
    """Where runs are trained; what is not given is as that executor has it. See `unbraid.studies.executors`."""

    name: Annotated[str, Field(min_length=1)]  # of ours or a package's; unknown ones are refused when a study is run
    processes: Whole | None = None
    pack: Count | None = None
    address: Annotated[str, Field(min_length=1)] | None = None
    gpus_per_run: Annotated[float, Field(gt=0, le=1)] | None = None

    @field_validator("processes", "pack", "address", "gpus_per_run")
    @classmethod
    def _its_own(cls, value: Any, info: ValidationInfo) -> Any:
        name = info.data.get("name")  # absent where it is wrong itself, which is said already
        if name in OPTIONS and info.field_name not in OPTIONS[name]:
            own = " and ".join(OPTIONS[name])
            raise PydanticCustomError("option", "no option of {name}, which has {own}", {"name": name, "own": own})
        return value

    @property
    def options(self) -> dict[str, Any]:
        return self.model_dump(exclude={"name"}, exclude_none=True)


Kind = TypeVar("Kind", bound=Section)

OPTIONS = {"local": ("processes", "pack"), "ray": ("address", "gpus_per_run", "pack")}  # of each executor


class StudyConfig(Section):
    """All of a study; the YAML file holds these keys."""

    name: Annotated[str, Field(min_length=1)]
    dataset: DatasetSection
    families: list[FamilySection]  # none where models are only added
    seeds: Seeds = 1
    steps: Count = 30_000
    batch_size: Count = 64
    precision: Literal["auto", "float32", "bfloat16", "float64"] = "auto"
    device: str = "auto"
    checkpoint_every: NotNegative = 120.0  # seconds
    time_limit: Annotated[float, Field(gt=0, le=1e8, allow_inf_nan=False)] | None = None  # seconds of any run
    snapshots: Whole = 0  # of each run, by the metrics named next
    snapshot_metrics: Annotated[list[MetricName], Field(min_length=1)] = ["mig"]
    hold_out: Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)] = (
        0  # images that no training sees, a share below 1 or how many
    )
    hold_out_every: Count = 500  # steps between two evaluations of their ELBO
    patience: Whole = 0  # of these without a new best; 0: no end
    metrics: MetricNames = []
    baselines: Annotated[bool, Field(strict=True)] = False  # whether to score baselines without training
    udr: UDRSection | None = None
    compositional: CompositionalSection | None = None
    zero_shot: ZeroShotSection | None = None
    track: list[Annotated[str, Field(min_length=1)]] = []  # likewise
    executor: ExecutorSection | None = None

    @field_validator("baselines")
    @classmethod
    def _scored(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("metrics") == []:
            raise PydanticCustomError("baselines", "there is nothing to score them by; name metrics under `metrics`")
        return value

    @property
    def held_out(self) -> str | None:
        """Rows that the metric zero_shot keeps out of its training."""
        return self.zero_shot.held_out if self.zero_shot else None

    def trusting(self, names: Collection[str] | None = None) -> "StudyConfig":
        """The same study with the user's trust in its own networks, metrics and images: all, or those in `names`.

        Paths of files are taken only from a YAML of the user's own, the first case.
        """
        families = [family.trusting(names) for family in self.families]
        name, options = self.dataset.name, self.dataset.options
        trusted = Trusted(name) if names is None or name in names else name
        known = options if names is None else of_everywhere(options)
        dataset = DatasetSection.model_construct(name=trusted, **known)
        return self.model_copy(
            update={"dataset": dataset, "families": families, "metrics": trusting(self.metrics, names)}
        )

    @property
    def own_code(self) -> list[str]:
        """The families, networks, augmentations and metrics that are none of unbraid's, as the YAML names them."""
        named = [part for entry in self.families for part in (entry.name, *entry.code)]
        texts = [text for entry in [*named, self.metrics] for text in (entry if isinstance(entry, list) else [entry])]
        return [text for text in texts if isinstance(text, str) and is_code(code_of(text))]

    def executor_with(self, name: str | None, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """An executor and its options: the arguments come before the YAML; by default "local"."""
        planned = self.executor
        chosen = name or (planned.name if planned else "local")
        return chosen, {**(planned.options if planned and planned.name == chosen else {}), **options}

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, content: Any) -> Any:
        """`dataset: sprites`, `executor: ray` and `families: [vae]` say the same as with {name: ...}."""
        if not isinstance(content, Mapping):
            return content
        content = dict(content)
        for section in ("dataset", "executor"):
            if isinstance(content.get(section), str):
                content[section] = {"name": content[section]}
        if isinstance(content.get("families"), list):
            content["families"] = [
                {"name": family} if isinstance(family, str) else family for family in content["families"]
            ]
        return content


def mapping(text: str, where: str) -> dict[str, Any]:
    """The mapping that a YAML text holds; ValueError, with the file `where`, for anything else."""
    content = parse_yaml(text, where)
    if not isinstance(content, dict):
        raise ValueError(f"{where}: a study is a mapping with name, dataset, families, ...; see docs/studies.md")
    return content


def checked(section: type[Kind], content: Mapping[str, Any], where: str) -> Kind:
    """The content as a section of this type.

    Raises:
        ValueError: an unknown key or a wrong value; one line with the path of the key.
    """
    try:
        return section.model_validate(content)
    except ValidationError as error:
        raise ValueError(f"{where}: {explain(error)}") from None


def explain(error: ValidationError) -> str:
    """The first fault as `families[1].betta: unknown; did you mean 'beta'?`."""
    return first_fault(error, lambda loc: f"; {suggestion(str(loc[-1]), _known_keys(loc[:-1]))}")


def _known_keys(loc: tuple[int | str, ...]) -> list[str]:
    sections: dict[str, type[Section]] = {
        "udr": UDRSection,
        "compositional": CompositionalSection,
        "zero_shot": ZeroShotSection,
        "executor": ExecutorSection,
    }
    names = [key for key in loc if key in sections]
    return list((sections[str(names[-1])] if names else StudyConfig).model_fields)
