"""Independence score: the formula by hand, exact actions recovered, and the fit against the definition's own."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from unbraid.base.types import FloatArray
from unbraid.data import FactorSpace
from unbraid.metrics import NotDefined, independence_score
from unbraid.metrics._shared.inputs import check_inputs
from unbraid.metrics.independence_score import independence_from_actions, independence_of_noise

SPACE = FactorSpace(("x", "y"), (10, 8), ("cyclic", "cyclic"))
GRID = SPACE.grid()
ANGLES = 2 * np.pi * GRID / SPACE.sizes
TORUS = np.column_stack([np.cos(ANGLES[:, 0]), np.sin(ANGLES[:, 0]), np.cos(ANGLES[:, 1]), np.sin(ANGLES[:, 1])])


def score_of(codes: FloatArray, **arguments: Any) -> Any:
    return independence_score(codes, GRID, kinds=SPACE.kinds, **arguments)


def turn(angle: float, size: int, plane: tuple[int, int]) -> FloatArray:
    matrix = np.eye(size)
    (i, j), c, s = plane, np.cos(angle), np.sin(angle)
    matrix[[i, i, j, j], [i, j, i, j]] = [c, -s, s, c]
    return matrix


def from_matrices(codes: FloatArray, matrices: FloatArray, groups: list[list[int]]) -> tuple[float, FloatArray]:
    identity = np.eye(codes.shape[1])
    return independence_from_actions(codes, [*(matrices - identity)], [identity] * len(matrices), groups)


def test_formula_by_hand() -> None:
    """Two points, two groups of one action each, in the plane.

    a halves the first coordinate: z - az is (z1/2, 0), direction (sign z1, 0). b halves z1 and z2: direction z / |z|.
    At (3, 4) the cosine is .6, at (-1, 0) it is 1: I = 1 - (.6 + 1) / 2 = .2.
    """
    codes = np.array([[3.0, 4.0], [-1.0, 0.0]])
    actions = np.array([np.diag([0.5, 1.0]), np.diag([0.5, 0.5])])
    score, overlap = from_matrices(codes, actions, [[0], [1]])
    assert score == pytest.approx(0.2)
    np.testing.assert_allclose(overlap, [[0, 0.8], [0.8, 0]])


def test_formula_takes_the_greatest_signed_product_then_its_absolute_value() -> None:
    """Against d = (1, 0), one group holds the directions (-.6, .8) and (-.28, .96): the greatest product is -.28.

    (The greatest absolute product would be .6.) I = 1 - .28.
    """
    codes = np.array([[1.0, 0.0]])

    def towards(direction: list[float]) -> FloatArray:
        return np.eye(2) - np.outer(direction, codes[0])  # z - rho z is the direction at this z

    actions = np.array([towards([1.0, 0.0]), towards([-0.6, 0.8]), towards([-0.28, 0.96])])
    assert from_matrices(codes, actions, [[0], [1, 2]])[0] == pytest.approx(1 - 0.28)
    both_signs = np.array([towards([1.0, 0.0]), towards([0.6, 0.8]), towards([-0.28, 0.96])])
    assert from_matrices(codes, both_signs, [[0], [1, 2]])[0] == pytest.approx(1 - 0.6)


def test_formula_averages_over_pairs_of_three_groups() -> None:
    """Pairs overlap 1, 0 and 0: I = 1 - 1/3."""
    codes = np.array([[1.0, 1.0]])
    actions = np.array([np.diag([0.5, 1.0]), np.diag([0.1, 1.0]), np.diag([1.0, 0.5])])
    assert from_matrices(codes, actions, [[0], [1], [2]])[0] == pytest.approx(2 / 3)


def test_each_subgroup_is_judged_by_the_mean_over_the_others() -> None:
    """Three subgroups, of which the first two act in one plane: 1 - (1 + 0) / 2, twice, and 1 - (0 + 0) / 2."""
    space = FactorSpace(("a", "b", "c"), (6, 6, 6), ("cyclic",) * 3)
    a, b, c = (2 * np.pi * space.grid() / 6).T
    both = np.column_stack([np.cos(a + b), np.sin(a + b), np.cos(c), np.sin(c)])
    result = independence_score(both, space.grid(), kinds=space.kinds)
    overlap = result.overlap[0, 1]
    assert overlap > 0.8
    np.testing.assert_allclose(result.per_subgroup, [1 - overlap / 2, 1 - overlap / 2, 1.0], atol=1e-9)
    assert result.score == pytest.approx(result.per_subgroup.mean())


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_the_unit_of_all_codes_changes_nothing(scale: float) -> None:
    codes = TORUS @ np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0] + 0.3 * TORUS[:, ::-1]
    assert score_of(codes * scale).score == pytest.approx(score_of(codes).score, abs=1e-9)


@pytest.mark.parametrize("n_codes", [2, 10])
def test_noise_scores_what_is_stated(n_codes: int) -> None:
    codes = np.random.default_rng(0).standard_normal((len(GRID), n_codes))
    stated = independence_of_noise(check_inputs(codes, GRID, SPACE.kinds))
    assert score_of(codes).score == pytest.approx(stated.score, abs=0.05 + 4 * stated.spread)


def test_points_that_an_action_leaves_in_place_overlap_with_nothing() -> None:
    codes = np.array([[0.0, 1.0], [1.0, 1.0]])
    actions = np.array([np.diag([0.5, 1.0]), np.diag([0.5, 0.5])])
    score, _ = from_matrices(codes, actions, [[0], [1]])
    assert score == pytest.approx(1 - np.sqrt(0.5) / 2)


@pytest.mark.parametrize("seed", [0, 1])
def test_exact_rotations_of_orthogonal_planes_are_recovered(seed: int) -> None:
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((6, 6)))[0][:4]
    result = score_of(TORUS @ basis + 2.0)
    assert result.score == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(result.fit_error, 0, atol=1e-14)
    np.testing.assert_allclose(result.angles, 2 * np.pi / np.array([[10, 10], [8, 8]]))
    expected = basis.T @ (turn(2 * np.pi / 10, 4, (0, 1)) - np.eye(4)) @ basis + np.eye(6)
    np.testing.assert_allclose(result.matrices[0, 0], expected, atol=1e-9)
    np.testing.assert_allclose(result.matrices[0, 1], expected.T, atol=1e-9)


def test_planes_at_an_angle_have_the_overlap_of_their_directions() -> None:
    """Linear, not orthogonal, mixing keeps the steps exact linear maps; their directions are then known."""
    mixing = np.random.default_rng(0).standard_normal((4, 4))
    codes = TORUS @ mixing
    actions = [
        mixing.T @ turn(sign * angle, 4, plane) @ np.linalg.inv(mixing.T)
        for angle, plane in ((2 * np.pi / 10, (0, 1)), (2 * np.pi / 8, (2, 3)))
        for sign in (1, -1)
    ]
    expected, _ = from_matrices(codes, np.array(actions), [[0, 1], [2, 3]])
    assert 0.1 < expected < 0.9
    assert score_of(codes).score == pytest.approx(expected, abs=1e-9)


def test_no_matrix_of_the_definitions_form_fits_better() -> None:
    """C R C^-1 with a free 2 x 2 block, optimised from several starts, comes down to our error and not below it."""
    codes = np.random.default_rng(3).standard_normal((len(GRID), 3)) + 1.5 * TORUS[:, :3]
    codes = codes - codes.mean(axis=0)
    result = score_of(codes)
    landed = codes[SPACE.index((GRID + [1, 0]) % SPACE.sizes)]
    moved = ((landed - codes) ** 2).sum()

    def error(parameters: FloatArray) -> float:
        basis, block = parameters[:9].reshape(3, 3) + np.eye(3), np.eye(3)
        block[:2, :2] = parameters[9:].reshape(2, 2)
        matrix = basis @ block @ np.linalg.inv(basis)
        return float(((landed - codes @ matrix.T) ** 2).sum() / moved)

    starts = [0.1 * np.random.default_rng(seed).standard_normal(13) for seed in range(3)]
    fitted = [minimize(error, start, method="BFGS").fun for start in starts]
    assert min(fitted) == pytest.approx(result.fit_error[0, 0], abs=1e-4)
    assert min(fitted) > result.fit_error[0, 0] - 1e-9
    free = np.linalg.lstsq(codes, landed - codes, rcond=None)[1].sum() / moved
    assert result.fit_error[0, 0] > free + 1e-3  # rank 2 does bind here


def test_ordinal_factors_on_axes_of_their_own_are_independent() -> None:
    space = FactorSpace(("shape", "x", "y"), (3, 4, 5), ("categorical", "ordinal", "ordinal"))
    codes = space.grid()[:, [2, 0, 1]].astype(float)
    result = independence_score(codes, space.grid(), kinds=space.kinds)
    assert result.score == pytest.approx(1, abs=1e-9)
    assert result.subgroups.tolist() == [1, 2]
    assert result.notes == ("steps along factors 1, 2, each fitted on 45 rows or more",)


def test_ordinal_steps_do_not_wrap_and_cyclic_ones_do() -> None:
    """On a circle every step is the same turn; without the step from the last level to the first likewise.

    On a line the wrap is the one step that goes far: fitted with it, the map is another.
    """
    line = np.column_stack([GRID[:, 0] - 4.5, GRID[:, 1] - 3.5])
    cyclic = score_of(line).matrices[0, 0, 0, 0]
    ordinal = independence_score(line, GRID).matrices[0, 0, 0, 0]
    z, up = np.arange(10) - 4.5, np.roll(np.arange(10) - 4.5, -1)
    assert cyclic == pytest.approx(z @ up / (z @ z))
    assert ordinal == pytest.approx(z[:-1] @ up[:-1] / (z[:-1] @ z[:-1]))


def test_ordinal_steps_lead_to_the_next_level_whatever_the_numbers_are() -> None:
    grid = FactorSpace(("a", "b"), (3, 4), ("ordinal", "ordinal")).grid()
    codes = grid @ np.random.default_rng(0).standard_normal((2, 3)) + 0.1 * grid[:, :1] ** 2
    plain = independence_score(codes, grid, kinds=["ordinal", "ordinal"])
    other = np.column_stack([np.array([0, 10, 20])[grid[:, 0]], np.array([-7, -2, 3, 900])[grid[:, 1]]])
    found = independence_score(codes, other, kinds=["ordinal", "ordinal"])
    assert 0.05 < plain.score < 0.95
    assert found.score == pytest.approx(plain.score, abs=1e-12)
    np.testing.assert_allclose(found.matrices, plain.matrices, atol=1e-9)


def test_sizes_say_where_a_cycle_closes() -> None:
    """Seven of ten levels on a line: told so, there is no step from the seventh to the first."""
    part = GRID[:, 0] < 7
    codes = np.column_stack([GRID[:, 0], GRID[:, 1]])[part]
    z = np.arange(7) - 3.0
    told = independence_score(codes, GRID[part], kinds=SPACE.kinds, sizes=SPACE.sizes).matrices[0, 0, 0, 0]
    untold = independence_score(codes, GRID[part], kinds=SPACE.kinds).matrices[0, 0, 0, 0]
    assert told == pytest.approx(z[:-1] @ z[1:] / (z[:-1] @ z[:-1]))
    assert untold == pytest.approx(z @ np.roll(z, -1) / (z @ z))


def test_order_of_rows_and_repeated_rows_change_nothing() -> None:
    codes = np.random.default_rng(0).standard_normal((len(GRID), 3)) + TORUS[:, :3]
    expected = score_of(codes).score
    order = np.random.default_rng(1).permutation(2 * len(GRID))
    twice, grid = np.tile(codes, (2, 1))[order], np.tile(GRID, (2, 1))[order]
    assert independence_score(twice, grid, kinds=SPACE.kinds).score == pytest.approx(expected, abs=1e-12)


def test_unchanged_by_rotating_permuting_and_flipping_but_not_by_scaling_one_code() -> None:
    codes = np.random.default_rng(0).standard_normal((len(GRID), 4)) + 2 * TORUS
    before = score_of(codes).score
    basis = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    for change in (codes @ basis, codes[:, ::-1], -codes, 7 * codes, codes + 100):
        assert score_of(change).score == pytest.approx(before, abs=1e-9)
    assert abs(score_of(codes * [1, 1, 5, 1]).score - before) > 0.01


def test_dead_codes_leave_a_small_grid_defined() -> None:
    grid = FactorSpace(("x", "y"), (3, 3), ("cyclic", "cyclic")).grid()
    codes = np.random.default_rng(0).standard_normal((9, 4))
    before = independence_score(codes, grid, kinds=("cyclic", "cyclic")).score
    with_dead = np.column_stack([codes, np.full((9, 3), 0.3)])
    assert independence_score(with_dead, grid, kinds=("cyclic", "cyclic")).score == pytest.approx(before, abs=1e-9)
    with pytest.raises(NotDefined, match="too few rows with neighbours: 9 for factor 0"):
        independence_score(np.random.default_rng(0).standard_normal((9, 5)), grid, kinds=("cyclic", "cyclic"))


@pytest.mark.parametrize("kinds", [("ordinal", "ordinal"), ("cyclic", "ordinal")])
def test_codes_of_few_dimensions_score_the_same_in_single_precision(kinds: tuple[Any, Any]) -> None:
    """Two directions in four codes: what rounding leaves along the others is no move."""
    grid = FactorSpace(("x", "y"), (3, 5), kinds).grid()
    codes = grid @ np.random.default_rng(1).standard_normal((2, 4))
    score = independence_score(codes, grid, kinds=kinds).score
    assert independence_score(codes.astype(np.float32), grid, kinds=kinds).score == pytest.approx(score, abs=1e-5)
    assert independence_score(codes * 1e-3 + 1e5, grid, kinds=kinds).score == pytest.approx(score, abs=1e-5)


def test_a_factor_that_moves_nothing_is_left_out_and_nothing_moving_scores_0() -> None:
    space = FactorSpace(("x", "y", "still"), (10, 8, 3), ("cyclic",) * 3)
    codes = np.repeat(TORUS, 3, axis=0)
    result = independence_score(codes, space.grid(), kinds=space.kinds)
    assert result.score == pytest.approx(1, abs=1e-9)
    assert result.subgroups.tolist() == [0, 1]
    assert "factor 2 moves no code and is left out" in result.notes
    for constant in (0.0, 0.1):
        dead = score_of(np.full((len(GRID), 3), constant))
        assert dead.score == 0
        assert "fewer than two factors move the codes" in dead.notes[-1]
    one = score_of(TORUS[:, :2])
    assert one.score == 0


def test_not_defined_without_two_factors_to_step_along() -> None:
    with pytest.raises(NotDefined, match="at least two cyclic or ordinal factors"):
        independence_score(TORUS, GRID[:, :1], kinds=("cyclic",))
    with pytest.raises(NotDefined, match="at least two cyclic or ordinal factors"):
        independence_score(TORUS, GRID, kinds=("cyclic", "categorical"))
    sparse = np.random.default_rng(0).integers(1000, size=(200, 3))
    with pytest.raises(NotDefined, match=r"too few rows with neighbours: 0 for factor 0"):
        independence_score(np.random.default_rng(0).standard_normal((200, 3)), sparse, kinds=("ordinal",) * 3)


def test_levels_of_a_cyclic_factor_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="factors column 0 is cyclic with 5 levels"):
        score_of(TORUS, sizes=(5, 8))


def test_a_level_that_is_the_first_again_is_taken_for_it() -> None:
    """The torus with the first row of a circle of 10 once more at level 10: every step is still a rotation.

    About a centre, though, that the row moves by 1 / 11: 1 / 121 of its squared length is left, and far more where 11
    levels go around.
    """
    first = GRID[:, 0] == 0
    closed, codes = np.concatenate([GRID, GRID[first] + [10, 0]]), np.concatenate([TORUS, TORUS[first]])
    result = independence_score(codes, closed, kinds=SPACE.kinds, sizes=SPACE.sizes)
    np.testing.assert_allclose(result.fit_error, [[1 / 121] * 2, [0, 0]], atol=1e-9)
    assert independence_score(codes, closed, kinds=SPACE.kinds).fit_error.max() > 0.05
