"""`unbraid figure`: one figure, ready to be printed."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from unbraid.cli._paths import found_here
from unbraid.cli._say import say
from unbraid.cli._terminal import Terminal
from unbraid.cli._trust import TrustCode, TrustData, trusted
from unbraid.cli.score import about_labels, labelled


def figure(
    name: Annotated[str | None, typer.Argument(help="Name of the figure (see --list).", show_default=False)] = None,
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RUN|DIR|FILE]",
            show_default=False,
            help="Folder of a run or of a study, or a representation file.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Output .png, .svg or .pdf file.")] = None,
    width: Annotated[
        float | None,
        typer.Option(metavar="MM", help="Width in mm (column 89, page 183).", show_default="of the figure"),
    ] = None,
    codes: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Comma-separated codes to show, by name or number.")
    ] = None,
    factors: Annotated[str | None, typer.Option(metavar="NAMES", help="Comma-separated factors to show.")] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Table of labels (.csv, .parquet, .npz, .npy) of the codes.", show_default=False),
    ] = None,
    kinds: Annotated[
        str | None, typer.Option(metavar="NAME=KIND,...", help="Kinds of factors, as for `score`.", show_default=False)
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(metavar="NAME=NUMBER,...", help="Period of angles: hue=360.", show_default=False),
    ] = None,
    missing: Annotated[
        str | None, typer.Option(metavar="VALUE,...", help="Values that mean 'missing'.", show_default=False)
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of codes to show, most important first.", show_default="24 of many"),
    ] = None,
    theme: Annotated[Literal["light", "dark"], typer.Option(help="Background that the colours are for.")] = "light",
    data: Annotated[Path | None, typer.Option(help="Write the plotted numbers to this .csv file.")] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="An option of the figure (see --list).")
    ] = None,
    example: Annotated[bool, typer.Option("--example", help="Draw the shipped codes of a β-TCVAE instead.")] = False,
    trust_code: TrustCode = None,
    trust_data: TrustData = None,
    listed: Annotated[bool, typer.Option("--list", help="List the figures with their options, and exit.")] = False,
) -> None:
    """Draw a figure of a run, of a study or of a file of codes.

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

      unbraid figure rotation-traversal runs/3f6c0f0a8d1e2b47 --out around.png --data codes.csv
    """
    if listed:
        return _print_list()
    if name is None:
        raise ValueError("give the name of a figure; unbraid figure --list shows them")
    from unbraid.figures import draw, find_figure, open_source

    find_figure(name)
    if (path is None) != example:
        raise ValueError("give a RUN, a study's DIR or a FILE of codes, or --example for the shipped codes")
    if out is None:
        raise ValueError("give --out F.pdf, F.svg or F.png")
    _check_outputs(out, data)
    options = dict(_option(text) for text in sets or ())
    about = about_labels(kinds, period, missing)
    if path and (labels or about):
        source = open_source(labelled(found_here(path), labels, None, about)[0])
    else:
        source = open_source(path and found_here(path), trusted(trust_code, trust_data))
    drawn = draw(
        name, source, options, width=width, codes=_listed(codes), factors=_listed(factors), top=top,
    )  # fmt: skip
    drawn.save(out, theme=theme)
    if data is not None:
        drawn.save_data(data)
    for written in filter(None, (out, data)):
        say(f"wrote {written}")
    if drawn.caption:
        say(drawn.caption, err=True)
    return None


def _listed(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _check_outputs(out: Path, data: Path | None) -> None:
    """What takes long to draw should not end in a file that cannot be written."""
    for option, path, suffixes in (("--out", out, (".png", ".svg", ".pdf")), ("--data", data, (".csv",))):
        if path is None:
            continue
        if path.suffix not in suffixes:
            raise ValueError(f"{option} {path}: the name must end in {' or '.join(suffixes)}")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"{option} {path}: the folder {path.parent} does not exist")


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise ValueError(f"--set {text}: write NAME=VALUE")
    return name.strip(), value.strip()


def _print_list() -> None:
    from unbraid.figures import FIGURES

    table = Table(pad_edge=False, box=SIMPLE_HEAD)
    for column in ("figure", "of", "what it shows", "--set"):
        table.add_column(column, no_wrap=column in {"figure", "of"})
    for name, row in FIGURES.items():
        options = " ".join(f"{option}={default}" for option, default in row.options.items())
        table.add_row(name, row.needs, row.title + (f" ({row.source})" if row.source else ""), options)
    Terminal().print(table, markup=False)
    say("of codes: a representation file, or a run, which holds codes")
