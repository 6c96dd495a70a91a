"""Scores of wide codes are those of the plain metrics, whatever is in memory at once."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import unbraid._arrays
from tests.examples import entangled_codes, grid_factors
from unbraid.metrics import mcc, med, mig, modularity, sap, snc, wide_scores
from unbraid.types import FloatArray, Kind

FACTORS = grid_factors(5)
KINDS: dict[str, tuple[Kind, ...]] = {
    "ordinal": ("ordinal", "ordinal", "ordinal"),
    "mixed": ("categorical", "ordinal", "cyclic"),
}


def wide(seed: int = 0) -> FloatArray:
    """Sparse, with codes that tell something between many that do not, dead ones and twins."""
    rng = np.random.default_rng(seed)
    codes = np.maximum(rng.standard_normal((len(FACTORS), 60)) - 1.0, 0.0)
    codes[:, [7, 30, 44]] = np.maximum(entangled_codes(FACTORS), 0.0)
    codes[:, 12] = codes[:, 30] * (rng.random(len(FACTORS)) < 0.8)
    codes[:, 13], codes[:, 50] = 0.0, codes[:, 44]
    return codes


@pytest.mark.parametrize("at_once", [1, 7, 128])
@pytest.mark.parametrize("kinds", sorted(KINDS))
def test_the_numbers_are_those_of_the_plain_metrics(kinds: str, at_once: int) -> None:
    codes, own = wide(), KINDS[kinds]
    found = wide_scores(codes, FACTORS, kinds=own, seed=3, at_once=at_once)
    for name, function in (("mig", mig), ("modularity", modularity), ("med", med), ("snc", snc), ("mcc", mcc)):
        expected = function(codes, FACTORS, kinds=own, seed=3).score
        assert getattr(found, name) == pytest.approx(expected, abs=1e-9), name
    ordered = [factor for factor, kind in enumerate(own) if kind != "categorical"]
    expected = sap(codes, FACTORS[:, ordered], kinds=[own[factor] for factor in ordered]).score
    assert found.sap == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(found.mutual_information, mig(codes, FACTORS, kinds=own).mutual_information, atol=1e-12)
    assert len(found.leading) <= 3 * 9


@pytest.mark.parametrize("hold", [sparse.csr_matrix, sparse.csc_array, np.float32, np.asfortranarray])
def test_however_codes_are_held(hold: Any) -> None:
    codes = wide().astype(np.float32)
    plain, held = wide_scores(codes.astype(float), FACTORS), wide_scores(hold(codes), FACTORS)
    for name in ("mig", "modularity", "med", "snc", "mcc", "sap"):
        assert getattr(held, name) == getattr(plain, name)


def test_classes_alone_have_no_sap() -> None:
    assert wide_scores(wide(), FACTORS, kinds=("categorical",) * 3).sap is None


def test_an_explicit_nan_is_named() -> None:
    codes = wide()
    codes[4, 30] = np.nan
    with pytest.raises(ValueError, match="codes must be finite; row 4, column 30 is nan"):
        wide_scores(sparse.csr_matrix(codes), FACTORS, at_once=8)


def test_what_would_not_fit_is_refused_before_memory_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unbraid._arrays, "MOST_BYTES", 1 << 16)
    held: Any = sparse.csr_matrix(wide())
    with pytest.raises(ValueError, match="as a full array, more than .*wide_scores reads it by columns"):
        mig(held, FACTORS)
    assert wide_scores(held, FACTORS, at_once=10).mig > 0


@pytest.mark.parametrize("codes", [np.zeros((1, 3)), np.zeros(5), np.full((4, 2), "a")])
def test_what_is_no_matrix_is_refused(codes: Any) -> None:
    with pytest.raises(ValueError, match="codes must"):
        wide_scores(codes, FACTORS)
