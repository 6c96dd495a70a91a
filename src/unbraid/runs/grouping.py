"""Groups of models by their names, their folders, or what the folders of runs say of them."""

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from unbraid.base.comma_lists import separated
from unbraid.base.suggest import suggestion
from unbraid.files.json_records import read_object
from unbraid.files.run_files import ADDED_CODES, CONFIG
from unbraid.runs.folder import read_folder
from unbraid.runs.foreign_models import config_columns, is_run

UNGROUPED = "-"  # the group of models that lack the column of groups
NUMBERED = re.compile(r"[-_.]?(seed)?[-_.]?\d+$")  # at the end of the names of models that differ in it alone


def group_names(paths: Sequence[Path], by: str) -> list[str]:
    """The group of each model.

    Args:
        paths: files of codes or folders of runs.
        by: "folder", in which it lies; "name", less the number at its end (beta4-0.npy is of beta4); a pattern with
            brackets around the group, such as "(beta[0-9]+)"; a column of runs: family, setting, seed, dataset, steps,
            batch_size or hyper.<name>; of models of other frameworks a key of their configs, such as model.beta, or
            "setting", all that varies but the seed; or a label for each, with commas between.

    Raises:
        ValueError: no such column, no run, a pattern that does not match, or not as many labels as models.
    """
    if by == "folder":
        return [path.absolute().parent.name or "." for path in paths]
    if by == "name":
        return [NUMBERED.sub("", called) or called for called in map(name_of, paths)]
    if "(" in by:
        return [_matched(path, by) for path in paths]
    if "," in by:
        labels = separated(by)
        if len(labels) != len(paths):
            raise ValueError(f"--by: {len(labels)} labels for {len(paths)} files; or say folder, or name")
        return labels
    return _columns(paths, by)


def run_columns(path: Path) -> dict[str, Any]:
    """What tells a run from others, by the names of the columns of results; of other frameworks, by those of configs.

    Raises:
        ValueError: a config is damaged.
    """
    if not is_run(path):
        return config_columns(path)
    if (path / ADDED_CODES).is_file():
        about = read_object(path / CONFIG)
        own = {name: about[name] for name in ("family", "setting", "seed")}
        return own | {f"hyper.{name}": value for name, value in about.get("hyperparameters", {}).items()}
    config, _ = read_folder(path)
    hyper = config["hyperparameters"]
    return {
        "family": config["family"], "setting": ", ".join(f"{key}={value}" for key, value in sorted(hyper.items())),
        "seed": config["seed"], "dataset": config["dataset"]["name"], "steps": config["steps"],
        "batch_size": config["batch_size"], **{f"hyper.{name}": value for name, value in hyper.items()},
    }  # fmt: skip


def name_of(path: Path) -> str:
    """What a model is called: as its folder, or as its file without the suffix."""
    return path.name if path.is_dir() else path.stem


def is_seed(column: str) -> bool:
    """Whether a column of a config is that of the seed: seed, random_seed, train.seed, ..."""
    return re.split(r"[._]", column.lower())[-1] == "seed"


def varying(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns of configs that are not the same of all models that have a config.

    Text that is another of every model, such as a name or a path, is left out where the models have several seeds.
    """
    found = list(filter(None, found))
    values = {name: [repr(columns.get(name)) for columns in found] for name in dict.fromkeys(chain(*found))}
    varied = [name for name, own in values.items() if len(set(own)) > 1]
    if not any(is_seed(name) for name in varied):
        return varied
    own_text = {
        name for name in varied
        if len(set(values[name])) == len(found) and all(isinstance(each.get(name), str) for each in found)
    }  # fmt: skip
    return [name for name in varied if name not in own_text]


def settings(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """What varies of each model but the seed, as "lr=0.001, model.beta=4"."""
    names = [name for name in varying(found) if not is_seed(name)]
    return [", ".join(f"{name}={columns[name]}" for name in names if name in columns) or "-" for columns in found]


def _matched(path: Path, pattern: str) -> str:
    try:
        found = re.search(pattern, str(path))
    except re.error as error:
        raise ValueError(f"--by {pattern}: not a pattern ({error})") from None
    if found is None or not found.groups():
        raise ValueError(f"--by {pattern}: it does not match {path}")
    return "-".join(part for part in found.groups() if part)


def _columns(paths: Sequence[Path], by: str) -> list[str]:
    """What a column says of each run; "-" of runs that lack it, such as a hyperparameter of other families."""
    for path in paths:
        if not path.is_dir():
            others = "say folder, name, or a pattern such as '(beta[0-9]+)'"
            raise ValueError(f"--by {by}: {path} is no run, whose columns have names; {others}")
    found = [run_columns(path) for path in paths]
    if by == "setting" and not any(by in columns for columns in found):
        return settings(found)
    if not any(by in columns for columns in found):
        raise ValueError(f"--by {by}: no run has such a column; {suggestion(by, dict.fromkeys(chain(*found)))}")
    return [str(columns.get(by, UNGROUPED)) for columns in found]
