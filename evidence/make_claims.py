"""Judge what the papers claim, by the rules of evidence/studies/claims, from the tables of studies here: evidence/claims.json.

python evidence/make_claims.py                       judge all, some minutes
python evidence/make_claims.py udr-2020 ...          judge those of these files of evidence/studies/claims, and leave the others
python evidence/make_claims.py --gather FOLDER       write the table of a study that has run into docs/reproductions/results

Each rule is also tried on NULLS tables in which there is nothing to find, to see how often it would say "reproduced".
"""

import json
import sys
import zlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import effects
import numpy as np
import pandas as pd
import yaml
from claims_rules import CLAIMS, ROOT, UNJUDGED, Rule, gates_of, read, why_not
from effects import Effect, chosen, measured, without_effect

from unbraid import Study
from unbraid.ranking.ranking import rank_models
from unbraid.studies.study_ranking import candidates_of, ranking_options

RESULTS = ROOT / "docs" / "reproductions" / "results"
FILE = ROOT / "evidence" / "claims.json"
NULLS, RESAMPLES_OF_NULLS = 200, 200
PAPER = {"compare": "same-hyperparameters", "alpha": "cv", "informative": "kl"}  # the rule of Duan et al.
NOT_ENDED = ("waiting", "running")
MOST_OF_NULLS = 0.05  # share of tables without an effect of which a rule that decides may say "reproduced"


def judged(paper: str, rule: Rule) -> dict[str, Any]:
    """A row of evidence/claims.json."""
    row: dict[str, Any] = {"paper": paper, "file": rule.file, "id": rule.id, "claim": rule.claim, "where": rule.where}
    row |= {"published": rule.published, "setting": rule.setting}
    row |= {name: text for name in ("note", *UNJUDGED) if (text := getattr(rule, name))}
    if rule.measure is None:
        return {**row, "verdict": next(verdict for name, verdict in UNJUDGED.items() if name in row)}
    row |= {"rule": in_words(rule), "studies": list(rule.study), "tried": tried(rule)}
    missing = [name for name in rule.study if not (RESULTS / f"{name}.csv").is_file()]
    runs = pd.DataFrame() if missing else table(rule.study)
    reason = f"{missing[0]} has not run" if missing else why_not(rule, runs)
    if reason:
        return {**row, "verdict": "awaits a run", "why": reason}
    if not all_ended(rule):
        named = " and ".join(of_rows(rows) for rows in rule.measure.groups if rows)
        return {**row, "verdict": "awaits a run", "why": f"not all runs have ended of {named}"}
    if failures := unlearnt(rule):
        return {**row, "verdict": "not judged", "why": "these models have not learnt: " + "; ".join(failures)}
    effect = measured(rule.measure, runs)
    commits = sorted(set(runs["commit"].astype(str)))
    row |= {**rounded(effect), "null": of_nulls(rule, runs), "commits": commits, "hours": hours(runs)}
    if row["null"] > MOST_OF_NULLS:
        return {**row, "verdict": "undecided", "why": "its rule passes too often where there is nothing to find"}
    return {**row, "verdict": rule.verdict(effect)}


def unlearnt(rule: Rule) -> list[str]:
    """Gates that the rule's studies have not passed, in words."""
    gates = [gate for gate in gates_of(ROOT / CLAIMS / f"{rule.file}.yaml") if gate.study in rule.study]
    return [failure for gate in gates if (failure := gate.failure(table([gate.study])))]


def all_ended(rule: Rule) -> bool:
    """Whether there are runs of each group that the rule looks at, none of which waits or is at work."""
    assert rule.measure is not None
    planned = pd.concat([read_table(name) for name in rule.study], ignore_index=True)
    try:
        return not any(chosen(planned, rows)["state"].isin(NOT_ENDED).any() for rows in rule.measure.groups)
    except ValueError:  # there are none
        return False


def tried(rule: Rule) -> list[dict[str, Any]]:
    """What the measure gives on every table of the paper that has such runs of the same images.

    Also on those that decide nothing, as they were made before the rule.
    """
    assert rule.measure is not None
    found = []
    for studies in [rule.study, *([each] for each in comparable(rule))]:
        if not all((RESULTS / f"{name}.csv").is_file() for name in studies):
            continue
        if studies == rule.study and not all_ended(rule):
            continue
        try:
            effect = measured(rule.measure, table(studies))
        except ValueError:  # it has no such runs, or was not scored by these metrics
            continue
        found.append({"studies": list(studies), **rounded(effect), "would be": rule.verdict(effect)})
    return found


def of_nulls(rule: Rule, runs: pd.DataFrame) -> float:
    """How often the rule says "reproduced" where there is nothing to find."""
    assert rule.measure is not None
    rng, before = np.random.default_rng(zlib.crc32(rule.id.encode())), effects.RESAMPLES
    effects.RESAMPLES = RESAMPLES_OF_NULLS
    try:
        nothing = (without_effect(rule.measure, runs, rule.bound, rng) for _ in range(NULLS))
        held = sum(rule.verdict(measured(rule.measure, each)) == "reproduced" for each in nothing)
    finally:
        effects.RESAMPLES = before
    return held / NULLS


def in_words(rule: Rule) -> str:
    """The rule in one line."""
    measure = rule.measure
    assert measure is not None
    where = f" where {of_rows(measure.rows)}" if measure.rows else ""
    less = of_rows(measure.less) if isinstance(measure.less, dict) else f"`{measure.less}`"
    unit = measure.unit.replace("_", " and ") if measure.unit == "dataset_model" else measure.unit
    columns = {name: ", ".join(f"`{each}`" for each in np.atleast_1d(value)) for name, value in measure.columns.items()}
    edge = f"below {measure.columns['below']}" if "below" in columns else f"above {measure.columns.get('above')}"
    text = {
        "mean": "mean {x}{where}",
        "difference": "mean {x}{where}, less that where {less}",
        "paired": "mean of {x} less {less}{where}",
        "beyond": "mean {x}{where}, less that of the one run where {less}",
        "variance_ratio": "variance of {x} over variance of {of}{where}",
        "spread": "standard deviation of {x} over seeds{where}, less that "
        + ("of {less}" if isinstance(measure.less, str) else "where {less}"),
        "best_of_seed": "highest {x} of each seed{where}, less that where {less}",
        "spearman_by_family": "rank correlation of {x} with each of {ys} within families{where}"
        + ("" if measure.less is None else f", less that of {'pairs of these' if measure.less == 'pairs' else less}"),
        "disagreement": "largest difference of places by {x} and by {y}{where}",
        "ratio": "mean {x} over mean {of}{where}",
        "share": "share of {x} {edge}{where}",
        "spearman": "rank correlation of {x} and {y}{where}",
        "pearson": "correlation of {x} and {y}{where}",
        "spearman_within": "rank correlation of {x} and {y} within settings{where}",
        "correlation_gap": "correlation of {x} and {y}{where}, less that where {less}",
        "lead": "correlation of {x} with {y}, less the highest of {others}{where}",
        "pick": "{y} of the run of the highest {by}, less {against}{where}",
        "pick_share": "share of runs below that of the highest {by}, by {ys}{where}",
        "best_setting": "highest mean {x} of a setting{where}, less that where {less}",
        "cost_of_best": "{x} of the setting of the highest {best}, less the highest{where}",
    }[measure.kind].format_map({**columns, "where": where, "less": less, "edge": edge})
    text = text.replace("less `median`", "less the median").replace("less `best`", "less the best")
    side = "above" if rule.above is not None else "below"
    return f"{text}, over {unit}s: {side} {rule.bound:g}, counts from {rule.counts:g}".replace("-", "−")


def of_rows(rows: Any) -> str:
    """Which runs, without the prefix of columns of hyperparameters."""
    parts = []
    for column, value in rows.items():
        values = value if isinstance(value, list) else [value]
        parts.append(f"{column.removeprefix('hyper.')} = {' or '.join(map(str, values))}")
    return ", ".join(parts)


def table(studies: Sequence[str]) -> pd.DataFrame:
    """The runs of studies that have ended, with the ELBO in nats where both of its terms are there."""
    runs = pd.concat([read_table(name) for name in studies], ignore_index=True)
    runs = runs[~runs["state"].isin(NOT_ENDED)].reset_index(drop=True)
    kl = next((name for name in ("elbo_terms.kl", "train.kl") if name in runs), None)
    if kl is None or "train.reconstruction" not in runs:
        return runs
    return runs.assign(elbo=-runs["train.reconstruction"] - runs[kl])


@lru_cache
def read_table(name: str) -> pd.DataFrame:
    return pd.read_csv(RESULTS / f"{name}.csv").copy()  # in one piece, as many columns are added to it


def comparable(rule: Rule) -> list[str]:
    """Other studies of the paper on the same images that have a table."""
    prefix = rule.file.rsplit("-", 1)[0] if rule.file.startswith("lsbd") else rule.file
    images = {dataset for name in rule.study for dataset in datasets_of(name)}
    names = sorted(path.stem for path in RESULTS.glob(f"{prefix}-*.csv"))
    return [name for name in names if [name] != list(rule.study) and images == set(read_table(name)["dataset"])]


@lru_cache
def datasets_of(study: str) -> tuple[str, ...]:
    """Names of the datasets of a file in studies/."""
    for path in (ROOT / "evidence" / "studies").rglob("*.yaml"):
        known = yaml.safe_load(path.read_text(encoding="utf-8"))
        if known.get("name") == study:
            given = known.get("datasets", [known.get("dataset")])
            return tuple(each if isinstance(each, str) else each["name"] for each in given)
    raise ValueError(f"no file in studies/ is called {study}")


def hours(runs: pd.DataFrame) -> float | None:
    """Core hours of training: the median run times their number, since one may have waited for something else."""
    return round(float(runs["seconds"].median() * len(runs) / 3600), 2) if "seconds" in runs else None


def rounded(effect: Effect) -> dict[str, Any]:
    """For JSON, which knows no infinity: an interval of one unit has no ends."""
    return {name: round(value, 4) if np.isfinite(value) else None for name, value in asdict(effect).items()}


def gathered(folder: Path) -> pd.DataFrame:
    """Every run of a study, with its scores; with UDR by several rules where its file says how to rank."""
    study = Study.load(folder)
    frame = study.results()
    if study.config.udr is None:
        return frame
    rules: dict[str, dict[str, Any]] = {
        "udr.score": {},
        "udr.score_spearman": {"similarity": "spearman"},
        "udr.score_within": {"compare": "same-hyperparameters"},
        "udr.score_paper": PAPER,
        "udr.score_paper_5": {**PAPER, "n_comparisons": 5},
        "udr.score_paper_spearman": {**PAPER, "similarity": "spearman"},
        "udr.score_family": {**PAPER, "compare": "same-family"},
        "udr.score_family_spearman": {**PAPER, "compare": "same-family", "similarity": "spearman"},
        **{f"udr.score_{number}": {"n_comparisons": number} for number in (2, 5, 10, 20, 45)},
    }
    (snapshot,) = study.snapshots()
    candidates, left_out = candidates_of(snapshot.runs)
    for column, options in rules.items():
        chosen = replace(ranking_options(study.config), **options)
        ranking = rank_models(candidates, chosen, left_out=left_out, tested=False)
        frame[column] = frame["run"].map(dict(zip(ranking.runs, ranking.scores, strict=True)))
        if column in ("udr.score", "udr.score_paper"):
            latents = column.replace("score", "informative")
            frame[latents] = frame["run"].map(dict(zip(ranking.runs, ranking.informative, strict=True)))
    return frame


def main() -> None:
    """Judge claims, or gather the table of a study."""
    if sys.argv[1:2] == ["--gather"]:
        for folder in map(Path, sys.argv[2:]):
            name = Study.load(folder).config.name
            gathered(folder).to_csv(RESULTS / f"{name}.csv", index=False)
            print(f"wrote {RESULTS / name}.csv")
        return
    files = {path.stem: path for path in sorted((ROOT / CLAIMS).glob("*.yaml"))}
    asked = sys.argv[1:] or list(files)
    if unknown := set(asked) - set(files):
        sys.exit(f"{', '.join(sorted(unknown))}: not in {CLAIMS}, which has {', '.join(files)}")
    known = json.loads(FILE.read_text(encoding="utf-8"))
    rows = []
    for name, path in files.items():
        paper, rules = read(path)
        if name not in asked:
            rows += [row for row in known if row["file"] == name]
            continue
        for rule in rules:
            rows.append(judged(paper, rule))
            print(f"{rows[-1]['verdict']:16} {rule.file}, {rule.id}: {rule.claim}", flush=True)
    FILE.write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
