"""Of few rows many matchings of codes and factors are as good: which is taken must not hang on columns or last bits."""

from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest

from unbraid.base.types import FloatArray, IntArray, Kind
from unbraid.metrics import mcc, snc
from unbraid.metrics._shared.alignment import align
from unbraid.metrics._shared.inputs import split_rows

Columns = tuple[FloatArray, IntArray]
ORDER = [2, 0, 3, 1]


def few_rows(seed: int, n_rows: int) -> Columns:
    """Four codes of three binary factors; of every other seed codes are whole numbers, many of them equal."""
    rng = np.random.default_rng(seed)
    factors = np.zeros((n_rows, 3), dtype=int)
    while (factors == factors[0]).all(axis=0).any():
        factors = rng.integers(0, 2, (n_rows, 3))
    codes = factors[:, [0, 1, 2, 0]] + 0.4 * rng.standard_normal((n_rows, 4))
    return np.round(codes) if seed % 2 else codes, factors


def last_bits(codes: FloatArray) -> FloatArray:
    return codes * (1 + np.random.default_rng(0).choice([-1, 0, 1], codes.shape) * np.finfo(float).eps)


CHANGES: dict[str, Callable[[FloatArray, IntArray], Columns]] = {
    "codes in another order": lambda codes, factors: (codes[:, ORDER], factors),
    "factors in another order": lambda codes, factors: (codes, factors[:, [2, 0, 1]]),
    "last bits": lambda codes, factors: (last_bits(codes), factors),
    "mirrored": lambda codes, factors: (codes * [-1, 1, -1, -1], factors),
    "other units": lambda codes, factors: (codes * [3, 0.1, 7, 1e9], factors),
    "moved": lambda codes, factors: (codes + [3, 0.1, 7, -1], factors),
}
SCORES: dict[str, Callable[[FloatArray, IntArray, Kind], float]] = {
    "mcc": lambda codes, factors, kind: mcc(codes, factors, kinds=[kind] * 3).score,
    "mcc by ranks": lambda codes, factors, kind: mcc(codes, factors, kinds=[kind] * 3, correlation="spearman").score,
    "snc": lambda codes, factors, kind: snc(codes, factors, kinds=[kind] * 3).score,
}


@pytest.mark.parametrize(
    ("score", "change"),
    [  # ranks read the last bit of values, on purpose: they are blind to every monotone change
        (score, change) for score in SCORES for change in CHANGES if (score, change) != ("mcc by ranks", "last bits")
    ],
)
@pytest.mark.parametrize("kind", ["ordinal", "categorical"])
def test_what_decides_a_tie_is_neither_a_column_nor_a_last_bit(score: str, change: str, kind: Kind) -> None:
    for seed in range(8):
        codes, factors = few_rows(seed, 5 + seed % 4)
        before, after = (SCORES[score](*each, kind) for each in ((codes, factors), CHANGES[change](codes, factors)))
        assert after == pytest.approx(before, abs=1e-7), seed


@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_the_matching_taken_is_one_of_the_best_and_others_would_score_otherwise(seed: int) -> None:
    codes, factors = few_rows(seed, 5)
    halves = split_rows(5, (0.5, 0.5), 0)

    def correlations(rows: IntArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(np.corrcoef(codes[rows].T, factors[rows].T)[:4, 4:])

    by_half = []
    for known, judged in (halves, halves[::-1]):
        r, other = correlations(known), correlations(judged)
        totals = {own: sum(abs(r[code, k]) for k, code in enumerate(own)) for own in permutations(range(4), 3)}
        best = [own for own, total in totals.items() if total > max(totals.values()) - 1e-9]
        signs = np.sign(np.round(r, 9))
        by_half.append({round(sum(signs[c, k] * other[c, k] for k, c in enumerate(own)) / 3, 9) for own in best})
    possible = [(one + two) / 2 for one in by_half[0] for two in by_half[1]]
    assert len(possible) > 1
    assert min(abs(mcc(codes, factors).score - each) for each in possible) < 1e-8


@pytest.mark.parametrize("codes", [(0, 1), (1, 0)])
@pytest.mark.parametrize("factors", [(0, 1), (1, 0)])
def test_sums_as_large_as_each_other_go_by_the_order_given(codes: tuple[int, ...], factors: tuple[int, ...]) -> None:
    """0.1 + 0.2 and 0.3 + 0 are the same number, but not the same float."""
    worth, order = np.array([[0.1, 0.3], [0.0, 0.2]]), (np.argsort(codes), np.argsort(factors))
    found = align(worth[np.ix_(codes, factors)], order)
    assert np.array(codes)[found[np.argsort(factors)]].tolist() == align(worth).tolist()
