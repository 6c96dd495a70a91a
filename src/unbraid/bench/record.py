"""What was measured on a suite as a file that `unbraid results add` takes, and whether such a file is of all of it."""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np

from unbraid.bench.encoder import Bench, Scored
from unbraid.bench.suite import PREFIX, SUITES, TRIAL, Suite
from unbraid.families.table import FAMILIES
from unbraid.metrics import METRICS
from unbraid.results.measured import commit_of, mean_of, rounded
from unbraid.results.schema import BESIDE, MODEL, key_of, named
from unbraid.storage.trust import is_code

OURS = "unbraid"
BESIDE_EACH = ("chance", "baselines", "seconds")  # which the leaderboard shows


def model_of(what: str) -> str:
    """Whose model it is by default: unbraid__beta_vae of beta_vae, my-lab.nets__encoder of my_lab.nets:encoder."""
    if not is_code(what):
        return f"{OURS}__{what}"
    module, _, function = what.partition(":")
    return f"{module.replace('_', '-').strip('-') or 'own'}__{function.strip('_') or 'encoder'}"


def check_model(model: str) -> None:
    """Raises ValueError where this cannot be the name of a model in records."""
    if not re.fullmatch(MODEL, model):
        raise ValueError(f"--model {model}: write ORG__NAME, such as my-lab__sparse_vae")


def record(bench: Bench, model: str, today: date) -> dict[str, Any]:
    """The content of a file of results: of each set and metric the mean over seeds with its 95 % interval.

    Beside each mean stand the chance level (of shuffled rows), what the baselines score, the seconds that a training
    took, and what labels were used.

    Args:
        bench: what was measured.
        model: whose it is, ORG__NAME.
        today: the date in its history.
    """
    commit, revision = commit_of(each.model.made.get("commit") for each in bench.scored)
    scores = [
        {"metric": column, "dataset": label, "setting": own[0].model.setting,
         "measured": _measured(bench, label, own, column, commit)}
        for label in bench.suite.sets
        if (own := bench.of_set(label))
        for column in bench.suite.columns
    ]  # fmt: skip
    return {
        "schema": BESIDE,
        "model": model,
        "revision": revision,
        "study": bench.study,
        "scores": scores,
        "history": [{"date": today.isoformat(), "reason": f"unbraid bench {bench.what} --suite {bench.suite.name}"}],
    }


def _measured(bench: Bench, label: str, own: Sequence[Scored], column: str, commit: str) -> dict[str, Any]:
    machines = dict.fromkeys(str(each.model.made.get("processor") or "") for each in own)
    supervision = own[0].model.supervision
    return {
        **mean_of(column, np.array([each.numbers.scores[column] for each in own])),
        "units": len(own),
        "unit": "seed",
        "commit": commit,
        "study": bench.study,
        "seeds": [each.model.seed for each in own],
        "machine": ", ".join(filter(None, machines)),
        "chance": rounded(fmean(each.numbers.chance[column] for each in own)),
        "baselines": {
            title: rounded(fmean(each.scores[column] for each in some))
            for title, some in bench.baselines[label].items()
        },
        "seconds": rounded(fmean(each.model.seconds for each in own)),
        **({"supervision": supervision} if supervision else {}),
        "date": max(str(each.model.made["ended"]) for each in own)[:10],
        "metric_version": METRICS[column.rpartition(".")[0]].version,
    }


def suite_of(study: str) -> Suite | None:
    """The suite that results of this name claim to be of, all of it; None of any other study, and of a trial.

    Raises:
        ValueError: of another version of it.
    """
    name, _, version = study.removeprefix(PREFIX).rpartition("-")
    if not study.startswith(PREFIX) or study.endswith(TRIAL) or name not in SUITES:
        return None
    suite = SUITES[name]
    if study != suite.study:
        raise ValueError(f"{study} is version {version} of suite {name}; this unbraid has version {suite.version}")
    return suite


def check_whole(content: Mapping[str, Any], where: str) -> None:
    """Raises ValueError where a record has the name of a suite, and a setting lacks a set, a metric or a seed of it.

    A family of this package may lack a set: some need a cyclic factor, which not every set has.
    """
    suite = suite_of(content["study"])
    if suite is None:
        return
    org, _, family = content["model"].partition("__")
    held = {key_of(score): score for score in content["scores"]}
    for setting in dict.fromkeys(setting for *_, setting in held):
        there = {label for _, label, its in held if its == setting}
        needed = there if org == OURS and family in FAMILIES else set(suite.sets)
        for label, column in product(sorted(needed), suite.columns):
            score = held.get((column, label, setting))
            if score is None or label not in suite.sets:
                of = f"{label} ({setting})" if setting else label
                raise ValueError(f"{where} is not all of {suite.study}: it has no {column} of {of}")
            measured = score.get("measured", {})
            if sorted(seeds := measured.get("seeds", [])) != sorted(suite.seeds):
                raise ValueError(f"{where} is not all of {suite.study}: {named(score)} is of seeds {seeds}")
            if lacking := [name for name in BESIDE_EACH if name not in measured]:
                raise ValueError(f"{where} is not all of {suite.study}: {named(score)} has no {lacking[0]}")
