"""What is known of a dataset before it is opened: its options, its files, and what is stored of it."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unbraid.base.docstrings import argument_texts
from unbraid.data import FactorSpace, Space
from unbraid.data.image_dataset import FactorDataset, ImageShape
from unbraid.datasets.dataset_table import DATASETS
from unbraid.datasets.official_files import OfficialFile, files_there

_NOT_OPTIONS = {"root", "progress"}
COMMON_OPTIONS = {
    "shrink": (1, "2 makes images half as high and wide."),
    "without": (None, "images to leave out: a condition on the factors, such as 'scale > 3 and position_x == 0'."),
}


def stored(name: str, root: Path) -> list[dict[str, Any]]:
    """The cache folders of a dataset with their bytes, one per version and choice of options."""
    pattern = re.compile(re.escape(name) + r"-v\d+(-|$)")
    folders = [path.parent for path in sorted(root.glob("*/meta.json")) if pattern.match(path.parent.name)]
    return [
        {"folder": str(folder), "bytes": sum(file.stat().st_size for file in folder.iterdir())} for folder in folders
    ]


def official_path(name: str, root: Path) -> Path | None:
    """Where the first of a dataset's official files is, if any is there."""
    return next((path for _, path in files_there(_usual_files(name), root)), None)


def _usual_files(name: str) -> tuple[OfficialFile, ...]:
    """Those that are read unless an option asks for others."""
    return tuple(file for file in DATASETS[name].files if not file.option)


def missing_files(name: str, root: Path) -> list[OfficialFile]:
    """The official files that have to be got before a dataset can be read: one of its forms, and what goes with it."""
    files = _usual_files(name)
    present = {file.name for file, _ in files_there(files, root)}
    forms = [file for file in files if not file.companion]
    return [
        *(forms[:1] if not any(file.name in present for file in forms) else ()),
        *(file for file in files if file.companion and file.name not in present),
    ]


def state(name: str, root: Path) -> str:
    """One phrase: what stands between the user and the images."""
    row = DATASETS[name]
    if stored(name, root):
        return "stored"
    if row.files:
        missing = missing_files(name, root)
        if missing:
            return f"needs {missing[0].name}" if official_path(name, root) else "needs its file"
        present = files_there(_usual_files(name), root)
        short = any(file.size and path.is_file() and path.stat().st_size < file.size for file, path in present)
        return "file is incomplete" if short else "file is there"
    return "drawn here"


def options_of(opener: Callable[..., FactorDataset]) -> dict[str, tuple[Any, str]]:
    """Default and description of each option of a dataset."""
    text = argument_texts(opener)
    return {
        name: (parameter.default, text.get(name, ""))
        for name, parameter in inspect.signature(opener).parameters.items()
        if name not in _NOT_OPTIONS
    }


def describe(name: str, root: Path) -> dict[str, Any]:
    """Everything that is known of a dataset, ready for JSON."""
    row = DATASETS[name]
    return {
        "name": name,
        "title": row.title,
        "rendered": row.rendered,
        **describe_content(row.space, len(row), row.image_shape),
        "source": row.source,
        "licence": row.licence,
        "package": DATASETS.package_of(name),
        "notes": list(row.notes),
        "options": {
            option: {"default": default, "help": text}
            for option, (default, text) in (options_of(row.open) | COMMON_OPTIONS).items()
        },
        "files": [
            {
                "name": file.name,
                "address": file.address,
                "bytes": file.size,
                "checksum": file.checksum or None,
                "downloads": file.downloads,
                "how": file.how or None,
                "option": file.option or None,
            }
            for file in row.files
        ],
        "state": state(name, root),
        "file": str(path) if (path := official_path(name, root)) else None,
        "stored": stored(name, root),
    }


def describe_content(space: Space, n_images: int, image_shape: ImageShape) -> dict[str, Any]:
    """Images and factors, ready for JSON."""
    grid = isinstance(space, FactorSpace)
    values = [listed or None for listed in space.values or [()] * len(space.names)]
    return {
        "n_images": n_images,
        "image_shape": list(image_shape),
        "grid": grid,
        "factors": [
            {"name": name, "kind": kind, "size": size or None, "values": None if listed is None else list(listed)}
            for name, kind, size, listed in zip(space.names, space.kinds, space.sizes, values, strict=True)
        ],
    }
