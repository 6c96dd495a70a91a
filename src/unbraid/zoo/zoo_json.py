"""What `zoo.json` in the file of a dataset may hold: the images, the factors, and of each model all but its codes."""

from typing import Annotated, Any, TypeAlias

from pydantic import Field, FiniteFloat

from unbraid.base.types import Kind
from unbraid.files.json_records import Count, Natural, Record, Setting, Text

FORMAT = 1  # raised whenever a file is written that older versions would misread

Name: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}$")]
Codes: TypeAlias = Annotated[int, Field(ge=1, le=100_000)]
Scores: TypeAlias = Annotated[dict[Text, FiniteFloat], Field(max_length=1000)]


class FactorRecord(Record):
    name: Text
    kind: Kind
    size: Natural | None  # levels in the dataset; None where that is not known
    levels: list[Text] = Field(default_factory=list)
    period: FiniteFloat = 0.0


class ModelRecord(Record):
    """One model."""

    name: Name  # within the dataset
    run: Text  # its id in the study
    study: Text
    family: Text
    setting: Text  # "beta=4", the same name in every study
    hyperparameters: dict[Text, Setting]
    seed: Natural
    steps: Natural | None  # None of a family that is fitted, as PCA
    commit: Text | None  # by which it was trained; None where that is not known
    n_codes: Codes
    centre: list[FiniteFloat]  # (n_codes,) codes are centre + scale * what is kept
    scale: list[FiniteFloat]
    kl: list[FiniteFloat] | None  # (n_codes,) nats, of the whole representation; None without a posterior
    informative: Natural  # codes that tell of their sample
    defects: list[Text]
    study_scores: Scores  # "mig.score": headlines of the study, of codes in full precision
    scores: Scores  # by metric: headlines on the rows and codes of the zoo


class ZooRecord(Record):
    """One dataset."""

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)]
    dataset: Name
    options: dict[str, Any]
    content: Text  # digest of the images
    n_images: Count
    rows: Count  # images that are encoded
    factors: list[FactorRecord]
    metrics: dict[Text, Natural]  # by which `scores` are, each with its version
    models: Annotated[list[ModelRecord], Field(min_length=1)]
