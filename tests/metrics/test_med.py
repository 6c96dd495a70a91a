"""MED: the disentanglement of the matrix of mutual information."""

import numpy as np
import pytest

from tests.examples import entangled_codes, grid_factors
from tests.metrics.test_mig import two_models
from unbraid.metrics import dci_from_importance, med, mig


def test_row_of_med_in_snc_nk_table_1() -> None:
    """M2: [[.1887, .1887], [0, .1187]] bits; D .2393, and with C .4038 (weighted) and .75 the mean is .464."""
    _, m2, factors = two_models()
    result = med(m2, factors, bins=2)
    np.testing.assert_allclose(result.mutual_information / np.log(2), [[0.1887, 0.1887], [0.0, 0.1187]], atol=1e-4)
    assert result.score == pytest.approx(0.2393, abs=1e-4)
    weighted = dci_from_importance(result.mutual_information, completeness="weighted").completeness
    assert (result.score + weighted + 0.75) / 3 == pytest.approx(0.464, abs=5e-4)
    assert result.per_code == pytest.approx([0.0, 1.0], abs=1e-9)
    assert result.code_weights == pytest.approx([0.7608, 0.2392], abs=1e-4)


def test_one_code_for_two_factors() -> None:
    m1, _, factors = two_models()
    result = med(m1, factors, bins=2)
    assert result.score == pytest.approx(0.0, abs=1e-9)
    assert result.completeness == pytest.approx(1.0)


@pytest.mark.parametrize("bins", [5, 20])
def test_the_matrix_is_that_of_mig(bins: int) -> None:
    factors = grid_factors()
    codes = entangled_codes(factors)
    result = med(codes, factors, bins=bins)
    np.testing.assert_array_equal(result.mutual_information, mig(codes, factors, bins=bins).mutual_information)
    assert result.score == dci_from_importance(result.mutual_information).disentanglement


def test_constant_codes_score_nothing() -> None:
    """Not even what rounding leaves of no information, of which shares could be taken."""
    factors = np.tile(grid_factors(), (8, 1))
    result = med(np.full((len(factors), 4), (0.0, 0.5, -1.0, 0.7)), factors)
    assert (result.score, result.completeness) == (0.0, 0.0)
    assert not result.mutual_information.any()
