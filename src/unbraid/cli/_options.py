"""Options that several commands have, each defined once, and how the texts of options are read."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from math import pi
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

import typer

from unbraid.base.comma_lists import listed
from unbraid.base.suggest import one_line
from unbraid.files.trust import is_code

if TYPE_CHECKING:
    from unbraid.runs.labelled_codes import Labels
    from unbraid.scoring.score_data import Confidence

STDOUT = Path("-")
# Headings of the options of a command that has many.
LABELS, CODES, HOW_SURE, OUTPUT, TRUST = "Labels", "Codes", "How sure", "Output", "Trust"


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command as Typer takes it: an argument that is a dataclass stands for its fields, which are options."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(command).parameters.values():
        if is_dataclass(parameter.annotation):
            group: Any = parameter.annotation
            groups[parameter.name] = group
            for option in inspect.signature(group).parameters.values():
                (declared,) = option.annotation.__metadata__
                declared.rich_help_panel = declared.rich_help_panel or getattr(group, "heading", None)
                parameters.append(option)
        else:
            parameters.append(parameter)

    @wraps(command)
    def wrapper(**values: Any) -> Any:
        made = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return command(**values, **made)

    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    wrapper.__signature__ = inspect.Signature(keywords)  # pyright: ignore[reportAttributeAccessIssue]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords}
    return wrapper


def check_output(option: str, path: Path, *suffixes: str) -> Path:
    """The path itself; raises where a file of this name cannot be written."""
    if path.suffix not in suffixes:
        raise ValueError(f"{option} {path}: the name must end in {' or '.join(suffixes)}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{option} {path}: the folder {path.parent} does not exist")
    return path


def _file(text: str) -> Any:
    return typer.Option(metavar="FILE", help=text, rich_help_panel=OUTPUT)


# Options that name files, by the suffix that these must have.
OPTIONS = {".csv": "csv", ".tex": "latex", ".md": "markdown", ".json": "json", ".html": "html"}


@dataclass(frozen=True)
class Files:
    """Files in which a command writes what it shows; - is the terminal.

    Raises:
        ValueError: another suffix, or - for two of them.
        FileNotFoundError: there is no such folder.
    """

    csv: Annotated[Path | None, _file("Write the table to this .csv file; - prints it.")] = None
    latex: Annotated[Path | None, _file("Write the table to this .tex file (LaTeX); - prints it.")] = None
    markdown: Annotated[Path | None, _file("Write the table to this .md file (Markdown); - prints it.")] = None
    json: Annotated[Path | None, _file("Write everything to this .json file; - prints it.")] = None

    def __post_init__(self) -> None:
        # Minutes of work should not end in a file that cannot be written.
        for suffix, path in self.by_suffix.items():
            if path != STDOUT:
                check_output(f"--{OPTIONS[suffix]}", path, suffix)
        printed = [suffix for suffix, path in self.by_suffix.items() if path == STDOUT]
        if ".html" in printed or len(printed) > 1:
            raise ValueError("- prints one of --csv, --latex, --markdown and --json; name files for the others")

    @property
    def by_suffix(self) -> dict[str, Path]:
        """The files that options name."""
        paths = {suffix: getattr(self, option, None) for suffix, option in OPTIONS.items()}
        return {suffix: path for suffix, path in paths.items() if path is not None}

    @property
    def printed(self) -> bool:
        """Whether one of them is printed, in place of what the terminal shows."""
        return STDOUT in self.by_suffix.values()


@dataclass(frozen=True)
class FilesAndPage(Files):
    """Files of a command that has a page."""

    html: Annotated[Path | None, _file("Write one standalone page to this .html file.")] = None


LabelTable: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=LABELS,
        help="Table of labels (.csv, .parquet, .npz, .npy) with one row per row of codes, for codes without "
        "factors in their file.",
    ),
]
Kinds: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=KIND,...",
        rich_help_panel=LABELS,
        help="Kinds of factors: categorical, ordinal, continuous or cyclic. Others are guessed, with a note.",
    ),
]


@dataclass(frozen=True)
class LabelOptions:
    """A table of labels, and what describes them."""

    heading: ClassVar = LABELS

    labels: LabelTable = None
    key: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column with the names of the rows, in both the codes and --labels; rows are matched by it.",
        ),
    ] = None
    kinds: Kinds = None
    period: Annotated[
        str | None, typer.Option(metavar="NAME=NUMBER,...", help="Period of factors that are angles, such as hue=360.")
    ] = None
    missing: Annotated[
        str | None, typer.Option(metavar="VALUE,...", help="Values that mean 'missing', besides empty cells and NaN.")
    ] = None

    def read(self, factors: Sequence[str] | None = None, **further: Any) -> "Labels":
        """The labels that these options describe."""
        from unbraid.runs.labelled_codes import Labels

        return Labels(
            table=self.labels, key=self.key, columns=factors, kinds=kinds_of(self.kinds),
            period=_numbers("--period", self.period), missing=_values(self.missing), **further,
        )  # fmt: skip


@dataclass(frozen=True)
class ScoredLabels(LabelOptions):
    """Also columns that are no factors."""

    unwanted: Annotated[
        str | None,
        typer.Option(
            metavar="FACTOR,...",
            help="Factors that should not be readable from the codes, such as batch. Metrics do not see them; "
            "unwanted(batch) is how well a linear classifier predicts it; 0 is best.",
        ),
    ] = None
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of weights: how many rows each row stands for. It is not scored as a factor."
        ),
    ] = None
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of groups of dependent rows: trial, animal, video or session. It is not scored as a factor.",
        ),
    ] = None

    def read(self, factors: Sequence[str] | None = None, **further: Any) -> "Labels":
        columns = {"weights": self.weights, "groups": self.groups, "unwanted": listed(self.unwanted)}
        return super().read(factors, **columns, **further)


# What is measured.
Metrics: TypeAlias = Annotated[str, typer.Option(help="Comma-separated metrics and presets (see `unbraid metrics`).")]
Seed: TypeAlias = Annotated[int, typer.Option(help="Random seed; the same seed gives the same numbers.")]
Resamples: TypeAlias = Annotated[
    int | None,
    typer.Option(
        help="Number of subsamples for the intervals; default 50 to 100, or 10 for metrics that train.",
        rich_help_panel=HOW_SURE,
    ),
]
Embedding: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--codes",
        metavar="KEY|PATTERN",
        rich_help_panel=CODES,
        help="For an .h5ad file: embedding in obsm, such as X_scVI (for score several: X_pca,X_scVI); --factors names "
        "columns of obs. For folders of models: the file of codes in each, such as z.npy or 'latent_*.npy'; default "
        "the usual names.",
    ),
]
FACTORS = (
    "Comma-separated factors to score against; default all, of a table without columns that number or name rows or "
    "groups. A name with a comma in it stands in double quotes."
)

# How models are trained.
CheckpointEvery: TypeAlias = Annotated[float, typer.Option(help="Seconds between checkpoints; 0 saves every step.")]
Device: TypeAlias = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Estimate the number of runs, their time and disk space; write nothing.")
]

# A function in place of a metric.
LowerIsBetter: TypeAlias = Annotated[
    bool, typer.Option("--lower-is-better", help="For a function of your own: lower is better.")
]

# What is compared, of a study.
StudyFolder: TypeAlias = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder of a study, as `unbraid study run` makes it.")
]


def _checked(names: list[str] | None) -> list[str] | None:
    for name in names or ():
        if not is_code(name):
            raise ValueError(f"--trust-code {name}: write package.module:function")
    return names


TrustCode = Annotated[
    list[str] | None,
    typer.Option(
        "--trust-code",
        rich_help_panel=TRUST,
        metavar="MODULE:FUNCTION",
        help="Allow the folder to run this function, which it names; may be repeated.",
        callback=_checked,
    ),
]
TrustData = Annotated[
    list[str] | None,
    typer.Option(
        "--trust-data",
        rich_help_panel=TRUST,
        metavar="PATH",
        help="Allow the folder to read the images at this path, which it names; may be repeated.",
    ),
]


@dataclass(frozen=True)
class Trust:
    """What a folder may run or read."""

    trust_code: TrustCode = None
    trust_data: TrustData = None

    @property
    def names(self) -> list[str]:
        return [*(self.trust_code or ()), *(self.trust_data or ())]


def pair(option: str, text: str, form: str = "NAME=VALUE", *, last: bool = False) -> tuple[str, str]:
    """The two sides of NAME=VALUE, which part at the first =, or at the last one where names may hold some."""
    name, equals, value = (part.strip() for part in (text.rpartition("=") if last else text.partition("=")))
    if not (name and equals and value):
        raise ValueError(f"{option} {text}: write {form}")
    return name, value


def pairs(option: str, texts: Iterable[str], form: str = "NAME=VALUE", *, last: bool = False) -> dict[str, str]:
    """The two sides of each NAME=VALUE, as `pair` has them.

    Raises:
        ValueError: one is written otherwise, or a name is given twice.
    """
    values: dict[str, str] = {}
    for text in texts:
        name, value = pair(option, text, form, last=last)
        if name in values:
            raise ValueError(f"{option} {text}: {name} is given twice")
        values[name] = value
    return values


def yaml_options(option: str, texts: list[str] | None) -> dict[str, Any]:
    """Options of a dataset, each given as OPTION=VALUE."""
    import yaml

    options = pairs(option, texts or (), "OPTION=VALUE")
    for name in options.keys() & {"name", "progress"}:
        raise ValueError(f"{option} {name}={options[name]}: a dataset has no such option")
    read: dict[str, Any] = {}
    for name, value in options.items():
        try:
            read[name] = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date that is none
            reason = one_line(getattr(error, "problem", None) or error)  # without the place, in a text of one line
            raise ValueError(f"{option} {name}={value}: cannot be read as YAML ({reason})") from None
    return read


def settings_of(option: str, texts: list[str] | None) -> dict[str, float | int | str]:
    """What an option that may be repeated gives as NAME=VALUE."""
    return {name: number_or_text(value) for name, value in pairs(option, texts or ()).items()}


def number_or_text(text: str) -> float | int | str:
    """A whole number, a number, or the text itself."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def refuse(options: Mapping[str, Any], why: str) -> None:
    """Raises ValueError for the first option that was given, though it does not apply."""
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"--{name.replace('_', '-')} {why}")


def interval_of(confidence: float | None, resamples: int | None) -> "Confidence | None":
    """What --confidence and --resamples say, as `unbraid.score` takes it."""
    if resamples is None:
        return confidence
    if confidence is None:
        raise ValueError("--resamples is for intervals: give --confidence, such as .95")
    from unbraid.base.arguments import check_whole

    check_whole("--resamples", resamples, 2)
    return confidence, resamples


def kinds_of(text: str | None) -> dict[str, str] | None:
    """What --kinds names."""
    return _by_name("--kinds", text)


def _by_name(option: str, text: str | None) -> dict[str, str] | None:
    return None if text is None else pairs(option, listed(text), "NAME=VALUE, with commas between", last=True)


def _numbers(option: str, text: str | None) -> dict[str, float] | None:
    numbers: dict[str, float] = {}
    for name, value in (_by_name(option, text) or {}).items():
        times_pi = value.removesuffix("pi").rstrip("*") if value.endswith("pi") else None
        try:
            numbers[name] = float(value) if times_pi is None else float(times_pi or 1) * pi
        except ValueError:
            raise ValueError(f"{option} {name}={value}: {value!r} is not a number, such as 360 or 2pi") from None
    return numbers or None


def _values(text: str | None) -> list[float | str] | None:
    """Each as text and, where it is one, as a number."""
    if text is None:
        return None
    values: list[float | str] = []
    for part in listed(text):
        if re.fullmatch(r"[^=]+=[^=]+", part):  # no label is so, and rows would stay that should not
            raise ValueError(f"--missing {part}: write the value alone, such as -1; it counts for all factors")
        values.append(part)
        with suppress(ValueError):
            values.append(float(part))
    return values
