"""Where files of results lie, and how they are read and written: FOLDER/ORG__MODEL/REVISION/STUDY.json."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unbraid.results.schema import Results, in_order
from unbraid.storage.json_records import read_record


@dataclass(frozen=True)
class Entry:
    """One number, and the file that it stands in."""

    model: str
    revision: str
    study: str
    score: Mapping[str, Any]

    @property
    def org(self) -> str:
        """The paper, or who measured."""
        return self.model.partition("__")[0]


def paths(folder: Path) -> list[Path]:
    """All files of results in a folder.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder; --folder names that of the results")
    found = (path for path in folder.rglob("*.json") if not path.name.startswith("."))
    return sorted(path for path in found if path.is_file())


def read(path: Path) -> dict[str, Any]:
    """The content of one.

    Raises:
        ValueError: it holds no results; one line that names the file and the key.
    """
    return read_record(path, Results)


def read_all(folder: Path) -> list[dict[str, Any]]:
    """The contents of all."""
    return [read(path) for path in paths(folder)]


def entries(contents: list[dict[str, Any]]) -> Iterator[Entry]:
    """All numbers in some of them."""
    for each in contents:
        for score in each["scores"]:
            yield Entry(each["model"], each["revision"], each["study"], score)


def path_of(folder: Path, model: str, revision: str, study: str) -> Path:
    """Where the results of a study of a model lie."""
    return folder / model / revision / f"{study}.json"


def text_of(content: Mapping[str, Any]) -> str:
    """A file's text."""
    return json.dumps(in_order(content), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
