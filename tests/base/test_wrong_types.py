"""What is no array is refused by its type at once, in one line that says what to write."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from unbraid import Representation, score
from unbraid.metrics import mig

FACTORS = np.tile([[0, 1], [1, 0], [1, 1]], (10, 1))


class Rows:
    """Has rows, as a Dataset and AnnData have them; nobody may walk through them."""

    def __len__(self) -> int:
        return 10**9

    def __getitem__(self, place: Any) -> Any:
        raise AssertionError("walked through")

    def __iter__(self) -> Any:
        raise AssertionError("walked through")


class AnnData(Rows):
    X, obs, shape = np.eye(30, 4), SimpleNamespace(), (30, 4)


class Converted:
    """What says itself how it becomes an array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.eye(30, 4)


WRONG = {
    "AnnData": (AnnData(), "unbraid.integrations.anndata.score"),
    "Rows": (Rows(), "got tests.Rows"),
    "a list of them": ([Rows(), Rows()], "Rows"),
    "a nested list of them": ([[1.0, Rows()]], "Rows"),
    "generator": ((row for row in np.eye(3)), "got generator"),
    "dict": ({"codes": np.eye(3)}, "got dict"),
    "set": ({1, 2}, "got set"),
    "NoneType": (None, "got NoneType"),
    "str": ("nowhere.npz", "unbraid.Representation.load reads a file"),
    "PosixPath": (Path("nowhere.npz"), "unbraid.Representation.load reads a file"),
    "function": (lambda images: images, "score_encoder"),
    "the class": (np.ndarray, "got the class numpy.ndarray"),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_codes_of_a_wrong_type_are_refused_at_once(name: str) -> None:
    codes, said = WRONG[name]
    for take in (lambda: score(codes, FACTORS), lambda: mig(codes, FACTORS), lambda: Representation.of(codes, FACTORS)):
        with pytest.raises(ValueError, match=said) as error:
            take()
        assert "\n" not in str(error.value)


def test_what_becomes_an_array_is_taken() -> None:
    held: Any
    for held in (
        Converted(),
        [np.eye(4)[0]] * 30,
        np.eye(30, 4).data,
        [range(4)] * 30,
        [[True, 2, 3.5, 0]] * 30,
    ):
        assert Representation.of(held, FACTORS).codes.shape == (30, 4)
