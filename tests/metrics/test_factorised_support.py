"""Factorised support against worked examples and SciPy's distances of all recombined points."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from unbraid.base.types import FloatArray
from unbraid.metrics import factorised_support
from unbraid.metrics.factorised_support import _farthest


def by_hand(batch: FloatArray) -> float:
    total = 0.0
    for i in range(batch.shape[1]):
        for j in range(i):
            rows = batch[:, [i, j]]
            recombined = np.stack(np.meshgrid(rows[:, 0], rows[:, 1]), axis=-1).reshape(-1, 2)
            total += cdist(recombined, rows, "sqeuclidean").min(axis=1).max()
    return total


@pytest.mark.parametrize("ties", [False, True])
def test_all_recombined_points_by_all_distances(ties: bool) -> None:
    rng = np.random.default_rng(0)
    codes = rng.standard_normal((100, 4)) @ rng.standard_normal((4, 4)) * [1.0, 3.0, 0.5, 1.0]
    codes = np.rint(codes) if ties else codes
    rows = np.random.default_rng(3).permutation(100)
    scaled = (codes - codes.mean(axis=0)) / codes.std(axis=0)
    for batch_size, values, standardise in ((40, codes, False), (40, scaled, True), (100, codes, False)):
        parts = [values[rows[start : start + batch_size]] for start in range(0, 100 - batch_size + 1, batch_size)]
        result = factorised_support(codes, batch_size=batch_size, standardise=standardise, seed=3)
        assert result.score == pytest.approx(np.mean([by_hand(part) for part in parts]), abs=1e-10)
        assert result.n_batches == len(parts)
        assert result.mean_pair == pytest.approx(result.score / 6)
        assert result.per_pair.sum() / 2 == pytest.approx(result.score)


@pytest.mark.parametrize(("batch_size", "sizes"), [(40, [40, 40, 20]), (50, [50, 50]), (99, [99, 1]), (200, [100])])
def test_batches_are_the_next_rows_with_those_left_over(batch_size: int, sizes: list[int]) -> None:
    codes = np.random.default_rng(0).standard_normal((100, 3)).cumsum(axis=0)
    parts = np.split(codes, np.cumsum(sizes)[:-1])
    result = factorised_support(codes, batch_size=batch_size, standardise=False, order="rows")
    assert result.score == pytest.approx(np.mean([by_hand(part) for part in parts]))
    assert result.n_batches == len(sizes)


def test_dependence_scores_worse_than_independence() -> None:
    rng = np.random.default_rng(0)
    codes = rng.uniform(size=(2_000, 2))
    turned = codes @ [[1, 1], [1, -1]]
    assert factorised_support(turned).score > 2 * factorised_support(codes).score


def test_the_search_never_reads_beyond_a_batch() -> None:
    """In plain Python, in which that fails; compiled, it would read what lies next to it."""
    rows = np.random.default_rng(0).standard_normal((6, 2))
    one, other = np.ascontiguousarray(rows.T)[:, None]
    assert _farthest.py_func(one, other, one.argsort(axis=1)) == pytest.approx(by_hand(rows))


def test_some_pairs_stand_for_all() -> None:
    codes = np.random.default_rng(0).standard_normal((200, 6))
    every = factorised_support(codes, batch_size=50)
    some = factorised_support(codes, batch_size=50, n_pairs=5)
    assert np.count_nonzero(some.per_pair) == 10
    drawn = some.per_pair > 0
    np.testing.assert_allclose(some.per_pair[drawn], every.per_pair[drawn])
    assert some.score == pytest.approx(15 * every.per_pair[drawn].mean())


def test_constant_codes_and_a_single_one_score_nothing() -> None:
    codes = np.random.default_rng(0).standard_normal((100, 2))
    plain = factorised_support(codes).score
    assert factorised_support(np.column_stack([codes, np.full(100, 0.1)])).score == pytest.approx(plain)
    alone = factorised_support(codes[:, :1])
    assert alone.score == 0.0
    assert "one code" in alone.notes[0]


def test_standardised_distances_have_no_unit() -> None:
    codes = np.random.default_rng(0).standard_normal((60, 3))
    assert factorised_support(1e20 * codes).score == pytest.approx(factorised_support(codes).score)
