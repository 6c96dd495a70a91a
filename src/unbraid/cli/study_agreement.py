"""`unbraid study agreement`: do metrics agree with each other, with UDR, with generalisation?"""

import json as json_format
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from unbraid.cli._say import say
from unbraid.cli._terminal import Terminal
from unbraid.cli._trust import TrustCode
from unbraid.types import DataFrame

if TYPE_CHECKING:
    from unbraid.analysis.agreement import Agreement, Predictors
    from unbraid.analysis.by_setting import Quartiles, Trend
    from unbraid.analysis.controversy import Controversy

SIGNIFICANT = 0.05
WIDE = 8  # of a column with a correlation, its star and the space around it


def agreement(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study, or a merged table.")],
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns of the results to compare, with commas; default metrics, UDR, generalisation and "
            "hyperparameters.",
            show_default=False,
        ),
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="Show only the runs of this family; default all runs.", show_default=False)
    ] = None,
    over: Annotated[
        Literal["runs", "settings"], typer.Option(help="Sampling unit: runs, or settings averaged over their seeds.")
    ] = "runs",
    method: Annotated[
        Literal["spearman", "pearson"], typer.Option(help="Correlation of ranks, or of values.")
    ] = "spearman",
    target: Annotated[
        str | None,
        typer.Option(
            help="Column, such as compositional.mlp.both: also test which column predicts it best.", show_default=False
        ),
    ] = None,
    test: Annotated[
        Literal["dependent", "paper", "independent"], typer.Option(help="Test of two correlations, with --target.")
    ] = "dependent",
    box: Annotated[
        str | None, typer.Option(help="Also show the quartiles of this column by setting.", show_default=False)
    ] = None,
    trend: Annotated[
        str | None,
        typer.Option(
            metavar="X,Y",
            help="Also show the means of two columns by setting, such as "
            "elbo_terms.total_correlation,mig.score, or elbo,mig.score.",
            show_default=False,
        ),
    ] = None,
    controversial: Annotated[
        str | None,
        typer.Option(metavar="X,Y", help="Also show the models that X ranks far higher than Y.", show_default=False),
    ] = None,
    pairs: Annotated[bool, typer.Option("--pairs", help="Also list every pair with its interval and p.")] = False,
    confidence: Annotated[float, typer.Option(help="Confidence level of the intervals of correlations.")] = 0.95,
    top: Annotated[int, typer.Option(help="With --controversial: number of models.")] = 5,
    out: Annotated[
        Path | None, typer.Option(help="Write the correlations of all groups to this .csv file.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    trust_code: TrustCode = None,
) -> None:
    """Correlate the metrics of a study with each other, with UDR, with generalisation and with hyperparameters.

    Stars mark correlations that chance gives in less than 5 % of cases; intervals and p values are in --pairs, --json
    and --out.

    Examples:

      unbraid study agreement study/

      unbraid study agreement study/ --group beta_vae --box mig.score

      unbraid study agreement study/ --columns mig.score,snc.score --pairs

      unbraid study agreement study/ --controversial beta_vae_score.score,mig.score

      unbraid study agreement study/ --target compositional.mlp.both --over settings --json
    """
    check_out(out)
    from unbraid.analysis import agreement as compared
    from unbraid.analysis.by_setting import quartiles, setting_means
    from unbraid.analysis.by_setting import trend as means
    from unbraid.analysis.columns import by_label, together
    from unbraid.analysis.controversy import controversial as disputed
    from unbraid.analysis.settings import with_brief_settings
    from unbraid.cli.study import results_of

    found: dict[str, dict[str, Any]] = {}
    for label, frame in by_label(results_of(folder, trust_code or ())).items():
        table = setting_means(frame) if over == "settings" else frame
        frame = frame if json else with_brief_settings(frame)
        parts = found[label] = {}
        parts["agreement"] = compared.agreement(table, listed(columns), method=method, confidence=confidence)
        if group is not None and group not in (groups := parts["agreement"].groups):
            raise ValueError(f"--group {group}: there are {', '.join(groups)}")
        if target is not None:
            parts["predictors"] = compared.predictors(table, target, listed(columns), method=method, test=test)
        if box is not None:
            parts["spread"] = quartiles(frame, box)
        if trend is not None:
            x, y = _pair("--trend", trend)
            parts["trend"] = means(_with_elbo(frame, x, y), x, y)
        if controversial is not None:
            parts["controversial"] = disputed(frame, *_pair("--controversial", controversial), top=top)
    alone = list(found) == [""]
    if out is not None:
        write_table(out, together({label: parts["agreement"].to_frame() for label, parts in found.items()}))
    if json:
        plain = {label: {name: part.to_dict() for name, part in parts.items()} for label, parts in found.items()}
        say(json_format.dumps(plain[""] if alone else plain, allow_nan=False, indent=2))
        return
    terminal = Terminal()
    for label, parts in found.items():
        if not alone:
            terminal.print(label or "without a label", markup=False, highlight=False)
        _print(terminal, parts, group or compared.EVERYTHING)
        if pairs:
            _print_pairs(terminal, parts["agreement"], group or compared.EVERYTHING, confidence)


def check_out(out: Path | None) -> None:
    if out is not None and out.suffix != ".csv":
        raise ValueError(f"--out {out}: the name must end in .csv")
    if out is not None and not out.parent.is_dir():
        raise FileNotFoundError(f"--out {out}: the folder {out.parent} does not exist")


def write_table(out: Path, frame: DataFrame) -> None:
    from unbraid.storage.files import atomic_write

    with atomic_write(out) as temporary:
        frame.to_csv(temporary, index=False)


def listed(columns: str | None) -> list[str] | None:
    from unbraid.cli.score import listed as names_in

    return None if columns is None else names_in(columns)


def _pair(option: str, text: str) -> tuple[str, str]:
    names = listed(text) or []
    if len(names) != 2:
        raise ValueError(f"{option} {text}: give two columns with a comma between them")
    return names[0], names[1]


def _with_elbo(frame: DataFrame, *names: str) -> DataFrame:
    from unbraid.analysis.by_setting import with_elbo

    return with_elbo(frame) if "elbo" in names else frame


def _print(console: Console, parts: dict[str, Any], group: str) -> None:
    printers = {
        "predictors": _print_predictors, "spread": _print_spread, "trend": _print_trend,
        "controversial": _print_controversy,
    }  # fmt: skip
    _print_agreement(console, parts["agreement"], group)
    for name, show in printers.items():
        if name in parts:
            show(console, parts[name])


def _print_agreement(console: Console, found: "Agreement", group: str) -> None:
    names, values, p = found.matrix(group)
    counts = [each.n for each in found.correlations if each.group == group]
    if counts:
        low, high = min(counts), max(counts)
        runs = f"{low}" if low == high else f"{low} to {high}"
        title = f"{found.method} correlation, {group}, n = {runs}"
        cells = [[_cell(values[row, column], p[row, column]) for column in range(row)] for row in range(len(names))]
        _print_matrix(console, title, names, cells)
    for each in found.left_out:
        lacking = each.columns[0].startswith("hyper.") and each.reason.startswith("has 0 ")
        if each.group == group and not lacking:  # that a family has no such hyperparameter is no news
            _say(console, f"left out: {' and '.join(each.columns)} ({each.reason})")
    others = [each for each in found.groups if each != group]
    if others:
        _say(console, f"other groups, by --group: {', '.join(others)}")


def _print_pairs(console: Console, found: "Agreement", group: str, confidence: float) -> None:
    shown = _table("", ["first", "second", found.method, f"{100 * confidence:g} % between", "p", "n"], 2)
    for each in found.correlations:
        if each.group == group:
            between = f"{each.low:.2f} to {each.high:.2f}"
            shown.add_row(each.first, each.second, f"{each.value:.2f}", between, f"{each.p:.2g}", str(each.n))
    console.print(shown, markup=False)
    _say(console, "intervals by Fisher's transformation, as if runs were independent; runs of one setting are alike")


def _print_matrix(
    console: Console, title: str, names: Sequence[str], cells: Sequence[Sequence[str]], *, first: str | None = None
) -> None:
    """Columns are numbered as rows are, after one called `first`; those that do not fit stand in tables below."""
    heads = ([] if first is None else [first]) + [str(number) for number in range(1, len(names) + 1)]
    room = max(1, (console.width - max(map(len, names)) - 6) // WIDE)
    for begin in range(0, len(heads), room):
        shown = _table(title if begin == 0 else "", ["", *heads[begin : begin + room]], 1)
        for row, name in enumerate(names):
            part = cells[row][begin : begin + room]
            if begin and not part:
                continue
            shown.add_row(f"{row + 1:>2} {name}", *part, *[""] * (len(shown.columns) - 1 - len(part)))
        console.print(shown, markup=False)


def _print_predictors(console: Console, found: "Predictors") -> None:
    names, p = found.matrix()
    values = {each.first: each.first_value for each in found.predictions}
    title = f"{found.method} correlation with {found.target}; p that the row is not stronger than the column"
    tests = [
        ["" if row == column else f"{chance:.3f}".replace("nan", "-") for column, chance in enumerate(line)]
        for row, line in enumerate(p)
    ]
    cells = [[f"{values[name]:.2f}", *line] for name, line in zip(names, tests, strict=True)]
    if names:
        _print_matrix(console, f"{title} ({found.test})", names, cells, first="r")
    else:
        _say(console, f"{found.method} correlation with {found.target}: no two columns can be compared")
    for each in found.left_out:
        _say(console, f"left out: {' and '.join(each.columns)} ({each.reason})")


def _print_spread(console: Console, found: "Quartiles") -> None:
    shown = _table(found.column, ["family", "setting", "runs", "lowest", "25 %", "median", "75 %", "highest"], 2)
    for box in found.boxes:
        five = (box.lowest, box.lower_quartile, box.median, box.upper_quartile, box.highest)
        shown.add_row(box.family, box.setting, str(box.n), *(f"{value:.3f}" for value in five))
    console.print(shown, markup=False)
    for name, reason in found.left_out.items():
        _say(console, f"left out: {name} ({reason})")


def _print_trend(console: Console, found: "Trend") -> None:
    shown = _table("means by setting", ["family", "setting", "runs", found.x, found.y], 2)
    for each in found.means:
        shown.add_row(each.family, each.setting, str(each.n), f"{each.x:.3f}", f"{each.y:.3f}")
    console.print(shown, markup=False)
    for each in found.correlations:
        _say(console, f"{each.family}: correlation {each.value:.2f} over {each.n} settings (p = {each.p:.2g})")
    for name, reason in found.left_out.items():
        _say(console, f"left out: {name} ({reason})")


def _print_controversy(console: Console, found: "Controversy") -> None:
    title = f"high by {found.first}, low by {found.second}, among {found.n}"
    shown = _table(title, ["run", "family", "setting", "first", "above", "second", "above"], 3)
    for each in found.models:
        shown.add_row(
            each.run, each.family, each.setting, f"{each.first:.3f}", f"{each.above_first:.0%}",
            f"{each.second:.3f}", f"{each.above_second:.0%}",
        )  # fmt: skip
    console.print(shown, markup=False)


def _table(title: str, columns: Sequence[str], n_texts: int) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left", title_style="")
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number < n_texts else "right", no_wrap=number == 0)
    return table


def _cell(value: float, p: float) -> str:
    """Two digits without the zero before the point, as papers print correlations."""
    if value != value:
        return "-"
    return f"{value:.2f}".replace("0.", ".") + ("*" if p < SIGNIFICANT else " ")


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)
