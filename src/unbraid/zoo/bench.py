"""Score the models of a zoo by a metric: which of the known metrics put them in the same order, and what of defects?"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from unbraid.base.arguments import check_whole
from unbraid.base.repr import Shown
from unbraid.base.suggest import one_line
from unbraid.base.types import Progress
from unbraid.metrics import METRICS, Metric, NotDefined
from unbraid.scoring.correlation import correlation, correlation_interval
from unbraid.scoring.engine import score_each
from unbraid.scoring.result_columns import LEAST_RUNS, why_not
from unbraid.scoring.score import Named
from unbraid.scoring.scored import Scored
from unbraid.scoring.stress import numbers_of, rows_named
from unbraid.zoo.listing import open_zoo
from unbraid.zoo.zoo_files import ZooFile

__all__ = ["Benched", "bench_metrics"]


@dataclass(frozen=True)
class Rank:
    """How alike two metrics rank the models of each dataset, both turned so that higher is better."""

    metric: str  # of the zoo
    value: float  # Spearman's correlation in [-1, 1], the mean over datasets
    low: float  # 95 % interval of it
    high: float
    models: int
    settings: int  # that these are seeds of; what the interval counts
    by_dataset: Mapping[str, float]


@dataclass(frozen=True)
class OfDefect:
    """Mean scores of the models that have a defect, and of those of the same datasets that do not."""

    defect: str
    models: int  # that have it
    score: float  # their mean, itself averaged over datasets
    without: float


@dataclass(frozen=True, eq=False, repr=False)
class Benched(Shown):
    """One value of a metric on the models of a zoo."""

    metric: str
    value: str
    higher_is_better: bool
    ranks: tuple[Rank, ...]  # the most alike first
    defects: tuple[OfDefect, ...]
    scores: Mapping[str, float]  # by model
    seconds: float  # that a model took, the median
    left_out: Mapping[str, str] = field(default_factory=dict)  # by model, dataset or metric of the zoo: why
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As the JSON file has it."""
        return {
            "metric": self.metric, "value": self.value, "higher_is_better": self.higher_is_better,
            "seconds": self.seconds, "ranks": [asdict(entry) for entry in self.ranks],
            "defects": [asdict(entry) for entry in self.defects], "scores": dict(self.scores),
            "left_out": dict(self.left_out), "notes": list(self.notes),
        }  # fmt: skip


@dataclass
class _ModelScores:
    """What came of a metric, model by model."""

    scores: dict[str, dict[str, float]] = field(default_factory=dict)  # by value, then by model
    seconds: list[float] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def bench_metrics(
    *metrics: Named,
    folder: Any = None,
    models: int | None = None,
    higher_is_better: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Benched, ...]:
    """Score the models of a zoo by metrics, and compare the order with that of every metric of the zoo.

    Args:
        *metrics: ids of `unbraid.metrics.METRICS`; "module:function", or a function, of your own, from codes
            (n_samples, n_codes) and factors (n_samples, n_factors) to a number or a mapping from names to numbers, as
            for `unbraid.stress`.
        folder: of the zoo, as for `unbraid.zoo.list`; default the one inside the package.
        models: so many alone, spread evenly over each dataset; default all.
        higher_is_better: of a function of your own.
        seed: the metric's.
        progress: called as progress(model, done, total).

    Returns:
        One `Benched` for each metric, or for each number of a mapping. `ranks`: within each dataset Spearman's
        correlation over models, then the mean over datasets. The interval counts settings, for seeds of one are not
        independent: that of each dataset is Fisher's (`unbraid.scoring.correlation_interval`), and their distances
        are added in squares. `defects`: mean scores with and without each. What is missing is in `left_out`, with the
        reason.

    Raises:
        ValueError: no metric or an unknown one; one that needs more than codes and factors, or that scored no model;
            or the zoo is damaged.
        FileNotFoundError: there is no zoo.

    Reference:
        Zou 2007, "Toward using confidence intervals to compare correlations": its limits of a difference, for a mean.

    Example:
        >>> only = bench_metrics("med", models=8)[0]
        >>> next(each.value for each in only.ranks if each.metric == "med")
        1.0
    """
    if not metrics:
        raise ValueError("name a metric to try")
    check_whole("seed", seed, 0)
    if models is not None:
        check_whole("models", models, LEAST_RUNS)
    chosen, files = rows_named(metrics, higher_is_better=higher_is_better), open_zoo(folder)
    entries = _spread(files, models)
    collected = {name: _ModelScores() for name in chosen}
    remaining = {file.dataset: dict(chosen) for file in files}
    for done, (file, entry) in enumerate(entries):
        model = f"{file.dataset}/{entry['name']}"
        if progress is not None:
            progress(model, done, len(entries))
        rows = remaining[file.dataset]
        if not rows:
            continue
        with closing(score_each(file.codes(entry["name"]), rows, seed=seed, with_chance=False)) as scores:
            for name, scored in [*scores]:
                if isinstance(scored, NotDefined):  # on these factors, whatever the model
                    collected[name].left_out[file.dataset] = one_line(scored)
                    del rows[name]
                else:
                    _add_scores(collected[name], model, scored)
    return tuple(result for name, row in chosen.items() for result in _results(name, row, collected[name], entries))


def _spread(files: Sequence[ZooFile], models: int | None) -> list[tuple[ZooFile, Mapping[str, Any]]]:
    """Each model with its file; of more than are wanted, as many of each dataset as its share, evenly."""
    every = [(file, entry) for file in files for entry in file.record["models"]]
    if models is None or models >= len(every):
        return every
    return [every[place] for place in np.linspace(0, len(every) - 1, models).round().astype(int)]


def _add_scores(collected: _ModelScores, model: str, scored: Scored | Exception) -> None:
    if isinstance(scored, Exception):
        collected.left_out[model] = one_line(f"{type(scored).__name__}: {scored}")
        return
    collected.seconds.append(scored.seconds)
    numbers = numbers_of(scored)
    # Of the table each metric has its headline; a mapping of the user's own has none.
    values = numbers if scored.metric.own else {scored.metric.headline: scored.headline}
    for value, number in values.items():
        if math.isfinite(number):
            collected.scores.setdefault(value, {})[model] = float(number)
        else:
            collected.left_out[model] = f"{value} is {number}"


def _results(
    name: str, row: Metric, collected: _ModelScores, entries: Sequence[tuple[ZooFile, Mapping[str, Any]]]
) -> Iterator[Benched]:
    if not collected.scores:
        what, why = next(iter(collected.left_out.items()))
        if row.needs:
            raise ValueError(f"{name} cannot be tried on a zoo, which holds codes and factors alone: it {row.needs}")
        raise ValueError(f"{name} gave no score of any model; of {what}: {why}")
    known = {f"{file.dataset}/{entry['name']}": (file, entry) for file, entry in entries}
    for value, scores in collected.scores.items():
        signed = 1 if row.higher_is_better else -1
        ranks, unranked = _ranks({model: signed * score for model, score in scores.items()}, known)
        yield Benched(
            name, value, row.higher_is_better, tuple(ranks), tuple(_defects(scores, known)), scores,
            float(np.median(collected.seconds)), {**collected.left_out, **unranked}, tuple(_notes(known)),
        )  # fmt: skip


Known = Mapping[str, tuple[ZooFile, Mapping[str, Any]]]


def _ranks(scores: Mapping[str, float], known: Known) -> tuple[list[Rank], dict[str, str]]:
    """Against each metric of the zoo; and why where that cannot be."""
    ranks: list[Rank] = []
    unranked: dict[str, str] = {}
    for metric in dict.fromkeys(name for file, _ in known.values() for name in file.record["metrics"]):
        signed = -1 if metric in METRICS and not METRICS[metric].higher_is_better else 1
        by_dataset: dict[str, list[str]] = {}
        for model in scores:
            file, entry = known[model]
            if metric in entry["scores"]:
                by_dataset.setdefault(file.dataset, []).append(model)
        parts: dict[str, tuple[float, int]] = {}
        fault = "no model has both"
        for dataset, models in by_dataset.items():
            first = np.array([scores[model] for model in models])
            second = signed * np.array([known[model][1]["scores"][metric] for model in models])
            if reason := why_not(second):
                fault = f"on {dataset} it {reason}"
                continue
            if reason := why_not(first):
                fault = f"on {dataset} the metric that is tried {reason}"
                continue
            settings = {(entry["family"], entry["setting"]) for entry in (known[model][1] for model in models)}
            parts[dataset] = correlation(first, second)[0], len(settings)
        if not parts:
            unranked[metric] = fault
            continue
        low, high = mean_interval(list(parts.values()))
        ranks.append(
            Rank(
                metric, float(np.mean([value for value, _ in parts.values()])), low, high,
                sum(len(by_dataset[dataset]) for dataset in parts), sum(n for _, n in parts.values()),
                {dataset: value for dataset, (value, _) in parts.items()},
            )
        )  # fmt: skip
    return sorted(ranks, key=lambda rank: -rank.value), unranked


def mean_interval(parts: Sequence[tuple[float, int]], confidence: float = 0.95) -> tuple[float, float]:
    """Ends of the interval of a mean of rank correlations that do not depend on each other.

    Args:
        parts: each correlation in [-1, 1], and how many independent runs it is of; fewer than three tell nothing.
        confidence: in (0, 1).

    Reference:
        Zou 2007: an end of the mean is as far from it as the root of the summed squares of the parts' distances says.

    Example:
        >>> np.allclose(mean_interval([(0.5, 30)]), correlation_interval(0.5, 30))
        True
    """
    values = np.array([value for value, _ in parts])
    ends = np.array(
        [correlation_interval(value, n, confidence) if n >= LEAST_RUNS else (-1.0, 1.0) for value, n in parts]
    )
    below, above = np.sqrt(((ends.T - values) ** 2).sum(axis=1)) / len(parts)
    return float(values.mean() - below), float(values.mean() + above)


def _defects(scores: Mapping[str, float], known: Known) -> Iterator[OfDefect]:
    """Of each defect that some models of a dataset have and others do not."""
    for defect in dict.fromkeys(name for _, entry in known.values() for name in entry["defects"]):
        pairs, count = [], 0
        for dataset in dict.fromkeys(file.dataset for file, _ in known.values()):
            scores_of = {True: [], False: []}
            for model, score in scores.items():
                if known[model][0].dataset == dataset:
                    scores_of[defect in known[model][1]["defects"]].append(score)
            if scores_of[True] and scores_of[False]:
                pairs.append((np.mean(scores_of[True]), np.mean(scores_of[False])))
                count += len(scores_of[True])
        if pairs:
            score, without = np.mean(pairs, axis=0).tolist()
            yield OfDefect(defect, count, score, without)


def _notes(known: Known) -> Iterator[str]:
    """One for each version of a metric of the zoo that is not today's, with the datasets that have such scores."""
    files = {file.dataset: file for file, _ in known.values()}
    outdated: dict[tuple[str, int], list[str]] = {}
    for dataset, file in files.items():
        for metric, version in file.record["metrics"].items():
            if metric in METRICS and METRICS[metric].version != version:
                outdated.setdefault((metric, version), []).append(dataset)
    for (metric, version), datasets in outdated.items():
        yield (
            f"the zoo's scores of {metric} on {', '.join(datasets)} are of its version {version}; "
            f"version {METRICS[metric].version}, today's, can give others"
        )
