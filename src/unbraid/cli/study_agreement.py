"""`unbraid study agreement`: do metrics agree with each other, with UDR, with generalisation?"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from unbraid.cli._options import Csv, Json, Latex, Markdown, listed
from unbraid.cli._trust import TrustCode
from unbraid.cli.show import Files, show
from unbraid.storage.table_formats import Table, table_of
from unbraid.types import DataFrame

if TYPE_CHECKING:
    from unbraid.analysis.agreement import Agreement, Predictors
    from unbraid.analysis.by_setting import Quartiles, Trend
    from unbraid.analysis.controversy import Controversy

SIGNIFICANT = 0.05
Shown: TypeAlias = "Iterator[Table | str]"


def agreement(
    folder: Annotated[Path, typer.Argument(metavar="STUDY", help="Folder of a study, or a table of results.")],
    columns: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated columns to compare; default metrics, UDR, generalisation and hyperparameters.",
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
    csv: Csv = None,
    latex: Latex = None,
    markdown: Markdown = None,
    json: Json = None,
    trust_code: TrustCode = None,
) -> None:
    """Correlate the metrics of a study with each other, with UDR, with generalisation and with hyperparameters.

    Stars mark correlations that chance gives in less than 5 % of cases; intervals and p values are in --pairs, --json
    and --csv, which has a row for each pair in each group.

    Examples:

      unbraid study agreement study/

      unbraid study agreement study/ --group beta_vae --box mig.score

      unbraid study agreement study/ --columns mig.score,snc.score --pairs --csv pairs.csv

      unbraid study agreement study/ --controversial beta_vae_score.score,mig.score

      unbraid study agreement study/ --target compositional.mlp.both --over settings --json -
    """
    to = Files(csv, latex, markdown, json)
    from unbraid.analysis import agreement as compared
    from unbraid.analysis.by_setting import quartiles, setting_means
    from unbraid.analysis.by_setting import trend as means
    from unbraid.analysis.columns import by_label, together
    from unbraid.analysis.controversy import controversial as disputed
    from unbraid.analysis.settings import with_brief_settings
    from unbraid.cli.study import results_of

    chosen, group = listed(columns) or None, group or compared.EVERYTHING
    found: dict[str, dict[str, Any]] = {}
    for label, frame in by_label(results_of(folder, trust_code or ())).items():
        table = setting_means(frame) if over == "settings" else frame
        frame = frame if json else with_brief_settings(frame)
        parts = found[label] = {}
        parts["agreement"] = compared.agreement(table, chosen, method=method, confidence=confidence)
        if group not in (groups := parts["agreement"].groups):
            raise ValueError(f"--group {group}: there are {', '.join(groups)}")
        if target is not None:
            parts["predictors"] = compared.predictors(table, target, chosen, method=method, test=test)
        if box is not None:
            parts["spread"] = quartiles(frame, box)
        if trend is not None:
            x, y = _two("--trend", trend)
            parts["trend"] = means(_with_elbo(frame, x, y), x, y)
        if controversial is not None:
            parts["controversial"] = disputed(frame, *_two("--controversial", controversial), top=top)
    shown: list[Table | str] = []
    for label, parts in found.items():
        shown += [] if list(found) == [""] else [label or "without a label"]
        shown += [each for name, part in parts.items() for each in SHOWN[name](part, group)]
        shown += _pairs(parts["agreement"], group, confidence) if pairs else []
    content = {label: {name: part.to_dict() for name, part in parts.items()} for label, parts in found.items()}
    rows = table_of(together({label: parts["agreement"].to_frame() for label, parts in found.items()}))
    show(shown, to, content=content.get("", content), rows=rows)


def _two(option: str, text: str) -> tuple[str, str]:
    names = listed(text)
    if len(names) != 2:
        raise ValueError(f"{option} {text}: give two columns with a comma between them")
    return names[0], names[1]


def _with_elbo(frame: DataFrame, *names: str) -> DataFrame:
    from unbraid.analysis.by_setting import with_elbo

    return with_elbo(frame) if "elbo" in names else frame


def _agreement(found: "Agreement", group: str) -> Shown:
    names, values, p = found.matrix(group)
    counts = [each.n for each in found.correlations if each.group == group]
    if counts:
        low, high = min(counts), max(counts)
        runs = f"{low}" if low == high else f"{low} to {high}"
        cells = [[_cell(values[row, column], p[row, column]) for column in range(row)] for row in range(len(names))]
        yield matrix(f"{found.method} correlation, {group}, n = {runs}", names, cells)
    for each in found.left_out:
        lacking = each.columns[0].startswith("hyper.") and each.reason.startswith("has 0 ")
        if each.group == group and not lacking:  # that a family has no such hyperparameter is no news
            yield f"left out: {' and '.join(each.columns)} ({each.reason})"
    if others := [each for each in found.groups if each != group]:
        yield f"other groups, by --group: {', '.join(others)}"


def _pairs(found: "Agreement", group: str, confidence: float) -> Shown:
    heads = ["first", "second", found.method, f"{100 * confidence:g} % between", "p", "n"]
    rows = [
        [each.first, each.second, f"{each.value:.2f}", f"{each.low:.2f} to {each.high:.2f}", f"{each.p:.2g}", each.n]
        for each in found.correlations
        if each.group == group
    ]
    yield Table(heads, rows, "llrrrr", keys=2)
    yield "intervals by Fisher's transformation, as if runs were independent; runs of one setting are alike"


def matrix(title: str, names: Sequence[str], cells: Sequence[Sequence[str]], *, first: str | None = None) -> Table:
    """Columns are numbered as rows are, after one called `first`."""
    heads = ([] if first is None else [first]) + [str(number) for number in range(1, len(names) + 1)]
    rows = [
        [f"{number:>2} {name}", *own, *[""] * (len(heads) - len(own))]
        for number, (name, own) in enumerate(zip(names, cells, strict=True), start=1)
    ]
    return Table(["", *heads], rows, title=title)


def _predictors(found: "Predictors", _: str) -> Shown:
    names, p = found.matrix()
    values = {each.first: each.first_value for each in found.predictions}
    title = f"{found.method} correlation with {found.target}; p that the row is not stronger than the column"
    tests = [
        ["" if row == column else f"{chance:.3f}".replace("nan", "-") for column, chance in enumerate(line)]
        for row, line in enumerate(p)
    ]
    cells = [[f"{values[name]:.2f}", *line] for name, line in zip(names, tests, strict=True)]
    if names:
        yield matrix(f"{title} ({found.test})", names, cells, first="r")
    else:
        yield f"{found.method} correlation with {found.target}: no two columns can be compared"
    for each in found.left_out:
        yield f"left out: {' and '.join(each.columns)} ({each.reason})"


def _spread(found: "Quartiles", _: str) -> Shown:
    heads = ["family", "setting", "runs", "lowest", "25 %", "median", "75 %", "highest"]
    rows = [
        [box.family, box.setting, box.n, box.lowest, box.lower_quartile, box.median, box.upper_quartile, box.highest]
        for box in found.boxes
    ]
    yield Table(heads, rows, "llrrrrrr", title=found.column, keys=2)
    yield from _left_out(found.left_out)


def _trend(found: "Trend", _: str) -> Shown:
    rows = [[each.family, each.setting, each.n, each.x, each.y] for each in found.means]
    yield Table(["family", "setting", "runs", found.x, found.y], rows, "llrrr", title="means by setting", keys=2)
    for each in found.correlations:
        yield f"{each.family}: correlation {each.value:.2f} over {each.n} settings (p = {each.p:.2g})"
    yield from _left_out(found.left_out)


def _left_out(reasons: Mapping[str, str]) -> Shown:
    for name, reason in reasons.items():
        yield f"left out: {name} ({reason})"


def _controversy(found: "Controversy", _: str) -> Shown:
    title = f"high by {found.first}, low by {found.second}, among {found.n}"
    rows = [
        [
            each.run, each.family, each.setting, each.first, f"{each.above_first:.0%}", each.second,
            f"{each.above_second:.0%}",
        ]
        for each in found.models
    ]  # fmt: skip
    yield Table(["run", "family", "setting", "first", "above", "second", "above"], rows, "lllrrrr", title=title, keys=3)


SHOWN: Mapping[str, Callable[[Any, str], Shown]] = {
    "agreement": _agreement, "predictors": _predictors, "spread": _spread, "trend": _trend,
    "controversial": _controversy,
}  # fmt: skip


def _cell(value: float, p: float) -> str:
    """Two digits without the zero before the point, as papers print correlations."""
    if value != value:
        return "-"
    return f"{value:.2f}".replace("0.", ".") + ("*" if p < SIGNIFICANT else " ")
