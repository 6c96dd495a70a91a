"""The output folder of `unbraid fit`: the model, the codes of all images, a page, and a README."""

import csv
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.columns import Series
from unbraid.base.counted import counted
from unbraid.base.suggest import one_line
from unbraid.base.types import FloatArray, Progress
from unbraid.data import Representation
from unbraid.data.labels import columns_of
from unbraid.datasets import DATASETS
from unbraid.datasets.factor_table import FILE_COLUMN, Column, read_table, table_columns
from unbraid.files.whole_files import atomic_write, write_text
from unbraid.fitting.choose import Candidate, Choice
from unbraid.fitting.fit_images import Pictures, in_colour
from unbraid.fitting.fit_page import fit_page, judged_table
from unbraid.fitting.plan import Plan
from unbraid.metrics import METRICS
from unbraid.runs.foreign_models import is_run
from unbraid.runs.model_card import README, load_lines, model_card
from unbraid.runs.onnx import export_onnx
from unbraid.runs.run import BATCH, Run, load_run
from unbraid.runs.run_export import copied
from unbraid.scoring.score import score
from unbraid.scoring.score_numbers import markdown_table

MODEL, CODES, REPORT = "model", "codes.csv", "report.html"
JUDGES = ("mig", "dci_boosted", "mcc")  # by which labels judge the choice afterwards
FEWEST_LABELLED = 20  # images, to judge by


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of some of the images."""

    rows: list[int]  # indices of the images
    columns: Mapping[str, Series]  # by factor, the values of these images
    notes: tuple[str, ...] = ()  # on rows and images that are left out


def hand_over(
    folder: Path,
    pictures: Pictures,
    plan: Plan,
    choice: Choice,
    *,
    labels: Labels | None = None,
    progress: Progress | None = None,
) -> tuple[Run | None, tuple[str, ...]]:
    """Write the output folder; returns the chosen model in its new place, and notes.

    The model is written before it is scored by labels, so that unusable labels do no harm.
    """
    run, codes, judged, unwritten, notes = None, None, {}, [], () if labels is None else labels.notes
    if choice.chosen is None:  # an earlier choice, from fewer models, is no longer valid
        if is_run(folder / MODEL):
            shutil.rmtree(folder / MODEL)
        (folder / CODES).unlink(missing_ok=True)
    else:
        run = _handed_over(choice, folder / MODEL, pictures)
        codes = all_codes(run, pictures, progress)
        write_codes(folder / CODES, pictures.names, codes)
        unwritten = _as_onnx(run)
    write_text(folder / README, _readme(choice, run, pictures.white))
    if labels is not None:
        try:
            judged = judge(choice.candidates, pictures, labels, progress)
        except (ValueError, ArithmeticError, ImportError) as error:
            notes = (*notes, f"the labels cannot score these models: {one_line(error)}")
    if run is not None and judged:
        write_text(folder / MODEL / README, _card(choice, judged, pictures))
    with atomic_write(folder / REPORT) as temporary:
        page = fit_page(pictures, plan, choice, run=run, codes=codes, judged=judged, on_labels=notes)
        temporary.write_text(page, encoding="utf-8")
    return run, (*unwritten, *notes)


def _as_onnx(run: Run) -> list[str]:
    """Write encoder and decoder as ONNX if possible; returns a line for each that cannot be written."""
    failed = []
    for part in ("encoder", "decoder") if find_spec("onnx") and find_spec("onnxscript") else ():
        try:
            export_onnx(run, run.path / f"{part}.onnx", part=part)
        except ValueError as error:
            failed.append(f"the model has no {part}.onnx: {one_line(error)}")
    return failed


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
    """A table with a row per image: its file, which may not be valid text, and its codes."""
    with (
        atomic_write(path) as temporary,
        temporary.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file,
    ):
        table = csv.writer(file)
        table.writerow(["file", *(f"code_{number}" for number in range(codes.shape[1]))])
        table.writerows([name, *(f"{value:.7g}" for value in row)] for name, row in zip(names, codes, strict=True))


def read_labels(source: Any, pictures: Pictures) -> Labels:
    """Labels, matched to the images by the column `file`, or without one by position.

    Args:
        given: a .csv or .parquet file, or a mapping from name to column.
        pictures: the images.

    Rows with a missing label are dropped, as are files that are not among the images; the notes say how many.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: no name in `file` is that of an image, or one is there twice; without that column, the number of
            rows is not that of the images; or the labels cannot be used: too few, constant, different for every image,
            or not finite.
    """
    in_file = isinstance(source, str | Path)
    table = read_table(Path(source)) if in_file else table_columns(columns_of(source, None), "labels")
    where, columns = table[0].table, {column.name: column for column in table}
    files = _files(where, columns, pictures)
    places = {name: place for place, name in enumerate(pictures.names)}
    rows = [places.get(name, -1) for name in files]
    if max(rows, default=-1) < 0:
        raise ValueError(
            f"{where}: no name in the column 'file' is that of an image: the first is {files[0]!r}, where images are "
            f"called like {pictures.names[0]!r}, by their path below the folder"
        )
    for column in columns.values():
        if len(column) != len(rows):
            expected = f"a row for each of the {len(rows)} images, or a column 'file'"
            raise ValueError(f"{where} must have {expected}; got {counted(len(column), 'row')}")
    if not columns:
        raise ValueError(f"{where}: there is no column of labels beside 'file'")
    known = [place for place, row in enumerate(rows) if row >= 0]
    gaps = np.any([column.series.isna() for column in columns.values()], axis=0)
    lacks = {place for place in known if gaps[place]}
    labelled = [place for place in known if place not in lacks]
    if len(labelled) < FEWEST_LABELLED:
        raise ValueError(
            f"{where}: all labels are known of {counted(len(labelled), 'image')}; to score models takes "
            f"{FEWEST_LABELLED} or more"
        )
    values = {name: _checked(column, labelled) for name, column in columns.items()}
    try:
        Representation.of(np.zeros((len(labelled), 1)), values)
    except ValueError as error:
        reason = str(error).partition("; columns=")[0]  # which `fit` has not
        raise ValueError(f"{where}: {reason}") from None
    notes = (
        f"{counted(len(rows) - len(known), 'row')} of the labels left out: no image is called as their files",
        f"{counted(len(lacks), 'image')} left out for lack of a label",
        f"{len(labelled)} of {len(pictures.names)} images have labels",
    )
    counts = (len(rows) - len(known), len(lacks), len(pictures.names) - len(labelled))
    return Labels(
        [rows[place] for place in labelled], values, tuple(n for n, m in zip(notes, counts, strict=True) if m)
    )


def _files(where: str, columns: dict[str, Column], pictures: Pictures) -> list[str]:
    """The names in the column `file`, which is removed; without one those of all images."""
    if FILE_COLUMN in columns:
        files = [str(name) for name in columns.pop(FILE_COLUMN).series]
        if twice := [name for name, count in Counter(files).items() if count > 1]:
            raise ValueError(f"{where}: {twice[0]!r} stands twice in the column 'file'; a row per image was expected")
        return files
    return list(pictures.names)


def _checked(column: Column, rows: list[int]) -> Series:
    """The cells of these rows, checked not to be constant."""
    values = column.series.iloc[rows].reset_index(drop=True)
    if values.nunique() < 2:
        raise ValueError(
            f"{column.table}: column {column.name!r} is the same for all {len(values)} images, so that nothing can be "
            "measured by it; leave it out"
        )
    return values


def judge(
    candidates: Sequence[Candidate], pictures: Pictures, labels: Labels, progress: Progress | None = None
) -> dict[str, Mapping[str, float]]:
    """Scores of each model by the labels, which were not used for the choice: metric -> run -> score."""
    scores_by_metric: dict[str, dict[str, float]] = {name: {} for name in JUDGES}
    for done, candidate in enumerate(candidates):
        if progress:
            progress("scoring by labels", done, len(candidates))
        codes = all_codes(candidate.run, pictures)[labels.rows]
        card = score(Representation.of(codes, labels.columns), metrics=list(JUDGES))
        for name in JUDGES:
            if name in card:
                scores_by_metric[name][candidate.run.path.name] = float(getattr(card[name], METRICS[name].headline))
    return {name: scores for name, scores in scores_by_metric.items() if scores}


def check_model(target: Path) -> None:
    """Raises ValueError if the target exists and is not a model of unbraid."""
    if target.exists() and not is_run(target):
        raise ValueError(f"{target} is no model of unbraid, and is not replaced; give another folder with out (--out)")


def _handed_over(choice: Choice, target: Path, pictures: Pictures) -> Run:
    """Copy the chosen run into the output folder, whole or not at all."""
    assert choice.chosen is not None
    run, old = choice.chosen.run, target.with_name(f".{target.name}.old")
    working = copied(run.path, target)
    write_text(working / README, _card(choice, {}, pictures))
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    working.rename(target)
    shutil.rmtree(old, ignore_errors=True)
    return load_run(target, device=run.device)


def _card(choice: Choice, judged: Mapping[str, Mapping[str, float]], pictures: Pictures) -> str:
    assert choice.chosen is not None
    paragraphs = how_chosen(choice, judged) + of_dataset(pictures)
    return model_card(choice.chosen.run, f"{choice.chosen.setting}, chosen without labels", paragraphs, folder=MODEL)


def how_chosen(choice: Choice, judged: Mapping[str, Mapping[str, float]]) -> str:
    """How the model was chosen, and how stable the choice is, as paragraphs in Markdown.

    `judged` are the scores by labels, from `judge`; empty without labels.
    """
    assert choice.chosen is not None
    settings = choice.settings
    of_settings = f"{counted(len(settings), 'setting')} ({', '.join(settings)})"
    among = f"{counted(len(choice.candidates), 'model')} of {of_settings}"
    udr = choice.udr(choice.chosen)
    assert udr is not None
    return (
        f"It was chosen without labels by `unbraid fit` from {among}: of those "
        f"that can be called good, its latents are the most like those of the others, with a UDR of {udr:.3f}. Its "
        f"ELBO on held-out images is {choice.chosen.elbo:.1f} nats."
        "\n\n"
        f"UDR measures whether models of different seeds find the same latents. {choice.trust}"
        f"{_by_labels(choice, judged)}"
    )


def of_dataset(pictures: Pictures) -> str:
    """A paragraph that names the dataset; empty for own images, whose path is private."""
    row = DATASETS.get(pictures.source)
    if row is None:
        return ""
    drawn = ", which unbraid draws" if row.rendered else ""
    return f"\n\nThe images were made from those of the dataset `{pictures.source}`{drawn}."


def _by_labels(choice: Choice, judged: Mapping[str, Mapping[str, float]]) -> str:
    """A paragraph with the scores by labels; empty without labels."""
    if not judged:
        return ""
    rows = [
        [f"`{row['metric']}`", *("" if row[key] is None else f"{row[key]:.3f}" for key in ("chosen", "median", "best"))]
        for row in judged_table(choice, judged)
    ]
    table = markdown_table(("by labels", "this model", "median of all", "best of all"), rows)
    return f"\n\nLabels had no part in the choice. Afterwards they say of it:\n\n{table}"


def _from_a_file(size: int, channels: int, white: int | None) -> str:
    """How a picture file is encoded; the end of a sentence."""
    if channels not in (1, 3):
        return ", as an array (n, height, width, channels).\n\n"
    own = "" if white is None else f", white={white}"
    return (
        ". A picture file of any size is made one like this:\n\n"
        "```python\n"
        "from unbraid.datasets import read_picture\n\n"
        f'codes = run.encode(read_picture("picture.png", ({size}, {size}, {channels}){own}))\n'
        "```\n\n"
    )


def _readme(choice: Choice, run: Run | None, white: int | None) -> str:
    if run is None:
        reason = f"{choice.reason[0].upper()}{choice.reason[1:]}"
        return f"# Nothing was chosen\n\n{reason}.\n\n`{REPORT}` shows what was tried.\n"
    size, _, channels = run.config["dataset"]["image_shape"]
    return (
        "# A model chosen without labels\n\n"
        "Run this in the folder of this file:\n\n"
        f"```python\n{load_lines(run, MODEL)}```\n\n"
        f"It takes images of {size} x {size} pixels, {in_colour(channels)}{_from_a_file(size, channels, white)}"
        f"`{MODEL}/{README}` is its model card: how it was trained and chosen, and what it does not do.\n"
        f"`{CODES}` holds the codes of all images, `{REPORT}` what each of them does, and\n"
        f"`{choice.study}/` the models that it was chosen from.\n"
    )
