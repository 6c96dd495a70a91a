"""Explained variance of reconstructions against examples by hand, a closed form and scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import r2_score

from unbraid import score
from unbraid.metrics import NotDefined, explained_variance

RNG = np.random.default_rng(0)
ACTIVATIONS = RNG.standard_normal((500, 6)) * [1, 2, 5, 0.1, 1, 30] + [0, 7, -3, 1, 100, 2]
DECODED = ACTIVATIONS + RNG.standard_normal((500, 6)) * [0.3, 1, 1, 0.2, 0.1, 9] + [0, 0.5, 0, 0, 0, 3]


def test_a_case_by_hand() -> None:
    """The mean is (1, 2), each row lies 1 + 4 from it, and each misses by 1: 1 - 2 / 10.

    By rows that is 1 - 1 / 5 twice; dimension 0 is exact, dimension 1 misses 2 of 8.
    """
    x, decoded = [[2, 0], [0, 4]], [[2, 1], [0, 3]]
    result = explained_variance(x, decoded)
    assert result.score == pytest.approx(0.8)
    assert result.unexplained == pytest.approx(0.2)
    assert result.per_dimension.tolist() == [1.0, 0.75]
    assert explained_variance(x, decoded, average="rows").score == pytest.approx(0.8)
    assert explained_variance(x, decoded, average="dimensions").score == pytest.approx(0.875)


def test_rows_of_little_variance_decide_when_rows_are_averaged() -> None:
    """Squared distances from the mean 0 are 1, 1, 100, 100, and each row misses by 1: 1 - 4 / 202.

    By rows it is 1 - (1 + 1 + .01 + .01) / 4.
    """
    x = np.array([[1.0], [-1.0], [10.0], [-10.0]])
    decoded = x + [[1.0], [-1.0], [1.0], [-1.0]]
    assert explained_variance(x, decoded).score == pytest.approx(1 - 4 / 202)
    assert explained_variance(x, decoded, average="rows").score == pytest.approx(1 - 2.02 / 4)


@pytest.mark.parametrize("average", ["all", "rows", "dimensions"])
def test_the_mean_predictor_scores_0_and_the_activations_themselves_1(average) -> None:
    mean = np.broadcast_to(ACTIVATIONS.mean(axis=0), ACTIVATIONS.shape)
    assert explained_variance(ACTIVATIONS, mean, average=average).score == pytest.approx(0.0, abs=1e-12)
    assert explained_variance(ACTIVATIONS, ACTIVATIONS, average=average).score == 1.0


@pytest.mark.parametrize(("average", "multioutput"), [("all", "variance_weighted"), ("dimensions", "uniform_average")])
def test_it_is_that_of_scikit_learn(average, multioutput: str) -> None:
    expected = r2_score(ACTIVATIONS, DECODED, multioutput=multioutput)
    result = explained_variance(ACTIVATIONS, DECODED, average=average)
    assert result.score == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(result.per_dimension, r2_score(ACTIVATIONS, DECODED, multioutput="raw_values"))


def test_an_offset_costs_its_square_and_is_told() -> None:
    """Shifting a dimension of variance 4 by 2 leaves nothing of it; without the offset nothing is missed."""
    x = np.array([[-2.0], [2.0]])
    result = explained_variance(x, x + 2)
    assert result.score == pytest.approx(0.0)
    assert result.without_offset == pytest.approx(1.0)
    variances = 1 - (ACTIVATIONS - DECODED).var(axis=0).sum() / ACTIVATIONS.var(axis=0).sum()
    assert explained_variance(ACTIVATIONS, DECODED).without_offset == pytest.approx(variances)


@pytest.mark.parametrize("offset", [1e4, 1e8])
def test_beside_a_large_offset_the_rest_is_what_it_was(offset: float) -> None:
    known = explained_variance(ACTIVATIONS, DECODED).without_offset
    assert explained_variance(ACTIVATIONS, DECODED + offset).without_offset == pytest.approx(known, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_neither_scale_nor_precision_change_it(scale: float) -> None:
    known = explained_variance(ACTIVATIONS, DECODED).score
    assert explained_variance(scale * ACTIVATIONS, scale * DECODED).score == pytest.approx(known)
    single = explained_variance(ACTIVATIONS.astype(np.float32), DECODED.astype(np.float32)).score
    assert single == pytest.approx(known, abs=1e-6)


def test_a_constant_dimension_is_told_and_no_variance_is_refused() -> None:
    x = np.column_stack([ACTIVATIONS, np.full(500, 0.1)])
    decoded = np.column_stack([DECODED, np.full(500, 0.1)])
    result = explained_variance(x, decoded, average="dimensions")
    assert result.score == pytest.approx(explained_variance(ACTIVATIONS, DECODED, average="dimensions").score)
    assert result.per_dimension[-1] == 0.0
    assert result.notes == ("1 of 7 dimensions are constant: they do not count",)
    with pytest.raises(NotDefined, match="constant"):
        explained_variance(np.full((3, 2), 0.1), np.zeros((3, 2)))


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"same shape.*\(500, 6\) and \(6, 500\)"):
        explained_variance(ACTIVATIONS, DECODED.T)
    broken = DECODED.copy()
    broken[3, 2] = np.nan
    with pytest.raises(ValueError, match="reconstructions must be finite; row 3, column 2"):
        explained_variance(ACTIVATIONS, broken)
    with pytest.raises(ValueError, match=r"call unbraid\.metrics\.explained_variance"):
        score(ACTIVATIONS, (ACTIVATIONS[:, :1] > 0).astype(int), metrics="explained_variance")
