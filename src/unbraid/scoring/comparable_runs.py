"""Conditions on which the scores of runs may be averaged or compared."""

import json
from collections.abc import Hashable, Sequence

from unbraid.base.types import DataFrame
from unbraid.scoring.result_columns import N_ROWS, check_columns, depends_on_rows

AS_MANY = 1.02  # times as many rows as the fewest count as equal: a mean moves by a small part of its deviation
# Another device moves the last digits of a score and no more; it is no condition.
CONDITIONS = ("content", "steps", "batch_size", "hold_out", "precision", "training_version")


def check_alike(
    frame: DataFrame, columns: Sequence[str], by: Sequence[str] = (), conditions: Sequence[str] = CONDITIONS
) -> None:
    """Raises ValueError where the runs of a group are of different conditions, or their scores not by the same rules.

    What is missing of a run contradicts nothing.

    Args:
        frame: results of a study, or of several.
        columns: the scores.
        by: columns whose values make the groups.
        conditions: columns that must hold one value within a group.
    """
    check_columns(frame, [*columns, *by])
    groups = frame.groupby(list(by), sort=False, dropna=False) if by else [((), frame)]
    for key, rows in groups:
        name = " ".join(str(each) for each in _listed(key) if str(each)) or "the table"
        for condition in conditions:
            if condition in rows.columns and len(values := _distinct(rows, condition)) > 1:
                raise ValueError(
                    f"{name}: runs of different {condition.replace('_', ' ')} ({values[0]} and {values[1]}) are not "
                    "averaged; keep one of them, or group the runs by this as well"
                )
    for column in columns:
        rows = frame.loc[frame[column].notna()]
        metric = column.rpartition(".")[0]
        if metric == "udr" and "ranked_by" in rows.columns and len(_distinct(rows, "ranked_by")) > 1:
            raise ValueError(f"{column}: the models were ranked among different others; rank them together")
        if "computed_with" in rows.columns:
            decided = [json.loads(text).get(metric) for text in rows["computed_with"].dropna()]
            rules = {json.dumps(each, sort_keys=True) for each in decided if each is not None}
            if len(rules) > 1:
                raise ValueError(f"{column}: computed by different rules ({' and '.join(sorted(rules)[:2])})")


def unequal_rows(frame: DataFrame, columns: Sequence[str]) -> tuple[str, int, int] | None:
    """The first of some columns whose scores are of unequal numbers of rows, with the fewest and the most of these.

    What is missing of a run contradicts nothing.
    """
    if N_ROWS not in frame.columns:
        return None
    for column in filter(depends_on_rows, columns):
        counts = frame.loc[frame[column].notna(), N_ROWS].dropna()
        if len(counts) and counts.max() > AS_MANY * counts.min():
            return column, int(counts.min()), int(counts.max())
    return None


def check_rows(frame: DataFrame, columns: Sequence[str], *, known: bool) -> None:
    """Raises ValueError where scores are of unequal numbers of rows, so that they cannot be compared.

    Args:
        frame: results of a study, or of several.
        columns: the scores.
        known: whether the numbers must be there, as of runs on different images.
    """
    depends, how = "and scores depend on how many", "the folder of the study, which scores as many rows of each run"
    if unequal := unequal_rows(frame, columns):
        column, fewest, most = unequal
        raise ValueError(f"{column}: scores are of {fewest:,} to {most:,} rows, {depends}; compare {how}")
    scores = [column for column in columns if depends_on_rows(column)]
    if known and scores:
        rows = frame.loc[frame[scores].notna().any(axis=1)]
        if N_ROWS not in rows.columns or rows[N_ROWS].isna().any():
            raise ValueError(f"the table has no {N_ROWS}, {depends}; export it again, or compare {how}")


def _listed(key: Hashable) -> tuple[Hashable, ...]:
    return key if isinstance(key, tuple) else (key,)


def _distinct(rows: DataFrame, column: str) -> list[object]:
    return list(dict.fromkeys(rows[column].dropna().tolist()))
