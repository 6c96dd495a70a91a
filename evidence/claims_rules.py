"""The rules of evidence/studies/claims: what a paper claims, and by which measure, on which units, it is judged here.

A rule decides only about data that was made after it. So a table of runs must come from a clean commit whose own
evidence/studies/claims has the same rule: `why_not` asks the history of the repository for it.
"""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml
from effects import KINDS, UNITS, Effect, Measure
from gates import Gate, read_gates

from unbraid.metrics._shared.metric_arguments import full_name

ROOT = Path(__file__).parents[1]
CLAIMS = "evidence/studies/claims"
BEFORE = "studies/claims"  # where they lay until November 2026
LESS = {"rows": dict, "column": str, "": type(None)}
MEASURE_OPTIONS = {"share": {"below", "above"}, "lead": {"method"}}
UNJUDGED = {"cost": "not on two cores", "data": "no data", "unmeasured": "not measured"}  # verdicts without a study
PLANTED = ("effect", "spread")  # what a trial plants
DECIDING = ("study", "measure", "unit", "above", "below", "counts", *PLANTED)  # what a commit must hold as it is
SIMULATED = {  # kinds of measures that a rule may have, and whether their trial needs the spread of a unit
    **dict.fromkeys(("mean", "difference", "beyond", "paired", "best_setting", "best_of_seed"), True),
    **dict.fromkeys(("share", "pearson", "spearman", "lead"), False),
    "spearman_by_family": True,
}


@dataclass(frozen=True)
class Rule:
    """A claim or an observation. Only a claim has a bound, and the paper's effect as a number."""

    file: str  # of evidence/studies/claims, without .yaml
    id: str  # variants of one claim end in "-paper" and "-ours"
    claim: str
    where: str
    published: str
    setting: str
    study: tuple[str, ...] = ()
    measure: Measure | None = None
    above: float | None = None
    below: float | None = None
    counts: float | None = None
    effect: Any = None  # the paper's, on the scale of the measure; of a lead, two correlations
    spread: float = 0.0  # standard deviation of a unit in the trial
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


class Paper(NamedTuple):
    """A file of evidence/studies/claims."""

    name: str
    claims: list[Rule]
    observations: list[Rule]
    gates: list[Gate]


def read(path: Path) -> Paper:
    """The claims, observations and gates of a paper.

    Raises:
        ValueError: a rule lacks something, or has what no rule has; says which.
    """
    known = yaml.safe_load(path.read_text(encoding="utf-8"))
    claims, observations = (
        [_rule(path.stem, each, judged=name == "claims") for each in known.get(name, [])]
        for name in ("claims", "observations")
    )
    names = [rule.id for rule in (*claims, *observations)]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{path.name}: {', '.join(sorted(twice))} stands there twice")
    return Paper(known["paper"], claims, observations, read_gates(known.get("gates", []), path.name))


def _rule(file: str, known: Mapping[str, Any], judged: bool) -> Rule:
    where = f"{file}.yaml, {known.get('id', known.get('claim', known))}"
    own = {each.name for each in fields(Rule)} | {"unit"}
    if unknown := set(known) - own:
        raise ValueError(f"{where}: no rule has {', '.join(sorted(unknown))}")
    if missing := [name for name in ("id", "claim", "where", "published", "setting") if not known.get(name)]:
        raise ValueError(f"{where}: lacks {', '.join(missing)}")
    if sum(name in known for name in ("study", *UNJUDGED)) != 1:
        raise ValueError(f"{where}: needs one of study, {', '.join(UNJUDGED)}")
    text: dict[str, Any] = {name: str(known[name]) for name in ("id", "claim", "where", "published", "setting")}
    text |= {name: str(known[name]) for name in (*UNJUDGED, "note") if name in known}
    if "study" not in known:
        return Rule(file, **text)
    if known.get("unit") not in UNITS:
        raise ValueError(f"{where}: unit must be one of {', '.join(UNITS)}")
    studies = known["study"] if isinstance(known["study"], list) else [known["study"]]
    measure = _measure(where, known.get("measure", {}), known["unit"])
    numbers = _numbers(where, known, measure.kind) if judged else {}
    if not judged and (bounds := {"above", "below", "counts", *PLANTED} & set(known)):
        raise ValueError(f"{where}: an observation has no {', '.join(sorted(bounds))}")
    return Rule(file, **text, study=tuple(studies), measure=measure, **numbers)


def _numbers(where: str, known: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The bound of a claim, what counts, and what its trial plants."""
    if kind not in SIMULATED:
        raise ValueError(f"{where}: no trial simulates a {kind}, so it cannot judge; make it an observation")
    if "effect" not in known or "counts" not in known or ("above" in known) == ("below" in known):
        raise ValueError(f"{where}: needs the paper's effect, counts, and either above or below")
    if SIMULATED[kind] != ("spread" in known):
        raise ValueError(f"{where}: the trial of a {kind} {'needs a' if SIMULATED[kind] else 'has no'} spread")
    numbers = {name: float(known[name]) for name in ("above", "below", "counts", "spread") if name in known}
    bound = numbers.get("above", numbers.get("below", 0.0))
    if (numbers["counts"] < bound) if "above" in numbers else (numbers["counts"] > bound):
        raise ValueError(f"{where}: what counts ({numbers['counts']}) lies on the wrong side of the bound ({bound})")
    return numbers | {"effect": known["effect"]}


def _measure(where: str, known: Mapping[str, Any], unit: str) -> Measure:
    columns = {name: value for name, value in known.items() if name not in ("kind", "rows", "less")}
    if known.get("kind") not in KINDS:
        raise ValueError(f"{where}: no measure is called {known.get('kind')!r}; there are {', '.join(KINDS)}")
    kind = KINDS[known["kind"]]
    options = MEASURE_OPTIONS.get(known["kind"], set())
    if wrong := set(kind.columns) - set(columns) or set(columns) - set(kind.columns) - options:
        raise ValueError(f"{where}: a {known['kind']} has {', '.join(kind.columns)}; see {', '.join(sorted(wrong))}")
    less = known.get("less")
    if not isinstance(less, LESS[kind.less]):
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


def why_not(rule: Rule, runs: pd.DataFrame, tried_again: bool = False, other: str = "") -> str:
    """Why these runs cannot decide about a rule; empty where they can.

    Commits before November 28, 2026 have rules without a trial. Their runs decide as long as the first trial stands.
    `other`, "rows" or "less", is the group that these runs are compared with. Their commit may have named other runs
    for it: those that replace them are held against their own commit.
    """
    known = _but(rule_text(rule.file)[rule.id], other)
    plain = {**known, **dict.fromkeys(PLANTED)}
    allowed = [known] if tried_again else [known, plain]
    for commit in sorted(set(runs["commit"].fillna("").astype(str))) if "commit" in runs else [""]:
        if not re.fullmatch("[0-9a-f]{40}", commit):
            return "made before its rule, or at no clean commit"
        if not any(_but(text, other) in allowed for text in _rules_of(commit, rule.file)):
            return f"made at {commit[:7]}, before its rule"
    return ""


def _but(text: dict[str, Any], group: str) -> dict[str, Any]:
    """What decides, without the runs of this group."""
    return {**text, "measure": {name: value for name, value in (text["measure"] or {}).items() if name != group}}


def _deciding(text: str) -> dict[str, dict[str, Any]]:
    return {each["id"]: {name: each.get(name) for name in DECIDING} for each in yaml.safe_load(text)["claims"]}


@lru_cache
def _rules_of(commit: str, file: str) -> list[dict[str, Any]]:
    """What decides, by each rule of a file as a commit has it; none if the commit lacks the file."""
    for folder in (CLAIMS, BEFORE):
        command = ["git", "show", f"{commit}:{folder}/{file}.yaml"]
        shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if shown.returncode == 0:
            return list(_deciding(shown.stdout).values())
    return []


@lru_cache
def rule_text(file: str) -> dict[str, dict[str, Any]]:
    """What decides, by id of the rule, as the YAML has it."""
    return _deciding((ROOT / CLAIMS / f"{file}.yaml").read_text(encoding="utf-8"))
