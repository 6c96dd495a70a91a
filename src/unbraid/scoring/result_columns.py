"""What the columns of a study's results are, and which way is better."""

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
