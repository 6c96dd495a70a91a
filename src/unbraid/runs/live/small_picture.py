"""A small picture of what each latent of a model does, for pages that show hundreds of them."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from unbraid.base.types import FloatArray
from unbraid.data import Representation
from unbraid.families import Part
from unbraid.runs.live.sliders import sliders
from unbraid.show.image_addresses import GAP, sheet_address

Decode: TypeAlias = Callable[[FloatArray], FloatArray]
LATENTS, STEPS = 6, 7
TILE = 44  # pixels; larger images are made as small, much smaller ones are shown enlarged


def picture(representation: Representation, parts: Sequence[Part], decode: Decode) -> dict[str, Any]:
    """Traversals of a model as a data address, with the size at which it is shown and what each row is.

    One latent or circle a row, as the page of a run orders them, those that are not informative left out where any
    is; the other latents stay where the first kept image lies.

    Args:
        representation: codes of the model.
        parts: what its codes are.
        decode: codes (n, n_codes) to images (n, height, width, channels), 0 .. 1.
    """
    ordered = sliders(representation, parts)
    chosen = ([each for each in ordered if each.informative] or ordered)[:LATENTS]
    codes = [slider.moved(representation.codes[0], slider.places(STEPS)) for slider in chosen]
    images = _shrunk(decode(np.concatenate(codes)))
    # As colours, which are packed with a little loss: soft greys without any take four times the room.
    images = np.repeat(images, 3, axis=-1) if images.shape[-1] == 1 else images
    tiles = images.reshape(len(chosen), STEPS, *images.shape[1:])
    enlarged = max(1, TILE // max(tiles.shape[2:4]))
    return {
        "src": sheet_address(tiles),
        "width": enlarged * (STEPS * (tiles.shape[3] + GAP) - GAP),
        "height": enlarged * (len(chosen) * (tiles.shape[2] + GAP) - GAP),
        "latents": [
            {"name": each.name, "said": f"{each.variance:.2g}" if each.kl is None else f"{each.kl:.2g} nats"}
            for each in chosen
        ],
    }


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
