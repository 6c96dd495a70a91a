"""What must be the same of runs whose scores are averaged, or compared as if they were of one kind."""

import json
from collections.abc import Hashable, Sequence

from unbraid.analysis.columns import check_columns
from unbraid.types import DataFrame

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
            if condition in rows.columns and len(found := _distinct(rows, condition)) > 1:
                raise ValueError(
                    f"{name}: runs of different {condition.replace('_', ' ')} ({found[0]} and {found[1]}) are not "
                    "averaged; leave one kind out, or put more columns between them"
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


def _listed(key: Hashable) -> tuple[Hashable, ...]:
    return key if isinstance(key, tuple) else (key,)


def _distinct(rows: DataFrame, column: str) -> list[object]:
    return list(dict.fromkeys(rows[column].dropna().tolist()))
