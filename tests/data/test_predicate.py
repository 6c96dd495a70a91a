"""Conditions written as text select the rows that the same condition in NumPy selects, and evaluate nothing else."""

import numpy as np
import pytest

from unbraid.data.predicate import predicate

NAMES = ("elevation", "red", "green", "blue")
FACTORS = np.random.default_rng(0).random((500, 4))
ELEVATION, RED, GREEN, BLUE = FACTORS.T


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("elevation > 0.5", ELEVATION > 0.5),
        ("elevation > 0.5 and red > green + .15 and red > blue + .15",
         (ELEVATION > 0.5) & (RED > GREEN + 0.15) & (RED > BLUE + 0.15)),
        ("not (red < 0.2 or blue >= 0.9)", ~((RED < 0.2) | (BLUE >= 0.9))),
        ("0.2 < red <= 0.7", (RED > 0.2) & (RED <= 0.7)),
        ("red * 2 - green / 4 > -blue % 1", RED * 2 - GREEN / 4 > (-BLUE) % 1),
        ("1 < 2", np.ones(500, dtype=bool)),
    ],
)  # fmt: skip
def test_conditions_select_their_rows(text: str, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(predicate(text, NAMES)(FACTORS), expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint64, bool])
def test_conditions_on_small_whole_numbers_do_not_wrap_around(dtype: type) -> None:
    levels = np.array([[0], [1]], dtype=dtype)
    assert predicate("x - 1 >= 0", ["x"])(levels).tolist() == [False, True]
    assert predicate("x * 200 > 150", ["x"])(levels).tolist() == [False, True]
    with pytest.raises(ValueError, match="has no value in some rows"):
        predicate("5 % x == 0", ["x"])(levels)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hue > 1", "names no factor 'hue'; there are elevation, red"),
        ("red >", "cannot be read"),
        ("red + green", "neither a comparison"),
        ("__import__('os').system('true')", "neither a comparison"),
        ("red.real > 0", "neither a comparison"),
        ("red > True", "neither a comparison"),
        ("(red > 0) + 1 > 0", "neither a comparison"),
    ],
)
def test_anything_else_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        predicate(text, NAMES)


def test_a_condition_without_a_value_in_some_row_is_refused_there() -> None:
    rows = np.array([[0.0, 1.0], [2.0, 3.0]])
    # Python's numbers are found out at once; what depends on the rows, where a row has no value.
    with pytest.raises(ValueError, match=r"'x > 1 / 0' has no value"):
        predicate("x > 1 / 0", ["x", "y"])
    for text in ("y % 0 == 0", "y % x == 0", "x / x == 1"):
        with pytest.raises(ValueError, match=f"{text!r} has no value in some rows"):
            predicate(text, ["x", "y"])(rows)
    assert predicate("y % x == 1", ["x", "y"])(rows[1:]).tolist() == [True]
    assert predicate("1 / x > 1", ["x", "y"])(rows).tolist() == [True, False]  # infinite is more
    assert predicate("y % (x - 1) == 0", ["x", "y"])(rows).tolist() == [True, True]


@pytest.mark.parametrize("text", [" size > 1", "\tsize > 1 ", "size > 1\n"])
def test_space_around_a_condition_is_no_matter(text: str) -> None:
    assert predicate(text, ["size"])(np.array([[1.0], [2.0]])).tolist() == [False, True]


def test_a_name_is_found_however_python_spells_it() -> None:
    assert predicate("\ufb01n > 1 and \u00b5 > 0", ["\ufb01n", "\u00b5"])(np.array([[2.0, 1.0]])).tolist() == [True]
