"""UDR of wide codes: with every candidate it is UDR-S, with few a brute-force twin, however codes are held."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import rankdata

from unbraid import Representation
from unbraid.base.types import FloatArray
from unbraid.metrics import udr, wide_udr
from unbraid.metrics.udr_wide import Correlation


def models() -> list[FloatArray]:
    """Sparse, of both signs, with ties, a constant code, and one that is a few stored values."""
    rng = np.random.default_rng(0)
    one = np.maximum(rng.standard_normal((300, 12)) - 1.2, 0) - np.maximum(rng.standard_normal((300, 12)) - 2, 0)
    one[:, 5] = np.round(one[:, 5])
    other = one @ rng.standard_normal((12, 12)) * 0.3 + np.roll(one, 3, axis=1)
    third = -3e8 * np.roll(one, 2, axis=1)[:, :9]
    third[:, 4] = 0.3
    return [one, other, third]


def brute_force(one: FloatArray, other: FloatArray, top: int) -> float:
    alive = [codes[:, np.ptp(codes, axis=0) > 0] for codes in (one, other)]
    relations = np.abs(np.corrcoef(alive[0].T, alive[1].T)[: alive[0].shape[1], alive[0].shape[1] :])
    total = 0.0
    for lines in (relations, relations.T):
        for line in lines:
            kept = sorted(line)[-top:]
            total += kept[-1] ** 2 / sum(kept)
    return total / sum(relations.shape)


HOLDS: list[Any] = [np.asarray, sparse.csr_array, sparse.csc_matrix]


def test_models_that_say_nothing_score_0_and_are_named() -> None:
    found = wide_udr([models()[0], np.full((300, 4), 0.1), np.zeros((300, 2)), models()[0]])
    assert found.scores.tolist() == [0, 0, 0, 0], "medians over the three others, of which two say nothing"
    assert found.pairs[0, 3] > 0
    assert found.converged.all(), "there is no lasso"
    assert "constant codes alone, and so a score of 0: model 1, model 2" in found.notes


@pytest.mark.parametrize("hold", HOLDS)
@pytest.mark.parametrize("at_once", [1, 5, 512])
def test_with_every_candidate_it_is_udr_and_with_few_a_brute_force_twin(hold: Any, at_once: int) -> None:
    codes = models()
    kl = [(np.ptp(each, axis=0) > 0) * 1.0 for each in codes]
    found = wide_udr([hold(each) for each in codes], top=99, at_once=at_once)
    expected = udr(codes, similarity="spearman", kl=kl)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-9)
    np.testing.assert_array_equal(found.informative, [12, 12, 8])
    assert found.converged.all()
    ranks = [rankdata(each, axis=0) for each in codes]
    by: dict[Correlation, list[FloatArray]] = {"pearson": codes, "spearman": ranks}
    for correlation, seen in by.items():
        for top in (1, 3):
            few = wide_udr([hold(each) for each in codes], top=top, correlation=correlation, at_once=at_once)
            assert few.pairs[0, 2] == pytest.approx(brute_force(seen[0], seen[2], top), abs=1e-9)
            assert few.pairs[2, 0] == few.pairs[0, 2]


def test_what_is_alike_is_found_among_many() -> None:
    """By all correlations 600 codes of noise drown the twin of each code; by ten they do not."""
    rng = np.random.default_rng(1)
    drawn = (sparse.random(400, 600, density=0.05, random_state=rng) for _ in range(3))
    one, other, unlike = (sparse.csr_array(each) for each in drawn)
    twin = one[:, rng.permutation(600)]
    scores = wide_udr([one, twin, other, unlike], correlation="pearson", top=10)
    assert scores.pairs[0, 1] > 0.3 > 0.05 > scores.pairs[2, 3]
    assert wide_udr([one, twin], correlation="pearson", top=600).scores[0] < 0.1


@pytest.mark.parametrize("correlation", ["pearson", pytest.param("spearman", marks=pytest.mark.slow)])
def test_memory_grows_with_the_values_that_are_stored(correlation: Correlation) -> None:
    rng = np.random.default_rng(0)
    codes = sparse.coo_array(
        (rng.random(16_000), (rng.integers(0, 1_000, 16_000), rng.integers(0, 2_000, 16_000))), shape=(1_000, 2_000)
    ).tocsr()
    before = codes.copy()
    tracemalloc.start()
    found = wide_udr([codes, codes[:, ::-1]], correlation=correlation, top=1, at_once=64)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 << 20  # a byte for each pair of value and column would be four times as much
    assert found.scores[0] == pytest.approx(1.0)
    assert (codes != before).nnz == 0


@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_codes_far_from_zero_correlate_as_those_around_it(offset: float) -> None:
    codes = np.random.default_rng(0).standard_normal((200, 3))
    assert wide_udr([codes, offset + codes], correlation="pearson", top=1).scores == pytest.approx([1, 1], abs=1e-6)


@pytest.mark.parametrize("offset", [49.0, 1e6, 1e8])
def test_a_sparse_code_without_zeros_is_that_of_a_full_array(offset: float) -> None:
    """One that is constant, 49 times 1/49 not being 1, and one that varies far from 0."""
    rng = np.random.default_rng(0)
    one, other = rng.standard_normal((2, 200, 30)) * (rng.random((2, 200, 30)) < 0.05)
    one[:, 3], other[:, 5] = offset + rng.standard_normal((2, 200))
    one[:, 4] = offset
    full, stored = (
        wide_udr([held(one), held(other)], correlation="pearson", top=3) for held in (np.asarray, sparse.csr_array)
    )
    np.testing.assert_allclose(stored.scores, full.scores, atol=1e-6)
    assert stored.informative.tolist() == full.informative.tolist() == [29, 30]


def test_files_are_read_once_and_a_small_group_that_agrees_is_named(
    unbraid_cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of seven models are one in another order; the others are noise."""
    rng, files = np.random.default_rng(0), []
    codes = [rng.standard_normal((200, 6)) for _ in range(5)]
    noise = 1e-3 * rng.standard_normal((2, 200, 6))
    for place, each in enumerate([*codes, codes[0][:, ::-1] + noise[0], np.roll(codes[0], 2, axis=1) + noise[1]]):
        files.append(str(tmp_path / f"model{place}.npy"))
        np.save(files[-1], each)
    read: list[str] = []
    load = Representation.load
    monkeypatch.setattr(Representation, "load", lambda path, **options: read.append(str(path)) or load(path, **options))
    code, printed, error = unbraid_cli("rank", *files, "--top", "1", "--similarity", "pearson")
    assert code == 0, error
    assert read == files
    named = ", ".join([files[0], files[5]]) + f" and {files[6]} agree with each other (UDR 0.6 or more)"
    assert f"{named} but not with the other 4 models" in " ".join((printed + error).split())
