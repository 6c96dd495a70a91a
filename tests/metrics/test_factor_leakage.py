"""Factor leakage against an example by hand and a twin in plain loops."""

import numpy as np
import pytest

from tests.examples import entangled_codes, grid_factors, perfect_codes
from unbraid.base.types import FloatArray
from unbraid.metrics import factor_leakage


def leakage_by_loops(information: FloatArray) -> dict[str, float]:
    n_codes, n_factors = information.shape
    columns = [sorted(information[:, k], reverse=True) for k in range(n_factors)]
    relative = [[value / column[0] for value in column] for column in columns]

    def average(table: list[list[float]], start: int) -> float:
        return float(np.mean([column[r] for column in table for r in range(start, n_codes)]))

    return {
        "mean": average(columns, 1),
        "norm_mean": average(relative, 1),
        "auc": sum(average(relative, i) for i in range(n_codes)) / n_codes,
        "nm_auc": sum(average(relative, i) for i in range(1, n_codes)) / (n_codes - 1),
    }


def test_by_hand() -> None:
    """Code 0 copies both binary factors, code 1 the first: r = (1, 1, 0) and (1, 0, 0) over three codes.

    Averages of the ranks from i on: (2 + 1) / 6, 1 / 4, 0. So auc = (1/2 + 1/4) / 3 and nm-auc = (1/4) / 2.
    """
    factors = np.tile([[0, 0], [0, 1], [1, 0], [1, 1]], (3, 1))
    codes = np.stack([2 * factors[:, 0] + factors[:, 1], factors[:, 0], np.zeros(12)], axis=1)
    result = factor_leakage(codes, factors)
    assert result.auc == pytest.approx(0.25, abs=1e-12)
    assert result.nm_auc == pytest.approx(0.125, abs=1e-12)
    assert result.mean == pytest.approx(np.log(2) / 4, abs=1e-12)
    assert result.norm_mean == pytest.approx(0.25, abs=1e-12)
    assert result.per_factor == pytest.approx([0.25, 0.0], abs=1e-12)


@pytest.mark.parametrize("n_codes", [2, 3, 5])
def test_twin_in_plain_loops(n_codes: int) -> None:
    factors = grid_factors()
    codes = np.hstack([entangled_codes(factors, seed=seed) for seed in (0, 1)])[:, :n_codes]
    result = factor_leakage(codes, factors)
    for name, expected in leakage_by_loops(result.mutual_information).items():
        assert getattr(result, name) == pytest.approx(expected, abs=1e-12), name


@pytest.mark.parametrize("n_extra", [0, 2])
def test_a_perfect_code_scores_zero_for_any_number_of_codes_except_by_auc(n_extra: int) -> None:
    factors = grid_factors()
    result = factor_leakage(np.hstack([perfect_codes(factors), np.zeros((len(factors), n_extra))]), factors)
    assert [result.nm_auc, result.mean, result.norm_mean] == pytest.approx([0.0, 0.0, 0.0], abs=1e-12)
    assert result.auc == pytest.approx(1 / (3 + n_extra) ** 2, abs=1e-12)


def test_a_factor_that_no_code_knows_counts_as_spread_evenly() -> None:
    factors = np.tile([[0, 0], [0, 1], [1, 0], [1, 1]], (3, 1))
    result = factor_leakage(np.stack([factors[:, 0], np.zeros(12)], axis=1), factors)
    assert result.per_factor == pytest.approx([0.0, 1.0], abs=1e-12)
    assert result.notes == ("factor 1 no code has information on it: it counts as spread evenly",)
    assert factor_leakage(np.zeros((12, 2)), factors).nm_auc == 1.0
