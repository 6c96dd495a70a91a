"""The page of whatever a path holds: a study, a run, saved scores, or codes."""

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from unbraid.base.optional import require
from unbraid.base.types import Progress
from unbraid.data import READABLE
from unbraid.files.run_files import CONFIG, SCORES, STATUS
from unbraid.files.whole_files import below, write_text
from unbraid.runs.folder import read_folder
from unbraid.runs.foreign_models import check_not_fitted
from unbraid.runs.labelled_codes import Labels
from unbraid.runs.score_run import score_path
from unbraid.scoring.card import load_beside
from unbraid.scoring.score import choose
from unbraid.scoring.score_page import page
from unbraid.studies.run_scores import complete_scores
from unbraid.studies.snapshot import StudySnapshot
from unbraid.studies.store import YAML


def report_page(
    path: Path,
    home: Path,
    *,
    compare: Path | None = None,
    trust: Collection[str] = (),
    progress: Progress | None = None,
) -> tuple[str, Sequence[StudySnapshot]]:
    """A whole HTML document, and what it was made of where it is of a study, by dataset.

    Codes and runs without scores are scored first, by the standard metrics.

    Args:
        path: folder of a study or of a run, .json file of scores, or file of codes.
        home: folder that the page will lie in. The pages of each dataset of a study of several are written now.
        compare: a second run on the same images.
        trust: names of the user's own code, and images, that the folder may use.
        progress: called as progress(what is done, done, all).

    Raises:
        FileNotFoundError: there is no such path, or it is none of these.
        ValueError: it is damaged, or the folder of `unbraid fit`; or `compare` beside something else than a run.
    """
    if not path.exists():
        read_folder(path)  # says whether it is unfinished or absent
    run = path.is_dir() and (path / STATUS).is_file()
    if compare is not None and not run:
        raise ValueError(f"--compare goes with the folder of a run; {path} is none")
    if path.is_dir() and (path / YAML).is_file():
        return _of_study(path, home, trust, progress)
    if run:
        return _of_run(path, compare, trust, progress), ()
    if path.suffix.lower() in READABLE:
        return replace(score_path(path, Labels(), progress=progress), path=str(path)).text("page.html"), ()
    if path.is_file() or (path / SCORES).is_file():
        return page(load_beside(path if path.is_file() else path / SCORES)), ()
    if (path / CONFIG).is_file():
        raise FileNotFoundError(f"{path}: not the folder of a run; there is no {STATUS}")
    check_not_fitted(path)
    raise FileNotFoundError(
        f"{path}: neither the folder of a study nor of a run; there is no {YAML} or {CONFIG}. "
        "Of a folder of runs or of files of codes, give one of these"
    )


def _of_study(
    path: Path, home: Path, trust: Collection[str], progress: Progress | None
) -> tuple[str, Sequence[StudySnapshot]]:
    """The page of a study; of several datasets that of them all, with those of each written into their folders."""
    from unbraid.studies.several_datasets import joined
    from unbraid.studies.several_datasets_page import studies_page
    from unbraid.studies.study import open_study
    from unbraid.studies.study_page import study_page
    from unbraid.studies.study_table import results

    with open_study(path, trust=trust) as study:
        snapshots = {part.label: part for part in study.snapshots()}
    tables = {label: results(part) for label, part in snapshots.items()}
    pages = {
        label: study_page(part, tables[label], base=home if not label else None, progress=progress)
        for label, part in snapshots.items()
    }
    if "" in pages:
        return pages[""], [*snapshots.values()]
    addresses = {}
    for label, html in pages.items():
        own = below(path, label) / "report.html"
        write_text(own, html)
        addresses[label] = quote(Path(os.path.relpath(own, home)).as_posix())
    return studies_page(study.config.name, study.text, path, joined(tables), addresses), [*snapshots.values()]


def _of_run(path: Path, compare: Path | None, trust: Collection[str], progress: Progress | None) -> str:
    require("torch", "train", "the page of a run")
    from unbraid.runs.run import load_run
    from unbraid.runs.run_page import run_page

    runs = [load_run(folder, device="cpu", trust=trust) for folder in (path, compare) if folder is not None]
    for run in runs:
        if run.status["state"] != "diverged" and not (run.path / SCORES).is_file():
            complete_scores(run.path, list(choose("standard")), trust=trust, progress=progress)
    return run_page(runs[0], compare=runs[1] if len(runs) > 1 else None)
