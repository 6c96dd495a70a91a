"""Files of scores: scores.json of a run, and whatever a card was saved as. The only reader of them.

Nothing that a file names is imported or opened, and nothing in it is believed before its type, range and size are seen.
"""

from collections.abc import Mapping
from functools import lru_cache
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, StringConstraints, ValidationError

from unbraid.base.types import Kind, Moved
from unbraid.files.checksum import check_content
from unbraid.files.whole_files import read_whole

LARGEST_ARRAY = 20_000  # entries; larger ones are drawn on the page but left out of the JSON
LARGEST_FILE = 1 << 28  # bytes; the largest card that this package writes takes a fifth
LONGEST_TEXT = 100_000

Text: TypeAlias = Annotated[str, StringConstraints(max_length=LONGEST_TEXT)]
Name: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Count: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 62)]
Column: TypeAlias = Annotated[str, StringConstraints(pattern="^[0-9]{1,12}$")]
Digest: TypeAlias = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
OF_CODE = ("source", "package")
# Options of a command that a page shows to be run again: none of them makes it execute anything.
HARMLESS = ("labels", "key", "codes", "kinds", "period", "missing", "weights", "groups", "resamples")
Decision: TypeAlias = Mapping[str, Any]  # plain data; equal ones mean equal numbers


@lru_cache(1 << 12)  # of thousands of files that hold the same names
def _field(name: str) -> str:
    if not name.isidentifier() or name.startswith("_") or iskeyword(name) or len(name) > 200:
        raise ValueError(f"no name of a value: {name[:50]!r}")
    return name


def _array(values: list[Any]) -> list[Any]:
    array = np.asarray(values)  # of lists of unequal lengths: ValueError
    if array.dtype.kind not in "biufU" or array.size > LARGEST_ARRAY or array.ndim > 8:
        raise ValueError(f"no array of up to {LARGEST_ARRAY} numbers or texts")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("holds numbers that are not finite")
    return values


def _harmless(words: list[str]) -> list[str]:
    left = iter(words)
    for word in left:
        if word != "--dense" and (word not in {f"--{name}" for name in HARMLESS} or next(left, None) is None):
            raise ValueError(f"no option of labels with its value: {word[:50]!r}")
    return words


# Empty lists and mappings come from factories: pydantic would copy a default deeply, and there are thousands of runs.
FieldName: TypeAlias = Annotated[str, AfterValidator(_field)]
Array: TypeAlias = Annotated[list[Any], AfterValidator(_array)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)


class SavedFactor(_Part):
    name: Text
    kind: Kind
    size: Count | None
    levels: Annotated[list[Text], Field(max_length=100_000)] = Field(default_factory=list)


class SavedDigests(_Part):
    """Of what was scored, see `unbraid.base.arrays.array_digest`."""

    codes: Digest
    factors: Digest


class SavedInput(_Part):
    """What was scored."""

    path: Text | None
    n_samples: Annotated[int, Field(ge=1, lt=1 << 62)]
    n_codes: Annotated[int, Field(ge=1, le=1_000_000)]
    sha256: SavedDigests | None = None
    of_codes: Annotated[int, Field(ge=1, lt=1 << 62)] | None = None  # scored, of which `n_codes` matter
    factors: Annotated[list[SavedFactor], Field(max_length=100_000)]
    notes: Annotated[list[Text], Field(max_length=1000)] = Field(default_factory=list)
    collapsed: bool = False  # as `Representation.tells_nothing`
    chosen_factors: Annotated[list[Text], Field(max_length=100_000)] = Field(default_factory=list)
    code_names: Annotated[list[Text], Field(max_length=1_000_000)] = Field(default_factory=list)
    options: Annotated[list[Text], Field(max_length=100), AfterValidator(_harmless)] = Field(default_factory=list)


class SavedChance(_Part):
    """What independent noise scores."""

    score: FiniteFloat
    spread: Annotated[FiniteFloat, Field(ge=0)] = 0.0


Share: TypeAlias = Annotated[FiniteFloat, Field(ge=0, le=1)]


class SavedNull(_Part):
    """What moved rows score, and what they are compared with."""

    score: FiniteFloat
    scores: Annotated[list[FiniteFloat], Field(min_length=1, max_length=LARGEST_ARRAY)]
    mean: FiniteFloat
    spread: Annotated[FiniteFloat, Field(ge=0)]
    p: Annotated[FiniteFloat, Field(ge=0, le=1)]
    above: FiniteFloat | None
    moved: Moved = "rows"
    p_per_factor: Annotated[list[Share], Field(max_length=100_000)] | None = None


class SavedInterval(_Part):
    low: FiniteFloat
    high: FiniteFloat
    deviation: Annotated[FiniteFloat, Field(ge=0)]
    bias: FiniteFloat | None = None
    degrees: Annotated[FiniteFloat, Field(ge=1)] | None = None  # files of before it was kept have none


class SavedIntervals(_Part):
    """How far each number may lie from the mean of fresh samples."""

    confidence: Annotated[FiniteFloat, Field(gt=0, lt=1)]
    times: Annotated[int, Field(ge=2, lt=1 << 62)]
    values: Annotated[dict[FieldName, SavedInterval], Field(max_length=1000)]
    per_factor: Annotated[dict[Text, SavedInterval], Field(max_length=100_000)] | None = None
    by_seed: Annotated[dict[FieldName, Annotated[FiniteFloat, Field(ge=0, le=1)]], Field(max_length=1000)] | None = None


class SavedMetric(_Part):
    headline: FieldName
    higher_is_better: bool
    version: Count = 1
    seconds: Annotated[FiniteFloat, Field(ge=0)]
    chance: SavedChance | None = None
    null: SavedNull | None = None
    intervals: SavedIntervals | None = None
    no_interval: Text = ""
    no_null: Text = ""
    no_baselines: Annotated[dict[Text, Text], Field(max_length=1000)] = Field(default_factory=dict)
    baselines: Annotated[dict[Name, FiniteFloat], Field(max_length=1000)] = {}
    values: Annotated[dict[FieldName, FiniteFloat], Field(max_length=1000)]
    per_factor: Annotated[dict[Text, FiniteFloat], Field(max_length=100_000)] | None = None
    notes: Annotated[list[Text], Field(max_length=1000)] = Field(default_factory=list)
    arrays: Annotated[dict[FieldName, Array], Field(max_length=1000)] = Field(default_factory=dict)


class SavedFailure(_Part):
    """A metric that raised an error."""

    reason: Text  # one line
    details: Text = ""  # the traceback


class SavedDecision(_Part):
    """What decided the number of a metric, or its absence; see `unbraid.metrics._shared.provenance`."""

    version: Count | None = None
    seed: Count | None = None
    held_out: Text | None = None
    source: Digest | None = None  # of the user's own functions
    package: Text | None = None  # name and version, of metrics that a package adds
    weights: Digest | None = None  # of rows, where these stand for several
    groups: Digest | None = None  # of rows, of metrics that part them
    code_blocks: Text | None = None  # as the command line takes them, of metrics that read blocks
    factor_blocks: Text | None = None
    factors: Annotated[list[Text], Field(max_length=100_000)] | None = None  # where not all of them were scored


FactorKind: TypeAlias = Literal["own code", "shared code", "copied", "circle", "spread", "absent", "unclear"]
CodeKind: TypeAlias = Literal["dead", "one factor", "several factors", "none of these factors"]
Mixture: TypeAlias = Literal["linear", "curved", ""]


class SavedFactorDiagnosis(_Part):
    kind: FactorKind
    codes: Annotated[list[Count], Field(max_length=100_000)]
    strength: FiniteFloat
    chance: Share
    p: Share
    share: Share
    stability: Share
    mixture: Mixture
    shared_with: Annotated[list[Text], Field(max_length=100_000)]
    measure: Text
    detail: Text
    unwanted: bool
    text: Text


class SavedCodeDiagnosis(_Part):
    kind: CodeKind
    factors: Annotated[dict[Text, Share], Field(max_length=100_000)]


class SavedDiagnosis(_Part):
    """Which factors are in the codes, and where."""

    in_short: Text
    n_samples: Count
    n_codes: Count
    code_names: Annotated[list[Text], Field(max_length=1_000_000)]
    factors: Annotated[dict[Text, SavedFactorDiagnosis], Field(max_length=100_000)]
    codes: Annotated[
        dict[Annotated[str, StringConstraints(pattern="^[0-9]{1,12}$")], SavedCodeDiagnosis],
        Field(max_length=1_000_000),
    ]
    notes: Annotated[list[Text], Field(max_length=1000)]


class SavedScores(_Part):
    """The content of a file of scores, checked."""

    unbraid: Text = ""
    seed: Count
    held_out: Text | None = None
    input: SavedInput
    metrics: Annotated[dict[Name, SavedMetric], Field(max_length=1000)]
    footnotes: Annotated[dict[Text, list[Name]], Field(max_length=1000)] = Field(default_factory=dict)  # of metrics
    skipped: Annotated[dict[Name, Text], Field(max_length=1000)]  # metrics that have no meaning there, and why
    failed: Annotated[dict[Name, SavedFailure], Field(max_length=1000)] = Field(default_factory=dict)
    computed_with: Annotated[dict[Name, SavedDecision], Field(max_length=3000)] = Field(default_factory=dict)
    diagnosis: SavedDiagnosis | None = None

    def decisions(self) -> dict[str, dict[str, Any]]:
        """`computed_with` as plain data, without what a metric does not depend on."""
        return {name: decision.model_dump(exclude_none=True) for name, decision in self.computed_with.items()}


def same(stored: Decision, current: Decision) -> bool:
    """Whether a number that was decided by `kept` is the one wanted, whose code may not be at hand."""
    return {key: value for key, value in stored.items() if key in current or key not in OF_CODE} == dict(current)


def read_scores_file(path: str | Path) -> SavedScores:
    """The content of a file of scores.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it holds none; one line that names the file and the first key that is wrong. Or its checksum is that
            of other content.
    """
    try:
        content = read_whole(path, LARGEST_FILE)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file") from None
    except ValueError as error:
        raise ValueError(f"{path}: not the scores of unbraid ({error})") from None
    try:
        check_content(content)
        scores = SavedScores.model_validate_json(content)
    except ValidationError as error:
        raise ValueError(f"{path}: not the scores of unbraid ({_first(error)})") from None
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    for name, metric in scores.metrics.items():
        if metric.headline not in metric.values:
            raise ValueError(f"{path}: not the scores of unbraid (metrics.{name}: no value {metric.headline!r})")
        if metric.per_factor and not scores.input.factors:
            reason = f"input.factors: none, but metrics.{name} has per_factor"
            raise ValueError(f"{path}: not the scores of unbraid ({reason})")
    return scores


def storable(value: object, *, lines: bool = False) -> str:
    """As a text that a file of scores can hold, on one line unless `lines`."""
    text = str(value) if lines else " ".join(str(value).split())
    return text[:LONGEST_TEXT].encode("utf-8", "replace").decode()


def _first(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(key)[:100] for key in fault["loc"] if key != "[key]")
    return f"{where}: {fault['msg']}" if where else fault["msg"]
