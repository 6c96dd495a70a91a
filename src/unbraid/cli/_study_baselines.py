"""Baselines without training, next to the ranking of a study."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table


def baselines_table(kinds: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Table:
    """One row for each kind of baseline and number of codes, as `summaries` has them, by these columns."""
    shown = Table(
        box=SIMPLE_HEAD, pad_edge=False, title="baselines without training", title_justify="left", title_style=""
    )
    shown.add_column("baseline", no_wrap=True)
    for name in ("codes", "number", *(column.rpartition(".")[0] for column in columns)):
        shown.add_column(name, justify="right", no_wrap=True)
    for kind in kinds:
        scores = [_text(kind["scores"].get(column)) for column in columns]
        shown.add_row(kind["baseline"], str(kind["codes"]), str(kind["number"]), *scores)
    return shown


def _text(told: tuple[float, float, float] | None) -> str:
    """The mean, and from where to where, if there are several."""
    if told is None:
        return "-"
    mean, low, high = told
    return f"{mean:.3f}" if low == high else f"{mean:.3f} ({low:.3f} to {high:.3f})"
