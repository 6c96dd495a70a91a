"""Codes whose answer is known, and figures printed in the papers."""

from collections.abc import Iterator

import numpy as np
import pytest

from unbraid.base.types import ArrayLike, FloatArray
from unbraid.data import FactorSpace
from unbraid.datasets import ArrayDataset, SubsetDataset, leave_out
from unbraid.metrics import snc
from unbraid.studies.holdout.evaluation import (
    HoldoutResult,
    evaluate_heads,
    evaluate_regressors,
    guessing,
    head_accuracies,
    summary,
)
from unbraid.studies.holdout.splits import compositional_holdouts, zero_shot_holdout, zero_shot_parts

# Every image is one row of pixels: its levels. An encoder can read them, and a test can see which images it was given.
SPACE = FactorSpace(("shape", "size", "view"), (3, 4, 40), ("categorical", "ordinal", "ordinal"))
PIXELS = ArrayDataset(SPACE.grid().astype(np.uint8).reshape(-1, 1, 3, 1), SPACE)
NAMES = ["shape", "size"]
TURN = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]


def levels(images: ArrayLike) -> FloatArray:
    return np.asarray(images, dtype=np.float64).reshape(-1, 3)


def perfect(images: ArrayLike) -> FloatArray:
    """The two factors, each in a code for each of its levels."""
    shape, size, _ = levels(images).astype(int).T
    return np.hstack([np.eye(3)[shape], np.eye(4)[size]])


def memorising(images: ArrayLike) -> FloatArray:
    """A code of its own for every combination: all is known of those seen, and nothing carries over."""
    shape, size, _ = levels(images).astype(int).T
    return np.eye(12)[4 * shape + size]


def answers(encode, **options) -> Iterator[tuple[str, HoldoutResult]]:
    for holdout in compositional_holdouts(SPACE, NAMES, **options):
        yield holdout.split, evaluate_heads(encode, leave_out(PIXELS, holdout.without), NAMES)


@pytest.fixture(scope="module")
def scores() -> dict[tuple[str, str, str], FloatArray]:
    """By code, split and head."""
    found = {}
    for encode in (perfect, memorising):
        asked = list(answers(encode, n_combinations=4, n_random=2))
        for split in ("combination", "random"):
            chosen = [each for name, each in asked if name == split]
            for head in ("mlp", "linear"):
                done = summary([each.accuracy[head] for each in chosen], [each.chance for each in chosen])
                found[encode.__name__, split, head] = done.score
    return found


@pytest.mark.parametrize("head", ["mlp", "linear"])
def test_perfect_codes_name_combinations_they_never_saw(scores, head):
    assert scores["perfect", "combination", head].tolist() == [1.0, 1.0, 1.0]
    assert scores["perfect", "random", head].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("head", ["mlp", "linear"])
def test_memorising_codes_know_what_was_seen_and_nothing_else(scores, head):
    assert scores["memorising", "random", head].tolist() == [1.0, 1.0, 1.0]
    assert scores["memorising", "combination", head][2] == 0.0
    assert scores["memorising", "combination", head].mean() < 0.2


def exact(images: ArrayLike) -> FloatArray:
    """Each factor in a code of its own."""
    return levels(images)[:, [1, 2, 0]]


def test_a_single_code_names_combinations_it_never_saw_where_it_holds_one_factor() -> None:
    """And only there: codes of pairs, and exact codes that are turned, hold none alone."""
    for encode, right in ((exact, True), (memorising, False), (lambda images: exact(images) @ TURN, False)):
        asked = [each for _, each in answers(encode, n_combinations=3, n_random=0)]
        score = summary([each.accuracy["single"] for each in asked], [each.chance for each in asked]).score
        assert score.tolist() == [1.0, 1.0, 1.0] if right else score[2] < 0.2


def test_a_single_code_is_as_often_right_as_snc_says() -> None:
    rng = np.random.default_rng(0)
    factors = np.stack([rng.choice(3, 2000, p=[0.5, 0.3, 0.2]), rng.choice(4, 2000, p=[0.4, 0.3, 0.2, 0.1])], axis=1)
    codes = factors + 0.4 * rng.standard_normal((2000, 2))
    train, test = slice(0, 1500), slice(1500, None)
    found = head_accuracies(codes[train], factors[train], codes[test], factors[test])["single"]
    told = snc(codes[train], factors[train], test_codes=codes[test], test_factors=factors[test])
    assert found[:2] == pytest.approx(told.accuracy)
    assert 0.5 < found[2] < found[:2].min()


def test_codes_that_say_nothing_are_at_chance() -> None:
    """Heads then name the commonest level, which is never the one held out."""
    for _, each in answers(lambda images: np.zeros((len(levels(images)), 2)), n_combinations=2, n_random=0):
        for head in ("mlp", "linear"):
            assert each.accuracy[head].tolist() == [0.0, 0.0, 0.0]
    holdout = compositional_holdouts(SPACE, NAMES, n_combinations=1)[1]
    each = evaluate_heads(lambda images: np.zeros((len(levels(images)), 2)), leave_out(PIXELS, holdout.without), NAMES)
    assert each.accuracy["linear"] == pytest.approx(each.chance, abs=0.1)


def test_both_counts_rows_where_both_heads_are_right() -> None:
    """Codes right about shape in rows 0 and 1, about size in rows 1 and 2, of four; about both in row 1 alone."""
    train = SPACE.grid()[:, :2]
    told = np.array([[0, 1], [1, 1], [2, 2], [2, 2]])
    truth = np.array([[0, 0], [1, 1], [0, 2], [0, 0]])
    codes, test_codes = (np.hstack([np.eye(3)[rows[:, 0]], np.eye(4)[rows[:, 1]]]) for rows in (train, told))
    found = head_accuracies(codes, train, test_codes, truth)
    assert found["mlp"].tolist() == found["linear"].tolist() == [0.5, 0.5, 0.25]


def test_heads_learn_from_images_of_the_training_and_are_tested_on_the_others() -> None:
    seen: list[FloatArray] = []

    def spying(images: ArrayLike) -> FloatArray:
        seen.append(levels(images))
        return perfect(images)

    (holdout,) = compositional_holdouts(SPACE, NAMES, combinations=[[2, 1]], n_random=0)
    part = leave_out(PIXELS, holdout.without)
    each = evaluate_heads(spying, part, NAMES)
    rows = np.concatenate(seen)
    np.testing.assert_array_equal(rows[:440], levels(PIXELS.images(part.positions)))
    assert {tuple(row[:2]) for row in rows[440:]} == {(2.0, 1.0)}
    assert (each.n_train, each.n_test, len(rows)) == (440, 40, 480)
    seen.clear()
    each = evaluate_heads(spying, part, NAMES, n_rows=30, seed=2)
    rows = np.concatenate(seen)
    assert (each.n_train, each.n_test) == (30, 30)
    assert len(np.unique(rows, axis=0)) == 60
    assert ((rows[:30, :2] == [2, 1]).all(axis=1).any(), (rows[30:, :2] == [2, 1]).all()) == (False, True)
    again = evaluate_heads(perfect, part, NAMES, n_rows=30, seed=2)
    assert again.accuracy["mlp"].tolist() == each.accuracy["mlp"].tolist()


def test_chance_of_a_combination_held_out_of_a_grid() -> None:
    grid = FactorSpace(("size", "shape"), (8, 4), ("ordinal", "ordinal")).grid()
    assert guessing(grid, np.array([[3, 1]] * 5)) == pytest.approx([1 / 8, 1 / 4, 1 / 32])


def test_chance_is_how_often_a_guess_drawn_from_all_images_is_right() -> None:
    rng = np.random.default_rng(0)
    whole, test = rng.integers(3, size=(40, 2)) ** 2, rng.integers(4, size=(15, 2))
    pairs = [(guess == true, (guess == true).all()) for guess in whole for true in test]
    by_factor, both = np.mean([each for each, _ in pairs], axis=0), np.mean([each for _, each in pairs])
    assert guessing(whole, test) == pytest.approx([*by_factor, both])


# Accuracy (in per cent) on both factors at once of eight combinations of 3D Shapes held out, in the tables of appendix
# G of Mahon et al. 2023, and what their Table 3 makes of them.
PRINTED = {
    "beta-VAE": ([4.97, 0.00, 32.94, 0.00, 0.00, 37.78, 14.41, 49.19], 14.75),
    "beta-TCVAE": ([0.03, 0.00, 36.43, 0.00, 0.00, 30.63, 2.39, 92.89], 17.73),
    "FactorVAE": ([0.73, 0.00, 0.91, 48.74, 11.51, 2.47, 0.95, 8.97], 6.36),
    "PartedVAE": ([27.71, 2.49, 94.53, 0.00, 1.97, 17.62, 0.01, 28.81], 19.11),
    "PartedVAE-ss": ([13.74, 30.91, 30.35, 38.31, 95.06, 37.31, 1.50, 12.87], 30.33),
    "WeakDE": ([33.00, 2.63, 19.32, 0.00, 8.67, 6.57, 15.16, 0.29], 7.83),
}


@pytest.mark.parametrize("model", PRINTED)
def test_a_summary_of_the_papers_accuracies_is_the_papers(model: str) -> None:
    accuracies, printed = PRINTED[model]
    both = [[0.0, 0.0, accuracy / 100] for accuracy in accuracies]
    done = summary(both, [[1 / 8, 1 / 4, 1 / 32]] * 8)
    assert round(100 * float(done.score[2]), 2) == pytest.approx(printed, abs=0.0101)
    assert done.score[:2].tolist() == [0.0, 0.0]
    assert done.spread is not None
    assert done.spread[2] == pytest.approx(np.std(accuracies, ddof=1) / 100 / (31 / 32))


def test_one_answer_has_no_spread() -> None:
    done = summary([[0.5, 1.0, 0.25]], [[0.5, 0.25, 0.125]])
    assert done.score == pytest.approx([0.0, 1.0, 1 / 7])
    assert done.spread is None


def test_the_gap_is_seen_by_no_regressor() -> None:
    """Codes that are the factors outside the gap, and turned around in it."""
    space = FactorSpace(("a", "b"), (40, 30), ("ordinal", "ordinal"))
    dataset = ArrayDataset(space.grid().astype(np.uint8).reshape(-1, 1, 2, 1), space)
    gap = "a > 25 and b > 15"
    seen: list[FloatArray] = []

    def turned(images: ArrayLike) -> FloatArray:
        rows = np.asarray(images, dtype=np.float64).reshape(-1, 2)
        seen.append(rows)
        inside = (rows[:, 0] > 25) & (rows[:, 1] > 15)
        return np.where(inside[:, None], -rows, rows)

    part = leave_out(dataset, zero_shot_holdout(space, gap, seed=5).without)
    errors = evaluate_regressors(turned, part, gap, seed=5)
    expected = [part.positions, *zero_shot_parts(space, gap, seed=5)]
    np.testing.assert_array_equal(np.concatenate(seen), space.factors(np.concatenate(expected)))
    for each in errors.values():
        assert each.ordinary.max() < 0.01
        assert each.gap.min() > 1.0
    train, inside = space.factors(part.positions), space.factors(expected[3])
    # A straight line through the training factors reads -x where x is: off by 2 x.
    off = np.sqrt(((2 * inside) ** 2).mean(axis=0)) / train.std(axis=0)
    assert errors["lasso"].gap == pytest.approx(off, rel=0.01)
    assert set(errors) == {"lasso", "forest"}
    few = evaluate_regressors(turned, part, gap, n_rows=50, seed=5)
    assert few["lasso"].gap.min() > 1.0


def test_a_factor_that_the_part_lacks_is_an_error() -> None:
    part = SubsetDataset(PIXELS, np.arange(100))
    with pytest.raises(ValueError, match="factors column 0 is constant"):
        evaluate_heads(perfect, part, NAMES)
