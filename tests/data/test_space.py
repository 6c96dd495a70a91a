from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from unbraid.data import FactorSpace, FactorTable

SPACES = st.lists(st.integers(1, 6), min_size=1, max_size=5).map(
    lambda sizes: FactorSpace(tuple(f"f{k}" for k in range(len(sizes))), tuple(sizes), ("ordinal",) * len(sizes))
)


@given(SPACES)
def test_index_and_factors_undo_each_other_and_the_last_factor_is_fastest(space: FactorSpace) -> None:
    index = np.arange(len(space))
    assert (space.index(space.factors(index)) == index).all()
    strides = np.cumprod([1, *space.sizes[::-1]])[-2::-1]
    assert (space.grid() @ strides == index).all()
    assert len(np.unique(space.grid(), axis=0)) == len(space)


def test_a_grid_refuses_levels_outside_it() -> None:
    with pytest.raises(ValueError):
        FactorSpace(("a",), (3,), ("ordinal",)).index([[3]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((("a", "b"), (2,), ("ordinal",)), "one entry per factor"),
        ((("a", "a"), (2, 2), ("ordinal", "ordinal")), "differ"),
        ((("a",), (0,), ("ordinal",)), "size of factor 'a' must be a whole number, 1 or more"),
        ((("a",), (2,), ("round",)), "unknown kind 'round'"),
    ],
)
def test_a_space_says_what_is_wrong(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FactorSpace(*arguments)


@pytest.mark.parametrize("sizes", [(np.int64(2), np.int64(3)), [2, 3], np.array([2, 3])])
def test_a_space_of_numpy_numbers_or_lists_is_that_of_plain_tuples(sizes: Any) -> None:
    plain = FactorSpace(("a", "b"), (2, 3), ("ordinal", "cyclic"), ((0, 1), (0.5, 1.0, 1.5)))
    given = FactorSpace(["a", "b"], sizes, ["ordinal", "cyclic"], [np.arange(2), np.array([0.5, 1, 1.5])])
    assert (given, hash(given), repr(given)) == (plain, hash(plain), repr(plain))
    rows = np.array([[0, 0], [1, 2]])
    table = FactorTable(["a", "b"], ["ordinal", "cyclic"], rows, around=sizes, values=[np.arange(2), np.arange(3)])
    assert (table.kinds, repr(table.around), repr(table.values)) == (plain.kinds, "(2, 3)", "((0, 1), (0, 1, 2))")


def test_columns_are_found_by_name() -> None:
    space = FactorSpace(("shape", "hue"), (2, 3), ("categorical", "cyclic"))
    assert [space.column(name) for name in ("shape", "hue")] == [0, 1]
    with pytest.raises(ValueError, match="no factor 'hew'; did you mean 'hue'"):
        space.column("hew")


def test_a_table_answers_like_a_grid() -> None:
    table = FactorTable(("shape", "angle"), ("categorical", "continuous"), np.array([[2, 0.5], [0, 6.1], [1, -1.0]]))
    assert len(table) == 3
    assert table.sizes == (3, 0)
    assert table.column("angle") == 1
    assert table.factors([2, 0]).tolist() == [[1, -1.0], [2, 0.5]]


def test_a_table_without_rows_still_has_names_and_kinds() -> None:
    table = FactorTable(("a", "b"), ("ordinal", "continuous"), np.empty((0, 2)))
    assert (len(table), table.sizes) == (0, (0, 0))
