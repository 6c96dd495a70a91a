"""A small picture of what each latent of a run does, for pages that show hundreds of runs."""

import base64
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unbraid.types import FloatArray, IntArray

if TYPE_CHECKING:
    from unbraid.representation import Representation

LATENTS, STEPS = 6, 7
TILE, GAP = 44, 2  # pixels
RANGE = (0.02, 0.98)  # quantiles of a code between which it moves
INFORMATIVE = 0.01  # nats of mean KL; others are left out where any is above
QUALITY = 70  # of WebP


def picture(run: Path) -> dict[str, Any] | None:
    """Traversals of a run as a data address, with its size and what each row is; None where it decodes no images.

    One latent a row, those of most KL first (of most variance where there is no posterior), from the 2 % to the 98 %
    quantile of its codes; the other latents stay where the first kept image lies. Nothing but the run's folder is read.

    Raises:
        ValueError: a damaged folder, or a run that diverged.
        ImportError: torch is not installed.
    """
    from unbraid._extras import require

    require("torch", "train", "pictures of runs")
    from unbraid.training.run import open_run

    opened = open_run(run, device="cpu")
    if len(opened.config["dataset"]["image_shape"]) != 3:
        return None
    representation = opened.codes()
    order, said = _latents(representation)
    codes = representation.codes
    values = np.quantile(codes[:, order], np.linspace(*RANGE, STEPS), axis=0).T
    moved = np.tile(codes[0], (len(order), STEPS, 1))
    for row, latent in enumerate(order):
        moved[row, :, latent] = np.linspace(values[row, 0], values[row, -1], STEPS)
    images = opened.decode(moved.reshape(-1, codes.shape[1]))
    sheet, size = _sheet(images.reshape(len(order), STEPS, *images.shape[1:]))
    latents = [{"code": int(code), "said": text} for code, text in zip(order, said, strict=True)]
    return {"src": sheet, "width": size[0], "height": size[1], "latents": latents}


def _latents(representation: "Representation") -> tuple[IntArray, list[str]]:
    """Which latents to show, and what to say of each."""
    kl = representation.mean_kl()
    weight = representation.codes.var(axis=0) if kl is None else kl
    order = np.argsort(-weight, kind="stable")[:LATENTS]
    if kl is not None and (kl > INFORMATIVE).any():
        order = order[kl[order] > INFORMATIVE]
    return order, [f"{weight[code]:.2g}{'' if kl is None else ' nats'}" for code in order]


def _sheet(images: FloatArray) -> tuple[str, tuple[int, int]]:
    """(n_rows, n_steps, height, width, channels) as one WebP with its width and height in pixels."""
    from PIL import Image

    rows, steps, _, _, channels = images.shape
    whole = Image.new("RGB", (steps * (TILE + GAP) - GAP, rows * (TILE + GAP) - GAP), "#808080")
    bytes_ = (np.clip(images[..., : 3 if channels >= 3 else 1], 0, 1) * 255 + 0.5).astype(np.uint8)
    for row in range(rows):
        for step in range(steps):
            array = bytes_[row, step]
            tile = Image.fromarray(array if array.shape[-1] == 3 else array[..., 0])
            place = step * (TILE + GAP), row * (TILE + GAP)
            whole.paste(tile.resize((TILE, TILE), Image.Resampling.BOX).convert("RGB"), place)
    buffer = io.BytesIO()
    whole.save(buffer, "WEBP", quality=QUALITY, method=4)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}", whole.size


def pictures(runs: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """The picture of each run by its id; where it has none, `missing` says why."""
    return {name: picture_or_reason(path) for name, path in runs.items()}


def picture_or_reason(run: Path) -> dict[str, Any]:
    """As `picture`, but a page of many runs says what is wrong with one of them in its place."""
    try:
        return picture(run) or {"missing": "This run decodes no images."}
    except (ValueError, OSError, ImportError) as error:
        return {"missing": str(error)}
