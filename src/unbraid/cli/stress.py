"""`unbraid stress`: does a metric do what it claims, on codes whose faults are known?"""

import json as json_format
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from unbraid.cli._paths import check_outputs
from unbraid.cli._progress import stage_progress
from unbraid.cli._say import say
from unbraid.cli._terminal import Terminal

if TYPE_CHECKING:
    from unbraid.scoring.stress import Stressed


def stress(
    metrics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[METRIC]...",
            help="Ids and presets of `unbraid metrics`, or module:function of your own, from codes and factors to a "
            "number; default: all standard ones, a few minutes.",
            show_default=False,
        ),
    ] = None,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            help="What it claims, in place of what the table says: modularity, compactness, alignment or explicitness; "
            "may be repeated.",
            show_default=False,
        ),
    ] = None,
    lower_is_better: Annotated[
        bool, typer.Option("--lower-is-better", help="For a function of your own: lower is better.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Same seed, same numbers.")] = 0,
    json: Annotated[Path | None, typer.Option(help="Write every check to this .json file.")] = None,
) -> None:
    """Test metrics on codes with known faults, and report which behave as claimed.

    A metric of modularity must penalise two factors in one code, but not copies of a code. A metric of compactness must
    do the opposite. A metric of alignment must penalise every factor without a code of its own, and a metric of
    explicitness only lost factors. Every metric must separate perfect codes from noise. Its verdict must not change
    when codes are scaled or reordered, when constant or irrelevant codes are added, when rows are few, or when factors
    are unbalanced, dependent or continuous. Scores are rescaled from noise (0) to perfect codes (1): above .9 counts as
    unchanged, below as lower.

    Examples:

      unbraid stress mig

      unbraid stress disentanglement --json stress.json

      unbraid stress my_lab.scores:my_metric --claim modularity
    """
    check_outputs({".json": json})
    from unbraid.scoring.stress import stress as put_through
    from unbraid.storage.files import atomic_write

    with stage_progress("stressing") as progress:
        results = put_through(
            *(metrics or ()), claims=claim, higher_is_better=not lower_is_better, seed=seed,
            progress=lambda _, done, total: progress("stressing", done, total),
        )  # fmt: skip
    if json is not None:
        content = {"seed": seed, "metrics": [result.to_dict() for result in results]}
        with atomic_write(json) as temporary:
            temporary.write_text(json_format.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    if len(results) == 1:
        for only in results:
            Terminal().print(str(only), markup=False, highlight=False, soft_wrap=True)
    else:
        Terminal().print(_summary(results), markup=False)
    if json is not None:
        say(f"wrote {json}", err=True)


def _summary(results: "Sequence[Stressed]") -> Table:
    table = Table(pad_edge=False, box=SIMPLE_HEAD)
    for column in ("metric", "value", "claims", "passed", "failed at"):
        table.add_column(column, justify="right" if column == "passed" else "left", overflow="fold")
    for each in results:
        judged = f"{each.n_passed} of {each.n_passed + len(each.failed)}"
        failed = ", ".join(dict.fromkeys(check.situation for check in each.failed))
        table.add_row(each.metric, each.value, ", ".join(each.claims), judged, failed)
    return table
