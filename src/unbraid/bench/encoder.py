"""An encoder or a family on a suite: trained within its budget, scored beside chance and baselines, resumable."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unbraid._utils.suggest import suggestion
from unbraid.bench.scores import Numbers, baselines, numbers
from unbraid.bench.suite import Suite, find_suite
from unbraid.bench.trained import Trained, encoder, trained_encoder, trained_family, why_not
from unbraid.datasets import load
from unbraid.datasets.base import FactorDataset
from unbraid.families.table import FAMILIES, family_hint
from unbraid.storage.trust import is_code, trusting
from unbraid.studies.record import StudyProgress
from unbraid.types import Progress


@dataclass(frozen=True)
class Scored:
    """A model with its numbers, and those of what was never trained beside it."""

    model: Trained
    numbers: Numbers


@dataclass(frozen=True)
class Bench:
    """What was measured.

    `baselines` are by set and name, a `Numbers` for each of them that was drawn; `trial` says why this is not the whole
    suite, and is empty where it is; `notes` are for readers.
    """

    suite: Suite
    what: str
    scored: Sequence[Scored]
    baselines: Mapping[str, Mapping[str, Sequence[Numbers]]]
    trial: Sequence[str]
    notes: Sequence[str]

    @property
    def study(self) -> str:
        """What its results are called."""
        return self.suite.trial if self.trial else self.suite.study

    def of_set(self, label: str) -> list[Scored]:
        """The models of one set, by seed."""
        return sorted((each for each in self.scored if each.model.label == label), key=lambda each: each.model.seed)


def bench_encoder(
    what: str,
    *,
    suite: str | Suite = "laptop",
    work: str | Path,
    sets: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    settings: Mapping[str, Any] | None = None,
    processes: int | None = None,
    training: Callable[[StudyProgress], None] | None = None,
    progress: Progress | None = None,
) -> Bench:
    """Train an encoder or a family on the sets of a suite, and score it.

    Called again with the same folder it goes on where it was stopped; the same seeds give the same numbers.

    Args:
        what: "package.module:function", called as function(images, seed=..., steps=...) for every set and seed, with
            images (n, channels, height, width), float32 from 0 to 1, and without labels. It returns a function from
            such images to codes (n, n_codes), an array or a tensor. Or the name of a family, such as "beta_vae".
        suite: its name, or a `Suite`.
        work: folder that keeps what is done.
        sets, seeds: for a trial, labels of sets and seeds in place of all of them.
        settings: of a family: hyperparameters in place of those that the suite has for it.
        processes: of a family: trainings at a time; by default one per core.
        training: told of the training of a family.
        progress: called as progress(what is done, done, all).

    Raises:
        ValueError: no such suite, set, family or setting; the function raised, or what it made has another shape; a
            metric is not defined for the codes. The line names the function, the set and the seed.
        KeyboardInterrupt: stopped; the same call goes on.
    """
    chosen = find_suite(suite) if isinstance(suite, str) else suite
    labels, picked = _sets(chosen, sets), list(chosen.seeds if seeds is None else seeds)
    if not picked or len(set(picked)) < len(picked) or min(picked) < 0:
        raise ValueError(f"seeds must be different whole numbers from 0 on; got {picked}")
    work = Path(work)
    datasets = {label: load(**chosen.sets[label]) for label in labels}
    trial = [
        *([f"sets {', '.join(labels)} alone"] if set(labels) < set(chosen.sets) else []),
        *([f"seeds {', '.join(map(str, picked))}"] if sorted(picked) != sorted(chosen.seeds) else []),
    ]
    if is_code(what):
        if settings:
            raise ValueError("settings (--set) are of a family; an encoder of your own has its own")
        models, late = _of_encoder(what, chosen, datasets, picked, work, progress)
        trial, notes = trial + late, []
    else:
        own, notes = _possible(what, chosen, datasets, settings or {})
        models, lost = trained_family(
            what, own, chosen, list(datasets), picked, work / "study", processes=processes, progress=training
        )
        trial += lost
    if not models:
        raise ValueError(f"{what}: no model was trained to its end: {'; '.join([*trial, *notes])}")
    found, beside = _scored(what, chosen, datasets, models, work / "scores", progress)
    return Bench(chosen, what, found, beside, trial, notes)


def _sets(suite: Suite, asked: Sequence[str] | None) -> list[str]:
    for label in asked or ():
        if label not in suite.sets:
            raise ValueError(f"suite {suite.name} has no set {label!r}; {suggestion(label, suite.sets)}")
    return [label for label in suite.sets if not asked or label in asked]


def _of_encoder(
    what: str, suite: Suite, datasets: Mapping[str, FactorDataset], seeds: Sequence[int], work: Path,
    progress: Progress | None,
) -> tuple[list[Trained], list[str]]:  # fmt: skip
    """Its models, and what took longer than it may."""
    function, models = encoder(trusting(what)), []
    for label, dataset in datasets.items():
        for seed in seeds:
            if progress:
                progress(f"training on {label}, seed {seed}", len(models), len(datasets) * len(seeds))
            models.append(trained_encoder(what, function, suite, label, dataset, seed, work / "codes"))
    late = [
        f"{each.label}, seed {each.seed} took {each.seconds:.0f} s of the {suite.seconds:g} s that there are"
        for each in models
        if each.seconds > suite.seconds
    ]
    return models, late


def _possible(
    family: str, suite: Suite, datasets: dict[str, FactorDataset], given: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Its settings; of the sets only those are left that it can be trained on, and a line says why of the others."""
    if family not in FAMILIES:
        raise ValueError(f"no family {family!r}; {family_hint(family)}")
    settings = {**suite.settings.get(family, {}), **given}
    reasons = {label: why_not(family, settings, dataset.space) for label, dataset in datasets.items()}
    for label, reason in reasons.items():
        if reason:
            del datasets[label]
    return settings, [f"not on {label}: {reason}" for label, reason in reasons.items() if reason]


def _scored(
    what: str, suite: Suite, datasets: Mapping[str, FactorDataset], models: Sequence[Trained], folder: Path,
    progress: Progress | None,
) -> tuple[list[Scored], dict[str, dict[str, list[Numbers]]]]:  # fmt: skip
    found, total = [], len(models) + len(datasets)
    for number, model in enumerate(models):
        name = f"{model.label}, seed {model.seed}"
        if progress:
            progress(f"scoring {name}", number, total)
        path = folder / f"{model.label}-{model.id}.json"
        found.append(
            Scored(model, numbers(path, model.codes, suite, model.label, f"{what} on {name}", shuffles=suite.shuffles))
        )
    beside: dict[str, dict[str, list[Numbers]]] = {}
    for number, (label, dataset) in enumerate(datasets.items()):
        own = [each for each in found if each.model.label == label]
        if progress:
            progress(f"scoring baselines of {label}", len(models) + number, total)
        for n_codes in dict.fromkeys(each.numbers.n_codes for each in own):
            untrained = {
                each.model.id: each.model.untrained
                for each in own
                if each.model.untrained is not None and each.numbers.n_codes == n_codes
            }
            for title, some in baselines(folder, label, dataset, n_codes, suite, untrained).items():
                beside.setdefault(label, {}).setdefault(title, []).extend(some)
    return found, beside
