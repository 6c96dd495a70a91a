"""Comparison of groups of a study's runs, on equally many rows of each run."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Literal

import numpy as np

from unbraid.base.arguments import list_of
from unbraid.base.counted import counted
from unbraid.base.types import DataFrame, Progress
from unbraid.scoring.engine import score_each
from unbraid.scoring.equal_rows import subsets
from unbraid.scoring.group_comparison import Comparison, compare_groups, usual_within
from unbraid.scoring.result_columns import (
    AS_MANY,
    N_ROWS,
    check_columns,
    depends_on_rows,
    headline_columns,
    unequal_rows,
)
from unbraid.scoring.score import choose
from unbraid.scoring.scored import Scored
from unbraid.studies.expand import metric_names
from unbraid.studies.schema import StudyConfig
from unbraid.studies.several_datasets import all_results
from unbraid.studies.snapshot import RunView, StudySnapshot

SEED = 0  # of the metrics, as in a study, and of the subsets


def compare_runs(
    snapshots: Sequence[StudySnapshot],
    by: str,
    columns: str | Sequence[str] | None = None,
    *,
    over: Literal["runs", "settings"] = "runs",
    within: str | None = None,
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> Comparison:
    """As `compare_groups`, of the results of a study.

    Scores depend on the number of rows. Of a run with more of them than the one with the fewest (2 % more, or beyond),
    disjoint subsets of as many rows are scored, 10 at most, and the mean of their scores is compared; notes say so.

    Args:
        snapshots: of each dataset of the study.
        by, columns, over, confidence: as for `compare_groups`.
        within, progress: as for `Study.compare`.

    Raises:
        ValueError: as `compare_groups`; or a column cannot be computed from the codes of a run alone.
    """
    frame, notes = all_results(snapshots), []
    within = usual_within(frame, by) if within is None else within
    chosen = list(list_of("columns", columns or headline_columns(frame), single=True))
    check_columns(frame, [by, *chosen, *(() if within is None else [within])])
    unequal = [
        rows
        for _, rows in ([("", frame)] if within is None else frame.groupby(within, dropna=False))
        if unequal_rows(rows, chosen)
    ]
    if unequal:
        scores = [name for name in chosen if depends_on_rows(name)]
        runs = {(snapshot.label, run.id): (run, snapshot.config) for snapshot in snapshots for run in snapshot.runs}
        for rows in unequal:
            notes += _on_equal_rows(frame, rows, scores, runs, progress)
    comparison = compare_groups(frame, by, chosen, over=over, within=within, confidence=confidence)
    return replace(comparison, notes=(*comparison.notes, *notes))


def _on_equal_rows(
    frame: DataFrame,
    rows: DataFrame,
    columns: Sequence[str],
    runs: Mapping[tuple[str, str], tuple[RunView, StudyConfig]],
    progress: Progress | None,
) -> list[str]:
    """Replace scores in the frame by those on equally many rows of each run; return notes on them.

    Args:
        frame: all results.
        rows: those that are compared with each other.
        columns: scores.
        runs: by label of the dataset and id, each with what the study says.
        progress: called as progress("scoring as many rows", done, all), in runs.
    """
    scored = rows.loc[rows[list(columns)].notna().any(axis=1)]
    fewest = int(scored[N_ROWS].min())
    larger = scored.loc[scored[N_ROWS] > AS_MANY * fewest]
    unable: dict[str, str] = {}
    for done, (place, row) in enumerate(larger.iterrows()):
        if progress is not None:
            progress("scoring as many rows", done, len(larger))
        run, config = runs[str(row.get("label", "")), str(row["run"])]
        names = [name for name in columns if row[name] == row[name]]  # not NaN
        values, reasons = _scores(run, config, names, fewest)
        unable |= reasons
        for name in names:
            frame.loc[place, name] = values.get(name, np.nan)
        frame.loc[place, N_ROWS] = fewest
    sizes = sorted(int(size) for size in larger[N_ROWS].unique())
    of = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    notes = [
        f"scores depend on the number of rows: the scores of {counted(len(larger), 'run')} of {of} rows are "
        f"means over disjoint subsets of {fewest:,} rows, drawn with seed {SEED}, as others have no more"
    ]
    return notes + [f"{name} has no score of a run on {fewest:,} of its rows: {why}" for name, why in unable.items()]


def _scores(
    run: RunView, config: StudyConfig, columns: Sequence[str], fewest: int
) -> tuple[dict[str, float], dict[str, str]]:
    """Means over subsets of the rows of a run by column, and of columns without one the reason."""
    rows = choose([name for name in metric_names(config) if any(_is_of_metric(name, column) for column in columns)])
    for column in columns:
        if not any(_is_of_metric(name, column) for name in rows):
            rows |= choose([column.rpartition(".")[0]])
    representation = run.codes()
    values_by_column: dict[str, list[float]] = {}
    unable: dict[str, str] = {}
    for subset in subsets(representation, fewest, SEED):
        part = representation.keep_rows(subset)
        with closing(score_each(part, rows, seed=SEED, held_out=config.held_out, with_chance=False)) as results:
            for metric, result in results:
                for column in (each for each in columns if _is_of_metric(metric, each)):
                    value = result.values.get(column.rpartition(".")[2]) if isinstance(result, Scored) else None
                    if value is None:
                        unable[column] = str(result) if isinstance(result, Exception) else "it is none of its values"
                    else:
                        values_by_column.setdefault(column, []).append(value)
    return {name: float(np.mean(each)) for name, each in values_by_column.items() if name not in unable}, unable


def _is_of_metric(metric: str, column: str) -> bool:
    return column.rpartition(".")[0] == metric
