import numpy as np
import pytest

from unbraid.data import FactorSpace, one_object, turned, whole_objects

SPACE = FactorSpace(("hue", "shape", "size", "turn"), (4, 3, 5, 6), ("cyclic", "categorical", "ordinal", "cyclic"))


def turns_by_object(index: np.ndarray) -> dict[tuple[int, int], set[tuple[int, int]]]:
    found: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for hue, shape, size, turn in SPACE.factors(index).tolist():
        found.setdefault((shape, size), set()).add((hue, turn))
    return found


def test_objects_are_turned_all_around_and_stay_what_they_are() -> None:
    index = turned(SPACE, np.array([[3, 2, 0, 5], [0, 1, 4, 0]]))
    assert len(index) == 2 * 4 * 6
    found = turns_by_object(index)
    assert list(found) == [(2, 0), (1, 4)]
    assert found[2, 0] == found[1, 4] == {(hue, turn) for hue in range(4) for turn in range(6)}


@pytest.mark.parametrize(("room", "n_objects"), [(360, 15), (359, 14), (240, 10), (263, 10)])
def test_there_are_as_many_objects_as_there_is_room_for(room: int, n_objects: int) -> None:
    index = whole_objects(SPACE, room)
    assert (np.diff(index) > 0).all()
    found = turns_by_object(index)
    assert len(found) == n_objects
    assert all(len(turns) == 24 for turns in found.values())


def test_objects_are_drawn_by_the_seed() -> None:
    draws = [frozenset(turns_by_object(whole_objects(SPACE, 120, seed=seed))) for seed in range(30)]
    assert turns_by_object(whole_objects(SPACE, 120, seed=3)).keys() == draws[3]
    assert len(set(draws)) > 25
    assert len(frozenset().union(*draws)) == 15  # none is left out for ever


def test_however_little_room_every_factor_varies() -> None:
    for seed in range(30):
        levels = np.array(list(turns_by_object(whole_objects(SPACE, 1, seed=seed))))
        assert all(len(set(column)) > 1 for column in levels.T)
        assert (
            len(levels) < 8
        )  # and not many more than it takes: of 15 objects 5 share the shape of the first, 3 its size


def test_where_all_factors_are_cyclic_there_is_one_object() -> None:
    torus = FactorSpace(("y", "x"), (5, 7), ("cyclic", "cyclic"))
    assert whole_objects(torus, 10).tolist() == one_object(torus).tolist() == list(range(35))


def test_one_object_is_the_last_shape_in_the_middle() -> None:
    levels = SPACE.factors(one_object(SPACE))
    assert len(levels) == 24
    assert (levels[:, 1:3] == [2, 2]).all()
