"""The folder that `unbraid fit` leaves: the model, the codes of all images, a page, and a text on how to go on."""

import csv
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.datasets.factor_table import read_table, table_columns
from unbraid.metrics import METRICS
from unbraid.representation import Representation
from unbraid.runs.onnx import export_onnx
from unbraid.runs.run import BATCH, Run, load_run
from unbraid.scoring.score import score
from unbraid.storage.files import atomic_write, write_text
from unbraid.studies.fit.choose import Candidate, Choice
from unbraid.studies.fit.page import fit_page
from unbraid.studies.fit.pictures import Pictures
from unbraid.studies.fit.plan import Plan
from unbraid.types import FloatArray, Progress

MODEL, CODES, REPORT, README = "model", "codes.csv", "report.html", "README.md"
JUDGES = ("mig", "dci_boosted", "mcc")  # by which labels judge the choice afterwards


@dataclass(frozen=True)
class Labels:
    """What is known of some of the images."""

    rows: list[int]  # which images
    columns: Mapping[str, list[Any]]  # of each factor, the value of each of them


def hand_over(
    folder: Path,
    pictures: Pictures,
    plan: Plan,
    choice: Choice,
    *,
    labels: Labels | None = None,
    progress: Progress | None = None,
) -> Run | None:
    """Write what the user takes away; returns the chosen model in its new place."""
    judged = judge(choice.candidates, pictures, labels, progress) if labels is not None else {}
    run, codes = None, None
    if choice.chosen is not None:
        run = _copied(choice.chosen.run, folder / MODEL)
        codes = all_codes(run, pictures, progress)
        write_codes(folder / CODES, pictures.names, codes)
        if find_spec("onnx"):
            for part in ("encoder", "decoder"):
                export_onnx(run, folder / MODEL / f"{part}.onnx", part=part)
    with atomic_write(folder / REPORT) as temporary:
        page = fit_page(pictures, plan, choice, run=run, codes=codes, judged=judged)
        temporary.write_text(page, encoding="utf-8")
    write_text(folder / README, _readme(folder, choice))
    return run


def all_codes(run: Run, pictures: Pictures, progress: Progress | None = None) -> FloatArray:
    """(n_images, n_codes) of all images, in their order."""
    images = pictures.at(run.config["dataset"]["image_shape"][0])
    parts = []
    for start in range(0, len(images), BATCH):
        if progress:
            progress("encoding images", start, len(images))
        parts.append(run.encode(images.images(np.arange(start, min(start + BATCH, len(images))))))
    return np.concatenate(parts)


def write_codes(path: Path, names: Sequence[str], codes: FloatArray) -> None:
    """A table with a row per image: its file, and its codes. The name of a file may be no text in any encoding."""
    with (
        atomic_write(path) as temporary,
        temporary.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file,
    ):
        table = csv.writer(file)
        table.writerow(["file", *(f"code_{number}" for number in range(codes.shape[1]))])
        table.writerows([name, *(f"{value:.7g}" for value in row)] for name, row in zip(names, codes, strict=True))


def read_labels(given: Any, pictures: Pictures) -> Labels:
    """Labels matched with the images by their column `file`, or without one in the order of the images.

    Args:
        given: a .csv or .parquet file, or a mapping from name to column.
        pictures: the images.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: no name in `file` is that of an image; or there is no such column, and not a row per image.
    """
    table = read_table(Path(given)) if isinstance(given, str | Path) else table_columns(
        {str(name): list(given[name]) for name in given.keys()}, "labels"  # noqa: SIM118 (frames answer to keys())
    )  # fmt: skip
    columns = {column.name: list(column.cells) for column in table}
    places = {name: place for place, name in enumerate(pictures.names)}
    files = columns.pop("file", list(pictures.names))
    rows = [places.get(str(name), -1) for name in files]
    if max(rows, default=-1) < 0:
        raise ValueError("labels: no name in the column 'file' is that of an image")
    if any(len(cells) != len(rows) for cells in columns.values()):
        raise ValueError(f"labels must have a row for each of the {len(rows)} images, or a column 'file'")
    kept = [place for place, row in enumerate(rows) if row >= 0]
    known = {name: _numbers([cells[place] for place in kept]) for name, cells in columns.items()}
    return Labels([rows[place] for place in kept], known)


def judge(
    candidates: Sequence[Candidate], pictures: Pictures, labels: Labels, progress: Progress | None = None
) -> dict[str, Mapping[str, float]]:
    """Scores of each model by labels that had no part in the choice: metric -> run -> score."""
    found: dict[str, dict[str, float]] = {name: {} for name in JUDGES}
    for done, each in enumerate(candidates):
        if progress:
            progress("scoring by labels", done, len(candidates))
        codes = all_codes(each.run, pictures)[labels.rows]
        card = score(Representation.of(codes, labels.columns), metrics=list(JUDGES))
        for name in JUDGES:
            if name in card:
                found[name][each.run.path.name] = float(getattr(card[name], METRICS[name].headline))
    return {name: scores for name, scores in found.items() if scores}


def _numbers(values: list[Any]) -> list[Any]:
    """Numbers where all of them are, else texts."""
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        return [str(value) for value in values]
    return (
        [int(value) for value in numbers]
        if all(math.isfinite(each) and each == int(each) for each in numbers)
        else numbers
    )


def _copied(run: Run, target: Path) -> Run:
    """The folder of a run, copied whole or not at all."""
    working = target.with_name(f".{target.name}.part")
    shutil.rmtree(working, ignore_errors=True)
    shutil.copytree(run.path, working)
    shutil.rmtree(target, ignore_errors=True)
    working.rename(target)
    return load_run(target, device=run.device)


def _readme(folder: Path, choice: Choice) -> str:
    if choice.chosen is None:
        return f"# Nothing was chosen\n\n{choice.reason}.\n\nreport.html shows what was tried.\n"
    return (
        "# A model chosen without labels\n\n"
        "```python\n"
        "import unbraid\n\n"
        f'run = unbraid.load_run("{folder.name}/{MODEL}")\n'
        "codes = run.encode(images)  # (n, height, width, channels), uint8, of the size that the model was trained at\n"
        "images = run.decode(codes)\n"
        "```\n\n"
        f"`{CODES}` holds the codes of all images, `{REPORT}` what each of them does, and `study/` all models.\n"
    )
