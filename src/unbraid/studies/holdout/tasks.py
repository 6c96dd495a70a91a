"""The runs of a study that are trained without some images, and the questions about these images.

They are runs like any other, with a folder of their own in runs/, but they have no row in the results: their answers
belong to the run with the same family, setting and seed that saw all images. held_out.json in a run folder holds the
answers by question, so that one training serves all questions.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from unbraid.data.image_dataset import FactorDataset
from unbraid.datasets.digest import subset_digest
from unbraid.datasets.subset import SubsetDataset, Without, leave_out
from unbraid.families.family_table import find_family
from unbraid.runs.folder import run_id
from unbraid.studies import store
from unbraid.studies.executors.task import Task
from unbraid.studies.expand import StudyEnvironment, expand
from unbraid.studies.holdout.splits import Holdout, compositional_holdouts, zero_shot_holdout
from unbraid.studies.schema import CompositionalSection, StudyConfig, ZeroShotSection
from unbraid.studies.snapshot import Planned
from unbraid.studies.study_record import StudyPart
from unbraid.training.train import check_members, training_of


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
