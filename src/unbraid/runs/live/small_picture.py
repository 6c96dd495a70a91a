"""A small picture of a model's latent traversals, for pages that show hundreds of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from unbraid.base.types import FloatArray, Progress
from unbraid.data import Representation
from unbraid.families import Part
from unbraid.runs.live.sliders import sliders
from unbraid.show.image_addresses import GAP, sheet_address

Decode: TypeAlias = Callable[[FloatArray], FloatArray]
LATENTS, STEPS = 6, 7
TILE = 44  # pixels; larger images are shrunk to this, much smaller ones are shown enlarged


def picture(representation: Representation, parts: Sequence[Part], decode: Decode) -> dict[str, Any]:
    """Traversals of a model as a data address, with its display size and a label for each row.

    One latent or circle per row, in the order of the run's page, only informative ones if there are any; the other
    latents keep the codes of the first image.

    Args:
        representation: codes of the model.
        parts: what its codes are.
        decode: codes (n, n_codes) to images (n, height, width, channels), 0 .. 1.
    """
    ordered = sliders(representation, parts)
    chosen = ([item for item in ordered if item.informative] or ordered)[:LATENTS]
    codes = [slider.moved(representation.codes[0], slider.places(STEPS)) for slider in chosen]
    images = _shrunk(decode(np.concatenate(codes)))
    # In colour, which is compressed with a little loss: lossless grey levels take four times the space.
    images = np.repeat(images, 3, axis=-1) if images.shape[-1] == 1 else images
    tiles = images.reshape(len(chosen), STEPS, *images.shape[1:])
    enlarged = max(1, TILE // max(tiles.shape[2:4]))
    return {
        "src": sheet_address(tiles),
        "width": enlarged * (STEPS * (tiles.shape[3] + GAP) - GAP),
        "height": enlarged * (len(chosen) * (tiles.shape[2] + GAP) - GAP),
        "latents": [
            {"name": item.name, "said": f"{item.variance:.2g}" if item.kl is None else f"{item.kl:.2g} nats"}
            for item in chosen
        ],
    }


def pictures(runs: Mapping[str, Callable[[], Any]], progress: Progress | None = None) -> dict[str, dict[str, Any]]:
    """By id, the picture of each run, or the reason under `missing`; `runs` holds functions that open a `Run`."""
    entries = {}
    for done, (name, opened) in enumerate(runs.items()):
        if progress is not None:
            progress("drawing what latents do", done, len(runs))
        entries[name] = picture_or_reason(opened)
    return entries


def picture_or_reason(opened: Callable[[], Any]) -> dict[str, Any]:
    """`Run.picture`, or the reason why there is none, which a page shows in its place."""
    try:
        return opened().picture() or {"missing": "This run decodes no images."}
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
