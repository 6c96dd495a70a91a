"""How a run compares with the other runs of its study, for its model card."""

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from unbraid.base.counted import counted
from unbraid.scoring.result_columns import headline_columns, higher_is_better
from unbraid.scoring.score_numbers import in_markdown, markdown_table
from unbraid.studies.snapshot import StudySnapshot
from unbraid.studies.store import RUNS, is_study
from unbraid.studies.study import open_study
from unbraid.studies.study_table import results

UDR = "udr.score"
HEADS = ("by", "its value", "its place", "median", "best")


def origin_of(run: str | Path, *, trust: Collection[str] = ()) -> str | None:
    """How a run compares with the other runs of the study it lies in, in Markdown; None outside of a study.

    Raises:
        ValueError: the study is damaged, or names code that is not in `trust`.
    """
    run = Path(run).resolve()
    if run.parent.name != RUNS or not is_study(run.parent.parent):
        return None
    with open_study(run.parent.parent, trust=trust) as study:
        for snapshot in study.snapshots():
            if any(view.id == run.name for view in snapshot.runs):
                return _origin_text(snapshot, run.name)
    return None


def _origin_text(snapshot: StudySnapshot, run: str) -> str:
    frame = results(snapshot)
    finished = [row for row in frame.to_dict("records") if row["state"] == "finished"]
    settings = {(row["family"], row["setting"]) for row in finished}
    label = f", dataset {in_markdown(snapshot.label)}" if snapshot.label else ""
    one = (
        f"It is one of {counted(len(finished), 'finished run')} of {counted(len(settings), 'setting')} in the "
        f"study *{in_markdown(snapshot.config.name)}*{label}. The study does not say by which rule it was picked."
    )
    columns = [name for name in frame.columns if name == UDR] + [
        name for name in headline_columns(frame) if name != UDR
    ]
    rows = [row for column in columns if (row := _place(finished, run, column))]
    if not rows:
        return one
    return (
        f"{one} Where it stands among them:\n\n{markdown_table(HEADS, rows)}\n"
        "If it was picked for one of these numbers, that number is too good: new trainings of the same setting will do "
        "worse on average."
    )


def _place(rows: Sequence[Mapping[Any, Any]], run: str, column: str) -> list[str] | None:
    """A row of the table: value and rank of a run by one column of results, median and best; None without a value."""
    values = {str(row["run"]): float(row[column]) for row in rows if isinstance(row[column], int | float)}
    values = {name: value for name, value in values.items() if math.isfinite(value)}
    higher = higher_is_better(column)
    if run not in values or higher is None:
        return None
    own, all_ = values[run], list(values.values())
    ahead = sum(number > own if higher else number < own for number in all_)
    best = max(all_) if higher else min(all_)
    # Of runs with the same value, as where none has an informative latent, none is ahead of the others.
    place = f"{ahead + 1}" if all_.count(own) == 1 else f"{ahead + 1} to {ahead + all_.count(own)}"
    return [f"`{column}`", f"{own:.3f}", f"{place} of {len(all_)}", f"{median(all_):.3f}", f"{best:.3f}"]
