"""MIG against a worked example, a twin in plain loops, and the faults of implementations in use."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.examples import perfect_codes
from unbraid.base.types import FloatArray, IntArray
from unbraid.data import FactorSpace
from unbraid.metrics import dcimig, jemmig, mig, mig_sup


def mig_by_loops(codes: FloatArray, factors: IntArray, bins: int) -> float:
    """Eq. 4 in bits, from numpy.histogram alone."""
    gaps = []
    for factor in factors.T:
        shares = {level: np.mean(factor == level) for level in set(factor.tolist())}
        entropy = -sum(p * np.log2(p) for p in shares.values())
        known = []
        for code in codes.T:
            edges = np.histogram_bin_edges(code, bins)
            marginal = np.histogram(code, edges)[0] / len(code)
            information = 0.0
            for level, share in shares.items():
                joint = np.histogram(code[factor == level], edges)[0] / len(code)
                for p, q in zip(joint, marginal, strict=True):
                    if p > 0:
                        information += p * np.log2(p / (q * share))
            known.append(information)
        best, runner_up = sorted(known)[::-1][:2]
        gaps.append((best - runner_up) / entropy)
    return float(np.mean(gaps))


def two_models() -> tuple[FloatArray, FloatArray, IntArray]:
    """Codes of models M1 and M2 of the SNC/NK paper's first table, and their two balanced binary factors.

    z1 agrees with each factor three times out of four. z2 is noise in M1; in M2 it agrees with the second factor
    seven times out of ten.
    """
    rows = [(0, 0, 0), (0, 0, 0), (1, 1, 1), (1, 1, 1), (0, 0, 1), (1, 0, 1), (0, 1, 0), (1, 1, 0)]
    first, second = [], []
    for z1, _, g2 in rows:
        for turn in range(10):
            first.append((z1, turn % 2))
            second.append((z1, g2 if turn < 7 else 1 - g2))
    factors = np.repeat([row[1:] for row in rows], 10, axis=0)
    return np.array(first, dtype=float), np.array(second, dtype=float), factors


def test_worked_example() -> None:
    """1 - h(3/4) = .1887 bits and 1 - h(7/10) = .1187 bits: gaps .1887 and .1887, then .1887 and .0700."""
    m1, m2, factors = two_models()
    assert 100 * mig(m1, factors, bins=2).score == pytest.approx(18.87, abs=0.005)
    assert 100 * mig(m2, factors, bins=2).per_factor == pytest.approx([18.87, 7.00], abs=0.01)
    assert 100 * mig(m2, factors, bins=2).score == pytest.approx(12.93, abs=0.01)


@pytest.mark.parametrize("bins", [5, 20])
@pytest.mark.parametrize("seed", [0, 1])
def test_twin_in_plain_loops(bins: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    factors = np.stack([rng.integers(0, size, 300) for size in (2, 5)], axis=1)
    mixing = rng.standard_normal((2, 4))
    codes = factors @ mixing + rng.standard_normal((300, 4))
    assert mig(codes, factors, bins=bins).score == pytest.approx(mig_by_loops(codes, factors, bins), abs=1e-12)


def test_the_gap_is_divided_by_the_entropy_of_the_factor_not_of_the_code() -> None:
    """A code that tells the 4 values of a binary factor's refinement apart knows the factor fully: 1, not 1/2."""
    factors = np.tile([[0], [0], [1], [1]], (5, 1))
    codes = np.tile([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], (5, 1))
    assert mig(codes, factors).score == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("levels", "ceiling"), [(8, 1.0), (20, 1.0), (32, 0.85), (40, 0.8121)])
def test_the_ceiling_is_what_a_perfect_code_reaches(levels: int, ceiling: float) -> None:
    """32 levels in 20 bins: 12 bins hold two levels each, so that 24/32 of the rows lose 1 of 5 bits: .85.

    40 levels share 20 bins: log 20 of log 40 nats.
    """
    factors = np.tile(np.arange(levels), 10)[:, None]
    result = mig(factors.astype(float), factors)
    assert result.ceiling == pytest.approx(ceiling, abs=1e-4)
    assert result.score == pytest.approx(result.ceiling, abs=1e-12)


def test_the_ceiling_of_dependent_factors_is_what_they_score_themselves() -> None:
    """b is a, but for a tenth of the rows: each tells nearly all of the other. c stands apart, of another entropy."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 4000)
    second = np.where(rng.random(4000) < 0.1, 1 - first, first)
    factors = np.column_stack([first, second, rng.choice(7, 4000, p=[0.7, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05])])
    result = mig(perfect_codes(factors), factors)
    flipped = np.mean(first != second)
    told = 1 + flipped * np.log2(flipped) + (1 - flipped) * np.log2(1 - flipped)
    assert result.per_factor == pytest.approx([1 - told, 1 - told, 1.0], abs=0.01)
    assert result.ceiling == pytest.approx(result.score, abs=1e-12)
    assert result.ceiling != pytest.approx(sum(result.per_factor * result.factor_entropy) / sum(result.factor_entropy))
    (note,) = [note for note in result.notes if "depend on each other" in note]
    assert note.startswith(f"factors 0 and 1 depend on each other (normalised mutual information {told:.2f}")
    assert "; so do" not in note


def test_dependence_is_not_read_from_more_combinations_than_rows() -> None:
    for size, said in ((30, True), (32, False)):
        levels = np.random.default_rng(0).permutation(np.arange(1000) % size)
        result = mig(perfect_codes(levels[:, None]), np.column_stack([levels, levels]), kinds=("ordinal", "ordinal"))
        assert any("depend on each other" in note for note in result.notes) == said


def test_a_code_of_what_one_factor_has_beyond_the_other_scores_above_the_ceiling_and_it_is_said() -> None:
    """b is a, flipped in a tenth of the rows. The flips alone, as the second code, tell of neither factor alone.

    So a has nothing lost to a second code, and b what a tells of it: 1 and 1 - H(.1), where as codes both factors have
    1 - (1 - H(.1)) = H(.1).
    """
    first, flips = np.repeat([0, 1], 1000), np.tile(np.arange(1000) < 100, 2).astype(int)
    factors = np.column_stack([first, first ^ flips])
    lost = -0.1 * np.log2(0.1) - 0.9 * np.log2(0.9)
    result = mig(np.column_stack([first, flips]).astype(float), factors)
    assert result.ceiling == pytest.approx(lost)
    assert result.score == pytest.approx((1 + 1 - lost) / 2)
    assert len([note for note in result.notes if "above its ceiling" in note]) == 1
    assert not [note for note in mig(factors, factors).notes if "above its ceiling" in note]


def test_the_mean_ceiling_weighs_factors_alike() -> None:
    """2 levels in 20 bins lose nothing, 40 lose .1879: mean .906, where a ratio of sums would give .842."""
    factors = np.tile(FactorSpace(("a", "b"), (2, 40), ("ordinal", "ordinal")).grid(), (5, 1))
    assert mig(factors, factors).ceiling == pytest.approx((1 + 0.8121) / 2, abs=1e-4)


def test_rows_fewer_than_cells_cannot_be_read() -> None:
    rng = np.random.default_rng(0)
    codes, factors = rng.standard_normal((150, 3)), rng.integers(0, 10, (150, 1))
    assert "cannot be read at this size: 150 rows for tables of 18 bins and 10 levels" in mig(codes, factors).notes
    many = mig(np.tile(codes, (2, 1)), np.tile(factors, (2, 1)))
    assert not any("cannot be read" in note for note in many.notes)


def test_dependence_is_what_is_left_when_luck_has_had_its_part() -> None:
    """Two factors of ten levels on few rows: luck tells 81 / (2 n) nats, and a tenth of the rows are equal besides."""
    shares = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        one, other = rng.integers(0, 10, (2, 600))
        other = np.where(rng.random(600) < 0.35, one, other)
        (note,) = [note for note in mig(np.c_[one, other], np.c_[one, other]).notes if "depend on each other" in note]
        shares.append(float(note.split("information ")[1][:4]))
    same, differ = 0.35 + 0.065, 0.065
    told = same * np.log(10 * same) + 9 * differ * np.log(10 * differ)
    assert np.mean(shares) == pytest.approx(told / np.log(10), abs=0.012)


@pytest.mark.parametrize("metric", [mig, jemmig, dcimig, mig_sup])
def test_no_rounding_lifts_perfect_codes_above_1(metric: Callable[..., Any]) -> None:
    """The information of a code that is the factor and the entropy of the factor are sums in another order."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        levels = rng.integers(0, rng.integers(2, 6), (int(rng.integers(6, 200)), 1))
        if np.ptp(levels):
            result = metric(levels, levels)
            assert result.score <= 1.0
            assert getattr(result, "per_factor", np.ones(1)).max() <= 1.0
