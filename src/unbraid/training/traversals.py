"""What each code of a trained model does to the images it decodes."""

from dataclasses import dataclass

import numpy as np

from unbraid.datasets.base import FactorDataset
from unbraid.training.run import Run
from unbraid.types import BoolArray, FloatArray, IntArray

INFORMATIVE = 0.01  # nats of mean KL above which UDR calls a latent informative


@dataclass(frozen=True, eq=False)
class Traversals:
    """Decoded images along each code; codes are in the order of `order`."""

    originals: FloatArray  # (n_shown, height, width, channels), 0 .. 1; the first n_rows are the seed images
    reconstructions: FloatArray  # the same shape
    images: FloatArray  # (n_codes, n_rows, n_steps, height, width, channels)
    values: FloatArray  # (n_codes, n_steps): what the code is set to
    order: IntArray  # (n_codes,): which code, by falling KL, or by falling variance where there is no posterior
    kl: FloatArray | None  # (n_codes,), nats, mean over images
    variances: FloatArray  # (n_codes,), of the codes over images

    @property
    def informative(self) -> BoolArray | None:
        """(n_codes,): mean KL above 0.01 nats; None where there is no posterior."""
        return None if self.kl is None else self.kl > INFORMATIVE

    @property
    def captions(self) -> list[str]:
        """Of each code: its number, its KL or variance, and the range it goes through."""
        if self.kl is None:
            says = [f"variance {variance:.3g}" for variance in self.variances]
        else:
            says = [f"KL {kl:.3f} nats" for kl in self.kl]
        ranges = [f"{values[0]:.2f} to {values[-1]:.2f}" for values in self.values]
        return [f"code {code}: {said}, {span}" for code, said, span in zip(self.order, says, ranges, strict=True)]


def traverse(
    run: Run,
    dataset: FactorDataset | str | None = None,
    *,
    rows: int = 3,
    steps: int = 9,
    shown: int = 18,
    n: int = 2000,
    seed: int = 0,
) -> Traversals:
    """Decode a few images while one code after the other goes through its range.

    Args:
        run: the trained model.
        dataset: by default the one of the training.
        rows: seed images, drawn at random. The codes that do not move stay where the encoder puts the seed image.
        steps: values of the moving code, evenly from its 2 % to its 98 % quantile over the dataset.
        shown: images that are reconstructed, the seed images among them.
        n: images from which quantiles and KL are taken.
        seed: of all draws.

    Raises:
        ValueError: rows or steps out of range, or a dataset that is no images.
    """
    opened = run.dataset(dataset)
    if len(opened.image_shape) != 3:
        raise ValueError("only images can be traversed; these are rows of a table")
    if not 1 <= rows <= len(opened) or steps < 2:
        raise ValueError(f"rows must lie between 1 and {len(opened)}, steps be 2 or more; got {rows} and {steps}")
    representation = run.representation(opened, n, seed=seed)
    kl, variances = representation.mean_kl(), representation.codes.var(axis=0)
    order = np.argsort(-(variances if kl is None else kl), kind="stable")
    low, high = np.quantile(representation.codes, [0.02, 0.98], axis=0)
    values = np.linspace(low, high, steps, axis=1)[order]

    shown = min(max(rows, shown), len(opened))
    chosen = np.random.default_rng(seed).choice(len(opened), shown, replace=False)
    originals = opened.images(chosen)
    codes = run.encode(originals)
    moved = np.tile(codes[None, :rows, None], (len(order), 1, steps, 1))
    for place, code in enumerate(order):
        moved[place, :, :, code] = values[place]
    images = run.decode(moved.reshape(-1, codes.shape[1])).reshape(*moved.shape[:3], *opened.image_shape)
    scaled = originals / 255 if originals.dtype == np.uint8 else originals
    kept = None if kl is None else kl[order]
    return Traversals(
        scaled.astype(np.float32), run.decode(codes), images, values, order, kept, variances[order].astype(np.float64)
    )
