"""Codes of many rows are read a few columns at a time: the same numbers, and little memory beside the codes."""

import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest

import unbraid.base.arrays
from unbraid import Representation, score
from unbraid.base.arrays import array_digest
from unbraid.metrics._shared import bins, information, inputs
from unbraid.metrics._shared.inputs import finite_matrix
from unbraid.metrics._solvers import trees

ROWS = 300
BY_COLUMNS = (
    "mig", "mig(binning='mass')", "med", "modularity", "factor_leakage", "jemmig", "mig_sup", "dcimig", "sap",
    "sap(variant='disentanglement_lib')", "snc", "snc(bins='paper')", "irs", "irs(factor_bins=None)", "dci_lasso",
    "mig_exact(method='quadrature')", "mcc",
    "mcc(correlation='spearman')", "mcc(fit='all')",
)  # fmt: skip
# What is held beside codes in single precision at most, in units of these; of mig .35 MB whatever the rows, for random
# tables.
BESIDE = {
    "mig": 0.9, "sap": 1.2, "sap(variant='disentanglement_lib')": 1.5, "snc": 1.5, "irs": 1.0, "dci_lasso": 2.8,
    "mcc": 0.9,
}  # fmt: skip
SLOW = {"med": 0.6, "modularity": 0.6, "factor_leakage": 0.6, "mig_exact(method='quadrature')": 1.0}


def tall(rng: np.random.Generator, dtype: str) -> Representation:
    """Codes of which some are constant, some alike, and some tell factors; an odd number."""
    factors = np.stack([rng.integers(0, size, ROWS) for size in (2, 3, 5)], axis=1)
    codes = rng.standard_normal((ROWS, 9)) + np.pad(factors, ((0, 0), (2, 4)))
    codes[:, 1], codes[:, 6], codes[:, 8] = 0.5, -codes[:, 3], codes[:, 3]
    kept = np.round(10 * codes) if dtype == "int16" else codes
    return Representation(
        kept.astype(dtype), factors, log_variances=np.full(codes.shape, -2.0, dtype="float32"),
        kinds=("ordinal", "categorical", "cyclic"),
    )  # fmt: skip


def numbers(held: Representation, names: tuple[str, ...]) -> dict[str, Any]:
    found = score(held, metrics=names).to_dict()["metrics"]
    return {name: {key: value for key, value in each.items() if key != "seconds"} for name, each in found.items()}


@pytest.mark.parametrize("dtype", [">f4", "int16"])
def test_scores_by_columns_are_those_of_all_codes_at_once(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = tall(np.random.default_rng(0), dtype)
    at_once = numbers(
        Representation(held.codes.astype(float), held.factors, held.log_variances, kinds=held.kinds), BY_COLUMNS
    )
    assert len(at_once) == len(BY_COLUMNS)
    monkeypatch.setattr(trees, "FIRST", 1)
    for columns in (2, 4):
        monkeypatch.setattr(inputs, "AT_ONCE", columns * ROWS)
        assert numbers(held, BY_COLUMNS) == at_once


def test_weighted_scores_by_columns_are_those_of_all_codes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    held, weights = (
        tall(np.random.default_rng(1), "float32"),
        np.random.default_rng(2).integers(0, 4, ROWS).astype(float),
    )
    held = Representation(held.codes, held.factors, kinds=("ordinal",) * 3, weights=weights)
    names = ("mig", "mig(binning='mass')", "jemmig", "sap")
    at_once = numbers(held, names)
    monkeypatch.setattr(inputs, "AT_ONCE", 2 * ROWS)
    assert numbers(held, names) == at_once


def beside(name: str, n_rows: int) -> float:
    """Memory that scoring takes at most, in units of the codes."""
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, size, n_rows) for size in (3, 4)], axis=1)
    codes = (rng.standard_normal((n_rows, 64)) + np.pad(factors, ((0, 0), (0, 62)))).astype(np.float32)
    held = Representation(codes, factors, log_variances=np.full(codes.shape, -2, dtype=np.float32))
    score(held.keep_rows(np.arange(500)), metrics=name)  # what is imported and compiled once
    tracemalloc.start()
    score(held, metrics=name)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / codes.nbytes


def test_memory_beside_tall_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "AT_ONCE", 2 * 4000)
    monkeypatch.setattr(bins, "CELLS", 2 * 4000)
    monkeypatch.setattr(sys.modules["unbraid.metrics.irs"], "NULL_ROWS", 200)
    monkeypatch.setattr(information, "FEW_SHUFFLED", 0)  # up to which some megabytes are taken, however few the rows
    found = {name: beside(name, 4000) for name in BESIDE}
    assert {name: each for name, each in found.items() if each > BESIDE[name]} == {}


def test_what_describes_a_wide_card_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unbraid.base.arrays, "CELLS", 1 << 14)
    codes = np.random.default_rng(0).standard_normal((200, 4000)).astype(np.float32)
    expected = array_digest(codes.astype(float))
    tracemalloc.start()
    assert array_digest(codes) == expected
    finite_matrix(codes, "codes", "n_codes")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * codes.nbytes


def test_codes_are_kept_as_precise_as_they_came() -> None:
    factors = np.tile([[0, 1], [1, 0], [1, 1]], (10, 1))
    for labels in (factors, {"a": factors[:, 0], "b": factors[:, 1]}):
        for dtype, kept in (("float32", "float32"), ("float64", "float64"), ("int8", "float64"), ("bool", "float64")):
            card = score(np.eye(30, 4).astype(dtype), labels, metrics="mig")
            assert card.representation.codes.dtype == kept


@pytest.mark.slow
def test_memory_beside_codes_of_very_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "AT_ONCE", 4 * 100_000)
    found = {name: beside(name, 100_000) for name in BESIDE | SLOW}
    assert {name: each for name, each in found.items() if each > (BESIDE | SLOW)[name] + 0.2} == {}
