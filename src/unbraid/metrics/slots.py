"""Scores of slots: masks of objects, and which slot tells which object."""

from dataclasses import dataclass
from typing import get_args

import numpy as np

from unbraid.base.arguments import check_choice, check_number, check_whole
from unbraid.base.arrays import as_array
from unbraid.base.counted import counted
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray
from unbraid.data.labels import check_groups
from unbraid.metrics._shared.alignment import align
from unbraid.metrics._shared.inputs import NotDefined, check_matrix, mean_and_scale, split_rows
from unbraid.metrics._shared.regression import explained, least_squares
from unbraid.metrics._solvers.kernel import kernel_ridge
from unbraid.metrics._solvers.network import perceptron
from unbraid.metrics.r2 import HIDDEN, Regressor

LARGEST = 2.0**53  # name of an object as a float; beyond it whole numbers are no longer told apart


@dataclass(frozen=True, eq=False, repr=False)
class ForegroundARI(Shown):
    score: float
    per_image: FloatArray  # (n_scored,) of the images that have a foreground
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class SlotIdentifiability(Shown):
    score: float
    own: float  # mean R^2 of matched slots
    matrix: FloatArray  # (n_slots, n_objects) test R^2, cut off at 0
    alignment: IntArray  # (n_objects,) slot of each object, -1 without one


def fg_ari(true_masks: ArrayLike, predicted_masks: ArrayLike, *, background: int = 0) -> ForegroundARI:
    """Adjusted Rand index of masks over the pixels of the foreground, mean over images.

    Args:
        true_masks: (n_images, ...) whole numbers that name the object of each pixel.
        predicted_masks: of the same shape, whole numbers that name slots; any names.
        background: the number that names no object in `true_masks`.

    Returns:
        ForegroundARI. `score` at most 1, higher is better; about 0 by luck. An image without a foreground is left out.
        Blind to what is predicted for the background, and so to a mask that spills over it.

    Raises:
        NotDefined: no image has a foreground.
        ValueError: shapes disagree, or other than whole numbers.

    Reference:
        Hubert & Arabie 1985, "Comparing Partitions"; over the foreground as Greff et al. 2019 (IODINE).

    Example:
        >>> fg_ari([[0, 1, 1, 2, 2]], [[0, 0, 0, 1, 1]]).score
        1.0
    """
    check_whole("background", background, -(2**63), 2**63 - 1)
    true, predicted = masks_of(true_masks, predicted_masks)
    scores = [
        _rand(own[own != background], other[own != background]) for own, other in zip(true, predicted, strict=True)
    ]
    defined = np.array([score for score in scores if score is not None])
    if not len(defined):
        raise NotDefined(f"needs an image with a foreground, pixels other than {background}")
    n_left_out = len(scores) - len(defined)
    notes = (f"left out: {counted(n_left_out, 'image')} without a foreground",) if n_left_out else ()
    return ForegroundARI(float(defined.mean()), defined, notes)


def masks_of(true_masks: ArrayLike, predicted_masks: ArrayLike) -> tuple[IntArray, IntArray]:
    """(n_images, n_pixels) of both, checked."""
    true, predicted = _masks(true_masks, "true_masks"), _masks(predicted_masks, "predicted_masks")
    if true.shape != predicted.shape:
        raise ValueError(
            f"true_masks and predicted_masks must have the same shape; got {true.shape} and {predicted.shape}"
        )
    return true, predicted


def _masks(masks: ArrayLike, name: str) -> IntArray:
    array = as_array(masks)
    if array.dtype.kind not in "biu" and not (array.dtype.kind == "f" and (array == np.rint(array)).all()):
        raise ValueError(f"{name} must be whole numbers that name objects; got dtype {array.dtype}")
    if array.dtype.kind == "f" and np.abs(array).max(initial=0.0) > LARGEST:
        raise ValueError(f"{name} must be whole numbers up to {LARGEST:.0f}; got {np.abs(array).max():g}")
    if array.ndim < 2 or 0 in array.shape:
        raise ValueError(f"{name} must be (n_images, ...) with pixels; got shape {array.shape}")
    return array.reshape(len(array), -1).astype(np.int64)


def _rand(one: IntArray, other: IntArray) -> float | None:
    """None without pixels."""
    if not len(one):
        return None
    (rows, one), (columns, other) = (np.unique(each, return_inverse=True) for each in (one, other))
    counts = np.bincount(one * len(columns) + other, minlength=len(rows) * len(columns)).reshape(len(rows), -1)

    def pairs(n: IntArray) -> float:
        return float((n * (n - 1) / 2).sum())

    together, by_one, by_other = pairs(counts), pairs(counts.sum(axis=1)), pairs(counts.sum(axis=0))
    n_pairs = len(one) * (len(one) - 1) / 2
    expected = by_one * by_other / n_pairs if n_pairs else 0.0
    most = (by_one + by_other) / 2
    return 1.0 if most == expected else (together - expected) / (most - expected)


def slot_identifiability(
    slots: ArrayLike,
    objects: ArrayLike,
    *,
    seed: int = 0,
    groups: ArrayLike | None = None,
    regressor: Regressor = "kernel",
    train_fraction: float = 0.8,
    max_train: int = 2000,
) -> SlotIdentifiability:
    """Slot identifiability score (SIS): how much better each slot predicts its own object than any other.

    Regression, by default kernel ridge, predicts each object from each slot on rows that it was not fitted to; slots
    and objects are matched so that the sum of R^2 is largest.

    Args:
        slots: (n_samples, n_slots, d) codes.
        objects: (n_samples, n_objects, f) factors of each object, in the order of the slots or any other fixed one.
        seed: draws the rows.
        groups: (n_samples,) group of each row (trial, animal, video or session); none is both fitted to and scored.
        regressor: "kernel", ridge regression with a Gaussian kernel (gamma 1 / d on standardised inputs, alpha 1), as
            the authors; "linear", least squares with an intercept; or "mlp", one hidden layer of 256 rectified units.
        train_fraction: share of the rows to fit to, above 0 and below 1; the others are scored.
        max_train: rows that the kernel is fitted to at most, 10 to 10 000.

    Returns:
        SlotIdentifiability. `score` is `slot_identifiability_from_matrix` of `matrix`; higher is better.

    Raises:
        ValueError: shapes disagree, values not finite, an unknown `regressor`, `train_fraction` or `max_train` out of
            range, or too few rows for both parts.

    Reference:
        Brady et al. 2023, "Provably Learning Object-Centric Representations". All rows of the score are
        those held out, and inputs are scaled by training rows alone.

    Example:
        >>> slots = np.random.default_rng(0).standard_normal((500, 2, 1))
        >>> slot_identifiability(slots, slots[:, ::-1]).score > 0.9
        True
    """
    check_whole("seed", seed, 0)
    check_whole("max_train", max_train, 10, 10_000, why="a matrix of all pairs of rows is solved")
    check_choice("regressor", regressor, get_args(Regressor))
    share = check_number("train_fraction", train_fraction, above=0.0, below=1.0)
    z, v = check_slots(slots, objects, "samples")
    train, test = split_rows(len(z), (share, 1 - share), seed, None if groups is None else check_groups(groups, len(z)))
    if regressor == "kernel":
        train = train[:max_train]
    owner = np.repeat(np.arange(v.shape[1]), v.shape[2])
    targets = v.reshape(len(v), -1)
    mean, scale = mean_and_scale(targets[train])
    targets = (targets - mean) / scale
    matrix = np.stack([
        explained(_predicted(z[train, i], targets[train], z[test, i], regressor, seed), targets[test], owner)
        for i in range(z.shape[1])
    ]).clip(min=0.0)  # fmt: skip
    alignment = align(matrix)
    matched = alignment[alignment >= 0], np.flatnonzero(alignment >= 0)
    return SlotIdentifiability(
        slot_identifiability_from_matrix(matrix), float(matrix[matched].mean()), matrix, alignment
    )


def check_slots(slots: ArrayLike, objects: ArrayLike, rows: str) -> tuple[FloatArray, FloatArray]:
    """Both as finite (n_rows, n_slots or n_objects, n_columns) of equally many rows, which are called `rows`."""
    checked = []
    for name, values in (("slots", slots), ("objects", objects)):
        array = as_array(values)
        if array.ndim != 3 or 0 in array.shape:
            raise ValueError(f"{name} must be (n_{rows}, n_{name}, columns); got shape {array.shape}")
        checked.append(check_matrix(array.reshape(len(array), -1), name, "columns").reshape(array.shape))
    z, v = checked
    if len(z) != len(v):
        raise ValueError(f"slots and objects must have the same number of {rows}; got {len(z)} and {len(v)}")
    return z, v


def slot_identifiability_from_matrix(matrix: ArrayLike) -> float:
    """Mean over matched slots of R^2 of the own object minus that of the best other.

    Args:
        matrix: (n_slots, n_objects) R^2 of each object from each slot.

    Returns:
        At most 1, higher is better. With one object the best other is 0.

    Raises:
        ValueError: not a finite matrix with rows.

    Example:
        >>> round(slot_identifiability_from_matrix([[0.9, 0.2], [0.1, 0.8]]), 12)
        0.7
    """
    table = check_matrix(matrix, "matrix", "n_objects", 1)
    alignment = align(table)
    gaps = []
    for target, slot in enumerate(alignment):
        if slot >= 0:
            rest = np.delete(table[slot], target)
            gaps.append(table[slot, target] - (rest.max() if len(rest) else 0.0))
    return float(np.mean(gaps))


def _predicted(inputs: FloatArray, targets: FloatArray, at: FloatArray, regressor: Regressor, seed: int) -> FloatArray:
    """(m, q) predictions of targets at other inputs, by a regressor fitted to (n, d) and (n, q)."""
    if regressor == "linear":
        return least_squares(inputs, targets, at)
    mean, scale = mean_and_scale(inputs)
    known, test = (inputs - mean) / scale, (at - mean) / scale
    if regressor == "mlp":
        return perceptron(known, targets, hidden=HIDDEN, seed=seed)(test)
    centre, gamma = targets.mean(axis=0), 1.0 / inputs.shape[1]
    return centre + kernel_ridge(known, targets - centre, test, alpha=1.0, gamma=gamma)
