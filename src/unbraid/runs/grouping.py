"""Groups of models by their names, their folders, or the configs of runs."""

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
NUMBERED = re.compile(r"[-_.]?(seed)?[-_.]?\d+$")  # the number at the end of a model's name


def group_names(paths: Sequence[Path], by: str) -> list[str]:
    """The group of each model.

    Args:
        paths: files of codes or folders of runs.
        by: "folder": the parent folder; "name": the name without the number at its end (beta4-0.npy is of beta4); a
            pattern with parentheses around the group, such as "(beta[0-9]+)"; a column of runs: family, setting, seed,
            dataset, steps, batch_size or hyper.<name>; for models of other frameworks a key of their configs, such as
            model.beta, or "setting", all that varies but the seed; or a label for each model, separated by commas.

    Raises:
        ValueError: an unknown column, a path that is no run, a pattern without a match, or a wrong number of labels.
    """
    if by == "folder":
        return [path.absolute().parent.name or "." for path in paths]
    if by == "name":
        return [NUMBERED.sub("", name) or name for name in map(name_of, paths)]
    if "(" in by:
        return [_matched(path, by) for path in paths]
    if "," in by:
        labels = separated(by)
        if len(labels) != len(paths):
            raise ValueError(f"--by: {len(labels)} labels for {len(paths)} files; or say folder, or name")
        return labels
    return _columns(paths, by)


def run_columns(path: Path) -> dict[str, Any]:
    """Settings of a run by the names of results' columns; for other frameworks, the entries of its config.

    Raises:
        ValueError: a config is damaged.
    """
    if not is_run(path):
        return config_columns(path)
    if (path / ADDED_CODES).is_file():
        record = read_object(path / CONFIG)
        own = {name: record[name] for name in ("family", "setting", "seed")}
        return own | {f"hyper.{name}": value for name, value in record.get("hyperparameters", {}).items()}
    config, _ = read_folder(path)
    hyper = config["hyperparameters"]
    return {
        "family": config["family"], "setting": ", ".join(f"{key}={value}" for key, value in sorted(hyper.items())),
        "seed": config["seed"], "dataset": config["dataset"]["name"], "steps": config["steps"],
        "batch_size": config["batch_size"], **{f"hyper.{name}": value for name, value in hyper.items()},
    }  # fmt: skip


def name_of(path: Path) -> str:
    """The name of a model: that of its folder, or of its file without the suffix."""
    return path.name if path.is_dir() else path.stem


def is_seed(column: str) -> bool:
    """Whether a column of a config is a seed: seed, random_seed, train.seed, ..."""
    return re.split(r"[._]", column.lower())[-1] == "seed"


def varying(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns that differ among the models with a config.

    If the models have several seeds, text that is different for every model, such as a name or path, is left out.
    """
    configs = list(filter(None, configs))
    values = {name: [repr(columns.get(name)) for columns in configs] for name in dict.fromkeys(chain(*configs))}
    varied = [name for name, own in values.items() if len(set(own)) > 1]
    if not any(is_seed(name) for name in varied):
        return varied
    own_text = {
        name for name in varied
        if len(set(values[name])) == len(configs) and all(isinstance(config.get(name), str) for config in configs)
    }  # fmt: skip
    return [name for name in varied if name not in own_text]


def settings(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The varying settings of each model without the seed, as "lr=0.001, model.beta=4"."""
    names = [name for name in varying(configs) if not is_seed(name)]
    return [", ".join(f"{name}={columns[name]}" for name in names if name in columns) or "-" for columns in configs]


def _matched(path: Path, pattern: str) -> str:
    try:
        match = re.search(pattern, str(path))
    except re.error as error:
        raise ValueError(f"--by {pattern}: not a pattern ({error})") from None
    if match is None or not match.groups():
        raise ValueError(f"--by {pattern}: it does not match {path}")
    return "-".join(part for part in match.groups() if part)


def _columns(paths: Sequence[Path], by: str) -> list[str]:
    """The value of a column for each run; "-" for runs without it, such as a hyperparameter of other families."""
    for path in paths:
        if not path.is_dir():
            alternatives = "say folder, name, or a pattern such as '(beta[0-9]+)'"
            raise ValueError(f"--by {by}: {path} is no run, whose columns have names; {alternatives}")
    rows = [run_columns(path) for path in paths]
    if by == "setting" and not any(by in columns for columns in rows):
        return settings(rows)
    if not any(by in columns for columns in rows):
        raise ValueError(f"--by {by}: no run has such a column; {suggestion(by, dict.fromkeys(chain(*rows)))}")
    return [str(columns.get(by, UNGROUPED)) for columns in rows]
