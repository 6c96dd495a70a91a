"""Slots of images, in whatever order each image has them, as codes of the objects that they hold."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.counted import counted
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.inputs import check_inputs, standardised
from unbraid.metrics._shared.regression import as_blocks, least_squares
from unbraid.metrics.slots import check_slots, masks_of

MOST_ROUNDS = 50


@dataclass(frozen=True, eq=False, repr=False)
class MatchedSlots(Shown):
    codes: FloatArray  # (n_images * n_objects, d) of the slot of each object, image by image
    factors: FloatArray  # (n_images * n_objects, f) of the objects
    alignment: IntArray  # (n_images, n_objects) slot of each object
    notes: tuple[str, ...] = ()


def match_slots(
    slots: ArrayLike,
    objects: ArrayLike,
    *,
    true_masks: ArrayLike | None = None,
    predicted_masks: ArrayLike | None = None,
    kinds: Sequence[Kind] | None = None,
    sizes: Sequence[int] | None = None,
) -> MatchedSlots:
    """Match slots and objects one to one in each image, so that any metric can score them as codes and factors.

    With masks the sum of intersections over unions is largest. Without, one linear predictor from a slot to its object
    serves all images and slots: objects are matched so that its squared errors are least, it is fitted anew to these
    pairs, and so on until no match changes; at first it is fitted to all pairs of each image.

    Args:
        slots: (n_images, n_slots, d) codes, in any order, another for each image.
        objects: (n_images, n_objects, f) factors of each object; at most as many objects as slots.
        true_masks: (n_images, ...) whole numbers, j + 1 for pixels of object j and 0 for the background.
        predicted_masks: of the same shape, the slot of each pixel, 0 to n_slots - 1.
        kinds: kind of each of the f factors; see `unbraid.metrics`. Errors are of standardised numbers, of cosine and
            sine, or of indicators of levels.
        sizes: number of levels of each of them, around which cyclic ones wrap; default the highest present + 1. Where
            the last level is the first again, one less than there are.

    Returns:
        MatchedSlots. `codes` and `factors` go to any metric: `mcc(matched.codes, matched.factors)`, or
        `unbraid.score` for all. The order of slots within images is no matter. Without masks the objects themselves
        say which slot is whose, so that noise scores above what it scores otherwise, the more the more slots.

    Raises:
        ValueError: shapes disagree, values not finite, more objects than slots, one kind of masks without the other, or
            masks that name other slots or objects.

    Reference:
        Dittadi et al. 2022, "Generalization and Robustness Implications in Object-Centric Learning", section 3: mask
        and loss matching. One linear predictor takes the place of its networks.

    Example:
        >>> objects = np.random.default_rng(0).standard_normal((200, 3, 2))
        >>> slots = np.stack([each[np.random.default_rng(i).permutation(3)] for i, each in enumerate(objects)])
        >>> bool((match_slots(slots, objects).codes == objects.reshape(-1, 2)).all())
        True
    """
    z, v = check_slots(slots, objects, "images")
    (n_images, n_slots), n_objects = z.shape[:2], v.shape[1]
    if n_objects > n_slots:
        raise ValueError(f"each object needs a slot; got {counted(n_objects, 'object')} for {counted(n_slots, 'slot')}")
    if (true_masks is None) != (predicted_masks is None):
        raise ValueError("true_masks and predicted_masks must be given together; only one of them was")
    if true_masks is None or predicted_masks is None:
        alignment, notes = _by_loss(z, v, kinds, sizes)
    else:
        alignment, notes = _by_masks(true_masks, predicted_masks, n_images, n_slots, n_objects)
    codes = np.take_along_axis(z, alignment[:, :, None], axis=1)
    return MatchedSlots(codes.reshape(-1, z.shape[2]), v.reshape(-1, v.shape[2]), alignment, notes)


def _by_loss(
    z: FloatArray, v: FloatArray, kinds: Sequence[Kind] | None, sizes: Sequence[int] | None
) -> tuple[IntArray, tuple[str, ...]]:
    n_images, n_slots, d = z.shape
    flat = check_inputs(z[:, : v.shape[1]].reshape(-1, d), v.reshape(-1, v.shape[2]), kinds)
    inputs = standardised(z.reshape(-1, d))
    targets = as_blocks(flat, sizes).columns.reshape(n_images, v.shape[1], -1)
    # A slot may be any object's: least squares on all pairs is that on their mean.
    fitted = inputs, np.repeat(targets.mean(axis=1), n_slots, axis=0)
    alignment = np.full(v.shape[:2], -1)
    for _ in range(MOST_ROUNDS):
        predicted = least_squares(*fitted, inputs).reshape(n_images, n_slots, -1)
        errors = ((predicted[:, :, None] - targets[:, None]) ** 2).sum(axis=3)
        before, alignment = alignment, _assigned(-errors)
        if (before == alignment).all():
            return alignment, ()
        own = np.take_along_axis(inputs.reshape(z.shape), alignment[:, :, None], axis=1)
        fitted = own.reshape(-1, d), targets.reshape(-1, targets.shape[2])
    return alignment, (f"matches still change after {MOST_ROUNDS} rounds",)


def _by_masks(
    true_masks: ArrayLike, predicted_masks: ArrayLike, n_images: int, n_slots: int, n_objects: int
) -> tuple[IntArray, tuple[str, ...]]:
    true, predicted = masks_of(true_masks, predicted_masks)
    if len(true) != n_images:
        raise ValueError(f"true_masks must have the {n_images} images of slots; got {len(true)}")
    for name, masks, most in (("true_masks", true, n_objects), ("predicted_masks", predicted, n_slots - 1)):
        if masks.min() < 0 or masks.max() > most:
            raise ValueError(f"{name} must hold 0 to {most}; got {masks.min()} to {masks.max()}")
    places = np.arange(n_images)[:, None] * n_slots * (n_objects + 1) + predicted * (n_objects + 1) + true
    counts = np.bincount(places.ravel(), minlength=n_images * n_slots * (n_objects + 1))
    shared = counts.reshape(n_images, n_slots, n_objects + 1).astype(float)
    either = shared.sum(axis=2, keepdims=True) + shared.sum(axis=1, keepdims=True) - shared
    hidden = int((shared.sum(axis=1)[:, 1:] == 0).sum())
    notes = (f"matched with the remaining slots: {counted(hidden, 'object')} without a pixel",) if hidden else ()
    return _assigned((shared / np.maximum(either, 1.0))[:, :, 1:]), notes


def _assigned(worth: FloatArray) -> IntArray:
    """(n_images, n_objects) slot of each object, of (n_images, n_slots, n_objects)."""
    from scipy.optimize import linear_sum_assignment  # a fifth of a second to import

    return np.stack([linear_sum_assignment(each.T, maximize=True)[1] for each in worth])
