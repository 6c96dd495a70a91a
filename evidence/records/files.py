"""Where files of results lie, and how they are read and written: FOLDER/ORG__MODEL/REVISION/STUDY.json."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from records.schema import Results, in_order
from unbraid.files.json_records import read_record

FOLDER = Path(__file__).parents[1] / "results"


def paths(folder: Path) -> list[Path]:
    """All files of results in a folder.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder")
    found = (path for path in folder.rglob("*.json") if not path.name.startswith("."))
    return sorted(path for path in found if path.is_file())


def read(path: Path) -> dict[str, Any]:
    """The content of one.

    Raises:
        ValueError: it holds no results; one line that names the file and the key.
    """
    return read_record(path, Results)


def path_of(folder: Path, model: str, revision: str, study: str) -> Path:
    """Where the results of a study of a model lie."""
    return folder / model / revision / f"{study}.json"


def text_of(content: Mapping[str, Any]) -> str:
    """A file's text."""
    return json.dumps(in_order(content), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
