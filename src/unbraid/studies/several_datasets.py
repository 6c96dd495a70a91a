"""Several datasets in one study: a folder with an ordinary study of each.

Each of them is a complete study: it can be opened, ranked, shown, continued and shared alone.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, field_validator

from unbraid.base.types import DataFrame
from unbraid.files.trust import Untrusted
from unbraid.files.yaml_files import read_text, written
from unbraid.scoring.result_columns import together
from unbraid.studies import store
from unbraid.studies.schema import (
    CompositionalSection,
    Count,
    MetricNames,
    Section,
    Seeds,
    StudyConfig,
    ZeroShotSection,
    checked,
    mapping,
)
from unbraid.studies.snapshot import StudySnapshot
from unbraid.studies.study_record import StudyPart
from unbraid.studies.study_table import ordered, results

MOST = 1000  # datasets
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
# What lies in the folder of a study.
RESERVED = frozenset(
    (store.YAML, store.ABOUT, store.RESULTS, store.RUNS, store.FAILED, store.ADDED, store.BASELINES,
     "generalisation", "tracking", "udr", "report.html")
)  # fmt: skip


class PartSection(Section):
    """One of `datasets`: its name and options, a label, and keys that override those of the study."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str
    label: str | None = None
    seeds: Seeds | None = None
    steps: Count | None = None
    batch_size: Count | None = None
    metrics: MetricNames | None = None
    compositional: CompositionalSection | None = None
    zero_shot: ZeroShotSection | None = None

    @property
    def label_or_name(self) -> str:
        """Its label, by default its name."""
        return self.name if self.label is None else self.label


OWN = tuple(name for name in PartSection.model_fields if name not in ("name", "label"))


class PartsSection(Section):
    """The key `datasets` alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    datasets: Annotated[list[PartSection], Field(min_length=1, max_length=MOST)]

    @field_validator("datasets", mode="before")
    @classmethod
    def _short_forms(cls, value: Any) -> Any:
        return [_long(section) for section in value] if isinstance(value, list) else value


def read(path: Path) -> tuple[StudyConfig, str, list[StudyPart]]:
    """The study in a YAML file, its text, and that of each of its datasets, without folders yet.

    Of several datasets, the study is that of the first, but for what that has in place of the study's own keys.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: not YAML, or a key or value that a study does not have, with its path; or a label is no name of a
            folder, there twice, or kept for something else.
    """
    text, where = read_text(path), str(path)
    content = mapping(text, where)
    if "datasets" not in content:
        config = checked(StudyConfig, content, where)
        return config, text, [StudyPart(config, None, text)]
    if "dataset" in content:
        raise ValueError(f"{where}: dataset and datasets are both given; write one of them")
    sections = checked(PartsSection, content, where).datasets
    _check_labels(sections, where)
    entries = [_long(entry) for entry in content["datasets"]]
    shared = {name: value for name, value in content.items() if name != "datasets"}
    images = [{name: value for name, value in entry.items() if name not in (*OWN, "label")} for entry in entries]
    whole = checked(StudyConfig, {**shared, "dataset": images[0]}, where)
    parts = []
    for section, own, dataset in zip(sections, entries, images, strict=True):
        mine = {key: own[key] for key in OWN if own.get(key) is not None}
        one = {**shared, **mine, "name": f"{whole.name} {section.label_or_name}", "dataset": dataset}
        parts.append(StudyPart(checked(StudyConfig, one, where), None, written(one), section.label_or_name))
    return whole, text, parts


def _long(value: Any) -> Any:
    """`datasets: [sprites]` says the same as with {name: ...}."""
    return {"name": value} if isinstance(value, str) else value


def _check_labels(sections: Sequence[PartSection], where: str) -> None:
    """Raises ValueError for a label that cannot be the name of a folder of its own."""
    seen: dict[str, int] = {}
    for number, section in enumerate(sections):
        label, path = section.label_or_name, f"{where}: datasets[{number}].label"
        if not NAME.fullmatch(label):
            how = "give one" if section.label is None else "write letters, digits, '.', '_' and '-'"
            raise ValueError(f"{path}: {label[:100]!r} cannot be the name of a folder; {how}")
        if label.casefold() in RESERVED or label.endswith(".part"):
            raise ValueError(f"{path}: {label!r} is a reserved name in the folder of a study; give another")
        if (first := seen.setdefault(label.casefold(), number)) != number:
            raise ValueError(f"{path}: {label!r} is that of datasets[{first}] as well; give each its own")


@contextmanager
def naming(number: int, label: str) -> Iterator[None]:
    """Adds the dataset to the message of ValueErrors raised inside; not in a study of one dataset, without label.

    Args:
        number: index in `datasets`.
        label: of the dataset.
    """
    try:
        yield
    except Untrusted:
        raise
    except ValueError as error:
        if not label:
            raise
        raise ValueError(f"datasets[{number}] ({label}): {error}") from error


def check_home(folder: Path) -> None:
    """Raises ValueError if the folder holds something else than a study of several datasets."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ValueError(f"{folder} is a file; give a folder")
    if (folder / store.ABOUT).exists() or (folder / store.RUNS).exists():
        raise ValueError(f"{folder} holds a study of one dataset; give a new folder to one of several")
    begun = (folder / store.YAML).is_file() and "datasets" in mapping(
        read_text(folder / store.YAML), str(folder / store.YAML)
    )
    foreign = [path for path in folder.iterdir() if not path.name.startswith(".") and path.suffix != ".yaml"]
    if foreign and not begun:
        raise ValueError(f"{folder} holds something else than a study of several datasets; give a new folder")


def all_results(snapshots: Sequence[StudySnapshot]) -> DataFrame:
    """The results of a study, from those of each of its datasets."""
    return joined({snapshot.label: results(snapshot) for snapshot in snapshots})


def joined(tables: Mapping[str, DataFrame]) -> DataFrame:
    """Results of several datasets as one table with a column `label` before the dataset; of one, under "", as they are.

    Args:
        tables: by label.
    """
    frame = together(tables)
    if "" in tables:
        return frame
    label, *names = map(str, frame.columns)
    place = names.index("dataset")
    return frame.reindex(columns=ordered([[*names[:place], label, *names[place:]]]))
