"""Tables with given sums, against SciPy's and against every table that there is."""

import numpy as np
import pytest
from scipy.stats import hypergeom, random_table

from unbraid.metrics._shared import random_tables as module
from unbraid.metrics._shared.random_tables import random_tables


@pytest.mark.parametrize("rows_per_cell", [0, 1000])
def test_every_table_comes_as_often_as_its_probability_says(
    rows_per_cell: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cell by cell, and by shuffles."""
    monkeypatch.setattr(module, "ROWS_PER_CELL", rows_per_cell)
    rows, columns = np.array([5, 3, 4]), np.array([6, 2, 4])
    found = random_tables(rows, columns, 50_000, np.random.default_rng(0))
    seen, counts = np.unique(found, axis=0, return_counts=True)
    expected = 50_000 * random_table(rows, columns).pmf(seen)
    assert expected.sum() == pytest.approx(50_000), "no table is missing, and none does not belong here"
    # Chi-square with one degree less than there are tables: its mean and five deviations.
    assert ((counts - expected) ** 2 / expected).sum() < len(seen) - 1 + 5 * np.sqrt(2 * len(seen))


@pytest.mark.parametrize(("scale", "rows_per_cell"), [(1, 0), (1, 1000), (1_000, 0)])
def test_sums_hold_and_a_cell_is_hypergeometric(
    scale: int, rows_per_cell: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS_PER_CELL", rows_per_cell)
    rows, columns = scale * np.array([40, 0, 7, 20]), scale * np.array([30, 5, 32])
    found = random_tables(rows, columns, 4_000, np.random.default_rng(1))
    assert (found >= 0).all()
    assert (found.sum(axis=2) == rows).all()
    assert (found.sum(axis=1) == columns).all()
    for row, column in ((0, 0), (2, 1), (3, 2)):
        law = hypergeom(67 * scale, columns[column], rows[row])
        assert found[:, row, column].mean() == pytest.approx(law.mean(), abs=5 * law.std() / np.sqrt(4_000))
        assert found[:, row, column].std() == pytest.approx(law.std(), rel=0.08)


@pytest.mark.parametrize("rows_per_cell", [0, 1000])
def test_what_is_fixed_is_not_drawn(rows_per_cell: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_PER_CELL", rows_per_cell)
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(random_tables(np.array([9]), np.array([4, 5]), 2, rng), [[[4, 5]]] * 2)
    np.testing.assert_array_equal(random_tables(np.array([4, 5]), np.array([9]), 1, rng), [[[4], [5]]])
