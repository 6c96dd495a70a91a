"""`unbraid figure`: one figure, ready for print."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from unbraid.base.comma_lists import listed
from unbraid.cli._options import LabelOptions, Trust, check_output, pairs
from unbraid.cli.show_command import print_table, say
from unbraid.files.table_formats import Table, save_table


@dataclass(frozen=True)
class Drawing:
    """What a figure shows, and where it is written."""

    out: Annotated[Path | None, typer.Option(help="Output .png, .svg or .pdf file.")] = None
    width: Annotated[
        float | None,
        typer.Option(metavar="MM", help="Width in mm (column 89, page 183).", show_default="of the figure"),
    ] = None
    codes: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Comma-separated codes to show, by name or number.")
    ] = None
    factors: Annotated[
        str | None,
        typer.Option(
            "--factors",
            "--columns",
            metavar="NAMES",
            help="Comma-separated factors to show; one with a comma in double quotes.",
        ),
    ] = None
    top: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Number of codes to show, most important first.", show_default="24, or as many as fit"
        ),
    ] = None
    theme: Annotated[Literal["light", "dark"], typer.Option(help="Colours for a light or a dark background.")] = "light"
    data: Annotated[Path | None, typer.Option(help="Write the plotted numbers to this .csv file.")] = None
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="An option of the figure (see --list).")
    ] = None


def figure(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Name of the figure (see --list).")] = None,
    path: Annotated[
        Path | None, typer.Argument(metavar="[STUDY|RUN|FILE]", help="Folder of a run or of a study, or file of codes.")
    ] = None,
    *,
    drawing: Drawing,
    labels: LabelOptions,
    example: Annotated[
        bool, typer.Option("--example", help="Use the codes of a β-TCVAE that ship with unbraid.")
    ] = False,
    trust: Trust,
    show_list: Annotated[bool, typer.Option("--list", help="List the figures with their options, and exit.")] = False,
) -> None:
    """Draw a figure of a run, a study or a file of codes.

    The figure has the width of a column or a page of a journal and text of 7 to 8 points. Of hundreds of codes
    it shows the most important ones, and says how many there are.

    Fonts are embedded in .pdf, and text is outlines in .svg, so both look the same everywhere. The colours are safe for
    common forms of colour blindness.

    Examples:

      unbraid figure hinton --example --out hinton.pdf

      unbraid figure information codes.npz --out information.svg --theme dark --data information.csv

      unbraid figure hinton codes.npz --out hinton.pdf --width 183 --top 12 --factors x,hue

      unbraid figure latents codes.npy --labels labels.csv --period orientation=pi --out tuning.pdf --width 89

      unbraid figure traversals runs/3f6c0f0a8d1e2b47 --out traversals.png --set rows=2 --set steps=11

      unbraid figure samples runs/3f6c0f0a8d1e2b47 --out new.png --set images=64 --set seed=3

      unbraid figure rotation-traversal runs/3f6c0f0a8d1e2b47 --out around.png --data codes.csv
    """
    if show_list:
        return _print_list()
    if name is None:
        raise ValueError("give the name of a figure; unbraid figure --list shows them")
    from unbraid.figures import draw, find_figure, open_source
    from unbraid.files.remote import at_hand
    from unbraid.studies.snapshot import check_runs, check_some_left

    find_figure(name)
    if (path is None) != example:
        raise ValueError("give the folder of a run or a study, a file of codes, or --example")
    if drawing.out is None:
        raise ValueError("give --out F.pdf, F.svg or F.png")
    check_output("--out", drawing.out, ".png", ".svg", ".pdf")
    if drawing.data is not None:
        check_output("--data", drawing.data, ".csv")
    options = pairs("--set", drawing.sets or ())
    shown = None if drawing.factors is None else listed(drawing.factors)
    description = labels.read(shown)
    with nullcontext() if path is None else at_hand(path) as local:
        if local and (labels.key is not None or not description.in_codes_file or (shown and local.is_file())):
            from unbraid.runs.labelled_codes import read_labelled

            source = open_source(read_labelled(local, description)[0])
        else:
            source = open_source(local, trust.names)
        check_some_left(source.snapshots)
        drawn = draw(
            name,
            source,
            options,
            width=drawing.width,
            codes=listed(drawing.codes),
            factors=shown or [],
            top=drawing.top,
        )
    drawn.save(drawing.out, theme=drawing.theme)
    if drawing.data is not None:
        save_table(drawing.data, drawn.table)
    for written in filter(None, (drawing.out, drawing.data)):
        say(f"wrote {written}")
    if drawn.caption:
        say(drawn.caption, err=True)
    check_runs(source.snapshots)
    return None


def _print_list() -> None:
    from unbraid.figures import FIGURES

    rows = [
        [
            name, row.needs, row.title + (f" ({row.source})" if row.source else ""),
            " ".join(f"{option}={default}" for option, default in row.options.items())
        ]
        for name, row in FIGURES.items()
    ]  # fmt: skip
    print_table(Table(["figure", "of", "what it shows", "--set"], rows, "llll"))
    say("A figure of codes is drawn from a file of codes or from a run.")
