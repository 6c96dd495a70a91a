"""Seed consistency against a worked example, brute force and what random rows give."""

import sys
from itertools import permutations

import numpy as np
import pytest

from unbraid.metrics import seed_consistency

RNG = np.random.default_rng(0)


def test_brute_force_over_permutations_of_three_seeds() -> None:
    rows = [RNG.standard_normal((n, 3)) for n in (4, 5, 4)]
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in rows]
    result = seed_consistency(rows)
    for i in range(3):
        for j in range(i):
            small, large = sorted((unit[i], unit[j]), key=len)
            cosines = np.abs(small @ large.T)
            best = max(np.mean(cosines[np.arange(len(small)), order]) for order in
                       map(list, permutations(range(len(large)), len(small))))  # fmt: skip
            assert result.per_pair[i, j] == result.per_pair[j, i] == pytest.approx(best)
    assert result.score == pytest.approx(np.mean(result.per_pair[np.triu_indices(3, 1)]))


@pytest.mark.parametrize(("shape", "chance"), [((64, 16), 0.56), ((256, 32), 0.49), ((1024, 64), 0.40)])
def test_chance_of_random_rows(shape: tuple[int, int], chance: float) -> None:
    result = seed_consistency([RNG.standard_normal(shape), RNG.standard_normal(shape)])
    assert result.score == pytest.approx(chance, abs=0.04)
    assert result.chance == pytest.approx(chance, abs=0.04)


def test_order_sign_and_scale_of_rows_change_nothing() -> None:
    rows = RNG.standard_normal((6, 4))
    turned = rows[::-1] * np.array([[1e-9], [-2.0], [1.0], [-1e20], [3.0], [-1.0]])
    assert seed_consistency([rows, turned]).score == pytest.approx(1.0)
    rows[0] = 0.0
    assert seed_consistency([rows, rows], draws=0).score == pytest.approx(5 / 6)


def test_candidates_find_what_all_rows_find_or_say_how_far_they_are_off() -> None:
    one, noise = RNG.standard_normal((150, 12)), RNG.standard_normal((170, 12))
    found = np.concatenate([one[::-1] + 0.5 * RNG.standard_normal((150, 12)), noise[:20]])
    crowd = np.concatenate([np.ones((40, 12)) + 0.01 * RNG.standard_normal((40, 12)), one[:100]])
    for pair in ([one, found], [one, noise], [crowd, noise], [noise, crowd], [np.zeros((3, 12)), one]):
        exact = seed_consistency(pair, draws=0)
        assert exact.notes == ()
        assert seed_consistency(pair, draws=0, top=170).score == pytest.approx(exact.score, abs=1e-12)
        for top, missed in ((1, 0.06), (8, 0.03)):
            few = seed_consistency(pair, draws=0, top=top)
            assert exact.score - missed <= few.score <= exact.score + 1e-12
            off = float(few.notes[0].removesuffix(" above").split()[-1])
            assert exact.score <= few.score + off + 1e-4
    assert seed_consistency([one, one[::-1]], top=2).score == pytest.approx(1.0)


def test_dictionaries_too_wide_for_every_assignment_take_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = [RNG.standard_normal((60, 8)), RNG.standard_normal((50, 8))]
    exact = seed_consistency(pair)
    monkeypatch.setattr(sys.modules[seed_consistency.__module__], "EXACT_ROWS", 59)
    few = seed_consistency(pair)
    assert few.score == pytest.approx(exact.score, abs=0.01)
    assert few.chance == pytest.approx(exact.chance, abs=0.01)
    assert few.notes[0].startswith("by 32 candidates of each row: the best match is at most 0.")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([np.eye(2)], "at least two"),
        ([np.eye(2), np.eye(3)], "has 3 dimensions"),
        ([np.eye(2), [[np.nan, 1.0]]], r"dictionaries\[1\] must be finite"),
    ],
)
def test_what_cannot_be_is_refused(given: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        seed_consistency(given)


def test_chance_of_directions_in_space() -> None:
    """There |cos| of a random direction is uniform: 1/2 on average, 2/3 the larger of two, of all pairs 11/18."""
    pair = seed_consistency([RNG.standard_normal((1, 3)) for _ in range(2)], draws=1000)
    assert pair.chance == pytest.approx(1 / 2, abs=0.03)
    three = seed_consistency([RNG.standard_normal((n, 3)) for n in (1, 1, 2)], draws=1000)
    assert three.chance == pytest.approx(11 / 18, abs=0.03)
