"""Scores of a file of codes or of the folder of a run."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from unbraid.base.optional import require
from unbraid.data import Representation
from unbraid.data.code_files import read_wide
from unbraid.files.run_files import WEIGHTS
from unbraid.files.trust import Untrusted
from unbraid.runs.labelled_codes import Labels, located, read_label_columns, read_located
from unbraid.scoring.baselines import Baseline
from unbraid.scoring.card import ScoreCard
from unbraid.scoring.score import score


def score_path(
    path: Path, labels: Labels, *, baselines: bool = False, trust: Collection[str] = (), **options: Any
) -> ScoreCard:
    """Score the codes of a file or of a run against its factors or other labels.

    Args:
        path: the file or folder.
        labels: to score against.
        baselines: whether to score the baselines of a run, too.
        trust: as for `unbraid.load_run`.
        options: as for `unbraid.score`.

    Raises:
        FileNotFoundError: there is no such file or folder.
        ValueError: the codes cannot be scored; the message names the file.
        Untrusted: a run names code of the user's own that is not trusted.
    """
    codes, labels, notes = located(path, labels)
    if (wide := read_wide(codes)) is not None:
        columns, described = read_label_columns(codes, labels)
        chosen = tuple(columns or ()) if labels.columns else ()
        data: tuple[Any, ...] = (wide, columns)
        options |= {**described, "dense": labels.dense}
    else:
        representation, chosen = read_located(codes, labels, notes)
        data = (representation,)
        options["baselines"] = _baselines(path, trust) if baselines else None
        if path == codes and path.is_dir() and labels.in_codes_file:
            options["orbits"] = partial(_orbits, path, representation, trust)
    try:
        card = score(*data, **options)
    except Untrusted:
        raise
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return replace(card, chosen_factors=card.chosen_factors or chosen)


def check_baselines(paths: Sequence[Path], labels: Labels) -> None:
    """Raises ValueError if there are no images for baselines, or labels may belong to other rows than the images."""
    for path in paths:
        if not (path / WEIGHTS).is_file():
            raise ValueError(f"{path}: --baselines are of images, and this is no folder of a trained run")
    if not labels.in_codes_file:
        raise ValueError("--baselines go by the factors of the run; leave --labels, --kinds, --period, --missing out")


def _orbits(path: Path, representation: Representation, trust: Collection[str]) -> Representation:
    from unbraid.runs.whole_objects import objects_of  # loads datasets, which takes as long as computing a metric

    return objects_of(path, trust=trust)().keep_factors(representation.names)


def _baselines(run: Path, trust: Collection[str]) -> dict[str, Baseline]:
    require("torch", "train", "encoding the images of a run")
    from unbraid.runs.run import open_run

    return open_run(run, trust=trust).baselines()
