"""`unbraid study agreement`: do metrics agree with each other, with UDR, with generalisation?"""

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from unbraid.base.comma_lists import listed
from unbraid.cli._options import Files, TrustCode
from unbraid.cli._paths import Place
from unbraid.cli.show_command import show
from unbraid.files.table_formats import Table, table_of

Folder: TypeAlias = Annotated[Path, typer.Argument(metavar="STUDY", help="Folder of a study, or a table of results.")]
Columns: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Comma-separated columns to compare; default metrics, UDR, generalisation and hyperparameters."),
]
Group: TypeAlias = Annotated[str | None, typer.Option(help="Show only the runs of this family; default all runs.")]
Over: TypeAlias = Annotated[
    Literal["runs", "settings"], typer.Option(help="Sampling unit: runs, or settings averaged over their seeds.")
]
Method: TypeAlias = Annotated[Literal["spearman", "pearson"], typer.Option(help="Correlation of ranks, or of values.")]
Target: TypeAlias = Annotated[
    str | None, typer.Option(help="Column, such as compositional.mlp.both: also test which column predicts it best.")
]
Test: TypeAlias = Annotated[
    Literal["dependent", "paper", "independent"], typer.Option(help="Test of two correlations, with --target.")
]
Box: TypeAlias = Annotated[str | None, typer.Option(help="Also show the quartiles of this column by setting.")]
Trend: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="X,Y",
        help="Also show the means of two columns by setting, such as "
        "elbo_terms.total_correlation,mig.score, or elbo,mig.score.",
    ),
]
Pairs: TypeAlias = Annotated[bool, typer.Option("--pairs", help="Also list every pair with its interval and p.")]
Confidence: TypeAlias = Annotated[float, typer.Option(help="Confidence level of the intervals of correlations.")]


def agreement(
    folder: Folder,
    columns: Columns = None,
    group: Group = None,
    over: Over = "runs",
    method: Method = "spearman",
    target: Target = None,
    test: Test = "dependent",
    box: Box = None,
    trend: Trend = None,
    pairs: Pairs = False,
    confidence: Confidence = 0.95,
    trust_code: TrustCode = None,
    *,
    to: Files,
) -> None:
    """Correlate the metrics of a study with each other.

    They are also correlated with UDR, with generalisation and with hyperparameters. Stars mark significant correlations
    (p < .05, counting settings, corrected for all pairs). Intervals and p values are in --pairs, --json and --csv,
    which has a row for each pair in each group.

    Examples:

      unbraid study agreement study/

      unbraid study agreement study/ --group beta_vae --box mig.score

      unbraid study agreement study/ --columns mig.score,snc.score --pairs --csv pairs.csv

      unbraid study agreement study/ --target compositional.mlp.both --over settings --json -
    """
    from unbraid.scoring import agreement as compared
    from unbraid.scoring import agreement_tables as tables
    from unbraid.scoring.by_setting import quartiles, setting_means, with_elbo
    from unbraid.scoring.by_setting import trend as means
    from unbraid.scoring.result_columns import by_label, together
    from unbraid.scoring.setting_names import with_brief_settings

    chosen, group = listed(columns) or None, group or compared.EVERYTHING
    parts_by_label: dict[str, dict[str, Any]] = {}
    for label, frame in by_label(Place.at(folder).results(trust_code or ())).items():
        table = setting_means(frame) if over == "settings" else frame
        frame = frame if to.json else with_brief_settings(frame)
        parts = parts_by_label[label] = {}
        parts["agreement"] = compared.agreement(table, chosen, method=method, confidence=confidence)
        if group not in (groups := parts["agreement"].groups):
            raise ValueError(f"--group {group}: there are {', '.join(groups)}")
        if target is not None:
            parts["predictors"] = compared.predictors(table, target, chosen, method=method, test=test)
        if box is not None:
            parts["spread"] = quartiles(frame, box)
        if trend is not None:
            if len(listed(trend)) != 2:
                raise ValueError(f"--trend {trend}: give two columns with a comma between them")
            x, y = listed(trend)
            parts["trend"] = means(with_elbo(frame) if "elbo" in (x, y) else frame, x, y)
    further = {
        "predictors": partial(tables.of_predictors, over=over), "spread": tables.of_quartiles, "trend": tables.of_trend,
    }  # fmt: skip
    shown: list[Table | str] = []
    for label, parts in parts_by_label.items():
        shown += [] if list(parts_by_label) == [""] else [label or "without a label"]
        shown += tables.of_agreement(parts["agreement"], group, over)
        shown += [
            table_or_line for name, part in parts.items() if name in further for table_or_line in further[name](part)
        ]
        shown += tables.of_pairs(parts["agreement"], group, confidence) if pairs else []
    content = {label: {name: part.to_dict() for name, part in parts.items()} for label, parts in parts_by_label.items()}
    rows = table_of(together({label: parts["agreement"].to_frame() for label, parts in parts_by_label.items()}))
    show(shown, to, content=content.get("", content), rows=rows)
