"""`unbraid study generalisation`: what models make of combinations and gaps that they never saw."""

import json as json_format
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from unbraid.analysis.settings import brief_settings
from unbraid.cli._say import say
from unbraid.cli._terminal import Terminal
from unbraid.cli._trust import TrustCode


def generalisation(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study, as `unbraid study run` makes it.")],
    json: Annotated[bool, typer.Option("--json", help="Print every answer as JSON.")] = False,
    trust_code: TrustCode = None,
) -> None:
    """Show how well models carry over to images that they were trained without.

    For a study with the section compositional: accuracy of heads on held-out combinations of two factors, beside
    random splits of the same sizes; chance is 0 and all right is 1. With the section zero_shot: error (NRMSE) of the
    DCI regressors in the gap, beside other images that the model did not see; lower is better. Means over seeds, and
    their standard deviation.

    Examples:

      unbraid study generalisation study/

      unbraid study generalisation study/ --json > generalisation.json
    """
    from unbraid.cli.study import opened
    from unbraid.studies.holdout.results import answered, contents

    study = opened(folder, trust=trust_code or ())
    found = {label: content for label, part in study.parts().items() if (content := contents(part))}
    if not found:
        raise ValueError(f"{folder}: the study holds nothing out; give it a section compositional or zero_shot")
    if json:
        say(json_format.dumps(found.get("", found), indent=2))
        return
    console = Terminal()
    for label, content in found.items():
        part = study.parts()[label]
        if label:
            console.print(label, markup=False, highlight=False)
        for kind, (done, expected) in answered(part, part.runs()).items():
            console.print(_table(kind, content[kind]), markup=False)
            console.print(f"{done} of {expected} runs without some images have been asked", highlight=False)


# What is shown of each setting, and how the columns of the results begin that say it.
_ACCURACIES = {
    "MLP": "mlp.", "linear": "linear.", "MLP, random split": "mlp.random_", "linear, random split": "linear.random_",
}  # fmt: skip
_ERRORS = {"lasso": "lasso.", "forest": "forest."}


def _table(kind: str, content: Mapping[str, Any]) -> Table:
    terms = content["terms"]
    if kind == "zero_shot":
        title, names, lines = f"zero-shot: {terms['held_out']}", ["gap", "ordinary", "cost"], _ERRORS
    else:
        title = f"compositional generalisation: {' and '.join(terms['factors'])}"
        names, lines = [*terms["factors"], "both"], _ACCURACIES
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for name in ("family", "setting", "asked"):
        table.add_column(name, no_wrap=name != "setting")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    groups = dict(_groups(content["runs"]))
    brief = brief_settings(groups)
    for (family, setting), runs in groups.items():
        for position, (line, prefix) in enumerate(lines.items()):
            values = [[run["columns"].get(f"{kind}.{prefix}{name}") for run in runs] for name in names]
            first = position == 0
            table.add_row(
                family if first else "", brief[family, setting] if first else "", line, *map(_short, values),
                end_section=position == len(lines) - 1,
            )  # fmt: skip
    return table


def _groups(runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[tuple[str, str], list[Mapping[str, Any]]]]:
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["family"], run["setting"]), []).append(run)
    yield from groups.items()


def _short(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    return f"{mean(known):.3f}" + (f" ± {stdev(known):.3f}" if len(known) > 1 else "")
