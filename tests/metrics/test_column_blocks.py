"""R^2 and MCC of blocks against scikit-learn's least squares and brute force over matchings."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from unbraid.base.types import FloatArray
from unbraid.metrics import block_mcc, block_r2, mcc
from unbraid.metrics._shared.inputs import split_rows

RNG = np.random.default_rng(0)
FACTORS = RNG.standard_normal((600, 5))
CODES = FACTORS @ RNG.standard_normal((5, 6)) * 0.3 + RNG.standard_normal((600, 6))
CODES[:, :2] += 2 * FACTORS[:, 3:]
OWN, THEIRS = [[0, 1], [2], [3, 4, 5]], [[3, 4], [0], [1, 2]]


def r2(x: FloatArray, y: FloatArray, fit: Any, judged: Any) -> float:
    predicted = LinearRegression().fit(x[fit], y[fit]).predict(x[judged])
    return 1 - ((y[judged] - predicted) ** 2).sum() / ((y[judged] - y[judged].mean(axis=0)) ** 2).sum()


def standard(values: FloatArray) -> FloatArray:
    return (values - values.mean(axis=0)) / values.std(axis=0)


def test_r2_of_every_pair_of_blocks_is_that_of_scikit_learn() -> None:
    result = block_r2(CODES, FACTORS, code_blocks=OWN, factor_blocks=THEIRS, seed=2)
    z, v = standard(CODES), standard(FACTORS)
    halves = split_rows(600, (0.5, 0.5), 2)
    ways = (halves, halves[::-1])
    forward = np.array([[np.mean([r2(z[:, i], v[:, k], *way) for way in ways]) for k in THEIRS] for i in OWN])
    backward = np.array([[np.mean([r2(v[:, k], z[:, i], *way) for way in ways]) for k in THEIRS] for i in OWN])
    np.testing.assert_allclose(result.matrix, forward, atol=1e-10)
    np.testing.assert_allclose(result.backward, backward, atol=1e-10)
    assert result.score == pytest.approx(np.mean(np.diag(forward)))
    assert result.leakage == pytest.approx(np.mean(np.maximum(forward[~np.eye(3, dtype=bool)], 0)))


SINGLE = [[0], [1], [2]]


@pytest.mark.parametrize(
    ("codes", "factors", "own", "theirs", "seed"),
    [
        (CODES, FACTORS, OWN, THEIRS, 2),
        *((RNG.standard_normal((40, 3)), RNG.standard_normal((40, 3)), SINGLE, SINGLE, seed) for seed in range(5)),
    ],
)
def test_mcc_of_blocks_is_brute_force_over_matchings(
    codes: FloatArray, factors: FloatArray, own: list[list[int]], theirs: list[list[int]], seed: int
) -> None:
    """Of noise as well, where the two halves of the rows match differently."""
    result = block_mcc(codes, factors, code_blocks=own, factor_blocks=theirs, seed=seed)
    z, v, found = standard(codes), standard(factors), []
    halves = split_rows(len(codes), (0.5, 0.5), seed)
    for known, judged in (halves, halves[::-1]):
        worth, other = (
            np.sqrt(np.maximum(0, [[r2(z[:, i], v[:, k], known, rows) for k in theirs] for i in own]))
            for rows in (known, judged)
        )
        best = max(permutations(range(3)), key=lambda order: sum(worth[i, k] for k, i in enumerate(order)))
        found.append([other[i, k] for k, i in enumerate(best)])
    np.testing.assert_allclose(result.per_block, np.mean(found, axis=0), atol=1e-9)
    assert result.score == pytest.approx(np.mean(found))


def test_blocks_of_one_column_are_mcc() -> None:
    single = [[i] for i in range(5)]
    noisy = FACTORS + 0.3 * RNG.standard_normal(FACTORS.shape)
    plain = mcc(noisy, FACTORS).score
    assert block_mcc(noisy, FACTORS, code_blocks=single, factor_blocks=single).score == pytest.approx(plain, abs=0.01)


def test_rotation_within_a_block_is_no_matter_and_across_blocks_is() -> None:
    blocks: Any = {"code_blocks": [[0, 1], [2, 3, 4]], "factor_blocks": [[0, 1], [2, 3, 4]]}
    within = np.zeros((5, 5))
    within[:2, :2], within[2:, 2:] = [[1, 1], [1, -1]], np.linalg.qr(RNG.standard_normal((3, 3)))[0]
    assert block_r2(FACTORS @ within, FACTORS, **blocks).score == pytest.approx(1.0)
    assert block_r2(FACTORS @ within, FACTORS, **blocks).leakage < 0.02
    across = np.linalg.qr(RNG.standard_normal((5, 5)))[0]
    assert block_r2(FACTORS @ across, FACTORS, **blocks).score < 0.9
    cyclic = RNG.integers(0, 8, (600, 1))
    circle = np.hstack([np.cos(np.pi * cyclic / 4), np.sin(np.pi * cyclic / 4)])
    both = block_mcc(circle, cyclic, code_blocks=[[0, 1]], factor_blocks=[[0]], kinds=["cyclic"])
    assert both.score == pytest.approx(1.0)


def test_blocks_go_around_the_circle_that_the_sizes_say() -> None:
    """Of an hour of which the rows show the mornings alone, 12 of 24, a block of its cosine and sine knows all."""
    hours = RNG.integers(0, 12, (600, 1))
    circle = np.hstack([np.cos(np.pi * hours / 12), np.sin(np.pi * hours / 12)])
    given: Any = {"code_blocks": [[0, 1]], "factor_blocks": [[0]], "kinds": ["cyclic"], "sizes": [24]}
    assert block_r2(circle, hours, **given).matrix == pytest.approx(1.0)
    assert block_r2(circle, hours, **given).backward == pytest.approx(1.0)
    assert block_mcc(circle, hours, **given).score == pytest.approx(1.0)
    with pytest.raises(ValueError, match="factors column 0 is cyclic with 9 levels and must hold 0 to 8"):
        block_r2(circle, hours, **{**given, "sizes": [9]})


def test_factors_without_a_block_of_codes_count_nothing() -> None:
    result = block_mcc(FACTORS, FACTORS, code_blocks=[[0, 1]], factor_blocks=[[0, 1], [2]])
    assert result.score == pytest.approx(0.5)
    assert "1 without one, counted as 0" in result.notes[-1]


@pytest.mark.parametrize(
    ("code_blocks", "factor_blocks", "message"),
    [
        ([[0], [9]], [[0], [1]], r"code_blocks\[1\] names column 9 of codes, and there are columns 0 to 5"),
        ([[0], [0]], [[0], [1]], r"code_blocks\[1\] names column 0 of codes, twice"),
        ([[0], []], [[0], [1]], r"code_blocks\[1\] must be a list of columns"),
    ],
)
def test_blocks_that_cannot_be_are_refused(code_blocks: Any, factor_blocks: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        block_r2(CODES, FACTORS, code_blocks=code_blocks, factor_blocks=factor_blocks)
