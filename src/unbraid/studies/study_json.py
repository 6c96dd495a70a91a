"""Schemas of the JSON files of a study, except those of its runs."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, FiniteFloat, RootModel
from pydantic_core import PydanticCustomError

from unbraid.files.json_records import Count, Natural, Record, Setting, Text
from unbraid.runs.run_json import Device, Precision, RunRecord, StatusRecord, StudyDatasetRecord

FORMAT = 1

Share: TypeAlias = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Shares: TypeAlias = Annotated[list[Share], Field(min_length=3, max_length=3)]  # one factor, the other, both
Errors: TypeAlias = Annotated[dict[Text, FiniteFloat], Field(min_length=1)]


class EnvironmentRecord(Record):
    """study.json: all that determines the runs besides the YAML."""

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)]
    unbraid: Text
    source: dict[str, Any]
    dataset: StudyDatasetRecord
    device: Device
    precision: Precision
    training: dict[Text, Count]
    code: dict[Text, Text] = {}


class FailureRecord(Record):
    """failed/<id>.json."""

    id: Text
    family: Text
    setting: str
    seed: Natural
    reason: str
    attempts: Count
    details: str = ""
    trained: bool = False


class AddedRecord(Record):
    """config.json of a representation that was added."""

    family: Text
    setting: str
    seed: Natural
    hyperparameters: dict[Text, Setting] = {}
    source: Text = ""
    run: RunRecord | None = None  # of what `unbraid.train` made
    status: StatusRecord | None = None


class QuestionRecord(Record):
    """What a run was asked about images that it never saw."""

    kind: Literal["compositional", "zero_shot"]
    of: Text
    split: Literal["combination", "random", "gap"]
    number: Natural
    name: Text
    without: Any
    terms: dict[str, Any]


class HeadAccuracies(Record):
    """Of heads on held-out combinations."""

    mlp: Shares
    linear: Shares
    single: Shares


class PartErrors(Record):
    """Of one regressor, by factor."""

    gap: Errors
    ordinary: Errors


class RegressorErrors(Record):
    """Of regressors on images in the gap, and on others."""

    lasso: PartErrors
    forest: PartErrors


def _of_its_kind(answer: "AnswerRecord") -> "AnswerRecord":
    heads = answer.question.kind == "compositional"
    fields = {"accuracy", "chance", "n_train", "n_test"} if heads else {"errors"}
    if answer.model_fields_set != fields | {"question"} or (answer.question.split == "gap") is heads:
        raise PydanticCustomError("answer", "Input should hold the answer to a question of its kind")
    return answer


class AnswerRecord(Record):
    """One answer: of heads to "compositional", of regressors to "zero_shot"."""

    question: QuestionRecord
    accuracy: HeadAccuracies | None = None
    chance: Shares | None = None
    n_train: Count = 1
    n_test: Count = 1
    errors: RegressorErrors | None = None


AnswersRecord = RootModel[dict[str, Annotated[AnswerRecord, AfterValidator(_of_its_kind)]]]
"""held_out.json: answers by the id of their question."""
