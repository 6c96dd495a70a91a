"""A rule is tried before it may judge: simulated runs of its study, without the effect and with the paper's effect.

python evidence/trials.py    try each rule that has changed since its trial; writes studies/claims/trials.json

A rule may judge if it calls at most MOST_WITHOUT of the tables without the effect "reproduced", and at least
LEAST_WITH of those with the paper's effect. Tables have the models and seeds of the study's YAML. Without the effect
means at the rule's bound.
"""

import hashlib
import json
import zlib
from collections.abc import Callable
from dataclasses import asdict
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import effects
import numpy as np
import pandas as pd
import yaml
from claims_rules import CLAIMS, DECIDING, ROOT, Rule, read
from effects import Effect, Measure, by_unit, chosen, measured

from unbraid import Study
from unbraid.base.types import FloatArray

FILE = ROOT / CLAIMS / "trials.json"
TABLES, MORE_TABLES, RESAMPLES = 200, 800, 200
MOST_WITHOUT, LEAST_WITH = 0.05, 0.8
Trial: TypeAlias = dict[str, Any]


def digest(rule: Rule) -> str:
    """Of all that decides, and of what the trial plants."""
    known = {name: value for name, value in asdict(rule).items() if name in DECIDING}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:12]


def passes(trial: Trial) -> bool:
    """Whether a rule with this trial may judge."""
    return trial["without"] <= MOST_WITHOUT and trial["with"] >= LEAST_WITH


def tried(rule: Rule) -> Trial:
    """How often the rule says "reproduced", of tables without the effect and with the paper's."""
    planted = {"without": (without(rule), MOST_WITHOUT), "with": (rule.effect, LEAST_WITH)}
    rng, before = np.random.default_rng(zlib.crc32(rule.id.encode())), effects.RESAMPLES
    effects.RESAMPLES = RESAMPLES
    try:
        verdicts = {name: [passed(rule, effect, rng) for _ in range(TABLES)] for name, (effect, _) in planted.items()}
        for name, (effect, limit) in planted.items():
            if abs(np.mean(verdicts[name]) - limit) <= np.sqrt(limit * (1 - limit) / TABLES):  # a standard error
                verdicts[name] += [passed(rule, effect, rng) for _ in range(MORE_TABLES)]
    finally:
        effects.RESAMPLES = before
    return {"digest": digest(rule), "units": units(rule), **{k: float(np.mean(v)) for k, v in verdicts.items()}}


def passed(rule: Rule, effect: Any, rng: np.random.Generator) -> bool:
    """Whether the rule says "reproduced" of simulated runs with an effect."""
    return rule.verdict(simulated_effect(rule, effect, rng)) == "reproduced"


def units(rule: Rule) -> int:
    """The number of units that the study's YAML plans."""
    return simulated_effect(rule, rule.effect, np.random.default_rng(0)).units


def simulated_effect(rule: Rule, effect: Any, rng: np.random.Generator) -> Effect:
    """What is measured on planned runs in which an effect is planted."""
    assert rule.measure is not None
    groups = [planned(rule.study, json.dumps(rows)) for rows in rule.measure.groups]
    return measured(rule.measure, simulated(rule.measure, groups, effect, rule.spread, rng))


def without(rule: Rule) -> Any:
    """The effect at the rule's bound; a lead is one of two correlations, and both are the lower one."""
    return [rule.bound + rule.effect[1], rule.effect[1]] if isinstance(rule.effect, list) else rule.bound


@lru_cache
def planned(studies: tuple[str, ...], rows: str) -> pd.DataFrame:
    """The runs of studies that have the values of `rows` (JSON), with the columns that name and group them."""
    known = json.loads(rows)
    runs = chosen(pd.concat([plan(name) for name in studies], ignore_index=True), known)
    numbered = {"dataset", "dataset_options", "setting"} - {*known}  # numbers are grouped faster than text
    named = runs[[*{*known}.union(*effects.UNITS.values())]]
    return named.assign(**{name: pd.factorize(runs[name], sort=True)[0] for name in numbered})


@lru_cache
def plan(study: str) -> pd.DataFrame:
    """The runs of a study, as its YAML plans them."""
    if study not in study_files():
        raise ValueError(f"no file in studies/ is called {study}")
    with TemporaryDirectory() as folder:
        return Study.load(study_files()[study], out=Path(folder) / "none").results()


@cache
def study_files() -> dict[str, Path]:
    """The YAML of each study, by its name."""
    paths = (ROOT / "evidence" / "studies").rglob("*.yaml")
    return {yaml.safe_load(path.read_text(encoding="utf-8")).get("name"): path for path in paths}


# ---- simulated runs


def simulated(
    measure: Measure, groups: list[pd.DataFrame], effect: Any, spread: float, rng: np.random.Generator
) -> pd.DataFrame:
    """Planned runs with columns in which the effect is planted.

    Args:
        measure: what will be measured.
        groups: the planned runs that are measured, or the two groups that are compared.
        effect: the effect on the measure's scale; of a lead, the correlations of its column and of the others.
        spread: standard deviation of a unit about its mean; of correlations within families, of a family's.
        rng: draws the units.
    """
    return pd.concat(SIMULATIONS[measure.kind](measure, groups, effect, spread, rng), ignore_index=True)


def _per_unit(measure: Measure, runs: pd.DataFrame, draw: Callable[[int], FloatArray]) -> FloatArray:
    """Values that a function draws for a number of units, (n_runs, ...): the same for all runs of a unit."""
    units = by_unit(runs, measure.unit)
    drawn = draw(len(units))
    values = np.empty((len(runs), *drawn.shape[1:]))
    for index, value in zip(units, drawn, strict=True):
        values[index] = value
    return values


def _levels(
    measure: Measure, groups: list[pd.DataFrame], effect: float, spread: float, rng: np.random.Generator
) -> list[pd.DataFrame]:
    """The first group lies about the effect and the second about 0; the one run of "beyond" is at 0."""
    spreads = [spread, 0.0 if measure.kind == "beyond" else spread]
    return [
        group.assign(**{measure["x"]: level + _per_unit(measure, group, lambda n, s=own: s * rng.normal(size=n))})
        for group, level, own in zip(groups, (effect, 0.0), spreads, strict=False)
    ]


def _best(
    measure: Measure, groups: list[pd.DataFrame], effect: float, spread: float, rng: np.random.Generator
) -> list[pd.DataFrame]:
    """One setting of the first group is above all others by the effect; if negative, all its settings are below."""
    made = _levels(measure, groups, 0.0, spread, rng)
    first = made[0]["setting"] == made[0]["setting"].iloc[0] if effect > 0 else np.ones(len(made[0]), bool)
    return [made[0].assign(**{measure["x"]: made[0][measure["x"]] + effect * first}), made[1]]


def _columns(
    measure: Measure, groups: list[pd.DataFrame], effect: float, spread: float, rng: np.random.Generator
) -> list[pd.DataFrame]:
    """Two columns of the same units, of which the second is 0."""
    noise = _per_unit(measure, groups[0], lambda n: spread * rng.normal(size=n))
    return [groups[0].assign(**{measure["x"]: effect + noise, str(measure.less): 0.0})]


def _passing(
    measure: Measure, groups: list[pd.DataFrame], effect: float, _: float, rng: np.random.Generator
) -> list[pd.DataFrame]:
    """Each unit is beyond the edge with the share as its odds."""
    side = -1 if "below" in measure.columns else 1
    edge = measure.columns.get("below", measure.columns.get("above"))
    beyond = _per_unit(measure, groups[0], lambda n: np.where(rng.random(n) < effect, side, -side))
    return [groups[0].assign(**{measure["x"]: edge + beyond})]


def _correlated(
    measure: Measure, groups: list[pd.DataFrame], effect: Any, _: float, rng: np.random.Generator
) -> list[pd.DataFrame]:
    """Normal columns, each with its correlation to y; of ranks, the normal ones that give such."""
    names = [measure["x"], *measure.columns.get("others", [])]
    values = [effect] if np.isscalar(effect) else [effect[0], *[effect[1]] * (len(names) - 1)]
    ranks = "spearman" in (measure.kind, measure.columns.get("method"))
    r = 2 * np.sin(np.pi * np.array(values) / 6) if ranks else np.array(values)

    def draw(n: int) -> FloatArray:
        y = rng.normal(size=(n, 1))
        return np.hstack([y, r * y + np.sqrt(1 - r**2) * rng.normal(size=(n, len(r)))])

    drawn = _per_unit(measure, groups[0], draw)
    signs = [-1 if len(names) > 1 and effects.higher_is_better(name) is False else 1 for name in names]
    scores = {name: sign * drawn[:, k] for k, (name, sign) in enumerate(zip(names, signs, strict=True), start=1)}
    return [groups[0].assign(**{measure["y"]: drawn[:, 0], **scores})]


def _correlated_by_family(
    measure: Measure, groups: list[pd.DataFrame], effect: float, spread: float, rng: np.random.Generator
) -> list[pd.DataFrame]:
    """Within each family x goes with each of ys by a correlation of the family's own."""
    made = []
    for _, own in groups[0].groupby("family"):
        rank = np.clip(effect + spread * rng.normal(), -0.99, 0.99)
        r, x = 2 * np.sin(np.pi * rank / 6), rng.normal(size=len(own))
        ys = {y: r * x + np.sqrt(1 - r**2) * rng.normal(size=len(own)) for y in measure["ys"]}
        made.append(own.assign(**{measure["x"]: x, **ys}))
    return made


Simulation: TypeAlias = Callable[[Measure, list[pd.DataFrame], Any, float, np.random.Generator], list[pd.DataFrame]]
SIMULATIONS: dict[str, Simulation] = {
    "mean": _levels,
    "difference": _levels,
    "beyond": _levels,
    "best_of_seed": _levels,
    "best_setting": _best,
    "paired": _columns,
    "share": _passing,
    "pearson": _correlated,
    "spearman": _correlated,
    "lead": _correlated,
    "spearman_by_family": _correlated_by_family,
}


def stored() -> dict[str, Trial]:
    """Trials by file and id of their rule."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}


def main() -> None:
    """Try what has not been tried. A second trial of a rule is marked: runs made before it decide nothing."""
    before, after = stored(), {}
    for path in sorted((ROOT / CLAIMS).glob("*.yaml")):
        for rule in (rule for rule in read(path).claims if rule.measure):
            name = f"{rule.file} {rule.id}"
            known = before.get(name, {})
            if known.get("digest") != digest(rule) or known["units"] != units(rule):
                changed = bool(known) and known["digest"] != digest(rule)
                known = tried(rule) | ({"again": True} if changed or known.get("again") else {})
                print(f"{known['without']:6.1%} {known['with']:6.1%}  {known['units']:4}  {name}", flush=True)
            after[name] = known
            write(FILE, before | after)
    write(FILE, after)


def write(path: Path, trials: dict[str, Trial]) -> None:
    """Write trials, one a line."""
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(trial)}" for name, trial in trials.items())
    path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
