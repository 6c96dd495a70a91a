"""Folders of models trained by other frameworks: their files of codes and labels, and their configs.

Files are found by their usual names, or by a pattern. Nothing is unpickled or executed.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from unbraid.data import READABLE
from unbraid.files.json_records import LARGEST, LONGEST, read_object
from unbraid.files.run_files import ADDED_CODES, CONFIG, CURVES, SNAPSHOTS, STATUS, WORKING
from unbraid.files.tables import TABLES
from unbraid.files.whole_files import read_whole

CODES = (
    "codes", "code", "representation", "representations", "rep", "reps", "embedding", "embeddings", "encodings",
    "latent", "latents", "z", "zs", "mu", "mus", "mean", "means",
)  # fmt: skip
LABELS = ("labels", "label", "factors", "factor", "targets", "ground_truth")
CONFIGS = ("config.yaml", "config.yml", "config.json", "hparams.yaml", "hparams.json", ".hydra/config.yaml",
           "args.json", "args.yaml", "params.json", "params.yaml")  # fmt: skip
FITTED, FITTED_IMAGES = "plan.yaml", Path("images", "images.npy")  # in the folder of `unbraid fit`
OURS = {"format", "family", "hyperparameters", "dataset", "seed"}  # in config.json of a run of `unbraid.train`
DEEPEST, MOST_COLUMNS = 4, 1_000


def is_run(path: Path) -> bool:
    """Whether a folder is that of a run of `unbraid.train`, finished or not, or of codes added to a study."""
    if path.name.endswith(WORKING) or any((path / name).exists() for name in (STATUS, CURVES, SNAPSHOTS)):
        return True
    config = path / CONFIG
    if not config.is_file():
        return False
    try:
        known = read_object(config).keys()
    except ValueError:
        return not foreign_files(path, CODES)  # damaged
    return known >= OURS or ({"family", "setting", "seed"} <= known and (path / ADDED_CODES).is_file())


def is_fitted(folder: Path) -> bool:
    """Whether a folder is that of `unbraid fit`, which contains studies and a model but is neither."""
    return (folder / FITTED).is_file() and (folder / "search" / "study.yaml").is_file()


def check_not_fitted(folder: Path) -> None:
    """Raises ValueError for the folder of `unbraid fit`."""
    if is_fitted(folder):
        folders = " or ".join(str(folder / name) for name in ("model", "study", "search") if (folder / name).is_dir())
        raise ValueError(f"{folder} is a folder of `unbraid fit`, neither a model nor a study; give {folders}")


def fitted_images(run: Path, name: str) -> Path | None:
    """The images in the folder of `unbraid fit` around a run that was trained on them; the folder may have moved."""
    for folder in run.resolve().parents[:3]:
        images = folder / FITTED_IMAGES
        is_fit_folder = (folder / FITTED).is_file() and images.is_file() and images.resolve() == images
        if is_fit_folder and Path(name).parts[-2:] == images.parts[-2:]:
            return images
    return None


def models_below(
    folder: Path, pattern: str | None = None, depth: int = DEEPEST, *, failed: dict[str, Exception] | None = None
) -> list[Path]:
    """The folders of models in a folder, by name: itself, or those below it that hold a file of codes.

    Args:
        folder: to search; hidden entries are skipped.
        pattern: for names of files of codes, such as "z_*.npy"; default the usual names.
        depth: levels of folders to search.
        failed: is filled with folders without a model, next to others with one, and the reasons.

    Raises:
        ValueError: a folder holds more than one file of codes, and there is no `failed`.
    """
    if code_file(folder, pattern) is not None:
        return [folder]
    if not depth:
        return []
    models: list[Path] = []
    for inner in sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith(".")):
        if is_run(inner):
            continue
        broken: dict[str, Exception] = {}
        try:
            inside = models_below(inner, pattern, depth - 1, failed=None if failed is None else broken)
        except (ValueError, OSError) as error:
            if failed is None:
                raise
            failed[str(inner)] = error
            continue
        models += inside
        if failed is not None:
            ambiguous = {path: error for path, error in broken.items() if isinstance(error, ValueError)}
            failed |= broken if inside else ambiguous or {str(inner): no_models(inner, pattern)}
    return models


def code_file(folder: Path, pattern: str | None = None) -> Path | None:
    """The file of codes in the folder of a model; None where there is none.

    Raises:
        ValueError: there are several, or the pattern is not valid.
    """
    if pattern is None:
        candidates = foreign_files(folder, CODES)
    else:
        try:
            files = sorted(folder.glob(pattern))
        except (ValueError, NotImplementedError):
            raise ValueError(f"--codes {pattern}: no pattern of file names, such as 'z_*.npy'") from None
        candidates = [file for file in files if file.is_file() and file.stem.lower() not in LABELS]
    if len(candidates) > 1:
        names = ", ".join(os.path.relpath(file, folder) for file in candidates[:4])
        several = "several files" if pattern is None else f"{len(candidates)} files that --codes {pattern} names"
        how = "name one by --codes z.npy (unbraid score and rank), or give the file itself"
        raise ValueError(f"{folder}: {several} may hold the codes ({names}); {how}")
    return candidates[0] if candidates else None


def code_path(path: Path, pattern: str | None = None) -> Path:
    """The file of codes in the folder of a model of another framework; a file, or a run of `unbraid.train`, itself.

    Raises:
        FileNotFoundError: there is none in the folder; the message says which names were searched for.
        ValueError: as `code_file`.
    """
    if not path.is_dir() or is_run(path):
        return path
    file = code_file(path, pattern)
    if file is None:
        raise no_models(path, pattern)
    return file


def no_models(folder: Path, pattern: str | None = None) -> FileNotFoundError:
    """The error for a folder that neither is a model nor contains one."""
    looked = f"a file {pattern}" if pattern else "codes.npy, embeddings.npz, z.csv or the like"
    another = "; --codes 'latent_*.npy' (unbraid score and rank) names another file, or give the file itself"
    how = "" if pattern else another
    return FileNotFoundError(f"{folder}: neither it nor a folder in it holds {looked}{how}")


def label_file(folder: Path, codes: Path) -> Path | None:
    """The table of labels beside the codes of a model, in its folder, or in the folder above; None if there is none.

    Raises:
        ValueError: there are several.
    """
    for place in dict.fromkeys((codes.parent, folder, folder.absolute().parent)):
        tables = foreign_files(place, LABELS)
        if len(tables) > 1:
            names = ", ".join(table.name for table in tables)
            raise ValueError(f"{place}: several files may hold the labels ({names}); name one by --labels")
        if tables:
            return tables[0]
    return None


def foreign_files(folder: Path, stems: Sequence[str]) -> list[Path]:
    """Files of arrays or tables with one of these stems."""
    suffixes = {*READABLE, *TABLES}
    return sorted(
        file
        for file in folder.iterdir()
        if file.suffix.lower() in suffixes and file.stem.lower() in stems and file.is_file()
    )


def config_columns(folder: Path) -> dict[str, Any]:
    """The config of a model, flattened: {"model.beta": 4, "seed": 0}; empty without one.

    Raises:
        ValueError: the file is not valid YAML or JSON; the message names it.
    """
    path = next((folder / name for name in CONFIGS if (folder / name).is_file()), None)
    if path is None:
        return {}
    if path.suffix == ".json":
        content: Any = read_object(path)
    else:
        from unbraid.files.yaml_files import parse_yaml

        try:
            text = read_whole(path, LARGEST).decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{path} is not text in UTF-8") from None
        except (OSError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from None
        content = parse_yaml(text, str(path), tags=True)
    columns = dict(_flat(content)) if isinstance(content, Mapping) else {}
    if len(columns) > MOST_COLUMNS:
        raise ValueError(f"{path}: {len(columns):,} values; the config of a model has {MOST_COLUMNS:,} at most")
    return columns


def _flat(content: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping) and "value" in value and value.keys() <= {"value", "desc"}:  # of Weights & Biases
            value = value["value"]
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            yield from _flat(dict(enumerate(value)), f"{name}.")
        elif value is not None:
            if isinstance(value, bool):
                value = str(value).lower()  # as it is written; a column of them is of text
            yield name, value if isinstance(value, int | float) else str(value)[:LONGEST]
