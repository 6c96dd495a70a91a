"""Pictures that are drawn while the site is built, in the colours of its pages: examples and figures."""

import io
import re
import runpy
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path

from matplotlib.figure import Figure

from pages.texts import ROOT, table
from unbraid.figures import FIGURES, draw, open_source
from unbraid.show.svg import inline_svg

INTRODUCTION = """\
Each figure is one command, ready for print:

```sh
unbraid figure information --example --out information.pdf --data information.csv
```

- **Width**: that of a journal's column (89 mm) or page (183 mm), with text of 7 to 8 points, so
  that you need not scale it. `--width` takes 40 to 1,000 mm.
- **Codes and factors**: of more than 40 codes the 24 most important are shown (in `latents`, as
  many as fit), and the figure says so. `--top 12` shows the 12 most important, `--codes z3,z7` or
  `--codes 3,7` those you name, and `--factors x,hue` only these factors.
- **Formats**: `.pdf` with embedded fonts, `.svg` with text as outlines, or `.png` with 300 dots per
  inch. `--theme dark` is for dark pages. `--data` writes the plotted numbers.
- **Colours** can be told apart with all common kinds of colour vision. The families of a study have
  the same colour and mark in all its figures.

In Python:

```python
from unbraid.figures import draw, open_source

drawn = draw("hinton", open_source("codes.npz"), {"metric": "dci_lasso"}, width=89, top=12)  # or a Representation
drawn.save("hinton.pdf")
drawn.figure, drawn.data  # a matplotlib Figure, and the columns of the .csv
```

Each figure is drawn by a function of `unbraid.show`, and `unbraid.show.save_figure(figure,
"f.pdf", width=89)` saves any matplotlib figure in this way.

A figure of *codes* is drawn from a file of codes or from a run. *Selects* lists the options that it
takes of `--codes`, `--factors` and `--top`."""
KEPT = ROOT / "docs" / "images" / "figures"  # of a run or of a study, by evidence/make_figure_pictures.py


def gallery() -> str:
    """Every script of examples/ with what it draws."""
    parts = [
        "# Gallery",
        "Scripts of a few lines, each of which runs in seconds: `python examples/NAME.py`. "
        "The pictures are what they drew when this site was built.",
    ]
    for script in sorted((ROOT / "examples").glob("*.py")):
        title, about, rest = split_script(script.read_text(encoding="utf-8"))
        picture = inline_svg(run_example(script), name=script.stem, label=title)
        parts += [
            f"## {title}",
            f"{about} {{download}}`examples/{script.name} <../examples/{script.name}>`",
            f"<figure>{picture}</figure>",
            f"```python\n{rest.rstrip()}\n```",
        ]
    return "\n\n".join(parts)


def split_script(source: str) -> tuple[str, str, str]:
    """Title, paragraph and code of a script, which starts with a docstring of both.

    Raises:
        ValueError: it does not.
    """
    found = re.match(r'"""(.*?)\n\n(.*?)"""\n+(.*)', source, flags=re.DOTALL)
    if found is None:
        raise ValueError("a script of the gallery starts with a docstring: a title, an empty line, a paragraph")
    return found[1].rstrip("."), found[2].strip(), found[3]


def run_example(script: Path) -> Figure:
    """Run a script of the gallery in an empty folder; it leaves its picture in `figure`.

    Raises:
        ValueError: it leaves none.
    """
    arguments, places = sys.argv, sys.path
    with tempfile.TemporaryDirectory() as folder, chdir(folder), redirect_stdout(io.StringIO()):
        sys.argv, sys.path = [str(script)], [str(script.parent), *sys.path]  # as `python examples/NAME.py` has them
        try:
            figure = runpy.run_path(str(script), run_name="__main__").get("figure")
        finally:
            sys.argv, sys.path = arguments, places
    if not isinstance(figure, Figure):
        raise ValueError(f"{script} leaves no matplotlib Figure in `figure`")
    return figure


def figures_overview() -> str:
    """The table of docs/figures.md."""
    rows = (
        (f"`{name}`", row.needs, row.title, f"{row.width:g}", ", ".join(row.chooses), row.source)
        for name, row in FIGURES.items()
    )
    return table("figure | of | what it shows | width, mm | selects | as in", "lllrll", rows)


def figures() -> str:
    """Every figure, drawn: what the site shows below the table."""
    parts = []
    example = open_source(None)
    for name, row in FIGURES.items():
        of = {"codes": "codes, or a run", "run": "a run", "study": "a study"}[row.needs]
        options = ", ".join(f"`{option}={default}`" for option, default in row.options.items())
        parts.append(
            f"## {name}\n\n{row.title}{f' ({row.source})' if row.source else ''}. Of {of}."
            + (f" `--set` takes {options}." if options else "")
        )
        kept = KEPT / f"{name}.svg"
        if kept.is_file():
            picture = kept.read_text(encoding="utf-8").strip()
        else:
            drawn = draw(name, example, {"metric": "dci_lasso"} if name == "hinton" else None)  # the quickest
            picture = inline_svg(drawn.figure, name=f"figure-{name}", label=row.title)
        parts.append(f"<figure>{picture}</figure>")
    return "\n\n".join(parts)
