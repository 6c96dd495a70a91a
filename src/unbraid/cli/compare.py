"""`unbraid compare`: which of several models scores better on these images, and how sure is that?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from unbraid.cli._paths import check_outputs, expanded
from unbraid.cli._progress import metric_progress
from unbraid.cli._say import say
from unbraid.cli._terminal import Terminal
from unbraid.scoring.tables import is_bold, plain

if TYPE_CHECKING:
    from unbraid.scoring.compare import ModelComparison


def compare(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files of codes with factors, or folders of runs.", show_default=False),
    ],
    metrics: Annotated[
        str, typer.Option(help="Comma-separated metrics and presets (see `unbraid metrics`).")
    ] = "standard",
    confidence: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    resamples: Annotated[
        int | None,
        typer.Option(help="Number of subsamples; default 200, or 20 for metrics that train.", show_default=False),
    ] = None,
    paired: Annotated[
        bool | None,
        typer.Option(
            "--paired/--unpaired",
            help="Whether row k of every file is the same image; default: yes if their factors match.",
            show_default=False,
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Factor with weights: how many rows each row stands for. It is not scored as a factor.",
            show_default=False,
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Factor with groups of dependent rows: trial, animal, video or session. It is not scored as a factor.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same numbers.")] = 0,
    json: Annotated[Path | None, typer.Option(help="Write everything to this .json file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write one standalone page to this .html file.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Write scores ± intervals to this .tex file.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write them to this .md file.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write them to this .csv file.")] = None,
) -> None:
    """Compare models on the same images, or on other images of the same source: is the difference significant?

    The sampling unit is the image. Every difference has a confidence interval, and p values are corrected for all
    comparisons shown (Holm). A model is called better only if that difference is significant. Files with more rows than
    the smallest are scored on disjoint subsets of its size, because scores depend on the number of rows. To compare
    families, train several seeds of each and use `unbraid study compare`.

    Examples:

      unbraid compare vae.npz factor_vae.npz --metrics mig,snc --html page.html

      unbraid compare runs/3f6c0f0a8d1e2b47 runs/91c4e8d0f7a6b235 --metrics mig,dci_lasso --latex table.tex
    """
    outputs = {".json": json, ".html": html, ".tex": latex, ".md": markdown, ".csv": csv}
    check_outputs(outputs)
    from unbraid.cli.score import called, interval_of, labelled, listed
    from unbraid.scoring.compare import compare as compare_models
    from unbraid.scoring.score import choose
    from unbraid.storage.trust import trusting

    chosen = listed(metrics)
    choose(trusting(chosen))
    models = called({str(path): labelled(path, None, None, {}, weights, groups)[0] for path in expanded(files)})
    with metric_progress() as progress:
        found = compare_models(
            models,
            metrics=chosen,
            confidence=interval_of(confidence, resamples) or confidence,
            seed=seed,
            paired=paired,
            progress=progress,
        )
    _print(Terminal(), found)
    for out in outputs.values():
        if out is not None:
            found.save(out)
            say(f"wrote {out}", err=True)


def _print(console: Console, found: "ModelComparison") -> None:
    head, rows = found.table()
    scores = Table(box=SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(head):
        scores.add_column(name, justify="right" if place else "left", overflow="fold")
    for row in rows:
        scores.add_row(*(Text(plain(cell), style="bold" if is_bold(cell) else "") for cell in row))
    apart = Table(box=SIMPLE_HEAD, pad_edge=False)
    names = ("metric", "models", "difference", f"{100 * found.confidence:g} % between", "p", "p (Holm)", "better")
    for name in names:
        apart.add_column(name, justify="left" if name in ("metric", "models", "better") else "right", overflow="fold")
    for each in found.differences:
        between = f"{each.low:+.3f} to {each.high:+.3f}"
        apart.add_row(
            each.metric, f"{each.first} - {each.second}", f"{each.difference:+.3f}", between, f"{each.p:.2g}",
            f"{each.p_holm:.2g}", each.better,
        )  # fmt: skip
    for table in (scores, apart):
        console.print(table, markup=False)
    for note in (found.footnote, *found.notes):
        console.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)
