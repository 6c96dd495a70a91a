"""Matching of slots in each image against brute force over permutations, and what any metric then says."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from unbraid.metrics import match_slots, mcc, r2

RNG = np.random.default_rng(0)
OBJECTS = RNG.standard_normal((150, 3, 2))
SLOTS = OBJECTS @ RNG.standard_normal((2, 4)) + 0.2 * RNG.standard_normal((150, 3, 4))


def shuffled(slots: Any) -> tuple[Any, Any]:
    """In another order for each image, and those orders."""
    orders = np.stack([np.random.default_rng(image).permutation(slots.shape[1]) for image in range(len(slots))])
    return np.take_along_axis(slots, orders[:, :, None], axis=1), orders


def test_the_order_of_slots_within_images_is_no_matter() -> None:
    slots, orders = shuffled(SLOTS)
    assert r2(slots.reshape(-1, 4), OBJECTS.reshape(-1, 2)).score < 0.3
    matched, plain = match_slots(slots, OBJECTS), match_slots(SLOTS, OBJECTS)
    np.testing.assert_array_equal(np.take_along_axis(orders, matched.alignment, axis=1), plain.alignment)
    np.testing.assert_array_equal(matched.codes, plain.codes)
    right = (plain.alignment == np.arange(3)).mean()
    assert right > 0.98
    for metric in (r2, mcc):
        scores = [metric(codes, OBJECTS.reshape(-1, 2)).score for codes in (matched.codes, SLOTS.reshape(-1, 4))]
        assert scores[0] == pytest.approx(scores[1], abs=0.01)
    assert r2(matched.codes, matched.factors).score > 0.9


def test_matches_have_the_least_loss_of_all_permutations_by_the_predictor_that_they_fit() -> None:
    """Four slots for three objects, so that one is left over."""
    slots, _ = shuffled(np.concatenate([SLOTS, RNG.standard_normal((150, 1, 4))], axis=1))
    matched = match_slots(slots, OBJECTS)
    unit = matched.factors.std(axis=0)
    predictor = LinearRegression().fit(matched.codes, matched.factors / unit)
    for image in range(150):
        predicted = predictor.predict(slots[image])

        def loss(order: Any, image: int = image, predicted: Any = predicted) -> float:
            return float(((predicted[list(order)] - OBJECTS[image] / unit) ** 2).sum())

        best = min(permutations(range(4), 3), key=loss)
        assert loss(matched.alignment[image]) == pytest.approx(loss(best))


def test_masks_decide_where_they_are_given() -> None:
    true = RNG.integers(0, 4, (40, 5, 5))
    predicted = np.where(RNG.random((40, 5, 5)) < 0.6, RNG.permuted(np.tile(np.arange(4), (40, 1)), axis=1)[
        np.arange(40)[:, None, None], true
    ], RNG.integers(0, 4, (40, 5, 5)))  # fmt: skip
    slots = RNG.standard_normal((40, 4, 2))
    matched = match_slots(slots, OBJECTS[:40], true_masks=true, predicted_masks=predicted)

    def overlap(image: int, slot: int, item: int) -> float:
        own, other = predicted[image] == slot, true[image] == item + 1
        return (own & other).sum() / (own | other).sum()

    for image in range(40):
        worth = {o: sum(overlap(image, s, j) for j, s in enumerate(o)) for o in permutations(range(4), 3)}
        assert worth[tuple(matched.alignment[image].tolist())] == pytest.approx(max(worth.values()))
        np.testing.assert_array_equal(matched.codes[3 * image : 3 * image + 3], slots[image, matched.alignment[image]])
    hidden = match_slots(slots, OBJECTS[:40], true_masks=np.minimum(true, 2), predicted_masks=predicted)
    assert hidden.notes == ("matched with the remaining slots: 40 objects without a pixel",)


def test_classes_and_circles_match_as_well() -> None:
    kinds: Any = ("categorical", "cyclic")
    objects = np.stack([RNG.integers(0, 3, (150, 3)), RNG.integers(0, 8, (150, 3))], axis=2)
    angle = np.pi * objects[:, :, 1:] / 4
    slots, orders = shuffled(np.concatenate([np.eye(3)[objects[:, :, 0]], np.cos(angle), np.sin(angle)], axis=2))
    matched = match_slots(slots, objects, kinds=kinds)
    assert r2(matched.codes, matched.factors, kinds=kinds).score == pytest.approx(1.0)


def test_a_circle_goes_around_as_far_as_its_sizes_say() -> None:
    """Of twelve steps rows show 0 to 6: read as seven, 6 lies beside 0, and slots that hold the angle tell it badly."""
    objects = RNG.integers(0, 7, (150, 3, 1))
    objects[0, 0] = 6
    angle = np.pi * objects / 6
    noise = 0.2 * RNG.standard_normal((150, 3, 2))
    slots, orders = shuffled(np.concatenate([np.cos(angle), np.sin(angle)], axis=2) + noise)
    matched, flat = match_slots(slots, objects, kinds=["cyclic"], sizes=[12]), objects.reshape(-1)
    as_angles = match_slots(slots, angle, kinds=["cyclic"])
    np.testing.assert_array_equal(matched.alignment, as_angles.alignment)

    def wrong(alignment: Any) -> float:
        told = objects[np.arange(150)[:, None], np.take_along_axis(orders, alignment, axis=1), 0].reshape(-1)
        return float(np.abs(told - flat).mean())

    assert wrong(matched.alignment) < 0.5 * wrong(match_slots(slots, objects, kinds=["cyclic"]).alignment)
    with pytest.raises(ValueError, match=r"sizes must have one entry per factor \(1\); got \[12, 3\]"):
        match_slots(slots, objects, kinds=["cyclic"], sizes=[12, 3])


def test_what_does_not_fit_is_refused() -> None:
    masks = np.zeros((150, 3), dtype=int)
    cases: list[tuple[Any, Any, dict[str, Any], str]] = [
        (SLOTS[0], OBJECTS, {}, r"slots must be \(n_images, n_slots, columns\); got shape \(3, 4\)"),
        (SLOTS[:, :2], OBJECTS, {}, "each object needs a slot; got 3 objects for 2 slots"),
        (SLOTS, OBJECTS, {"true_masks": masks}, "must be given together"),
        (
            SLOTS,
            OBJECTS,
            {"true_masks": masks + 4, "predicted_masks": masks},
            "true_masks must hold 0 to 3; got 4 to 4",
        ),
        (SLOTS, OBJECTS, {"true_masks": masks, "predicted_masks": masks + 3}, "predicted_masks must hold 0 to 2"),
    ]
    for slots, objects, options, message in cases:
        with pytest.raises(ValueError, match=message):
            match_slots(slots, objects, **options)
