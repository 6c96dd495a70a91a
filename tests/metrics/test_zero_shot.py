"""Zero-shot error against a twin in scikit-learn, and what must stay out of training."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from tests.examples import (
    entangled_codes,
    grid_factors,
    noisy_codes,
    perfect_codes,
    random_codes,
    rotated_codes,
)
from unbraid import score, score_encoder
from unbraid.base.types import BoolArray, FloatArray
from unbraid.datasets import from_array
from unbraid.datasets.subset import left_out
from unbraid.metrics import dci_lasso, zero_shot
from unbraid.metrics._shared.inputs import split_rows
from unbraid.metrics._solvers.forest import fit_forest, sorted_codes
from unbraid.metrics.zero_shot import Gap, Regressor

FACTORS = grid_factors(12)


def corner(factors: FloatArray) -> BoolArray:
    return (factors[:, 1] > 1) & (factors[:, 2] > 4)


def test_twin_built_on_scikit_learn() -> None:
    """Split, then take the gap out of each part; train, tune and scale outside it, test inside and outside."""
    codes = entangled_codes(FACTORS)
    result = zero_shot(codes, FACTORS, held_out=corner, seed=3)
    parts = split_rows(len(codes), (0.8, 0.1, 0.1), 3)
    train, valid, test = (np.array([row for row in rows if not corner(FACTORS[[row]])[0]]) for rows in parts)
    inside = np.flatnonzero(corner(FACTORS))
    scaled = (codes - codes[train].mean(axis=0)) / codes[train].std(axis=0)
    for column in range(3):
        target = (FACTORS[:, column] - FACTORS[train, column].mean()) / FACTORS[train, column].std()
        largest = np.abs(scaled[train].T @ target[train] / len(train)).max()
        fits = [
            Lasso(alpha=largest * 10 ** (-4 * step / 99), tol=1e-8).fit(scaled[train], target[train])
            for step in range(1, 100)
        ]
        best = min(fits, key=lambda fit: np.mean((fit.predict(scaled[valid]) - target[valid]) ** 2))
        for rows, errors in ((inside, result.per_factor), (test, result.ordinary_per_factor)):
            error = np.sqrt(np.mean((best.predict(scaled[rows]) - target[rows]) ** 2))
            assert errors[column] == pytest.approx(error, abs=1e-5)
    assert result.score == pytest.approx(result.per_factor.mean())
    assert result.ordinary == pytest.approx(result.ordinary_per_factor.mean())
    assert result.notes == (
        f"lasso; {len(inside)} held-out rows; outside {len(train)} training, {len(valid)} validation "
        f"and {len(test)} test rows",
    )


def test_the_depth_of_a_forest_is_picked_outside_the_gap() -> None:
    codes = rotated_codes(FACTORS, noise=0.6)
    result = zero_shot(codes, FACTORS, held_out=corner, regressor="forest", seed=3)
    train, valid, _ = (rows[~corner(FACTORS[rows])] for rows in split_rows(len(codes), (0.8, 0.1, 0.1), 3))
    for column in range(3):
        values = FACTORS[:, column].astype(float)
        forest = fit_forest(sorted_codes(codes[train], codes), values[train], classify=False, n_trees=10, seed=3)
        squared = (forest.predictions[:, :, 0] - values) ** 2
        depth = squared[:, valid].mean(axis=1).argmin()
        expected = np.sqrt(squared[depth, corner(FACTORS)].mean()) / values[train].std()
        assert result.per_factor[column] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("regressor", ["lasso", "forest"])
def test_a_mask_is_a_predicate(regressor: Regressor) -> None:
    """In whatever order rows come: a mask belongs to rows of the whole set, not of a part."""
    order = np.random.default_rng(0).permutation(len(FACTORS))
    factors, codes = FACTORS[order], entangled_codes(FACTORS)[order]
    one = zero_shot(codes, factors, held_out=corner, regressor=regressor)
    other = zero_shot(codes, factors, held_out=corner(factors), regressor=regressor)
    np.testing.assert_array_equal(one.per_factor, other.per_factor)
    np.testing.assert_array_equal(one.ordinary_per_factor, other.ordinary_per_factor)


@pytest.mark.parametrize("regressor", ["lasso", "forest"])
def test_nothing_is_learnt_inside_the_gap(regressor: Regressor) -> None:
    """Codes that turn around inside the gap are misread there and change nothing outside."""
    codes = perfect_codes(FACTORS)
    turned = np.where(corner(FACTORS)[:, None], -codes, codes)
    plain, fooled = (zero_shot(z, FACTORS, held_out=corner, regressor=regressor) for z in (codes, turned))
    assert plain.score < (0.001 if regressor == "lasso" else 1e-9)
    assert fooled.score > 1.0
    np.testing.assert_allclose(fooled.ordinary_per_factor, plain.ordinary_per_factor, atol=1e-12)


@pytest.mark.parametrize("regressor", ["lasso", "forest"])
def test_better_codes_have_smaller_errors(regressor: Regressor) -> None:
    codes = (perfect_codes(FACTORS), noisy_codes(FACTORS), random_codes(FACTORS))
    perfect, noisy, random = (zero_shot(z, FACTORS, held_out=corner, regressor=regressor).score for z in codes)
    assert perfect < 0.001 < 0.2 < noisy < 0.6 < 0.9 < random


def test_a_forest_carries_over_codes_that_are_aligned_only() -> None:
    """Turned codes are read as well on ordinary rows, and worse on combinations never seen: the point of the test."""
    aligned, turned = (
        zero_shot(z, FACTORS, held_out=corner, regressor="forest")
        for z in (noisy_codes(FACTORS, noise=0.1), rotated_codes(FACTORS, noise=0.1))
    )
    assert turned.score - turned.ordinary > aligned.score - aligned.ordinary + 0.1


def test_dead_codes_are_as_far_off_as_the_mean() -> None:
    result = zero_shot(np.zeros((len(FACTORS), 2)), FACTORS, held_out=corner)
    train = split_rows(len(FACTORS), (0.8, 0.1, 0.1), 0)[0]
    train = train[~corner(FACTORS[train])]
    away = FACTORS[corner(FACTORS)] - FACTORS[train].mean(axis=0)
    assert result.per_factor == pytest.approx(np.sqrt((away**2).mean(axis=0)) / FACTORS[train].std(axis=0))
    np.testing.assert_allclose(result.baseline, result.per_factor, rtol=1e-12)
    np.testing.assert_allclose(result.ordinary_baseline, result.ordinary_per_factor, rtol=1e-12)
    read = zero_shot(perfect_codes(FACTORS), FACTORS, held_out=corner)
    np.testing.assert_array_equal(read.baseline, result.baseline)
    assert (result.baseline > 1.1 * result.ordinary_baseline).sum() == 2  # the gap is at the end of two factors


def test_a_score_card_hands_the_gap_over() -> None:
    codes = entangled_codes(FACTORS)
    card = score(codes, FACTORS, metrics=["zero_shot", "dci_lasso"], held_out="b > 1 and c > 4", names=("a", "b", "c"))
    assert card["zero_shot"].score == zero_shot(codes, FACTORS, held_out=corner).score
    assert card["dci_lasso"].disentanglement == dci_lasso(codes, FACTORS).disentanglement
    without = score(codes, FACTORS, metrics=["zero_shot", "dci_lasso"])
    assert without.skipped == {"zero_shot": "needs held_out: a condition on the factors"}


@pytest.mark.parametrize(
    ("gap", "message"),
    [
        (lambda v: v[:, 0] > 9, "held_out holds no row"),
        (lambda v: v[:, 0] < 9, "held_out leaves no training row outside it"),
        (lambda v: v[:, 0] > 0, "held_out leaves factors column 0 constant outside it"),
        (lambda v: v[:, 0], "held_out must return one boolean per row"),
        (lambda _: np.array([True]), "held_out must return one boolean per row"),
        (np.zeros(7, dtype=bool), "held_out must be one boolean per row"),
    ],
)
def test_unsound_gaps_are_refused(gap: Gap, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        zero_shot(perfect_codes(FACTORS), FACTORS, held_out=gap)


def test_a_condition_compares_labels_and_not_the_levels_that_stand_for_them() -> None:
    draw = np.random.default_rng(0)
    labels = {"hue": draw.integers(0, 8, 300) * 45, "size": draw.choice([1, 2, 4], 300), "pose": draw.random(300) * 360}
    codes = np.column_stack([labels[name] + draw.standard_normal(300) for name in labels])
    inside = (labels["hue"] == 90) | ((labels["size"] == 2) & (labels["pose"] > 180))
    by_mask, by_text = (
        score(codes, labels, metrics="zero_shot", period={"hue": 360, "pose": 360}, held_out=gap)["zero_shot"].score
        for gap in (inside, "hue == 90 or size == 2 and pose > 180")
    )
    assert by_text == by_mask


def test_a_condition_means_the_images_of_a_table_that_are_left_out_by_it() -> None:
    draw = np.random.default_rng(0)
    table = {"size": draw.choice([1, 2, 4], 120), "shape": draw.choice(["box", "disc"], 120)}
    dataset = from_array(draw.integers(0, 256, (120, 4, 4), dtype=np.uint8), table, grid=False)
    gap = "size == 2 and shape == 1"
    assert left_out(dataset.space, gap).tolist() == ((table["size"] == 2) & (table["shape"] == "disc")).tolist()
    by_mask, by_text = (
        score_encoder(lambda images: images.reshape(-1, 16) / 255, dataset, metrics="zero_shot", held_out=held_out)
        for held_out in (left_out(dataset.space, gap), gap)
    )
    assert by_text["zero_shot"].score == by_mask["zero_shot"].score
    assert by_text.representation.levels == (("1", "2", "4"), ("box", "disc"))
