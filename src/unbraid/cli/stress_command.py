"""`unbraid stress`: does a metric do what it claims, on codes whose faults are known?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from unbraid.cli._options import Files, LowerIsBetter, Seed
from unbraid.cli._progress import metric_progress
from unbraid.cli.show_command import show
from unbraid.files.table_formats import Table

if TYPE_CHECKING:
    from unbraid.scoring.stress import Stressed


def stress(
    metrics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[METRIC]...",
            help="Ids and presets of `unbraid metrics`, or module:function of your own, from codes and factors to a "
            "number; default: all standard metrics, about twenty minutes.",
        ),
    ] = None,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            help="Claim to test, in place of the metric's own: modularity, compactness, alignment or explicitness; "
            "may be repeated."
        ),
    ] = None,
    cases: Annotated[
        list[str] | None,
        typer.Option(
            help="Group of cases to test: faults, factors, noise, null or processes; may be repeated. Default: all, of "
            "which processes are two thirds."
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Value to test, of a metric that has several or of a function that returns a dictionary; default all.",
        ),
    ] = None,
    lower_is_better: LowerIsBetter = False,
    best: Annotated[
        float | None,
        typer.Option(help="Score that perfect codes should reach, such as 1: finds a wrong logarithm base."),
    ] = None,
    seed: Seed = 0,
    *,
    to: Files,
) -> None:
    """Test metrics on codes with known faults.

    The table shows how many tests each metric passes, and which it fails. A metric of modularity must penalise two
    factors in one code, but not copies of a code; a metric of compactness must do the opposite. A metric of alignment
    must penalise every factor without a code of its own, and a metric of explicitness only lost factors. Every metric
    must score perfect codes above noise and above codes without information, and must not change when codes are scaled
    or reordered, when irrelevant codes are added, or when rows are few. The exit code is 3 if any test fails.

    Examples:

      unbraid stress mig

      unbraid stress disentanglement --json stress.json

      unbraid stress my_lab.scores:my_metric --claim modularity --best 1

      unbraid stress my_lab.scores:my_metric --cases faults --cases null

    The function takes codes and factors, and returns a number, an array or tensor without dimensions, or a dictionary,
    of which each number is judged. For a function with other arguments, write an adapter of two lines:

      def my_metric(codes, factors):
          return their_metric(torch.tensor(factors), torch.tensor(codes))

    A case in which it raises an error counts as failed, and shows the error.
    """
    from unbraid.scoring.stress import stress as put_through

    with metric_progress("stressing") as progress:
        results = put_through(
            *(metrics or ()), claims=claim, cases=cases or None, value=value,
            higher_is_better=not lower_is_better, best=best, seed=seed, progress=progress,
        )  # fmt: skip
    content = {"seed": seed, "metrics": [result.to_dict() for result in results]}
    table = _summary(results)
    shown = [table] if len(results) > 1 else [line for result in results for line in str(result).splitlines()]
    show(shown, to, content=content, rows=table, paper=table)
    if any(result.failed for result in results):
        raise typer.Exit(3)


def _summary(results: "Sequence[Stressed]") -> Table:
    rows = [
        [
            result.metric,
            result.value,
            ", ".join(result.claims),
            result.n_passed,
            result.n_passed + len(result.failed),
            _failed(result),
        ]
        for result in results
    ]
    return Table(["metric", "value", "claims", "passed", "of", "failed at"], rows, "lllrrl")


def _failed(result: "Stressed") -> str:
    """The situations, whose names hold commas; or the error that is the same in all of them."""
    errors = {check.why for check in result.failed}
    if not result.n_passed and len(errors) == 1 and (error := errors.pop()):
        return f"all: {error.removeprefix('failed: ')}"
    return "; ".join(dict.fromkeys(check.situation for check in result.failed))
