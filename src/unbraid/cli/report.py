"""`unbraid report`: one standalone page of a study, a run, or saved scores."""

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from unbraid.cli._paths import found_here
from unbraid.cli._progress import metric_progress, stage_progress
from unbraid.cli._trust import TrustCode, TrustData, trusted
from unbraid.cli.show import check_output, say


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
        typer.Option(help="Output .html file; default report.html in the folder, or next to the file."),
    ] = None,
    compare: Annotated[
        Path | None, typer.Option(help="Second run on the same images, controlled by the same sliders.")
    ] = None,
    trust_code: TrustCode = None,
    trust_data: TrustData = None,
) -> None:
    """Write one page that opens in any browser, offline.

    Codes and runs that have not been scored are scored first, by the standard metrics; a run keeps its scores. The page
    of a run decodes by itself: its sliders move the codes. `unbraid score FILE --html` has more options.

    Examples:

      unbraid report runs/3f6c0f0a8d1e2b47

      unbraid report runs/3f6c0f0a8d1e2b47 --compare runs/9a1b03c2d4e5f607 --out two.html

      unbraid report scores.json --out scores.html

      unbraid report my-study
    """
    from unbraid.representation import READABLE
    from unbraid.runs.folder import read_folder
    from unbraid.storage.run_files import CONFIG, SCORES, STATUS

    given, path = path, found_here(path)
    if not path.exists():
        read_folder(path)  # says whether it is unfinished or absent
    out = out or (path / "report.html" if path.is_dir() else path.with_suffix(".html"))
    check_output("--out", out, ".html")
    run = path.is_dir() and (path / STATUS).is_file()
    if compare is not None and not run:
        raise ValueError(f"--compare goes with the folder of a run; {path} is none")
    if path.is_dir() and (path / "study.yaml").is_file():
        html = _of_study(path, out.parent, trusted(trust_code, trust_data))
    elif run:
        html = _of_run(path, compare, trusted(trust_code, trust_data))
    elif path.suffix in READABLE:
        html = _of_codes(path)
    elif path.is_file() or (path / SCORES).is_file():
        from unbraid.report.page import page
        from unbraid.scoring.card import load_beside

        html = page(load_beside(path if path.is_file() else path / SCORES).contents())
    elif (path / CONFIG).is_file():
        raise FileNotFoundError(f"{path}: not the folder of a run; there is no {STATUS}")
    else:
        raise FileNotFoundError(
            f"{path}: neither the folder of a study nor of a run; there is no study.yaml or {CONFIG}"
        )
    _write(out, html)
    if path != given:
        from unbraid.storage.remote import publish

        publish(path)
    say(f"wrote {out}")


def _write(path: Path, html: str) -> None:
    from unbraid.storage.files import atomic_write

    with atomic_write(path) as temporary:
        temporary.write_text(html, encoding="utf-8")


def _of_study(path: Path, home: Path, trust: Collection[str]) -> str:
    """The page of a study; of several datasets that of them all, with those of each written into their folders."""
    from unbraid.storage.files import below
    from unbraid.studies.page import study_page
    from unbraid.studies.results import results
    from unbraid.studies.several import joined
    from unbraid.studies.several_page import studies_page
    from unbraid.studies.study import Study

    with stage_progress("reading runs") as progress:
        study = Study.load(path, trust=trust)
        snapshots = {each.label: each for each in study.snapshots()}
        tables = {label: results(each) for label, each in snapshots.items()}
        pages = {
            label: study_page(each, tables[label], base=home if not label else None, progress=progress)
            for label, each in snapshots.items()
        }
    if "" in pages:
        return pages[""]
    addresses = {}
    for label, html in pages.items():
        own = below(path, label) / "report.html"
        _write(own, html)
        addresses[label] = quote(Path(os.path.relpath(own, home)).as_posix())
    return studies_page(study.config.name, study.text, path, joined(tables), addresses)


def _of_codes(path: Path) -> str:
    """The page of the standard metrics of codes."""
    from unbraid.runs.labelled import Labels
    from unbraid.runs.scoring import score_path

    with metric_progress() as progress:
        card = score_path(path, Labels(), progress=progress)
    return replace(card, path=str(path)).text("page.html")


def _of_run(path: Path, compare: Path | None, trust: Collection[str]) -> str:
    from unbraid._utils.optional import require

    require("torch", "train", "the page of a run")
    from unbraid.runs.page import run_page
    from unbraid.runs.run import load_run

    runs = [load_run(each, device="cpu", trust=trust) for each in (path, compare) if each is not None]
    for run in runs:
        _score(run.path, run.status["state"] == "diverged", trust)
    return run_page(runs[0], compare=runs[1] if len(runs) > 1 else None)


def _score(run: Path, diverged: bool, trust: Collection[str]) -> None:
    """The standard metrics, where the run has no scores yet."""
    from unbraid.scoring.score import choose
    from unbraid.storage.run_files import SCORES
    from unbraid.studies.scores import complete_scores

    if diverged or (run / SCORES).is_file():
        return
    with metric_progress() as progress:
        complete_scores(run, list(choose("standard")), trust=trust, progress=progress)
