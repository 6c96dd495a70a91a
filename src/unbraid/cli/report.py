"""`unbraid report`: one standalone page of a study, a run, or saved scores."""

from pathlib import Path
from typing import Annotated

import typer

from unbraid.cli._progress import stage_progress
from unbraid.cli._trust import TrustCode, TrustData, trusted
from unbraid.cli.show import check_output, say
from unbraid.storage.files import write_text


def report(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="STUDY|RUN|FILE",
            help="Folder of a study or of a run, .json file of scores, or file of codes with factors.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Output .html file; default report.html in the folder, or a file's name with .html."),
    ] = None,
    compare: Annotated[
        Path | None, typer.Option(help="Second run on the same images, controlled by the same sliders.")
    ] = None,
    trust_code: TrustCode = None,
    trust_data: TrustData = None,
) -> None:
    """Write one page that opens in any browser, offline.

    Codes and runs that have not been scored are scored first, by the standard metrics; a run keeps its scores. The page
    of a run has sliders for its codes and runs its decoder in a browser. `unbraid score FILE --html` has more options.

    Examples:

      unbraid report runs/3f6c0f0a8d1e2b47

      unbraid report runs/3f6c0f0a8d1e2b47 --compare runs/9a1b03c2d4e5f607 --out two.html

      unbraid report scores.json --out scores.html

      unbraid report my-study
    """
    from unbraid.storage.remote import at_hand

    trust = trusted(trust_code, trust_data)
    with at_hand(path) as here:
        out = out or (here / "report.html" if here.is_dir() else here.with_suffix(".html"))
        check_output("--out", out, ".html")
        from unbraid.studies.report import report_page

        with stage_progress("reading") as progress:
            html = report_page(here, out.parent, compare=compare, trust=trust, progress=progress)
        write_text(out, html)
    say(f"wrote {out}")
