"""The decoders of a page and their sliders, for templates/live.js."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.types import FloatArray, UInt8Array
from unbraid.data.image_dataset import FactorDataset
from unbraid.datasets import DatasetMissing
from unbraid.files.trust import Untrusted
from unbraid.runs.live.program import Program
from unbraid.runs.live.sliders import Slider, matched, sliders
from unbraid.runs.live.tracing import NotTraced, traced
from unbraid.runs.run import Run
from unbraid.show.image_addresses import GAP, image_address, mixture, sheet_address

SEEDS = 12  # images to start from
ROWS, STEPS = 3, 9  # of the precomputed images: seed images, and positions of a slider
LARGEST = 8_000_000  # letters of one decoder's weights
SLOWEST = 60_000_000  # multiply-adds of one image: about 30 ms on one core


@dataclass(frozen=True, eq=False)
class Seeds:
    """The same images, encoded and decoded by each model."""

    originals: UInt8Array | FloatArray | None  # (n, height, width, channels); None where the dataset is not at hand
    missing: str  # why not
    codes: list[FloatArray]  # (n, n_codes) of each model
    decoded: list[FloatArray]  # (n, height, width, channels) by each model


def live_models(runs: Sequence[Run], dataset: FactorDataset | None = None) -> dict[str, Any]:
    """The content of the page's image sections, as a plain dictionary; `data` is for their script.

    Args:
        runs: one, or two of the same images, whose sliders then move together.
        dataset: of the images, where the runs do not name one.

    Raises:
        ValueError: two runs of other images.
    """
    representations = [run.codes() for run in runs]
    own = [sliders(each, run.parts) for each, run in zip(representations, runs, strict=True)]
    rows: list[tuple[list[Slider | None], float]] = [([slider], 0.0) for slider in own[0]]
    if len(runs) > 1:
        if len({run.config["dataset"]["content"] for run in runs}) > 1:
            raise ValueError(f"{runs[0].path} and {runs[1].path} were trained on other images: nothing to compare")
        rows = [
            ([mine, theirs], similarity)
            for mine, theirs, similarity in matched((representations[0], own[0]), (representations[1], own[1]))
        ]
    seeds = _seeds(runs, dataset)
    models = [_model(run, codes) for run, codes in zip(runs, seeds.codes, strict=True)]
    shown = seeds.decoded[0] if seeds.originals is None else seeds.originals
    return {
        "sliders": [_described(places, similarity, runs, seeds) for places, similarity in rows],
        "seeds": [image_address(each) for each in shown],
        "pairs": _pairs(seeds),
        "missing": seeds.missing,
        "circles": any(each is not None and each.circle for places, _ in rows for each in places),
        "models": [{name: model[name] for name in model if name not in {"program", "codes"}} for model in models],
        "data": {
            "shape": seeds.decoded[0].shape[1:],
            "mixture": mixture(seeds.decoded[0].shape[-1]).round(6).tolist(),
            "models": [{"program": model["program"], "codes": model["codes"]} for model in models],
            "sliders": [[_move(each) for each in places] for places, _ in rows],
            "strips": {"rows": min(ROWS, len(shown)), "steps": STEPS, "gap": GAP},
        },
    }


def _seeds(runs: Sequence[Run], dataset: FactorDataset | None) -> Seeds:
    rng = np.random.default_rng(0)
    try:
        opened = runs[0].dataset(dataset)
    except (ValueError, OSError, DatasetMissing) as error:
        saved_codes = [run.codes().codes for run in runs]
        rows = np.sort(rng.choice(len(saved_codes[0]), min(SEEDS, len(saved_codes[0])), replace=False))
        codes, originals, missing = [matrix[rows] for matrix in saved_codes], None, _why_not(error, runs[0])
    else:
        originals = opened.images(rng.choice(len(opened), min(SEEDS, len(opened)), replace=False))
        codes, missing = [run.encode(originals) for run in runs], ""
    return Seeds(originals, missing, codes, [run.decode(matrix) for run, matrix in zip(runs, codes, strict=True)])


def _why_not(error: Exception, run: Run) -> str:
    """Why the images are not available; paths are cut to their last part, as the page may be read elsewhere."""
    if isinstance(error, Untrusted):
        return f"{Path(error.names[0]).name} is read only if {error.option} names it"
    reason = str(error)
    for path in filter(None, (run.config["dataset"]["name"], str(run.path))):
        reason = reason.replace(path, Path(path).name)
    return reason


def _model(run: Run, codes: FloatArray) -> dict[str, Any]:
    """A decoder as a program for the page, or the reason why there is none."""
    program, reason = _program(run, codes.shape[1])
    return {
        "program": None if program is None else program.to_dict(),
        "codes": np.round(codes, 5).tolist(),
        "reason": reason,
        "millions": None if program is None else f"{program.multiplications / 1e6:.2g}",
    }


def _program(run: Run, n_codes: int) -> tuple[Program | None, str]:
    try:
        program = traced(run.on_cpu().decoder(), n_codes)
    except NotTraced as error:
        return None, str(error)
    if program.multiplications > SLOWEST:
        return None, f"an image takes it {program.multiplications / 1e6:,.0f} million multiply-adds"
    if (size := len(program.to_dict()["constants"]["data"])) > LARGEST:
        return None, f"its weights would take {size / 1e6:.0f} MB of the page"
    return program, ""


def _pairs(seeds: Seeds) -> list[str]:
    """One picture per seed image: the original, if available, above the reconstruction of each model."""
    pictures = []
    for place in range(len(seeds.decoded[0])):
        column = [images[place] for images in seeds.decoded]
        if seeds.originals is not None:
            original = seeds.originals[place]
            column.insert(0, original / np.float32(255) if original.dtype == np.uint8 else original)
        pictures.append(sheet_address(np.stack(column)[:, None]))
    return pictures


def _described(places: Sequence[Slider | None], similarity: float, runs: Sequence[Run], seeds: Seeds) -> dict[str, Any]:
    present = [slider for slider in places if slider is not None]
    return {
        "name": " / ".join("–" if slider is None else slider.name for slider in places),
        "codes": [list(slider.codes) if slider else [] for slider in places],
        "kl": [None if slider is None or slider.kl is None else f"{slider.kl:.3g}" for slider in places],
        "variance": [None if slider is None else f"{slider.variance:.3g}" for slider in places],
        "alike": f"{similarity:.2f}" if len(present) > 1 else None,
        "informative": any(slider.informative for slider in present),
        "strips": [
            None if slider is None else _strip(run, slider, codes)
            for run, slider, codes in zip(runs, places, seeds.codes, strict=True)
        ],
    }


def _strip(run: Run, slider: Slider, codes: FloatArray) -> str:
    """One row per seed image, one column per position of the slider."""
    places = slider.places(STEPS)
    moved = np.concatenate([slider.moved(code, places) for code in codes[:ROWS]])
    images = run.decode(moved)
    return sheet_address(images.reshape(-1, STEPS, *images.shape[1:]))


def _move(slider: Slider | None) -> dict[str, Any] | None:
    if slider is None:
        return None
    move = {"codes": slider.codes, "circle": slider.circle, "low": slider.low, "high": slider.high}
    return {**move, "values": slider.values} if slider.values else move
