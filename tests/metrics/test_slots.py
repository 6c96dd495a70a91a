"""Scores of slots against worked examples and scikit-learn."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.metrics import adjusted_rand_score

from unbraid.metrics import NotDefined, fg_ari, slot_identifiability, slot_identifiability_from_matrix
from unbraid.metrics._shared.inputs import split_rows

RNG = np.random.default_rng(0)


def test_the_order_of_slots_is_no_matter() -> None:
    assert slot_identifiability_from_matrix([[0.2, 0.9], [0.8, 0.1]]) == pytest.approx(0.7)


@pytest.mark.parametrize("background", [0, 3])
def test_the_index_is_that_of_scikit_learn(background: int) -> None:
    true, predicted = RNG.integers(0, 4, (6, 8, 8)), RNG.integers(5, 8, (6, 8, 8))
    predicted[:3] = np.where(RNG.random((3, 8, 8)) < 0.7, true[:3], predicted[:3])
    expected = [
        adjusted_rand_score(t[t != background], p[t != background]) for t, p in zip(true, predicted, strict=True)
    ]
    result = fg_ari(true, predicted, background=background)
    np.testing.assert_allclose(result.per_image, expected, atol=1e-12)
    assert result.score == pytest.approx(np.mean(expected))


def test_images_without_a_foreground_are_left_out() -> None:
    result = fg_ari([[0, 0, 0], [1, 1, 2]], [[1, 2, 3], [7, 7, 1]])
    assert result.score == 1.0
    assert "left out: 1 image without a foreground" in result.notes[0]
    with pytest.raises(NotDefined, match="foreground"):
        fg_ari([[0, 0]], [[0, 1]])


def test_slots_are_judged_by_kernel_ridge_on_rows_kept_out() -> None:
    slots = RNG.standard_normal((300, 3, 2))
    objects = np.stack([np.sin(slots[:, 2]), slots[:, 0] + 0.5 * RNG.standard_normal((300, 2))], axis=1)
    result = slot_identifiability(slots, objects, seed=3)
    train, test = split_rows(300, (0.8, 0.2), 3)
    for i in range(3):
        for k in range(2):
            scale = slots[train, i].std(axis=0)
            unit = objects[train, k].std(axis=0)
            x, y = slots[:, i] - slots[train, i].mean(axis=0), (objects[:, k] - objects[train, k].mean(axis=0)) / unit
            known = KernelRidge(alpha=1, kernel="rbf", gamma=0.5).fit(x[train] / scale, y[train])
            missed = ((known.predict(x[test] / scale) - y[test]) ** 2).sum()
            expected = max(0.0, 1 - missed / ((y[test] - y[test].mean(axis=0)) ** 2).sum())
            assert result.matrix[i, k] == pytest.approx(expected, abs=1e-9)
    assert result.alignment.tolist() == [2, 0]
    assert result.score == pytest.approx(slot_identifiability_from_matrix(result.matrix))
    assert 0.5 < result.score <= result.own


@pytest.mark.parametrize("train_fraction", [0.8, 0.5, 0.25])
def test_slots_are_judged_by_least_squares_where_asked(train_fraction: float) -> None:
    slots = RNG.standard_normal((200, 2, 3))
    objects = np.stack([slots[:, 1, :2] ** 3, slots[:, 0, :2] + slots[:, 1, :2]], axis=1)
    result = slot_identifiability(slots, objects, seed=1, regressor="linear", train_fraction=train_fraction)
    train, test = split_rows(200, (train_fraction, 1 - train_fraction), 1)
    assert len(train) == 200 * train_fraction
    for i in range(2):
        for k in range(2):
            predicted = LinearRegression().fit(slots[train, i], objects[train, k]).predict(slots[test, i])
            unit = objects[train, k].std(axis=0)
            missed = (((predicted - objects[test, k]) / unit) ** 2).sum()
            varied = (((objects[test, k] - objects[test, k].mean(axis=0)) / unit) ** 2).sum()
            assert result.matrix[i, k] == pytest.approx(max(0.0, 1 - missed / varied), abs=1e-9)


def test_perceptrons_read_what_a_line_does_not() -> None:
    """The best line through t^2 of a symmetric t is flat, so that R^2 is 0."""
    slots = RNG.standard_normal((500, 2, 1))
    linear, curved = (slot_identifiability(slots, slots**2, regressor=each) for each in ("linear", "mlp"))
    assert linear.own < 0.05
    assert curved.own > 0.8


@pytest.mark.parametrize("far", [np.inf, 1e300])
def test_a_mask_of_floats_is_of_numbers_that_are_told_apart(far: float) -> None:
    with pytest.raises(ValueError, match="true_masks must be whole numbers up to 9007199254740992; got"):
        fg_ari(np.array([[far, 1.0, 1.0, 2.0]]), np.array([[0.0, 1, 1, 2]]))


def test_masks_and_slots_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"same shape; got \(1, 3\) and \(1, 2\)"):
        fg_ari([[0, 1, 2]], [[0, 1]])
    with pytest.raises(ValueError, match="predicted_masks must be whole numbers"):
        fg_ari([[0, 1]], [[0.5, 1.0]])
    with pytest.raises(ValueError, match=r"slots must be \(n_samples, n_slots, columns\)"):
        slot_identifiability(np.ones((4, 2)), np.ones((4, 2, 2)))
