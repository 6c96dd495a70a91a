"""The rules of evidence/studies/claims: what a paper claims, and by which measure, on which units, it is judged here.

A rule decides only about data that was made after it. So a table of runs must come from a clean commit whose own
evidence/studies/claims holds the same rule: `holder` asks the history of the repository for it.
"""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from effects import KINDS, UNITS, Effect, Measure
from gates import Gate, read_gates

from unbraid.metrics._shared.metric_arguments import full_name

ROOT = Path(__file__).parents[1]
CLAIMS = "evidence/studies/claims"
BEFORE = "studies/claims"  # where they lay until November 2026
NONE = type(None)
LESS = {"rows": (dict,), "column": (str,), "either": (dict, str), "column or none": (str, NONE), "": (NONE,)}
MEASURE_OPTIONS = {"share": {"below", "above"}, "lead": {"method"}}
UNJUDGED = {"cost": "not on two cores", "data": "no data", "unmeasured": "not measured"}  # verdicts without a study
DECIDING = ("study", "measure", "unit", "above", "below", "counts")  # what a commit must hold as it is


@dataclass(frozen=True)
class Rule:
    """One claim. Judged by a study, unless it says what that would cost, what data is missing or what none measures."""

    file: str  # of evidence/studies/claims, without .yaml
    id: str
    claim: str
    where: str
    published: str
    setting: str
    study: tuple[str, ...] = ()
    measure: Measure | None = None
    above: float | None = None
    below: float | None = None
    counts: float | None = None
    cost: str = ""
    data: str = ""
    unmeasured: str = ""
    note: str = ""

    @property
    def bound(self) -> float:
        """What the interval must lie beyond."""
        return float(self.above if self.above is not None else self.below)  # pyright: ignore[reportArgumentType]

    def verdict(self, effect: Effect) -> str:
        """Of an effect with its interval.

        *Reproduced* if the whole interval lies beyond the bound and the number itself is large enough to count; *not
        reproduced* if the whole interval falls short of what counts; else *undecided*.
        """
        sign = 1 if self.above is not None else -1
        value, ends = sign * effect.value, sorted((sign * effect.low, sign * effect.high))
        counts = sign * float(self.counts)  # pyright: ignore[reportArgumentType]
        if ends[0] > sign * self.bound and value >= counts:
            return "reproduced"
        return "not reproduced" if ends[1] < counts else "undecided"


def gates_of(path: Path) -> list[Gate]:
    """What the studies of these claims must reach; see `gates`."""
    known = yaml.safe_load(path.read_text(encoding="utf-8"))
    return read_gates(known.get("gates", []), path.name)


def read(path: Path) -> tuple[str, list[Rule]]:
    """The paper's short name, and its rules.

    Raises:
        ValueError: a rule lacks something, or has what no rule has; says which.
    """
    known = yaml.safe_load(path.read_text(encoding="utf-8"))
    rules = [_rule(path.stem, each) for each in known["claims"]]
    names = [rule.id for rule in rules]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{path.name}: {', '.join(sorted(twice))} stands there twice")
    return known["paper"], rules


def _rule(file: str, known: Mapping[str, Any]) -> Rule:
    where = f"{file}.yaml, {known.get('id', known.get('claim', known))}"
    own = {each.name for each in fields(Rule)} | {"unit"}
    if unknown := set(known) - own:
        raise ValueError(f"{where}: no rule has {', '.join(sorted(unknown))}")
    if missing := [name for name in ("id", "claim", "where", "published", "setting") if not known.get(name)]:
        raise ValueError(f"{where}: lacks {', '.join(missing)}")
    if sum(name in known for name in ("study", *UNJUDGED)) != 1:
        raise ValueError(f"{where}: needs one of study, {', '.join(UNJUDGED)}")
    text = {name: str(known[name]) for name in ("id", "claim", "where", "published", "setting")}
    text |= {name: str(known[name]) for name in (*UNJUDGED, "note") if name in known}
    if "study" not in known:
        return Rule(file, **text)
    if "measure" not in known or "counts" not in known or ("above" in known) == ("below" in known):
        raise ValueError(f"{where}: needs a measure, counts, and either above or below")
    if known.get("unit") not in UNITS:
        raise ValueError(f"{where}: unit must be one of {', '.join(UNITS)}")
    studies = known["study"] if isinstance(known["study"], list) else [known["study"]]
    bounds = {name: float(known[name]) for name in ("above", "below", "counts") if name in known}
    bound = bounds.get("above", bounds.get("below", 0.0))
    if (bounds["counts"] < bound) if "above" in bounds else (bounds["counts"] > bound):
        raise ValueError(f"{where}: what counts ({bounds['counts']}) lies on the wrong side of the bound ({bound})")
    return Rule(file, **text, study=tuple(studies), measure=_measure(where, known["measure"], known["unit"]), **bounds)


def _measure(where: str, known: Mapping[str, Any], unit: str) -> Measure:
    columns = {name: value for name, value in known.items() if name not in ("kind", "rows", "less")}
    if known.get("kind") not in KINDS:
        raise ValueError(f"{where}: no measure is called {known.get('kind')!r}; there are {', '.join(KINDS)}")
    kind = KINDS[known["kind"]]
    options = MEASURE_OPTIONS.get(known["kind"], set())
    if wrong := set(kind.columns) - set(columns) or set(columns) - set(kind.columns) - options:
        raise ValueError(f"{where}: a {known['kind']} has {', '.join(kind.columns)}; see {', '.join(sorted(wrong))}")
    less = known.get("less")
    if type(less) not in LESS[kind.less]:
        raise ValueError(f"{where}: a {known['kind']} compares with {kind.less or 'nothing'}, not with {less!r}")
    columns = {name: _as_results_have_it(value) for name, value in columns.items()}
    return Measure(known["kind"], unit, known.get("rows", {}), _as_results_have_it(less), columns)


def _as_results_have_it(column: Any) -> Any:
    """The column of a metric with arguments, of which results leave out those that are the default."""
    if isinstance(column, list):
        return [_as_results_have_it(each) for each in column]
    metric, _, value = column.rpartition(".") if isinstance(column, str) else ("", "", "")
    return f"{full_name(metric)}.{value}" if metric.endswith(")") else column


# ---- which came first


def why_not(rule: Rule, runs: pd.DataFrame) -> str:
    """Why these runs cannot decide about a rule; empty where they can."""
    commits = sorted(set(runs["commit"].fillna("").astype(str))) if "commit" in runs else [""]
    for commit in commits:
        if not re.fullmatch("[0-9a-f]{40}", commit):
            return "made before its rule, or at no clean commit"
        held = _held(commit, rule.file).get(rule.id)
        if held is None:
            return f"made at {commit[:7]}, before its rule"
        if held != _held_now(rule.file)[rule.id]:
            return f"made at {commit[:7]}, when its rule was another"
    return ""


def _deciding(text: str) -> dict[str, dict[str, Any]]:
    return {each["id"]: {name: each.get(name) for name in DECIDING} for each in yaml.safe_load(text)["claims"]}


@lru_cache
def _held(commit: str, file: str) -> dict[str, dict[str, Any]]:
    """The rules of a file as a commit has them; none if it does not have the file."""
    for folder in (CLAIMS, BEFORE):
        command = ["git", "show", f"{commit}:{folder}/{file}.yaml"]
        shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if shown.returncode == 0:
            return _deciding(shown.stdout)
    return {}


@lru_cache
def _held_now(file: str) -> dict[str, dict[str, Any]]:
    return _deciding((ROOT / CLAIMS / f"{file}.yaml").read_text(encoding="utf-8"))
