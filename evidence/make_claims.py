"""Judge what the papers claim, by the rules of evidence/studies/claims, from the tables of studies here: evidence/claims.json.

python evidence/make_claims.py                       judge all
python evidence/make_claims.py --gather FOLDER       write the table of a study that has run into docs/reproductions/results
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from claims_rules import CLAIMS, ROOT, UNJUDGED, Paper, Rule, read, why_not
from effects import Effect, Rows, chosen, matches, measured
from trials import Trial, digest, passes, stored

import unbraid
from unbraid import Study
from unbraid.ranking.rank_candidates import rank_candidates
from unbraid.studies.study_ranking import candidates_of, ranking_options

RESULTS = ROOT / "docs" / "reproductions" / "results"
FILE = ROOT / "evidence" / "claims.json"
PAPER = {"compare": "same-hyperparameters", "alpha": "cv", "informative": "kl"}  # the rule of Duan et al.
UNSCORED = ("waiting", "running")
HELD_OUT_WAITS = "held-out models wait"  # of a run whose own model is scored, and not yet those of held-out images
NOT_ENDED = (*UNSCORED, HELD_OUT_WAITS)
ALL_IMAGES = ("dci-2018-16px",)  # studies that are scored on all images, as in the paper; others on 10 000
Key: TypeAlias = tuple[str, str, int]  # family, setting and seed of a run
UNITS_IN_WORDS = {"family": "families"}


def judged(paper: Paper, rule: Rule, trial: Trial | None) -> dict[str, Any]:
    """A row of evidence/claims.json. An observation has no verdict, and its number none of what decides."""
    row: dict[str, Any] = {"paper": paper.name, "file": rule.file, "id": rule.id, "claim": rule.claim}
    row |= {"where": rule.where, "published": rule.published, "setting": rule.setting}
    row |= {name: text for name in ("note", *UNJUDGED) if (text := getattr(rule, name))}
    if rule.measure is None:
        return {**row, "verdict": next(verdict for name, verdict in UNJUDGED.items() if name in row)}
    row |= {"rule": in_words(rule), "studies": list(rule.study)}
    observed = rule in paper.observations
    if not observed:
        if trial is None or trial["digest"] != digest(rule):
            return {**row, "verdict": "awaits its trial", "why": "its rule has changed since it was tried"}
        row["trial"] = trial
        if not passes(trial):
            return {**row, "verdict": "rule too weak", "why": "its rule cannot tell, with so few units"}
    if reason := unfinished(rule, trial):
        return {**row, "verdict": "awaits a run", "why": "; ".join([reason, *pilot_failures(paper, rule)])}
    if failures := unlearnt(paper, rule):
        return {**row, "verdict": "not judged", "why": "these models have not learnt: " + "; ".join(failures)}
    runs = looked_at(rule)
    effect = measured(rule.measure, runs)
    row |= {**rounded(effect), "commits": sorted(set(runs["commit"].astype(str))), "hours": hours(runs)}
    return {**row, "verdict": "" if observed else rule.verdict(effect)}


def unfinished(rule: Rule, trial: Trial | None) -> str:
    """Why there is no table yet that may decide, or of an observation none at all."""
    assert rule.measure is not None
    for name in rule.study:
        if not (RESULTS / f"{name}.csv").is_file():
            return f"{name} has not run"
    groups, runs = rule.measure.groups, table(rule.study)
    for group, other in zip(groups, ("less", "rows") if len(groups) == 2 else ("",), strict=True):
        if trial and (reason := why_not(rule, runs[matches(runs, group)], trial.get("again", False), other)):
            return reason
    if not all_ended(rule):
        return f"not all runs have ended of {' and '.join(of_rows(rows) for rows in rule.measure.groups if rows)}"
    missing = [name for name in rule.measure.all_columns if name not in table(rule.study)]
    return f"no run has {', '.join(missing)}" if missing else ""


def looked_at(rule: Rule) -> pd.DataFrame:
    """The runs of its studies that the rule compares."""
    assert rule.measure is not None
    runs = table(rule.study)
    return runs[np.any([matches(runs, rows) for rows in rule.measure.groups], axis=0)].reset_index(drop=True)


def unlearnt(paper: Paper, rule: Rule) -> list[str]:
    """Gates that the rule's studies have not passed, in words; those of models that still wait say nothing yet."""
    gates = [
        gate
        for gate in paper.gates
        if gate.study in rule.study and not any_waits(read_table(gate.study), gate.rows, gate.columns)
    ]
    return [failure for gate in gates if (failure := gate.failure(table([gate.study])))]


def pilot_failures(paper: Paper, rule: Rule) -> list[str]:
    """Gates that the runs which have ended so far do not pass, in words."""
    begun = [gate for gate in paper.gates if gate.study in rule.study and (RESULTS / f"{gate.study}.csv").is_file()]
    tables = [(gate, table([gate.study])) for gate in begun]
    return [gate.failure(runs) for gate, runs in tables if np.isfinite(gate.value(runs)) and gate.failure(runs)]


def all_ended(rule: Rule) -> bool:
    """Whether there are runs of each group that the rule looks at, none of which waits or is at work."""
    assert rule.measure is not None
    planned = pd.concat([read_table(name) for name in rule.study], ignore_index=True)
    try:
        return not any(any_waits(planned, rows, rule.measure.all_columns) for rows in rule.measure.groups)
    except ValueError:  # there are none
        return False


def any_waits(planned: pd.DataFrame, rows: Rows, columns: Sequence[str]) -> bool:
    """Whether one of these runs waits or is at work, or has not all of these columns until its held-out models end."""
    runs = chosen(planned, rows)
    unanswered = (runs["state"] == HELD_OUT_WAITS) & runs.reindex(columns=columns).isna().any(axis=1)
    return bool((runs["state"].isin(UNSCORED) | unanswered).any())


def in_words(rule: Rule) -> str:
    """The rule in one line."""
    measure = rule.measure
    assert measure is not None
    where = f" where {of_rows(measure.rows)}" if measure.rows else ""
    less = of_rows(measure.less) if isinstance(measure.less, Mapping) else f"`{measure.less}`"
    unit = measure.unit.replace("_", " and ")
    columns = {name: ", ".join(f"`{each}`" for each in np.atleast_1d(value)) for name, value in measure.columns.items()}
    edge = f"below {measure.columns['below']}" if "below" in columns else f"above {measure.columns.get('above')}"
    text = {
        "mean": "mean {x}{where}",
        "difference": "mean {x}{where}, less that where {less}",
        "paired": "mean of {x} less {less}{where}",
        "beyond": "mean {x}{where}, less that of the one run where {less}",
        "spread": "standard deviation of {x} over seeds{where}, less that where {less}",
        "best_of_seed": "highest {x} of each seed{where}, less that where {less}",
        "spearman_by_family": "rank correlation of {x} with each of {ys} within families{where}",
        "disagreement": "largest difference of places by {x} and by {y}{where}",
        "share": "share of {x} {edge}{where}",
        "spearman": "rank correlation of {x} and {y}{where}",
        "pearson": "correlation of {x} and {y}{where}",
        "spearman_within": "rank correlation of {x} and {y} within settings{where}",
        "correlation_gap": "correlation of {x} and {y}{where}, less that where {less}",
        "lead": "correlation of {x} with {y}, less the highest of {others}{where}",
        "pick": "{y} of the run of the highest {by}, less {against}{where}",
        "best_setting": "highest mean {x} of a setting{where}, less that where {less}",
    }[measure.kind].format_map({**columns, "where": where, "less": less, "edge": edge})
    text = text.replace("less `median`", "less the median").replace("less `best`", "less the best")
    text += f", over {UNITS_IN_WORDS.get(unit, f'{unit}s')}"
    if rule.counts is not None:
        text += f": {'above' if rule.above is not None else 'below'} {rule.bound:g}, counts from {rule.counts:g}"
    return text.replace("-", "−")


def of_rows(rows: Any) -> str:
    """Which runs, without the prefix of columns of hyperparameters."""
    parts = []
    for column, value in rows.items():
        values = value if isinstance(value, list) else [value]
        parts.append(f"{column.removeprefix('hyper.')} = {' or '.join(map(str, values))}")
    return ", ".join(parts)


def table(studies: Sequence[str]) -> pd.DataFrame:
    """The runs of studies whose own models have ended, with the ELBO in nats where both of its terms are there."""
    runs = pd.concat([read_table(name) for name in studies], ignore_index=True)
    runs = runs[~runs["state"].isin(UNSCORED)].reset_index(drop=True)
    kl = next((name for name in ("elbo_terms.kl", "train.kl") if name in runs), None)
    if kl is None or "train.reconstruction" not in runs:
        return runs
    return runs.assign(elbo=-runs["train.reconstruction"] - runs[kl])


@lru_cache
def read_table(name: str) -> pd.DataFrame:
    return pd.read_csv(RESULTS / f"{name}.csv").copy()  # in one piece, as many columns are added to it


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
    for section in ("compositional", "zero_shot"):
        if getattr(study.config, section):
            frame = with_unanswered(frame, section)
    if study.config.name in ALL_IMAGES:
        frame = by_all_images(frame, folder)
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
        ranking = rank_candidates(candidates, chosen, left_out=left_out, tested=False)
        frame[column] = frame["run"].map(dict(zip(ranking.runs, ranking.scores, strict=True)))
        if column in ("udr.score", "udr.score_paper"):
            latents = column.replace("score", "informative")
            frame[latents] = frame["run"].map(dict(zip(ranking.runs, ranking.informative, strict=True)))
    return frame


def with_unanswered(frame: pd.DataFrame, section: str) -> pd.DataFrame:
    """The table in which runs have not ended until their models of held-out images have been scored."""
    answers = frame.filter(regex=rf"^{section}\.").notna().any(axis=1)
    return frame.assign(state=frame["state"].mask((frame["state"] == "finished") & ~answers, HELD_OUT_WAITS))


def by_all_images(frame: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """The table with DCI of the codes of all images, and its errors and completeness by factor."""
    frame = frame.copy()
    columns = [name for name in frame if name.startswith("dci_")]
    metrics = sorted({name.partition(".")[0] for name in columns})
    for row in frame.index[frame["state"] == "finished"]:
        run = unbraid.load_run(folder / "runs" / frame.at[row, "run"])
        card = unbraid.score(run.representation(n=len(run.dataset())), metrics=metrics)
        frame.at[row, "n_rows"] = card.n_samples
        for name in columns:
            metric, _, value = name.partition(".")
            frame.at[row, name] = getattr(card[metric], value)
        for metric in metrics:
            for number, factor in enumerate(card.representation.names):
                frame.loc[row, f"{metric}.errors.{factor}"] = card[metric].errors[number]
                frame.loc[row, f"{metric}.per_factor.{factor}"] = card[metric].per_factor[number]
    return frame


def with_earlier(runs: pd.DataFrame, table: Path) -> pd.DataFrame:
    """The runs of a study, with those of the table that ended on an earlier machine and not here."""
    if not table.is_file():
        return runs
    earlier = pd.read_csv(table)
    earlier = earlier[
        ~earlier["state"].isin(NOT_ENDED) & ~keys(earlier).isin(keys(runs[~runs["state"].isin(NOT_ENDED)]))
    ]
    return pd.concat([earlier, runs[~keys(runs).isin(keys(earlier))]], ignore_index=True)


def ended(runs: pd.DataFrame) -> set[Key]:
    """Which runs have ended."""
    return {key for key, state in zip(keys(runs), runs["state"], strict=True) if state not in NOT_ENDED}


def keys(runs: pd.DataFrame) -> pd.MultiIndex:
    """Family, setting and seed, by which a run is known on every machine."""
    return pd.MultiIndex.from_arrays([runs[name] for name in ("family", "setting", "seed")])


def main() -> None:
    """Judge claims, or gather the table of a study."""
    if sys.argv[1:2] == ["--gather"]:
        for folder in map(Path, sys.argv[2:]):
            name = Study.load(folder).config.name
            with_earlier(gathered(folder), RESULTS / f"{name}.csv").to_csv(RESULTS / f"{name}.csv", index=False)
            print(f"wrote {RESULTS / name}.csv")
        return
    rows: dict[str, list[dict[str, Any]]] = {"claims": [], "observations": []}
    trials = stored()
    for path in sorted((ROOT / CLAIMS).glob("*.yaml")):
        paper = read(path)
        for table_name in rows:
            for rule in getattr(paper, table_name):
                rows[table_name].append(judged(paper, rule, trials.get(f"{rule.file} {rule.id}")))
                print(f"{rows[table_name][-1]['verdict']:16} {rule.file}, {rule.id}: {rule.claim}", flush=True)
    FILE.write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
