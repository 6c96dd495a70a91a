"""A small picture of what each latent of a run does, for pages that show hundreds of runs."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.report._images import GAP, sheet_address
from unbraid.report.live.sliders import sliders
from unbraid.runs.run import Run, open_run
from unbraid.types import FloatArray, Progress

LATENTS, STEPS = 6, 7
TILE = 44  # pixels, of images that are larger


def picture(run: Run) -> dict[str, Any] | None:
    """Traversals of a run as a data address, with its size and what each row is; None where it decodes no images.

    One latent or circle a row, as the page of the run orders them, those that are not informative left out where any
    is; the other latents stay where the first kept image lies. Nothing but the run's folder is read.

    Raises:
        ValueError: a damaged folder, or a run that diverged.
    """
    if len(run.config["dataset"]["image_shape"]) != 3:
        return None
    representation = run.codes()
    ordered = sliders(representation, run.parts)
    chosen = ([each for each in ordered if each.informative] or ordered)[:LATENTS]
    codes = [slider.moved(representation.codes[0], slider.places(STEPS)) for slider in chosen]
    images = _shrunk(run.decode(np.concatenate(codes)))
    # As colours, which are packed with a little loss: soft greys without any take four times the room.
    images = np.repeat(images, 3, axis=-1) if images.shape[-1] == 1 else images
    tiles = images.reshape(len(chosen), STEPS, *images.shape[1:])
    return {
        "src": sheet_address(tiles),
        "width": STEPS * (tiles.shape[3] + GAP) - GAP,
        "height": len(chosen) * (tiles.shape[2] + GAP) - GAP,
        "latents": [
            {"name": each.name, "said": f"{each.variance:.2g}" if each.kl is None else f"{each.kl:.2g} nats"}
            for each in chosen
        ],
    }


def pictures(
    runs: Mapping[str, Path], progress: Progress | None = None, trust: Collection[str] = ()
) -> dict[str, dict[str, Any]]:
    """The picture of each run by its id; where it has none, `missing` says why. `trust` as for `unbraid.load_run`."""
    found = {}
    for done, (name, path) in enumerate(runs.items()):
        if progress is not None:
            progress("drawing what latents do", done, len(runs))
        found[name] = picture_or_reason(path, trust)
    return found


def picture_or_reason(run: Path, trust: Collection[str] = ()) -> dict[str, Any]:
    """As `picture`, but a page of many runs says what is wrong with one of them in its place."""
    try:
        return picture(open_run(run, device="cpu", trust=trust)) or {"missing": "This run decodes no images."}
    except (ValueError, OSError) as error:
        return {"missing": str(error)}


def _shrunk(images: FloatArray) -> FloatArray:
    """(n, height, width, channels) at most TILE wide and high; pixels of the result are means of those they cover."""
    from PIL import Image

    height, width = images.shape[1:3]
    if max(height, width) <= TILE:
        return images
    size = max(1, round(TILE * width / max(height, width))), max(1, round(TILE * height / max(height, width)))
    clipped = np.clip(images, 0, 1).astype(np.float32)
    planes = np.moveaxis(clipped, -1, 1).reshape(-1, height, width)
    small = [np.asarray(Image.fromarray(plane).resize(size, Image.Resampling.BOX)) for plane in planes]
    return np.moveaxis(np.stack(small).reshape(len(images), -1, size[1], size[0]), 1, -1)
