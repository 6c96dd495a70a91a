"""`unbraid bench`: a metric on the models of the zoo."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unbraid.base.comma_lists import listed
from unbraid.base.counted import counted
from unbraid.cli._options import Files, LowerIsBetter, Seed
from unbraid.cli._progress import metric_progress
from unbraid.cli.show_command import show
from unbraid.files.table_formats import Table

if TYPE_CHECKING:
    from unbraid.zoo.bench import Benched


def bench(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Ids and presets of `unbraid metrics`, or module:function of your own, from codes and factors to a "
            "number.",
        ),
    ],
    zoo: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the zoo; default that of the environment variable UNBRAID_ZOO, or the 24 models inside the "
            "package.",
        ),
    ] = None,
    models: Annotated[
        int | None, typer.Option(metavar="N", help="Number of models to score, spread evenly over all; default all.")
    ] = None,
    lower_is_better: LowerIsBetter = False,
    seed: Seed = 0,
    *,
    to: Files,
) -> None:
    """Compare a metric with others on many models.

    Reported are the known metrics that rank the models in the same order, and the scores of models with known defects.

    Within each dataset, ranks are correlated with those of every metric that the zoo holds (Spearman, both turned so
    that higher is better), and the correlations are averaged over datasets. The 95 % intervals count settings, because
    seeds of one setting are not independent.

    Examples:

      unbraid bench my_lab.scores:my_metric

      unbraid bench mig sap --zoo zoo/ --json bench.json
    """
    from unbraid.zoo.bench import bench_metrics

    with metric_progress("scoring") as progress:
        results = bench_metrics(
            *(name for text in names for name in listed(text)),
            folder=zoo,
            models=models,
            higher_is_better=not lower_is_better,
            seed=seed,
            progress=progress,
        )
    ranks = _ranks(results)
    content = {"seed": seed, "metrics": [result.to_dict() for result in results]}
    show([ranks, *_defects(results), *_notes(results)], to, content=content, rows=ranks, paper=ranks)


def _value_name(result: "Benched") -> str:
    return result.metric if result.value == "score" else f"{result.metric}.{result.value}"


def _ranks(results: "tuple[Benched, ...]") -> Table:
    datasets = list(dict.fromkeys(name for result in results for rank in result.ranks for name in rank.by_dataset))
    rows = [
        [
            _value_name(result), rank.metric, rank.value, rank.low, rank.high,
            *(rank.by_dataset.get(name) for name in datasets), rank.models, rank.settings,
        ]
        for result in results
        for rank in result.ranks
    ]  # fmt: skip
    heads = ["metric", "ranks like", "correlation", "low", "high", *datasets, "models", "settings"]
    return Table(heads, rows, "ll" + "r" * (len(heads) - 2), keys=2)


def _defects(results: "tuple[Benched, ...]") -> list[Table]:
    rows = [
        [_value_name(result), row.defect, row.models, row.score, row.without]
        for result in results
        for row in result.defects
    ]
    heads = ["metric", "defect", "models", "mean score", "without it"]
    return [Table(heads, rows, "llrrr", keys=2)] if rows else []


def _notes(results: "tuple[Benched, ...]") -> list[str]:
    """What is missing, and why, of each metric the first."""
    lines = []
    for result in results:
        lines.append(f"{_value_name(result)}: {counted(len(result.scores), 'model')}, {result.seconds:.2g} s each")
        if result.left_out:
            what, why = next(iter(result.left_out.items()))
            more = f" (and {len(result.left_out) - 1} more; --json names all)" if len(result.left_out) > 1 else ""
            lines.append(f"left out: {what}: {why}{more}")
    return [*lines, *dict.fromkeys(note for result in results for note in result.notes)]
