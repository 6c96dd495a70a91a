"""`unbraid report`: one standalone page of a study, a run, or saved scores."""

import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unbraid.cli._options import Trust, check_output
from unbraid.cli._progress import stage_progress
from unbraid.cli.show_command import say
from unbraid.files.whole_files import write_text

if TYPE_CHECKING:
    from unbraid.studies.snapshot import StudySnapshot

LOOK_EVERY = 5  # seconds between looks at the folder, and between reloads of the page


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
    watch: Annotated[
        bool, typer.Option("--watch", help="Write the page again whenever the folder changes, until Ctrl-C.")
    ] = False,
    *,
    trust: Trust,
) -> None:
    """Write one page that opens in any browser, offline.

    Codes and runs that have not been scored are scored first, by the standard metrics; a run keeps its scores. The page
    of a run has sliders for its codes and runs its decoder in a browser. `unbraid score FILE --html` has more options.

    Examples:

      unbraid report runs/3f6c0f0a8d1e2b47

      unbraid report runs/3f6c0f0a8d1e2b47 --compare runs/9a1b03c2d4e5f607 --out two.html

      unbraid report scores.json --out scores.html

      unbraid report my-study

      unbraid report my-study --watch
    """
    if not watch:
        from unbraid.studies.snapshot import check_runs

        page, _, snapshots = _write(path, out, compare, trust.names)
        say(f"wrote {page}")
        check_runs(snapshots)
        return
    written, files = None, None
    try:
        while True:
            now = _files(path)
            if now != files:
                page, html, _ = _write(path, out, compare, trust.names, reload=True)
                if written is None:
                    say(f"wrote {page}; it reloads itself and is written again when {path} changes (Ctrl-C ends it)")
                written, files = (page, html), now
            time.sleep(LOOK_EVERY)
    except KeyboardInterrupt:
        if written is None:
            raise
        write_text(*written)  # without reloading
        say(f"\nstopped watching {path}")


def _write(
    path: Path, out: Path | None, compare: Path | None, trust: Collection[str], *, reload: bool = False
) -> "tuple[Path, str, Sequence[StudySnapshot]]":
    """The file that was written, the page as it is when it does not reload itself, and the study that it is of."""
    from unbraid.files.remote import at_hand

    with at_hand(path) as local:
        out = out or (local / "report.html" if local.is_dir() else local.with_suffix(".html"))
        check_output("--out", out, ".html")
        from unbraid.studies.study_report import report_page

        with stage_progress("reading") as progress:
            html, snapshots = report_page(local, out.parent, compare=compare, trust=trust, progress=progress)
        again = f'<head>\n<meta http-equiv="refresh" content="{LOOK_EVERY}">'
        write_text(out, html.replace("<head>", again, 1) if reload else html)
    return out, html, snapshots


def _files(path: Path) -> dict[Path, tuple[int, int]]:
    """Time and size of each file of the folder; without pages, which reports write."""
    from unbraid.files.remote import local_folder

    folder, files = local_folder(path), {}
    for file in folder.rglob("*") if folder.is_dir() else [folder]:
        with suppress(FileNotFoundError):  # renamed meanwhile: the next look sees it
            status = file.stat()
            if file.suffix != ".html" and file.is_file():
                files[file] = status.st_mtime_ns, status.st_size
    return files
