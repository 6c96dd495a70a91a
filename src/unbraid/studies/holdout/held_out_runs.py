"""The runs of a study that are trained without some images, the questions about these images, and their answers.

They are runs like any other, with a folder of their own in runs/, but they have no row in the results: their answers
belong to the run with the same family, setting and seed that saw all images. held_out.json in a run folder holds the
answers by question, so that one training serves all questions.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unbraid.data.image_dataset import FactorDataset
from unbraid.datasets.digest import subset_digest
from unbraid.datasets.subset import SubsetDataset, Without, leave_out
from unbraid.families.family_table import find_family
from unbraid.runs.folder import run_id
from unbraid.studies import store
from unbraid.studies.executors.work import Task
from unbraid.studies.expand import StudyEnvironment, expand
from unbraid.studies.holdout.evaluation import HEADS, REGRESSORS, Summary, summary
from unbraid.studies.holdout.splits import Holdout, compositional_holdouts, zero_shot_holdout
from unbraid.studies.schema import CompositionalSection, StudyConfig, ZeroShotSection
from unbraid.studies.snapshot import Planned, StudySnapshot
from unbraid.studies.study_record import StudyPart
from unbraid.training.train import check_members, training_of

FOLDER = "generalisation"
PREFIX = {"combination": "", "random": "random_"}


def held_out_tasks(
    study: StudyPart, dataset: FactorDataset, around: StudyEnvironment
) -> tuple[list[Task], dict[str, FactorDataset]]:
    """The runs without some images that the sections `compositional` and `zero_shot` ask for, and their images.

    Raises:
        ValueError: a section that the dataset cannot meet; the path of the key comes first.
    """
    datasets: dict[str, FactorDataset] = {}
    tasks: dict[str, Task] = {}
    folder = str(study.require_folder().absolute() / store.RUNS)
    described = []
    for kind, number, holdout in _holdouts(study.config, dataset):
        part = leave_out(dataset, holdout.without)
        record = _described(part, around, holdout)
        datasets[record["content"]] = part
        described.append((kind, number, holdout, record))
    runs, every, limit = expand(study.config, around), study.config.checkpoint_every, study.config.time_limit
    if described:
        _check_families(runs, described[0][0], datasets[described[0][3]["content"]])
    for planned in runs:
        for kind, number, holdout, record in described:
            config = {**planned.config, "dataset": record}
            question = {
                "kind": kind, "of": planned.id, "split": holdout.split, "number": number, "name": holdout.name,
                "without": _plain(holdout.without), "terms": terms(study.config, kind),
            }  # fmt: skip
            label = ", ".join(filter(None, (planned.setting, kind)))
            own = Task(run_id(config), config, folder, checkpoint_every=every, time_limit=limit, label=label)
            task = tasks.setdefault(own.id, own)
            tasks[task.id] = replace(task, questions=(*task.questions, question))
    return list(tasks.values()), datasets


def _check_families(runs: Sequence[Planned], kind: str, part: FactorDataset) -> None:
    """Raises ValueError for a family whose supervision needs a full grid of factors."""
    for config in {planned.family: planned.config for planned in runs}.values():
        row = find_family(config["family"])
        if row.supervision:
            try:
                check_members(row, part, [training_of(config)])
            except ValueError as error:
                raise ValueError(f"{kind}: without some images, {error}") from None


def _holdouts(config: StudyConfig, dataset: FactorDataset) -> Iterator[tuple[str, int, Holdout]]:
    for kind, section in sections(config).items():
        if isinstance(dataset, SubsetDataset):
            raise ValueError(f"{kind}: the dataset leaves out images itself (dataset.without); hold out of all of them")
        try:
            holdouts = _drawn(section, dataset)
        except ValueError as error:
            raise ValueError(f"{kind}: {error}") from None
        numbers: dict[str, int] = {}
        for holdout in holdouts:
            number = numbers.get(holdout.split, 0)
            numbers[holdout.split] = number + 1
            yield kind, number, holdout


def _drawn(section: CompositionalSection | ZeroShotSection, dataset: FactorDataset) -> list[Holdout]:
    if isinstance(section, ZeroShotSection):
        return [zero_shot_holdout(dataset.space, section.held_out, seed=section.seed)]
    return compositional_holdouts(
        dataset.space, section.factors, n_combinations=section.n_combinations, n_random=section.n_random,
        combinations=section.combinations, seed=section.seed,
    )  # fmt: skip


def sections(config: StudyConfig) -> dict[str, CompositionalSection | ZeroShotSection]:
    """The sections of a study that hold images out, by name."""
    both = {"compositional": config.compositional, "zero_shot": config.zero_shot}
    return {kind: section for kind, section in both.items() if section is not None}


def terms(config: StudyConfig, kind: str) -> dict[str, Any]:
    """All that determines an answer besides the hold-out itself."""
    section = sections(config)[kind]
    chosen = {"n_rows": section.n_rows, "seed": section.seed}
    if isinstance(section, ZeroShotSection):
        return {"held_out": section.held_out, **chosen}
    pairs = section.combinations and [list(pair) for pair in section.combinations]
    return {"factors": list(section.factors), "combinations": pairs, **chosen}


def _described(part: SubsetDataset, around: StudyEnvironment, holdout: Holdout) -> dict[str, Any]:
    """The dataset of a config, by which a finished run opens it again."""
    return {
        **around.dataset,
        "options": {**around.dataset["options"], "without": _plain(holdout.without)},
        "n_images": len(part),
        "content": subset_digest(around.dataset["content"], part.positions),
    }


def _plain(without: Without) -> Any:
    return json.loads(json.dumps(without))


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
    """By head, the answers of one split combined."""
    chance = [answer["chance"] for answer in answers]
    return {head: summary([answer["accuracy"][head] for answer in answers], chance) for head in HEADS}


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
