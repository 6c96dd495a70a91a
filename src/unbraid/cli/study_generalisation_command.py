"""`unbraid study generalisation`: what models make of combinations and gaps that they never saw."""

from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from unbraid.base.counted import counted
from unbraid.cli._options import Files, StudyFolder, TrustCode
from unbraid.cli._paths import opened
from unbraid.cli.show_command import show
from unbraid.files.table_formats import Cell, Table
from unbraid.scoring.setting_names import brief_settings


def generalisation(
    folder: StudyFolder,
    trust_code: TrustCode = None,
    *,
    to: Files,
) -> None:
    """Show how well models do on images held out of training.

    For a study with the section compositional, this is the accuracy of classifiers (heads) on held-out combinations of
    two factors, next to random splits of the same sizes; 0 is chance and 1 is perfect. With the section zero_shot, it
    is the error (NRMSE) of the DCI regressors in the gap, next to other images that the model did not see; lower is
    better. Numbers are means over seeds with their standard deviation.

    Examples:

      unbraid study generalisation study/

      unbraid study generalisation study/ --json generalisation.json --latex table.tex
    """
    from unbraid.studies.holdout.held_out_runs import answered, contents

    with opened(folder, trust=trust_code) as study:
        snapshots = {snapshot.label: snapshot for snapshot in study.snapshots()}
    contents_by_label = {label: content for label, snapshot in snapshots.items() if (content := contents(snapshot))}
    if not contents_by_label:
        raise ValueError(f"{folder}: the study has no hold-outs; add a section compositional or zero_shot to its YAML")
    shown: list[Table | str] = []
    for label, content in contents_by_label.items():
        for kind, (done, expected) in answered(snapshots[label]).items():
            shown.append(_table(kind, content[kind], label))
            shown.append(f"scored {done} of {counted(expected, 'run')} trained without some images")
    show(shown, to, content=contents_by_label.get("", contents_by_label))


# What is shown of each setting, and how the columns of the results begin that say it.
_ACCURACIES = {
    "MLP": "mlp.", "linear": "linear.", "single code": "single.", "MLP, random split": "mlp.random_",
    "linear, random split": "linear.random_", "single code, random split": "single.random_",
}  # fmt: skip
_ERRORS = {"lasso": "lasso.", "forest": "forest."}


def _table(kind: str, content: Mapping[str, Any], label: str) -> Table:
    terms = content["terms"]
    if kind == "zero_shot":
        title, names, lines = f"zero-shot: {terms['held_out']}", ["gap", "ordinary", "cost"], _ERRORS
    else:
        title = f"compositional generalisation: {' and '.join(terms['factors'])}"
        names, lines = [*terms["factors"], "both"], _ACCURACIES
    groups = _groups(content["runs"])
    brief = brief_settings(groups)
    rows = []
    for (family, setting), runs in groups.items():
        for place, (line, prefix) in enumerate(lines.items()):
            values = [[run["columns"].get(f"{kind}.{prefix}{name}") for run in runs] for name in names]
            named = family, brief[family, setting]
            first = named if place == 0 else tuple(Cell("", text) for text in named)  # once for readers
            rows.append([*first, line, *map(_short, values)])
    heads = ["family", "setting", "asked", *names]
    return Table(heads, rows, "lll" + "r" * len(names), title=f"{label} {title}".strip(), keys=3)


def _groups(runs: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["family"], run["setting"]), []).append(run)
    return groups


def _short(values: Sequence[float | None]) -> Cell:
    known = [value for value in values if value is not None]
    if not known:
        return Cell("-")
    return Cell(f"{mean(known):.3f}" + (f" ± {stdev(known):.3f}" if len(known) > 1 else ""), mean(known))
