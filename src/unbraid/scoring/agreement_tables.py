"""Results of `agreement`, `predictors` and the studies of settings, as tables and lines of text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from unbraid.base.repr import p_equals, p_text
from unbraid.files.table_formats import Table
from unbraid.scoring.agreement import EVERYTHING, Agreement, Predictors
from unbraid.scoring.by_setting import Quartiles, Trend

SIGNIFICANT = 0.05
Shown: TypeAlias = Iterator[Table | str]


def of_agreement(agreement: Agreement, group: str = EVERYTHING, over: str = "runs") -> Shown:
    """The matrix of a group, and what is left out of it; `over` says what it is of, runs or means of settings."""
    names, values, p = agreement.matrix(group)
    own = [each for each in agreement.correlations if each.group == group]
    if own:
        runs, settings = (_span([getattr(each, name) for each in own]) for name in ("n", "settings"))
        cells = [[_cell(values[row, column], p[row, column]) for column in range(row)] for row in range(len(names))]
        counted = f"{runs} runs of {settings} settings" if over == "runs" else f"{settings} settings"
        yield matrix(f"{agreement.method} correlation, {group}, {counted}", names, cells)
        yield f"*: p < {SIGNIFICANT:g}, counting settings and corrected for all pairs (Holm)"
    else:
        yield f"no two columns to correlate, {group}: there are {', '.join(agreement.columns) or 'none'}"
    for each in agreement.left_out:
        lacking = each.columns[0].startswith("hyper.") and each.reason.startswith("has 0 ")
        if each.group == group and not lacking:  # that a family has no such hyperparameter is no news
            yield f"left out: {' and '.join(each.columns)} ({each.reason})"
    if other_groups := [each for each in agreement.groups if each != group]:
        yield f"other groups, by --group: {', '.join(other_groups)}"


def of_pairs(agreement: Agreement, group: str, confidence: float) -> Shown:
    """Every pair of columns in a group, with its interval at this confidence."""
    heads = [
        "first",
        "second",
        agreement.method,
        f"{100 * confidence:g} % between",
        "p",
        "p (Holm)",
        "runs",
        "settings",
    ]
    rows = [
        [
            pair.first, pair.second, f"{pair.value:z.2f}", f"{pair.low:z.2f} to {pair.high:z.2f}", p_text(pair.p),
            p_text(pair.p_holm), pair.n, pair.settings,
        ]
        for pair in agreement.correlations
        if pair.group == group
    ]  # fmt: skip
    yield Table(heads, rows, "llrrrrrr", keys=2)
    yield "intervals and p count settings, since runs of one setting are alike; Holm: corrected for all pairs"


def matrix(title: str, names: Sequence[str], cells: Sequence[Sequence[str]], *, first: Sequence[str] = ()) -> Table:
    """Columns are numbered as rows are, after those called `first`."""
    heads = [*first, *(str(number) for number in range(1, len(names) + 1))]
    rows = [
        [f"{number:>2} {name}", *own, *[""] * (len(heads) - len(own))]
        for number, (name, own) in enumerate(zip(names, cells, strict=True), start=1)
    ]
    return Table(["", *heads], rows, title=title)


def of_predictors(predictors: Predictors, over: str = "runs") -> Shown:
    """Which column predicts the target best; `over` as for `of_agreement`."""
    names, p = predictors.matrix()
    title = f"{predictors.method} correlation with {predictors.target}; p that the row is not stronger than the column"
    tests = [
        ["" if row == column else f"{chance:z.3f}".replace("nan", "-") for column, chance in enumerate(line)]
        for row, line in enumerate(p)
    ]
    cells = [
        [f"{predictors.values[name]:z.2f}", f"{predictors.n[name]:,}", *line]
        for name, line in zip(names, tests, strict=True)
    ]
    if names:
        yield matrix(f"{title} ({predictors.test})", names, cells, first=("r", over))
        yield "p counts settings, since runs of one setting are alike"
    else:
        yield f"{predictors.method} correlation with {predictors.target}: no two columns can be compared"
    for excluded in predictors.left_out:
        yield f"left out: {' and '.join(excluded.columns)} ({excluded.reason})"


def of_quartiles(quartiles: Quartiles) -> Shown:
    """Five numbers of each setting."""
    heads = ["family", "setting", "runs", "lowest", "25 %", "median", "75 %", "highest"]
    rows = [
        [box.family, box.setting, box.n, box.lowest, box.lower_quartile, box.median, box.upper_quartile, box.highest]
        for box in quartiles.boxes
    ]
    yield Table(heads, rows, "llrrrrrr", title=quartiles.column, keys=2)
    yield from _left_out(quartiles.left_out)


def of_trend(trend: Trend) -> Shown:
    """Means of two columns by setting, and their correlation in each family."""
    rows = [[each.family, each.setting, each.n, each.x, each.y] for each in trend.means]
    yield Table(["family", "setting", "runs", trend.x, trend.y], rows, "llrrr", title="means by setting", keys=2)
    for each in trend.correlations:
        yield f"{each.family}: correlation {each.value:z.2f} over {each.n} settings ({p_equals(each.p)})"
    yield from _left_out(trend.left_out)


def _left_out(reasons: Mapping[str, str]) -> Shown:
    for name, reason in reasons.items():
        yield f"left out: {name} ({reason})"


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _cell(value: float, p: float) -> str:
    """Two digits without the zero before the point, as papers print correlations."""
    if value != value:
        return "-"
    return f"{value:z.2f}".replace("0.", ".") + ("*" if p < SIGNIFICANT else " ")
