"""Codes of images without training: raw pixels projected at random, and their principal components."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from unbraid.base.types import FloatArray, UInt8Array
from unbraid.data.image_dataset import FactorDataset
from unbraid.scoring.baselines import COMPONENTS, PROJECTION, UNTRAINED, Baseline
from unbraid.scoring.encoding import drawn, encoded_by, encoded_objects

Encode = Callable[[Any], Any]
MADE = 2  # raised where a baseline of the same images comes out otherwise
# Where two components vary nearly alike, few images give a mixture of them, which scores worse than what all give.
MOST_ROWS = 20_000  # images that principal components are computed from
MOST_NUMBERS = 1 << 24  # of them all, 128 MiB
DENSE = 1024  # rows or columns of a matrix up to which all of its eigenvectors are as quick as a few


def baselines_of(
    dataset: FactorDataset, width: int, n_samples: int, batch_size: int, seed: int, untrained: Encode | None
) -> dict[str, Baseline]:
    """Those of one dataset by name, of the images that `drawn` draws, which are read once for all.

    Args:
        dataset, n_samples, batch_size, seed: as for `unbraid.score_encoder`.
        width: codes that the projection and the components give.
        untrained: what encodes before any training; where there is none, it is not among them.
    """
    encoders: dict[str, Encode] = {
        PROJECTION: random_projection(dataset, width, seed),
        COMPONENTS: principal_components(dataset, width, batch_size, seed),
        **({} if untrained is None else {UNTRAINED: untrained}),
    }
    representations = encoded_by(encoders, drawn(len(dataset), n_samples, seed), dataset, batch_size)
    return {
        name: Baseline(representations[name], partial(encoded_objects, encode, dataset, n_samples, batch_size, seed))
        for name, encode in encoders.items()
    }


def random_projection(dataset: FactorDataset, width: int, seed: int) -> Encode:
    """From images to `width` sums of their pixels, weighted by independent normal numbers of variance 1 / n_pixels."""
    n_pixels = int(np.prod(dataset.image_shape))
    weights = np.random.default_rng([seed, 1]).standard_normal((n_pixels, width)) / np.sqrt(n_pixels)
    return lambda images: pixels(images) @ weights


def principal_components(dataset: FactorDataset, width: int, batch_size: int, seed: int) -> Encode:
    """From images to their coordinates along the `width` directions in which images vary most.

    These are computed from at most 20 000 images drawn at random, or as many as 2^24 numbers hold, and are in the order
    of their variance, the largest weight of each above 0. Where images vary in fewer directions other codes are 0.
    """
    n_pixels = int(np.prod(dataset.image_shape))
    n_rows = max(width + 1, min(MOST_ROWS, MOST_NUMBERS // n_pixels))
    index = drawn(len(dataset), n_rows, seed)
    rows = np.concatenate(
        [pixels(dataset.images(index[start : start + batch_size])) for start in range(0, len(index), batch_size)]
    )
    mean = rows.mean(axis=0)
    rows -= mean
    components = _directions(rows, width)
    return lambda images: (pixels(images) - mean) @ components


def pixels(images: UInt8Array | FloatArray) -> FloatArray:
    """(n, n_pixels) from 0 to 1 of images (n, height, width, channels); floats, as of a table, as they are."""
    flat = np.reshape(images, (len(images), -1))
    return flat / 255 if flat.dtype == np.uint8 else flat.astype(np.float64)


def _directions(centred: FloatArray, width: int) -> FloatArray:
    """(n_pixels, width) of length 1, or 0 beyond the rank of the rows (n_rows, n_pixels)."""
    n_rows, n_pixels = centred.shape
    if not centred.any():
        return np.zeros((n_pixels, width))
    variances, vectors = _eigenvectors(centred if n_rows <= n_pixels else centred.T, width)
    vectors = vectors[:, variances > 1e-12 * variances[0]]
    directions = centred.T @ vectors if n_rows <= n_pixels else vectors
    directions = directions / np.linalg.norm(directions, axis=0)
    directions = directions * np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])])
    return np.hstack([directions, np.zeros((n_pixels, width - directions.shape[1]))])


def _eigenvectors(short: FloatArray, width: int) -> tuple[FloatArray, FloatArray]:
    """The `width` largest eigenvalues of short @ short.T, falling, and their eigenvectors, for few rows."""
    n = len(short)
    if n <= max(DENSE, 4 * width):
        from scipy.linalg import eigh

        variances, vectors = eigh(short @ short.T, subset_by_index=(max(0, n - width), n - 1))
    else:
        from scipy.sparse.linalg import LinearOperator, eigsh

        product = LinearOperator((n, n), matvec=lambda vector: short @ (short.T @ vector), dtype=np.float64)  # pyright: ignore[reportCallIssue]
        start = np.random.default_rng(0).standard_normal(n)
        variances, vectors = eigsh(product, width, v0=start, ncv=2 * width + 50, tol=1e-10)  # pyright: ignore[reportArgumentType]
    order = np.argsort(variances)[::-1]
    return variances[order], vectors[:, order]
