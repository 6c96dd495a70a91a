"""Schemas of the JSON files of a run; readable without torch.

`unbraid.runs.run` checks hyperparameters against the table of their family.
"""

from math import prod
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, FiniteFloat
from pydantic_core import PydanticCustomError

from unbraid.base.types import Kind
from unbraid.files.json_records import MOST, Count, Natural, Record, Seconds, Setting, Text

FORMAT = 1
MOST_NUMBERS = 1 << 24  # of an image, or of a row of a table

Format: TypeAlias = Annotated[int, Field(ge=FORMAT, le=FORMAT)]
Size: TypeAlias = Annotated[int, Field(ge=1, le=1 << 16)]
Device: TypeAlias = Annotated[str, Field(pattern=r"^[a-z0-9:]{1,20}$")]
Precision: TypeAlias = Literal["float32", "bfloat16", "float64"]
Place: TypeAlias = Annotated[int, Field(ge=0, le=1 << 16)]
Side: TypeAlias = Annotated[int, Field(ge=0, le=MOST_NUMBERS)]  # a row of a table has one alone


def _image_shape(sizes: list[int]) -> list[int]:
    if len(sizes) not in (1, 3) or prod(sizes) > MOST_NUMBERS:
        message = "Input should be [height, width, channels] or [n_features], {most} numbers at most"
        raise PydanticCustomError("shape", message, {"most": MOST_NUMBERS})
    return sizes


def _options(options: dict[str, Any]) -> dict[str, Any]:
    wrong = [name for name in options if not name.isidentifier() or name in ("name", "progress")]
    if wrong:
        raise PydanticCustomError("options", "Input should hold options of a dataset only")
    return options


class DatasetRecord(Record):
    """The images of a training, as `unbraid.training.source.opened_dataset` describes them."""

    name: Text | None  # None: in memory
    options: Annotated[dict[str, Any], AfterValidator(_options)]
    n_images: Count
    image_shape: Annotated[list[Annotated[Side, Field(ge=1)]], AfterValidator(_image_shape)]
    content: Text
    white: Annotated[int, Field(ge=1, le=65535)] | None = None  # of images of 16 bits; None: 255 or 1.0


def _or_none(sizes: list[int]) -> list[int]:
    if sizes != [0, 0, 0] and 0 in sizes:  # NO_IMAGES of unbraid.data.image_dataset, which is slow to import
        raise PydanticCustomError("shape", "Input should be greater than or equal to 1")
    return _image_shape(sizes)


class StudyDatasetRecord(DatasetRecord):
    """The dataset of a study: images, or labels without images, on which nothing is trained."""

    image_shape: Annotated[list[Side], AfterValidator(_or_none)]


class PartRecord(Record):
    """`unbraid.families.Part`."""

    name: Text
    kind: Literal["gaussian", "point", "circle", "sphere", "quantized"]
    size: Size


class FactsRecord(Record):
    """Facts that families use from the factors of a dataset; each family has some of these."""

    circles: Size = 1
    euclidean: Place = 0
    turning: list[Text] = []
    blocks: list[Text] = []
    values: list[Size] = []
    latents: Size = 1
    categoricals: list[Text] = []
    sizes: list[Size] = []
    n_classes: Size = 1
    codes: Size = 1
    n_actions: Size = 1
    planes: list[Place] = []
    class_factors: list[Text] = []
    kinds: list[Kind] = []
    ranges: list[Size] = []
    relations: Size = 1


class HoldOutRecord(Record):
    """`unbraid.training.held_out.HoldOut`, of a training that kept images out."""

    images: Annotated[FiniteFloat, Field(gt=0, le=MOST)]
    every: Count
    patience: Natural


class RunRecord(Record):
    """config.json of a run."""

    format: Format
    family: Text
    dataset: DatasetRecord
    seed: Natural
    hyperparameters: dict[Text, Setting]
    steps: Count
    batch_size: Count
    device: Device
    precision: Precision  # of the arithmetic
    requested_precision: Literal["auto"] | None = None  # where that was left open
    training_version: Count = 1  # of the family
    hold_out: HoldOutRecord | None = None
    supervision: dict[Text, Natural] = Field(default_factory=dict)
    facts: FactsRecord = Field(default_factory=FactsRecord)  # pydantic copies other defaults deeply, each time
    codes: list[PartRecord] = Field(default_factory=list)
    code: dict[Text, Text] = Field(default_factory=dict)  # of the user's own: digests of the source by name
    # Codes of `unbraid.runs.run.probe_images`, where there is code of the user's.
    probe: list[list[FiniteFloat]] = Field(default_factory=list)


class OriginRecord(Record):
    """The finished run whose training went on in this one."""

    run: Text
    step: Natural


class JudgedRecord(Record):
    """ELBO of the weights on the hold-out set, and their step."""

    step: Natural
    elbo: FiniteFloat | None  # nats; None: it was not finite
    stopped: bool  # early, because it rose no more


class ProvenanceRecord(Record):
    """Provenance of a run, see `unbraid.training.training_versions`."""

    commit: Text | None  # of unbraid, where it is known
    python: Text
    torch: Text
    numpy: Text
    processor: Text  # model
    accelerator: Text | None  # model
    cores: Count  # that the process might use
    threads: Count  # of one training
    host: Text  # operating system and kind of processor
    began: Text  # ISO 8601, UTC
    ended: Text
    together: Count  # runs that were trained stacked, this one included
    packages: dict[Text, Text] = Field(default_factory=dict)  # of others, by the name of the family or dataset from it


class StatusRecord(Record):
    """status.json of a run."""

    state: Literal["finished", "diverged"]
    step: Natural
    reason: Text | None
    seconds: Seconds
    last: dict[Text, FiniteFloat]
    unbraid: Text
    provenance: ProvenanceRecord | None = None
    files: dict[Text, Natural] = Field(default_factory=dict)  # bytes by name, of those that the training wrote for good
    continued: OriginRecord | None = None
    held_out: JudgedRecord | None = None
    checksum: Text = ""  # of all other bytes of the file
    note: Text | None = None  # why the model seems not to have learned, see `unbraid.training.writing.sanity_check`
