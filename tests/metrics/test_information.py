"""Information against loops over its definition, and what noise has of it against shuffled rows."""

import numpy as np
import pytest

from unbraid.metrics._shared.information import (
    binned_information,
    factor_entropy,
    information_of_noise,
    mutual_information,
)
from unbraid.metrics._shared.inputs import as_levels, check_inputs


def test_information_and_entropy_are_the_sums_of_their_definition() -> None:
    rng = np.random.default_rng(1)
    factors = np.stack([rng.integers(0, size, 400) for size in (2, 3, 11)], axis=1)
    binned = np.stack([(factors[:, 2] + rng.integers(0, 4, 400)) % 9, factors[:, 0], np.zeros(400, dtype=int)], axis=1)
    levels = as_levels(check_inputs(binned, factors))
    expected = np.zeros((3, 3))
    for code in range(3):
        for factor in range(3):
            for i in set(binned[:, code]):
                for j in set(factors[:, factor]):
                    joint = np.mean((binned[:, code] == i) & (factors[:, factor] == j))
                    alone = np.mean(binned[:, code] == i) * np.mean(factors[:, factor] == j)
                    expected[code, factor] += joint * np.log(joint / alone) if joint else 0.0
    assert mutual_information(binned, levels) == pytest.approx(expected, abs=1e-12)
    entropies = [
        -sum(p * np.log(p) for p in (np.mean(factors[:, k] == j) for j in set(factors[:, k]))) for k in range(3)
    ]
    assert factor_entropy(levels) == pytest.approx(np.array(entropies), abs=1e-12)


def test_information_of_noise_is_that_of_shuffled_rows() -> None:
    """Codes of outliers and ties, levels of one row: what the chi-squared law of many rows gets wrong."""
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, 4, 120), np.minimum(rng.geometric(0.6, 120), 6)], axis=1)
    codes = np.stack([factors[:, 0] ** 3 + rng.standard_cauchy(120), np.rint(factors[:, 1]), np.ones(120)], axis=1)
    inputs = check_inputs(codes, factors)
    shuffled = [binned_information(check_inputs(rng.permutation(codes), factors)) for _ in range(400)]
    drawn = information_of_noise(inputs)
    assert drawn.shape == (34, 3, 2)
    error = 5 * np.std(shuffled, axis=0) / np.sqrt(len(drawn)) + 1e-12
    assert (abs(drawn.mean(axis=0) - np.mean(shuffled, axis=0)) < error).all()
    assert drawn[:, :2].std() == pytest.approx(np.std([each[:2] for each in shuffled]), rel=0.15)
    assert not drawn[:, 2].any()
