"""A run in words."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from unbraid.families.family_table import find_family


def described(name: str, config: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, Any]:
    """A run in words: what was trained, how it ended, every setting, and how to train it again."""
    family = find_family(config["family"])
    source = config["dataset"]
    return {
        "id": name,
        "family": config["family"],
        "title": family.title,
        "cited": family.cited,
        "dataset": source["name"] or "a dataset in memory",
        "seed": config["seed"],
        "state": status["state"],
        "reason": status["reason"],
        "note": status.get("note"),
        "judged": _judged(config, status),
        "step": status["step"],
        "seconds": _time_text(status["seconds"]),
        "version": status["unbraid"],
        "made": _made(status.get("provenance")),
        "hyperparameters": [
            {
                "name": hyperparameter,
                "value": f"{value:g}" if isinstance(value, float) else str(value),
                "default": value == family.hyperparameters[hyperparameter].default,
                "help": family.hyperparameters[hyperparameter].help,
            }
            for hyperparameter, value in config["hyperparameters"].items()
        ],
        "json": json.dumps(config, indent=2, ensure_ascii=False),
        "command": _command(config),
        "python": _python(config),
    }


def _command(config: Mapping[str, Any]) -> str | None:
    """None for a dataset in memory, which no command can name."""
    source = config["dataset"]
    if source["name"] is None:
        return None
    words = ["unbraid", "train", config["family"], "--dataset", source["name"], "--seeds", f"{config['seed']},"]
    for name, value in source["options"].items():
        words += ["--data", f"{name}={json.dumps(value)}"]
    for name, value in _chosen(config).items():
        words += ["--set", f"{name}={value}"]
    for name, value in _plan(config).items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(words)


def _python(config: Mapping[str, Any]) -> str:
    source = config["dataset"]
    dataset = "dataset" if source["name"] is None else repr({"name": source["name"], **source["options"]})
    arguments = ", ".join(f"{name}={value!r}" for name, value in {**_chosen(config), **_plan(config)}.items())
    return f"import unbraid\n\nunbraid.train({config['family']!r}, {dataset}, seeds=[{config['seed']}], {arguments})"


def _plan(config: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `unbraid.train` other than hyperparameters."""
    plain = {name: config[name] for name in ("steps", "batch_size", "device", "precision")}
    plain["precision"] = config.get("requested_precision", config["precision"])
    if hold_out := config.get("hold_out"):
        count = hold_out["images"] if hold_out["images"] < 1 else int(hold_out["images"])
        plain |= {"hold_out": count, "hold_out_every": hold_out["every"], "patience": hold_out["patience"]}
    return plain


def _judged(config: Mapping[str, Any], status: Mapping[str, Any]) -> str | None:
    """A sentence on the step of the weights, for runs with a hold-out set."""
    evaluation = status.get("held_out")
    if not evaluation:
        return None
    best = config["hold_out"]["patience"] and evaluation["elbo"] is not None
    weights = (
        f"The weights are those of step {evaluation['step']}, the best."
        if best
        else "The weights are those of the last step."
    )
    return f"Training stopped early, after step {status['step']}. {weights}" if evaluation["stopped"] else weights


def _made(provenance: Mapping[str, Any] | None) -> str:
    """A sentence on a run's provenance, with a leading space; empty if unknown."""
    if not provenance:
        return ""
    where = provenance["accelerator"] or provenance["processor"]
    versions = f"torch {provenance['torch']}, NumPy {provenance['numpy']}, on {where} ({provenance['host']})"
    commit = f", commit {provenance['commit'][:12]}" if provenance["commit"] else ""
    packages = "".join(f", {name} of {package}" for name, package in provenance.get("packages", {}).items())
    return f" Trained {provenance['ended'][:10]} with {versions}{commit}{packages}."


def _chosen(config: Mapping[str, Any]) -> dict[str, Any]:
    """Hyperparameters that are not at their defaults."""
    defaults = find_family(config["family"]).hyperparameters
    return {name: value for name, value in config["hyperparameters"].items() if value != defaults[name].default}


def _time_text(seconds: float) -> str:
    minutes, left = divmod(round(seconds), 60)
    return (
        f"{minutes // 60} h {minutes % 60} min"
        if minutes >= 60
        else f"{minutes} min {left} s"
        if minutes
        else f"{left} s"
    )
