"""Scores of codes on a suite, their chance level and those of baselines; each is kept in a file once it is there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from unbraid.bench.suite import Suite
from unbraid.confidence.baselines import COMPONENTS, PROJECTION, UNTRAINED
from unbraid.datasets.base import FactorDataset
from unbraid.metrics import METRICS
from unbraid.metrics._shared.provenance import decision
from unbraid.representation import Representation
from unbraid.runs.run import BATCH, N_CODES
from unbraid.scoring.encoding import encoded
from unbraid.scoring.pixels import MADE, principal_components, random_projection
from unbraid.scoring.score import score
from unbraid.storage.json_records import read_object
from unbraid.studies.store import write_json

MAKERS = {
    PROJECTION: partial(random_projection, seed=0),
    COMPONENTS: partial(principal_components, batch_size=BATCH, seed=0),
}


@dataclass(frozen=True)
class Numbers:
    """What the codes of one model of one set score, by column, and what rows that were shuffled score on average."""

    scores: Mapping[str, float]
    chance: Mapping[str, float]
    n_codes: int


def numbers(
    path: Path, codes: Callable[[], Representation], suite: Suite, label: str, what: str, *, shuffles: int = 0
) -> Numbers:
    """Scores by the metrics of a suite, read where they are kept by the same rules.

    Args:
        path: of the file that keeps them; its name tells these codes from all others of the set.
        codes: asked for where they are not kept.
        suite: whose metrics count.
        label: of the set.
        what: is scored, for errors.
        shuffles: of the rows, for the chance level.

    Raises:
        ValueError: a metric is not defined for these codes, or failed.
    """
    metrics = {name: decision(name, METRICS[name]) for name in suite.metrics}
    rules = {"images": dict(suite.sets[label]), "baselines": MADE, "shuffles": shuffles, "metrics": metrics}
    if path.is_file() and (kept := read_object(path, checksummed=True))["rules"] == rules:
        return Numbers(kept["scores"], kept["chance"], kept["n_codes"])
    representation = codes()
    try:
        card = score(representation, metrics=suite.metrics, null=shuffles, on_error="raise")
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error
    for name, reason in card.skipped.items():
        raise ValueError(f"{what}: {name} {reason}")
    scored = {f"{name}.{each.metric.headline}": each for name, each in card.scored.items()}
    found = Numbers(
        {column: float(each.headline) for column, each in scored.items()},
        {column: each.null.mean for column, each in scored.items() if each.null is not None},
        representation.codes.shape[1],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"rules": rules, **vars(found)})
    return found


def baselines(
    folder: Path, label: str, dataset: FactorDataset, n_codes: int, suite: Suite,
    untrained: Mapping[str, Callable[[], Representation]],
) -> dict[str, list[Numbers]]:  # fmt: skip
    """Scores of codes without training, by the name of the baseline.

    Args:
        folder: that keeps them.
        label: of the set.
        dataset: its images.
        n_codes: of each baseline that has no network.
        suite: whose metrics count.
        untrained: what gives the codes of networks before their first step, by what their files are called.
    """
    found: dict[str, list[Numbers]] = {}
    for title, make in MAKERS.items():
        path = folder / f"{label}-{title.replace(' ', '-')}-{n_codes}.json"
        codes = partial(_codes, make, dataset, n_codes)
        found[title] = [numbers(path, codes, suite, label, f"{title}, {label}")]
    if untrained:
        found[UNTRAINED] = [
            numbers(folder / f"{label}-untrained-{name}.json", codes, suite, label, f"{UNTRAINED}, {label}")
            for name, codes in untrained.items()
        ]
    return found


def _codes(make: Callable[..., Callable[[Any], Any]], dataset: FactorDataset, n_codes: int) -> Representation:
    return encoded(make(dataset, n_codes), dataset, N_CODES, BATCH, 0)
