"""Codes of the images of a dataset, by anything that encodes."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from unbraid.base.arrays import as_array
from unbraid.base.types import FloatArray, IntArray
from unbraid.data import POSTERIOR, FactorSpace, Representation, whole_objects
from unbraid.data.image_dataset import FactorDataset, check_images
from unbraid.data.space import level_names
from unbraid.metrics import NotDefined


def encoded(
    encode: Callable[[Any], Any], dataset: FactorDataset, n_samples: int, batch_size: int, seed: int
) -> Representation:
    """What an encoder makes of images drawn from a dataset; arguments as for `score_encoder`."""
    return encoded_at(drawn(len(dataset), n_samples, seed), encode, dataset, batch_size)


def encoded_objects(
    encode: Callable[[Any], Any], dataset: FactorDataset, n_samples: int, batch_size: int, seed: int
) -> Representation:
    """What an encoder makes of whole objects, all of them or as many as `n_samples` images hold.

    Raises:
        NotDefined: the dataset is no full grid of factors, or none of them is cyclic.
    """
    if not isinstance(dataset.space, FactorSpace) or "cyclic" not in dataset.space.kinds:
        raise NotDefined("needs a dataset that is a full grid of factors, at least one of them cyclic")
    return encoded_at(whole_objects(dataset.space, n_samples, seed=seed), encode, dataset, batch_size)


def encoded_at(
    index: IntArray, encode: Callable[[Any], Any], dataset: FactorDataset, batch_size: int
) -> Representation:
    """What an encoder makes of the images at these positions."""
    return encoded_by({"": encode}, index, dataset, batch_size)[""]


def encoded_by(
    encoders: Mapping[str, Callable[[Any], Any]], index: IntArray, dataset: FactorDataset, batch_size: int
) -> dict[str, Representation]:
    """What each of several encoders makes of the images at these positions, which are read once.

    Raises:
        ValueError: the dataset holds labels without images; or an encoder returns no codes for each image, or others in
            number than for the first images.
    """
    if 0 in dataset.image_shape:
        check_images(dataset)
    parts: dict[str, list[list[FloatArray]]] = {name: [] for name in encoders}
    for start in range(0, len(index), batch_size):
        rows = index[start : start + batch_size]
        images = dataset.images(rows)
        for name, encode in encoders.items():
            output = encode(images)
            several = isinstance(output, list) and all(getattr(part, "ndim", 0) == 2 for part in output)
            pair = output if several or isinstance(output, tuple) else (output,)
            arrays = [as_array(each) for each in pair]
            if any(array.ndim != 2 or len(array) != len(rows) for array in arrays):
                shapes = " and ".join(str(array.shape) for array in arrays)
                raise ValueError(
                    "encode must return codes (n, n_codes), or the pair (codes, log_variances), for n images; got "
                    f"{shapes} for {len(rows)}"
                )
            first, widths = (parts[name] or [arrays])[0], [array.shape[1] for array in arrays]
            if widths != [array.shape[1] for array in first]:
                before = [array.shape[1] for array in first]
                raise ValueError(
                    f"encode must return as many codes for all images; got {widths} for images {start} to "
                    f"{start + len(rows) - 1}, and {before} before"
                )
            parts[name].append(arrays)
    return {name: _represented(own, index, dataset) for name, own in parts.items()}


def _represented(parts: list[list[FloatArray]], index: IntArray, dataset: FactorDataset) -> Representation:
    codes, *posterior = (np.concatenate(each) for each in zip(*parts, strict=True))
    space = dataset.space
    posterior_fields: dict[str, Any] = dict(zip(POSTERIOR, posterior, strict=False))
    return Representation(
        codes,
        space.factors(index),
        **posterior_fields,
        names=space.names,
        kinds=space.kinds,
        sizes=space.turns,
        levels=level_names(space),
    )


def drawn(n_images: int, n_samples: int, seed: int) -> IntArray:
    """(n_samples,) positions drawn without replacement, in rising order; all where there are no more."""
    if n_samples >= n_images:
        return np.arange(n_images)
    return np.sort(np.random.default_rng(seed).choice(n_images, n_samples, replace=False))
