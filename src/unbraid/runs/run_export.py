"""Export a run as a folder to share or upload."""

import shutil
from collections.abc import Collection
from pathlib import Path

from unbraid.datasets import DATASETS
from unbraid.datasets.own_images import is_path
from unbraid.files.run_files import CONFIG, LASTING, SCORES, STATUS
from unbraid.files.whole_files import below, write_text
from unbraid.runs.folder import damage_of
from unbraid.runs.model_card import ALONE, README, chosen_in, model_card
from unbraid.runs.run import Run, load_run

__all__ = ["export_folder"]


def export_folder(
    path: str | Path,
    out: str | Path,
    *,
    name: str | None = None,
    chosen: str | None = None,
    scores: str | Path | None = None,
    trust: Collection[str] = (),
) -> Run:
    """Copy the files of a run into a new folder, and add a model card, README.md.

    Args:
        path: of the run.
        out: a new folder.
        name: of the model in the model card; by default that of the folder.
        chosen: how the model was chosen, in Markdown; the section of an existing model card is appended.
        scores: a score card of its codes, such as one with intervals, instead of the run's own scores.
        trust: as for `load_run`.

    Returns:
        The run in its new place.

    Raises:
        FileNotFoundError: there is no such run or score card, or the folder in which `out` is to lie does not exist.
        ValueError: `out` is there already; the run diverged, or is damaged; or the scores are of other codes.
    """
    path, out = Path(path), Path(out)
    if out.exists():
        raise ValueError(f"{out} is there already; give a new folder")
    if not out.parent.is_dir():
        raise FileNotFoundError(f"{out}: the folder {out.parent} does not exist")
    run = load_run(path, device="cpu", trust=trust)
    if damage := damage_of(path, run.status):
        raise ValueError(damage)
    paragraphs = "\n\n".join(filter(None, (chosen, chosen_in(path)))) or ALONE
    text = model_card(run, name or out.name, paragraphs, folder=out.name, scores=Path(scores) if scores else None)
    working = copied(path, out)
    try:
        write_text(working / README, text)
        if scores:
            shutil.copyfile(scores, working / SCORES)
        working.rename(out)
    finally:
        shutil.rmtree(working, ignore_errors=True)
    return load_run(out, device="cpu", trust=trust)


def own_images_path(run: Run) -> str | None:
    """The path of the user's own images in config.json of a run; None if it names a dataset."""
    name = run.config["dataset"]["name"]
    return name if name is not None and is_path(name, DATASETS) else None


def copied(path: Path, target: Path) -> Path:
    """A copy of the files of a run beside its target, to be renamed to it when it is complete.

    Other files of the folder are not copied, and links that lead out of it are not followed.
    """
    working = target.with_name(f".{target.name}.part")
    shutil.rmtree(working, ignore_errors=True)
    working.mkdir()
    for name in (CONFIG, STATUS, SCORES, *LASTING):
        if (file := below(path, name)).is_file():
            shutil.copy2(file, working / name)
    return working
