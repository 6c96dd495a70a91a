"""What the columns of a study's results are, which way is better, and which runs may be averaged or compared."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from unbraid.base.counted import counted
from unbraid.base.suggest import suggestion
from unbraid.base.types import DataFrame, FloatArray
from unbraid.files.trust import code_of, is_code
from unbraid.metrics._shared.metric_arguments import find_metric, lower_is_better

HIGHER, LOWER = ("udr.score", "compositional."), ("zero_shot.",)
BASELINE = "baseline."  # before a column: of the best baseline
HELD_OUT = "held_out"  # of a metric: of the factors of held-out combinations alone
DIAGNOSIS = "factors"  # the diagnosis in short
N_ROWS = "n_rows"  # that the scores of a run are of
LEAST_RUNS = 3  # of a correlation
ROUNDING = 1e-9  # by which a score may lie beyond the range of its metric
AS_MANY = 1.02  # times as many rows as the fewest count as equal: a mean moves by a small part of its deviation
# Another device moves the last digits of a score and no more; it is no condition.
CONDITIONS = ("content", "steps", "batch_size", "hold_out", "precision", "training_version")


def headline_columns(frame: DataFrame) -> list[str]:
    """Columns of the metrics' headline values, in the frame's order."""
    return [name for name in frame.columns if _headline(name)]


def agreement_columns(frame: DataFrame) -> list[str]:
    """What is compared by default.

    The metrics' headlines, udr.score, compositional and zero-shot results, and the numeric hyperparameters that vary.
    """
    chosen = headline_columns(frame)
    for name in frame.columns:
        numeric = frame[name].dtype.kind in "fiu"
        if name == "udr.score" or (_carried_over(name) and name not in chosen and numeric):
            chosen.append(name)
    return chosen + hyperparameter_columns(frame)


def hyperparameter_columns(frame: DataFrame) -> list[str]:
    """Numeric hyperparameters with at least two values."""
    return [
        name
        for name in frame.columns
        if name.startswith("hyper.") and frame[name].dtype.kind in "fiu" and len(frame[name].dropna().unique()) > 1
    ]


def higher_is_better(column: str) -> bool | None:
    """Of a column of results; None where there is no better, as for a hyperparameter."""
    metric, _, value = column.removeprefix(BASELINE).rpartition(".")
    known = find_metric(metric)
    if known is not None:
        return known.direction(known.headline if value == HELD_OUT else value)
    if column.endswith("_spread"):
        return None
    if is_code(code_of(metric)) and value == "score":
        return not lower_is_better(metric)
    return False if column.startswith(LOWER) else True if _headline(column) or column.startswith(HIGHER) else None


def mean_interval(column: str, values: FloatArray, confidence: float) -> tuple[float, float]:
    """Ends of the interval of a column's mean over runs by Student's t, cut off at the ends of the metric's range.

    Args:
        column: of a table of runs, which says the metric.
        values: (n_runs,), at least two.
        confidence: in (0, 1).
    """
    from scipy.special import stdtrit  # scipy.stats takes half a second to import

    mean, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
    half = float(stdtrit(len(values) - 1, (1 + confidence) / 2)) * error
    return within_range(column, values, mean - half, mean + half)


def within_range(column: str, values: FloatArray, low: float, high: float) -> tuple[float, float]:
    """An interval of the mean of a column, cut off at the ends of the metric's range, in which all values lie."""
    metric, _, value = column.removeprefix(BASELINE).rpartition(".")
    known = find_metric(metric)
    if known is None:
        return low, high
    least, most = known.range_of(known.headline if value == HELD_OUT else value)
    inside = least - ROUNDING <= values.min() and values.max() <= most + ROUNDING
    return (max(low, least), min(high, most)) if inside else (low, high)


def numbers(frame: DataFrame, column: str) -> FloatArray:
    """A column as floats, NaN where there is no value.

    Raises:
        ValueError: there is no such column, or it does not hold finite numbers.
    """
    check_columns(frame, [column])
    try:
        values = frame[column].to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError):
        raise ValueError(f"column {column!r} does not hold numbers") from None
    if np.isinf(values).any():
        raise ValueError(f"column {column!r} is infinite in row {int(np.isinf(values).argmax())}")
    return values


def texts(frame: DataFrame, column: str) -> list[str]:
    """The cells of a column in words, "" where there is none; an integer column is one of floats where some lack it."""
    cells = zip(frame[column].tolist(), frame[column].notna().tolist(), strict=True)
    return [in_words(cell) if present else "" for cell, present in cells]


def in_words(cell: Any) -> str:
    """Numbers as one spells them, 10.0 as 10."""
    whole = isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15
    return str(int(cell)) if whole else str(cell)


def why_not(values: FloatArray) -> str:
    """Why a column cannot be correlated; empty where it can."""
    known = values[np.isfinite(values)]
    if len(known) < LEAST_RUNS:
        return f"has {counted(len(known), 'value')}; {LEAST_RUNS} are needed"
    if np.ptp(known) <= 1e-12 * np.abs(known).max():
        return f"is constant ({known[0]:g})"
    return ""


def depends_on_rows(column: str) -> bool:
    """Whether a column may hold scores, whose mean depends on how many rows were scored."""
    return "." in column and not column.startswith(("hyper.", "train."))


def check_columns(frame: DataFrame, columns: Iterable[str]) -> None:
    """Raise a ValueError that names the first column the frame lacks."""
    names: Sequence[str] = [str(name) for name in frame.columns]
    for column in columns:
        if column not in names:
            own = [name for name in names if name.startswith(f"{column}.")]  # "mig" means "mig.score"
            hint = f"did you mean {own[0]!r}?" if own else suggestion(column, names)
            raise ValueError(f"the results have no column {column!r}; {hint}")


def by_label(frame: DataFrame) -> dict[str, DataFrame]:
    """The rows of each dataset of a joined table; of any other table all rows, under ""."""
    if "label" not in frame.columns:
        return {"": frame}
    labels = frame["label"].fillna("")
    return {str(label): frame.loc[labels == label] for label in dict.fromkeys(labels.tolist())}


def together(tables: Mapping[str, DataFrame]) -> DataFrame:
    """Tables of several datasets as one, with a first column `label`; one that stands alone under "" as it is."""
    import pandas

    if list(tables) == [""]:
        return tables[""]
    rows = [{"label": label, **row} for label, table in tables.items() for row in table.to_dict("records")]
    return pandas.DataFrame(rows)


def _carried_over(column: str) -> bool:
    """What a model makes of images that it never saw; random splits beside them, and spreads, say something else."""
    kind, _, value = column.rpartition(".")
    return kind.startswith(("compositional.", "zero_shot.")) and not (
        value.startswith("random_") or value.endswith("_spread") or value == "ordinary"
    )


def _headline(column: str) -> bool:
    if column.startswith(BASELINE):
        return False
    metric, _, value = column.rpartition(".")
    if (known := find_metric(metric)) is not None:
        return known.headline == value
    # A function of the user's own is named "package.module:function".
    return ":" in metric and value == "score"


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
        name = " ".join(str(each) for each in (key if isinstance(key, tuple) else (key,)) if str(each)) or "the table"
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


def _distinct(rows: DataFrame, column: str) -> list[object]:
    return list(dict.fromkeys(rows[column].dropna().tolist()))
