"""One Typer application, and the one place where errors become exit codes."""

import shlex
import sys
import warnings
from collections.abc import Callable
from functools import cache
from typing import Annotated

import typer

from unbraid.base.errors import ModelsFailed
from unbraid.base.printable import printable
from unbraid.base.suggest import one_line
from unbraid.cli._commands import Commands, UnderHeadings
from unbraid.cli._options import grouped
from unbraid.cli._progress import Interrupted
from unbraid.cli.bench_command import bench
from unbraid.cli.cite_command import cite
from unbraid.cli.compare_command import compare
from unbraid.cli.data_command import data_app
from unbraid.cli.export_command import export
from unbraid.cli.families_command import list_families
from unbraid.cli.figure_command import figure
from unbraid.cli.fit_command import fit
from unbraid.cli.metrics_command import list_metrics
from unbraid.cli.rank_command import rank
from unbraid.cli.report_command import report
from unbraid.cli.score_command import score
from unbraid.cli.stress_command import stress
from unbraid.cli.study_add_command import add
from unbraid.cli.study_agreement_command import agreement
from unbraid.cli.study_command import study_app
from unbraid.cli.study_generalisation_command import generalisation
from unbraid.cli.study_merge_command import merge
from unbraid.cli.train_command import continue_run, train
from unbraid.files.trust import Untrusted

# The headings of the commands in the help, each with an example.
MEASURE = "Measure (unbraid score codes.npz --labels labels.csv)"
TRAIN = "Train (unbraid fit folder-of-pictures/ --minutes 30)"
SELECT = "Select (unbraid rank seed0.npz seed1.npz seed2.npz)"

app = typer.Typer(
    name="unbraid",
    cls=Commands,
    help="Measure, train and select disentangled representations.",
    epilog="Start with: unbraid score --example --html scores.html",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("score", cls=UnderHeadings, rich_help_panel=MEASURE)(grouped(score))
app.command("compare", cls=UnderHeadings, rich_help_panel=MEASURE)(grouped(compare))
app.command("metrics", rich_help_panel=MEASURE)(grouped(list_metrics))
app.command("stress", rich_help_panel=MEASURE)(grouped(stress))
app.command("bench", rich_help_panel=MEASURE)(grouped(bench))
app.command("cite", rich_help_panel=MEASURE)(grouped(cite))
app.add_typer(data_app, name="data", rich_help_panel=TRAIN)
app.command("families", rich_help_panel=TRAIN)(grouped(list_families))
app.command("fit", rich_help_panel=TRAIN)(grouped(fit))
app.command("train", rich_help_panel=TRAIN)(grouped(train))
app.command("continue", rich_help_panel=TRAIN)(grouped(continue_run))
app.command("rank", cls=UnderHeadings, rich_help_panel=SELECT)(grouped(rank))
app.command("figure", rich_help_panel=SELECT)(grouped(figure))
app.command("report", rich_help_panel=SELECT)(grouped(report))
app.command("export", rich_help_panel=SELECT)(grouped(export))
study_app.command("add")(grouped(add))
study_app.command("agreement")(grouped(agreement))
study_app.command("generalisation")(grouped(generalisation))
study_app.command("merge")(grouped(merge))
app.add_typer(study_app, name="study", rich_help_panel=SELECT)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        from unbraid.base.version import VERSION

        typer.echo(f"unbraid {VERSION}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def untrusted_line(error: Untrusted) -> str:
    """What it is that nobody trusts, and the options that trust it."""
    options = " ".join(f"{error.option} {shlex.quote(name)}" for name in error.names)
    return f"{error.reason}: if you trust it, add {options}"


@cache
def command() -> Callable[..., int | None]:
    """The tree of all commands, which takes Typer longer to build than many a command takes to run."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line.

    Exit codes: 0 done, 2 bad input or usage, 3 some models or a metric failed, a metric scored worse than it was to or
    failed a test of `stress`, 130 interrupted, 143 the same by SIGTERM, 1 internal error.
    """
    warnings.showwarning = _warn
    try:
        code = command()(standalone_mode=False)
    except Untrusted as error:
        _leave(untrusted_line(error), 2)
    except ModelsFailed as error:
        for line in error.lines:
            _tell(line)
        raise SystemExit(2 if error.every else 3) from None
    except (ValueError, OSError, ImportError) as error:
        _leave(str(error), 2)
    except Interrupted as error:
        _leave(str(error), error.code)
    except Exception as error:
        # Usage errors have no public base class; what tells them apart is that they can say what was wrong.
        if (message := getattr(error, "format_message", None)) is None:
            raise
        _leave(message().replace("Value error, ", ""), 2)
    else:
        if code:
            raise SystemExit(code)


def _warn(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if not issubclass(category, DeprecationWarning | PendingDeprecationWarning):  # said to developers of libraries
        _tell(f"warning: {message}")


def _leave(message: str, code: int) -> None:
    _tell(message)
    raise SystemExit(code)


def _tell(message: str) -> None:
    print("unbraid: " + printable(one_line(message, 2000)), file=sys.stderr)
