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

from unbraid.datasets import DATASETS
from unbraid.datasets.factor_table import read_table, table_columns
from unbraid.metrics import METRICS
from unbraid.representation import Representation
from unbraid.runs.exported import copied
from unbraid.runs.model_card import README, load_lines, model_card
from unbraid.runs.onnx import export_onnx
from unbraid.runs.run import BATCH, Run, load_run
from unbraid.scoring.score import score
from unbraid.sharing.numbers import markdown_table
from unbraid.storage.files import atomic_write, write_text
from unbraid.studies.fit.choose import Candidate, Choice
from unbraid.studies.fit.page import fit_page, judged_table
from unbraid.studies.fit.pictures import Pictures
from unbraid.studies.fit.plan import Plan
from unbraid.types import FloatArray, Progress

MODEL, CODES, REPORT = "model", "codes.csv", "report.html"
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
        run = _handed_over(choice, folder / MODEL, judged, pictures)
        codes = all_codes(run, pictures, progress)
        write_codes(folder / CODES, pictures.names, codes)
        if find_spec("onnx"):
            for part in ("encoder", "decoder"):
                export_onnx(run, folder / MODEL / f"{part}.onnx", part=part)
    with atomic_write(folder / REPORT) as temporary:
        page = fit_page(pictures, plan, choice, run=run, codes=codes, judged=judged)
        temporary.write_text(page, encoding="utf-8")
    write_text(folder / README, _readme(folder, choice, run))
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


def _handed_over(choice: Choice, target: Path, judged: Mapping[str, Mapping[str, float]], pictures: Pictures) -> Run:
    """The chosen run in a folder of its own, whole or not at all."""
    assert choice.chosen is not None
    run = choice.chosen.run
    told = how_chosen(choice, judged) + of_dataset(pictures)
    text = model_card(run, f"{choice.chosen.setting}, chosen without labels", told, folder=target.name)
    working = copied(run.path, target)
    write_text(working / README, text)
    shutil.rmtree(target, ignore_errors=True)
    working.rename(target)
    return load_run(target, device=run.device)


def how_chosen(choice: Choice, judged: Mapping[str, Mapping[str, float]]) -> str:
    """How the chosen model was chosen and how sure that is, as paragraphs in Markdown.

    `judged` is of labels that had no part in it, as `judge` gives it; empty without labels.
    """
    assert choice.chosen is not None
    settings = list(dict.fromkeys(each.setting for each in choice.candidates))
    among = f"{len(settings)} setting{'s' * (len(settings) > 1)} ({', '.join(settings)})"
    udr = choice.udr(choice.chosen)
    assert udr is not None
    close = " The choice is close: others are about as good." if choice.sure_of_setting < 0.5 else ""
    return (
        f"It was chosen without labels by `unbraid fit` from {len(choice.candidates)} models of {among}: of those "
        f"that can be called good, its latents are the most like those of the others, with a UDR of {udr:.3f}. Its "
        f"ELBO on held-out images is {choice.chosen.elbo:.1f} nats."
        "\n\n"
        f"When the models of each setting were drawn again, with replacement, {choice.sure_of_model:.0%} of the draws "
        f"chose the same model, and {choice.sure_of_setting:.0%} the same setting.{close}"
        "\n\n"
        "UDR measures whether models of different seeds find the same latents. Models can agree on latents that mix "
        "factors, and UDR does not lower the score of a model that found few of them. On one of four drawn sets of "
        "images its pick was better than most models, on the other three as good as a random one."
        f"{_by_labels(choice, judged)}"
    )


def of_dataset(pictures: Pictures) -> str:
    """A paragraph that names the images; nothing where they have no name, for a path is nobody else's concern."""
    row = DATASETS.get(pictures.source)
    if row is None:
        return ""
    drawn = ", which unbraid draws" if row.rendered else ""
    return f"\n\nThe images were made from those of the dataset `{pictures.source}`{drawn}."


def _by_labels(choice: Choice, judged: Mapping[str, Mapping[str, float]]) -> str:
    """A paragraph on what labels say of the choice; nothing without labels."""
    if not judged:
        return ""
    rows = [
        [f"`{row['metric']}`", *("" if row[key] is None else f"{row[key]:.3f}" for key in ("chosen", "median", "best"))]
        for row in judged_table(choice, judged)
    ]
    table = markdown_table(("by labels", "this model", "median of all", "best of all"), rows)
    return f"\n\nLabels had no part in the choice. Afterwards they say of it:\n\n{table}"


def _readme(folder: Path, choice: Choice, run: Run | None) -> str:
    if run is None:
        return f"# Nothing was chosen\n\n{choice.reason}.\n\nreport.html shows what was tried.\n"
    return (
        "# A model chosen without labels\n\n"
        f"```python\n{load_lines(run, f'{folder.name}/{MODEL}')}```\n\n"
        f"`{MODEL}/{README}` is its model card: how it was trained and chosen, and what it does not do.\n"
        f"`{CODES}` holds the codes of all images, `{REPORT}` what each of them does, and `study/` all models.\n"
    )
