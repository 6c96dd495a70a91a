"""What was measured on a suite, as a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from unbraid.analysis.columns import higher_is_better
from unbraid.confidence.baselines import COMPONENTS, MARK, PROJECTION, UNTRAINED, no_better
from unbraid.results.shown import measured_cell
from unbraid.storage.table_formats import Cell, Table

WORSE = "no better than chance or the best baseline"
BASELINES = (PROJECTION, COMPONENTS, UNTRAINED)


def table(content: Mapping[str, Any], notes: Sequence[str]) -> Table:
    """A row for each set and metric of a record: its mean with the interval, chance, and baselines.

    Args:
        content: as `unbraid.bench.record.record` gives it.
        notes: for readers.
    """
    first = content["scores"][0]["measured"]
    titles = [title for title in BASELINES if any(title in each["measured"]["baselines"] for each in content["scores"])]
    rows = [
        [
            score["dataset"], score["metric"], marked(score), score["measured"]["chance"],
            *(score["measured"]["baselines"].get(title) for title in titles),
        ]
        for score in content["scores"]
    ]  # fmt: skip
    some = [
        f"{first['units']} seeds; in brackets the 95 % interval of their mean" if first["units"] > 1 else "one seed",
        *([f"{MARK} {WORSE}"] if any(str(row[2].text).endswith(MARK) for row in rows) else []),
        *notes,
    ]
    heads = ["set", "metric", "score", "chance", *titles]
    return Table(heads, rows, "ll" + "r" * (len(heads) - 2), notes=some, keys=2)


def marked(score: Mapping[str, Any]) -> Cell:
    """The mean with its interval, and a mark where chance or a baseline is as good."""
    cell = measured_cell(score)
    assert cell is not None
    return Cell(f"{cell.text}{f' {MARK}' if is_no_better(score['metric'], score['measured']) else ''}", cell.value)


def is_no_better(column: str, measured: Mapping[str, Any]) -> bool:
    """Whether shuffled rows, or the best baseline, score as well."""
    higher = higher_is_better(column) is not False
    return no_better(higher, measured["value"], {"": measured["chance"], **measured["baselines"]})
