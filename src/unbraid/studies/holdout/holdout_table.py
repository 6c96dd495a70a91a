"""Answers of a study's held-out runs, gathered by the run that saw all images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unbraid.studies import store
from unbraid.studies.holdout.evaluation import HEADS, REGRESSORS, Summary, summary
from unbraid.studies.holdout.tasks import sections, terms
from unbraid.studies.schema import CompositionalSection, StudyConfig, ZeroShotSection
from unbraid.studies.snapshot import StudySnapshot

FOLDER = "generalisation"
PREFIX = {"combination": "", "random": "random_"}


@dataclass(frozen=True)
class RunAnswers:
    """Answers that belong to one run of the study."""

    expected: Mapping[str, int]  # hold-outs by split
    answers: Mapping[str, list[Mapping[str, Any]]]  # those that are there, by split, in the order of their number

    def complete(self, split: str) -> bool:
        return len(self.answers[split]) == self.expected[split] > 0


def answers_by_run(snapshot: StudySnapshot) -> dict[str, dict[str, RunAnswers]]:
    """By kind ("compositional", "zero_shot") and run, what held-out runs have answered to the study's questions."""
    config = snapshot.config
    question_sets = {kind: (terms(config, kind), _expected(section)) for kind, section in sections(config).items()}
    gathered: dict[tuple[str, str, str], dict[int, Mapping[str, Any]]] = {}
    for name, answers in snapshot.answers.items():
        for answer in answers.values():
            question = answer["question"]
            question_set = question_sets.get(question["kind"])
            if (
                question_set
                and question["terms"] == question_set[0]
                and question["number"] < question_set[1][question["split"]]
            ):
                key = (question["kind"], question["of"], question["split"])
                gathered.setdefault(key, {})[question["number"]] = {**answer, "run": name}
    return {
        kind: {
            run.id: RunAnswers(
                expected,
                {
                    split: [answer for _, answer in sorted(gathered.get((kind, run.id, split), {}).items())]
                    for split in expected
                },
            )
            for run in snapshot.runs
            if not run.is_added
        }
        for kind, (_, expected) in question_sets.items()
    }


def _expected(section: CompositionalSection | ZeroShotSection) -> dict[str, int]:
    if isinstance(section, ZeroShotSection):
        return {"gap": 1}
    n = section.n_combinations if section.combinations is None else len(section.combinations)
    return {"combination": n, "random": n if section.n_random is None else section.n_random}


def answered(snapshot: StudySnapshot) -> dict[str, tuple[int, int]]:
    """By kind, the number of answered hold-outs and of all."""
    counts = {}
    for kind, by_run in answers_by_run(snapshot).items():
        done = sum(len(answers) for run_answers in by_run.values() for answers in run_answers.answers.values())
        counts[kind] = done, sum(count for run_answers in by_run.values() for count in run_answers.expected.values())
    return counts


def columns(snapshot: StudySnapshot) -> dict[str, dict[str, float]]:
    """Columns of the results, by run; only of runs whose hold-outs of a split have all been answered.

    compositional.<head>.<factor> or .both: accuracy on held-out combinations, chance-adjusted, 0 to 1;
        with random_ before the name the same on random splits, with _spread behind it the standard deviation over
        hold-outs.
    zero_shot.<regressor>.gap and .ordinary: NRMSE in the gap and on other unseen images, lower is better;
        .cost: the first less the second.
    """
    columns_by_run: dict[str, dict[str, float]] = {}
    for kind, by_run in answers_by_run(snapshot).items():
        for run, run_answers in by_run.items():
            made = (
                _error_columns(run_answers) if kind == "zero_shot" else _accuracy_columns(run_answers, snapshot.config)
            )
            columns_by_run.setdefault(run, {}).update(made)
    return columns_by_run


def _accuracy_columns(of_run: RunAnswers, config: StudyConfig) -> dict[str, float]:
    made: dict[str, float] = {}
    for split in filter(of_run.complete, of_run.expected):
        for head, head_summary in summaries(of_run.answers[split]).items():
            for place, name in enumerate(_names(config)):
                made[f"compositional.{head}.{PREFIX[split]}{name}"] = float(head_summary.score[place])
                if head_summary.spread is not None:
                    made[f"compositional.{head}.{PREFIX[split]}{name}_spread"] = float(head_summary.spread[place])
    return made


def _error_columns(of_run: RunAnswers) -> dict[str, float]:
    made: dict[str, float] = {}
    for answer in of_run.answers["gap"]:
        for regressor in REGRESSORS:
            gap, ordinary = (float(np.mean(list(answer["errors"][regressor][part].values()))) for part in _PARTS)
            made |= {
                f"zero_shot.{regressor}.gap": gap,
                f"zero_shot.{regressor}.ordinary": ordinary,
                f"zero_shot.{regressor}.cost": gap - ordinary,
            }
    return made


_PARTS = ("gap", "ordinary")


def summaries(answers: Sequence[Mapping[str, Any]]) -> dict[str, Summary]:
    """By head, the answers of one split combined; only heads that are in all answers."""
    chance = [answer["chance"] for answer in answers]
    heads = [head for head in HEADS if all(answer["accuracy"].get(head) for answer in answers)]
    return {head: summary([answer["accuracy"][head] for answer in answers], chance) for head in heads}


def _names(config: StudyConfig) -> list[str]:
    assert config.compositional is not None
    return [*config.compositional.factors, "both"]


def contents(snapshot: StudySnapshot) -> dict[str, dict[str, Any]]:
    """By kind, every answer and the columns computed from them, as plain data."""
    made = columns(snapshot)
    return {
        kind: {
            "terms": terms(snapshot.config, kind),
            "runs": [
                {
                    "run": run.id,
                    "family": run.family,
                    "setting": run.setting,
                    "seed": run.seed,
                    "expected": dict(by_run[run.id].expected),
                    "columns": {name: value for name, value in made[run.id].items() if name.startswith(kind)},
                    "answers": {split: list(answers) for split, answers in by_run[run.id].answers.items()},
                }
                for run in snapshot.runs
                if run.id in by_run
            ],
        }
        for kind, by_run in answers_by_run(snapshot).items()
    }


def write_generalisation(_: object, snapshot: StudySnapshot, _progress: object = None) -> bool:
    """Write `contents` to generalisation/compositional.json and zero_shot.json; derived, like the table of results.

    False, as nothing is computed.
    """
    for kind, content in contents(snapshot).items():
        (snapshot.folder / FOLDER).mkdir(exist_ok=True)
        store.write_json(snapshot.folder / FOLDER / f"{kind}.json", content)
    return False
