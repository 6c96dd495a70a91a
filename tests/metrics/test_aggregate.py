"""Densities of one code under Gaussian posteriors against the sum over all rows."""

import numpy as np
import pytest
from scipy.special import logsumexp

from unbraid.base.types import FloatArray
from unbraid.metrics._shared.aggregate import log_ratio_moments, log_ratio_table, look_up, panels

N_ROWS = 300


def log_density(z: FloatArray, means: FloatArray, scales: FloatArray) -> FloatArray:
    logs = -0.5 * ((z[:, None] - means) / scales) ** 2 - np.log(scales)
    return logsumexp(logs, axis=1) - np.log(len(means)) - 0.5 * np.log(2 * np.pi)


@pytest.fixture(params=[(-1, 1), (-7, 0), (-20, -15), (-20, 2)], ids=str)
def posteriors(request: pytest.FixtureRequest) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Means, widths, a slice (0 or 1) per row, and one draw from each row."""
    rng = np.random.default_rng(0)
    means, scales = rng.standard_normal(N_ROWS), np.exp(rng.uniform(*request.param, N_ROWS) / 2)
    return means, scales, rng.integers(0, 2, N_ROWS), means + scales * rng.standard_normal(N_ROWS)


def test_tables_hold_the_logs_of_both_densities(posteriors: tuple[FloatArray, ...]) -> None:
    means, scales, group, draws = posteriors
    ratio, whole = np.zeros(N_ROWS), np.zeros(N_ROWS)
    for part in panels(means, scales, group[:, None] + 1, 3):
        table = log_ratio_table(part, np.full(3, np.inf))
        whole += look_up(draws, part, table[0])
        ratio += np.where(group == 0, look_up(draws, part, table[1]), look_up(draws, part, table[2]))
    own = np.where(group == 0, *(log_density(draws, means[group == level], scales[group == level]) for level in (0, 1)))
    everything = log_density(draws, means, scales)
    assert whole == pytest.approx(everything, abs=2e-5)
    assert ratio == pytest.approx(own - everything, abs=2e-5)


def test_densities_integrate_to_one(posteriors: tuple[FloatArray, ...]) -> None:
    means, scales, group, _ = posteriors
    weights = np.polynomial.legendre.leggauss(16)[1] / 2
    mass = sum((part.densities @ weights) @ part.widths for part in panels(means, scales, group[:, None] + 1, 3))
    assert mass == pytest.approx(np.ones(3), abs=1e-12)


@pytest.mark.parametrize("log_variance", [-20.0, 0.0, 6.0])
def test_entropy_of_one_gaussian(log_variance: float) -> None:
    """Of whose log density the variance is that of half of a chi-squared number: 1 / 2."""
    scales = np.full(3, np.exp(log_variance / 2))
    none = np.empty((3, 0), dtype=np.int64)
    mean, square = sum(log_ratio_moments(part)[0] for part in panels(np.zeros(3), scales, none, 1))
    assert mean == pytest.approx(-0.5 * (np.log(2 * np.pi * np.e) + log_variance), abs=1e-11)
    assert square - mean**2 == pytest.approx(0.5, abs=1e-9)


def test_a_row_of_no_slice_counts_only_towards_all() -> None:
    means, scales = np.array([-1.0, 1.0, 40.0]), np.ones(3)
    slices = np.array([[1], [1], [-1]])
    moments = sum(log_ratio_moments(part)[1] for part in panels(means, scales, slices, 2))
    assert moments == pytest.approx([np.log(3 / 2), np.log(3 / 2) ** 2], abs=1e-9)
