import numpy as np
import pytest

from unbraid.data import FactorSpace, FactorTable, correlation, few_labels, sample

SPACE = FactorSpace(("shape", "size", "hue"), (3, 4, 8), ("categorical", "ordinal", "cyclic"))
TABLE = FactorTable(("class", "angle"), ("categorical", "continuous"), np.array([[0, 0.1], [1, 0.2], [1, 0.3]]))


def test_every_combination_is_equally_likely() -> None:
    counts = np.bincount(sample(SPACE, 96_000), minlength=96)
    # 1000 expected in each; five standard deviations of a binomial count are 158.
    assert np.abs(counts - 1000).max() < 160


def test_same_seed_same_draw_and_another_seed_another() -> None:
    assert (sample(SPACE, 50, seed=3) == sample(SPACE, 50, seed=3)).all()
    assert (sample(SPACE, 50, seed=3) != sample(SPACE, 50, seed=4)).any()


def test_fixed_factors_keep_their_level_and_the_others_vary() -> None:
    levels = SPACE.factors(sample(SPACE, 500, fixed={"size": 3, "shape": 0}))
    assert (levels[:, :2] == [0, 3]).all()
    assert set(levels[:, 2]) == set(range(8))


def test_joint_weights_are_followed_and_leave_the_other_factor_uniform() -> None:
    weight = np.arange(24.0).reshape(8, 3)
    levels = SPACE.factors(sample(SPACE, 100_000, weights={("hue", "shape"): weight}))
    counts = np.zeros((8, 3))
    np.add.at(counts, (levels[:, 2], levels[:, 0]), 1)
    assert np.abs(counts / 100_000 - weight / weight.sum()).max() < 0.005
    assert counts[0, 0] == 0
    assert np.abs(np.bincount(levels[:, 1]) / 100_000 - 0.25).max() < 0.007


def test_fixing_and_weighting_go_together() -> None:
    levels = SPACE.factors(sample(SPACE, 200, fixed={"hue": 5}, weights={("size", "shape"): np.eye(4, 3)}))
    assert (levels[:, 2] == 5).all()
    assert (levels[:, 0] == levels[:, 1]).all()


def test_correlation_is_a_distribution_that_flattens_with_its_width() -> None:
    tight, loose = correlation(4, 4, 0.05), correlation(4, 4, 100)
    assert tight.sum() == pytest.approx(1)
    assert np.allclose(tight, np.eye(4) / 4, atol=1e-6)
    assert np.allclose(loose, 1 / 16, atol=1e-4)
    # By hand: levels 0 and 1 of 0 .. 1 in steps of 1/3, width 1/3: exp(-1/2) of the diagonal.
    weight = correlation(4, 4, 1 / 3)
    assert weight[0, 1] / weight[0, 0] == pytest.approx(np.exp(-0.5))


def test_tables_are_sampled_by_their_rows() -> None:
    assert set(sample(TABLE, 200)) == {0, 1, 2}
    assert set(sample(TABLE, 200, fixed={"class": 1})) == {1, 2}


@pytest.mark.parametrize(
    ("space", "arguments", "message"),
    [
        (SPACE, {"fixed": {"colour": 0}}, "no factor 'colour'"),
        (SPACE, {"fixed": {"size": 4}}, "'size' must be a whole number, 0 to 3; got 4"),
        (SPACE, {"fixed": {"size": -1}}, "'size' must be a whole number, 0 to 3"),
        (SPACE, {"fixed": {"size": 1}, "weights": {("size", "hue"): np.ones((4, 8))}}, "once"),
        (SPACE, {"weights": {("hue", "size"): np.ones((4, 8))}}, r"must have shape \(8, 4\); got \(4, 8\)"),
        *[
            (SPACE, {"weights": {("size",): weights}}, "must be finite, not negative, and not all 0")
            for weights in (np.zeros(4), [2, -1, 0, 0], [np.nan, 1, 1, 1])
        ],
    ],
)
def test_sampling_says_what_is_wrong(space: FactorSpace, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sample(space, 5, **arguments)


@pytest.mark.parametrize("n", [1, 7, 24, 95, 96])
def test_labels_are_even_over_the_named_factors(n: int) -> None:
    labelled = few_labels(SPACE, n, by=["shape", "hue"], seed=2)
    assert len(np.unique(labelled)) == n
    levels = SPACE.factors(labelled)
    counts = np.bincount(levels[:, 0] * 8 + levels[:, 2], minlength=24)
    assert counts.max() - counts.min() <= 1


def test_labels_of_rare_classes_are_all_taken() -> None:
    table = FactorTable(("class",), ("categorical",), np.array([[0]] * 2 + [[1]] * 50 + [[2]] * 50))
    assert np.bincount(table.factors(few_labels(table, 32, by=["class"]))[:, 0]).tolist() == [2, 15, 15]


def test_labels_differ_by_seed() -> None:
    assert set(few_labels(SPACE, 20, seed=0)) != set(few_labels(SPACE, 20, seed=1))
