"""OMES against worked examples and all pairs one by one."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from tests.examples import entangled_codes, grid_factors, perfect_codes
from unbraid.base.types import FloatArray
from unbraid.metrics import NotDefined, omes, omes_from_association

FACTORS = grid_factors(1)


def by_hand(matrix: FloatArray, alpha: float, pooling: str) -> float:
    """Loop by loop, as the definition reads."""
    n_codes, n_factors, scores = *matrix.shape, []
    for k in range(n_factors):
        parts = []
        for i in range(n_codes):
            overlap = 1 - np.mean([abs((k == other) - matrix[i, other]) for other in range(n_factors)])
            multiple = 1 - np.mean([abs((i == other) - matrix[other, k]) for other in range(n_codes)])
            parts.append((matrix[i, k], alpha * overlap + (1 - alpha) * multiple))
        if pooling == "max":
            best = [
                max(s * (1 - np.mean(np.abs(np.eye(n_factors)[k] - matrix[i]))) for i, (s, _) in enumerate(parts)),
                max(s * (1 - np.mean(np.abs(np.eye(n_codes)[i] - matrix[:, k]))) for i, (s, _) in enumerate(parts)),
            ]
            scores.append(alpha * best[0] + (1 - alpha) * best[1])
        else:
            scores.append(sum(s * s * x for s, x in parts) / sum(s for s, _ in parts))
    return float(np.mean(scores))


def test_worked_examples() -> None:
    assert omes_from_association(np.eye(4)) == pytest.approx(1.0)
    assert omes_from_association([[1, 1], [0, 0]]) == pytest.approx(0.75)
    assert omes_from_association(np.zeros((3, 2))) == 0.0


@pytest.mark.parametrize("pooling", ["avg", "max"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_the_definition_in_plain_loops(alpha: float, pooling: Any) -> None:
    matrix = np.random.default_rng(0).random((5, 3))
    assert omes_from_association(matrix, alpha=alpha, pooling=pooling) == pytest.approx(by_hand(matrix, alpha, pooling))


def test_associations_are_correlations_over_all_pairs() -> None:
    rows = np.random.default_rng(1).permutation(96 * 2)[:150]
    factors = np.tile(FACTORS, (2, 1))[rows]  # some cells twice, some not at all
    codes = entangled_codes(factors) * [1.0, -3.0, 0.5]
    result = omes(codes, factors)
    for k in range(3):
        pairs = [
            (a, b) for a, b in permutations(range(150), 2) if ((factors[a] != factors[b]) == (np.arange(3) == k)).all()
        ]
        assert result.n_pairs[k] == len(pairs) / 2
        first, second = np.array(pairs).T
        expected = [1 - abs(np.corrcoef(z[first], z[second])[0, 1]) for z in codes.T]
        np.testing.assert_allclose(result.association[:, k], expected, atol=1e-10)
    assert result.score == pytest.approx(omes_from_association(result.association))
    assert result.score == pytest.approx((result.overlap + result.multiple_encoding) / 2)


def test_idle_codes_cost() -> None:
    perfect = omes(perfect_codes(FACTORS), FACTORS).score
    idle = np.column_stack([perfect_codes(FACTORS), np.random.default_rng(0).standard_normal((96, 3))])
    assert omes(idle, FACTORS).score < 0.8 * perfect
    dead = omes(np.column_stack([perfect_codes(FACTORS), 0.01 * idle[:, 3:]]), FACTORS)
    assert dead.score == pytest.approx(perfect)
    assert "not counted: 3 codes with a standard deviation below .05" in dead.notes[-1]


def test_levels_never_meet_themselves() -> None:
    """Two different ones of n levels correlate by -1 / (n - 1), which bounds what a perfect code reaches."""
    result = omes(perfect_codes(FACTORS)[:, ::-1], FACTORS)
    np.testing.assert_allclose(np.diag(result.association), [1 / 2, 2 / 3, 6 / 7])
    np.testing.assert_allclose(result.association - np.diag(np.diag(result.association)), 0.0, atol=1e-12)


def test_factors_without_pairs_do_not_count() -> None:
    tied = np.column_stack([FACTORS[:, 0], FACTORS[:, 1], FACTORS[:, 1]])
    result = omes(perfect_codes(FACTORS), tied)
    assert result.n_pairs.tolist()[1:] == [0.0, 0.0]
    assert [note.split(":")[0] for note in result.notes] == ["factor 1", "factor 2"]
    assert result.score == pytest.approx(omes_from_association(result.association[:, :1]))
    with pytest.raises(NotDefined, match="pairs of rows that differ in one factor only"):
        omes(FACTORS, FACTORS[:, [1, 1]])


@pytest.mark.parametrize(("arguments", "message"), [({"alpha": 1.5}, "alpha must be"), ({"pooling": "sum"}, "pooling")])
def test_what_cannot_be_is_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        omes(FACTORS, FACTORS, **arguments)
    with pytest.raises(ValueError, match=message):
        omes_from_association(np.eye(2), **arguments)
    with pytest.raises(ValueError, match="from 0 to 1"):
        omes_from_association([[2.0]])
