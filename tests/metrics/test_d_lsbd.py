"""D_LSBD against rotation matrices written out, closed forms, the authors' code, and its traps."""

from typing import Any

import numpy as np
import pytest

from unbraid.base.types import FloatArray
from unbraid.data import FactorSpace
from unbraid.metrics import NotDefined, d_lsbd
from unbraid.metrics._shared.inputs import check_inputs
from unbraid.metrics._shared.regression import as_blocks
from unbraid.metrics.d_lsbd import d_lsbd_of_noise, turned_back

SPACE = FactorSpace(("x", "y"), (12, 16), ("cyclic", "cyclic"))
GRID = SPACE.grid()
ANGLES = 2 * np.pi * GRID / SPACE.sizes


def score_of(codes: FloatArray, **arguments: Any) -> Any:
    return d_lsbd(codes, GRID, kinds=SPACE.kinds, **arguments)


def torus(first: int = 1, second: int = 1) -> FloatArray:
    a, b = ANGLES.T
    return np.column_stack([np.cos(first * a), np.sin(first * a), np.cos(second * b), np.sin(second * b)])


def half_good() -> FloatArray:
    """Neither good nor bad: ellipses of frequency 1 and 2 in noise."""
    codes = np.random.default_rng(7).standard_normal((len(GRID), 5))
    a, b = ANGLES.T
    codes[:, :2] += 2 * np.column_stack([np.cos(a), 0.6 * np.sin(a)])
    codes[:, 2:4] += np.column_stack([np.cos(2 * b), np.sin(2 * b)])
    return codes


def brute_force(codes: FloatArray, sizes: tuple[int, int], max_frequency: int, norm: str) -> FloatArray:
    """Eq. 8 to 10 with explicit means, principal axes and rotation matrices, one frequency after the other."""
    codes = codes.reshape(*sizes, -1)
    scores = []
    for k in range(2):
        moved = [codes[i, j] - codes.mean(axis=k)[j if k == 0 else i] for i in range(sizes[0]) for j in range(sizes[1])]
        levels = [(i, j)[k] for i in range(sizes[0]) for j in range(sizes[1])]
        axes = np.linalg.svd(np.array(moved))[2][:2]
        plane = np.array(moved) @ axes.T
        if norm == "axes":
            plane /= plane.std(axis=0)
        else:
            plane /= np.sqrt(np.mean([p @ p for p in plane]))
        tried = []
        for omega in range(-max_frequency, max_frequency + 1):
            turned = []
            for level, point in zip(levels, plane, strict=True):
                t = -omega * 2 * np.pi * level / sizes[k]
                turned.append(np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]) @ point)
            centre = np.mean(turned, axis=0)
            tried.append(np.mean([(t - centre) @ (t - centre) for t in turned]))
        assert tried[max_frequency] == pytest.approx(2 if norm == "axes" else 1)  # omega = 0 is the upper bound
        scores.append(min(tried))
    return np.array(scores)


@pytest.mark.parametrize("norm", ["unit", "axes"])
@pytest.mark.parametrize("max_frequency", [1, 5])
def test_is_what_rotation_matrices_give(norm: Any, max_frequency: int) -> None:
    expected = brute_force(half_good(), (12, 16), max_frequency, norm)
    result = score_of(half_good(), norm=norm, max_frequency=max_frequency)
    np.testing.assert_allclose(result.per_subgroup, expected, atol=1e-12)
    assert result.score == pytest.approx(expected.mean(), abs=1e-12)


def test_agrees_with_the_authors_code() -> None:
    """lsbd-vae, dlsbd over omega in -3..3 on these codes: .574272959858571 at (1, 2).

    It gives each axis variance 1/2, estimated with n - 1, where "axes" gives variance 1 as in the paper's tables.
    """
    result = score_of(half_good(), norm="released", max_frequency=3)
    assert result.score == pytest.approx(0.574272959858571, abs=1e-12)
    axes = score_of(half_good(), norm="axes", max_frequency=3)
    assert result.score == pytest.approx(axes.score / 2 * 191 / 192, abs=1e-12)
    assert result.frequencies.tolist() == [[1, 2]]


@pytest.mark.parametrize("norm", ["unit", "axes"])
@pytest.mark.parametrize("frequencies", [(1, 1), (3, 2)])
def test_a_torus_is_perfect_wherever_it_lies(norm: Any, frequencies: tuple[int, int]) -> None:
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 6)))[0][:4]
    result = score_of(torus(*frequencies) @ turn + 3.0, norm=norm)
    assert result.score == pytest.approx(0, abs=1e-12)
    assert result.frequencies.tolist() == [list(frequencies)]
    assert result.smallest_plane_angle == pytest.approx(np.pi / 2)
    np.testing.assert_allclose(result.explained, 1)


def test_closed_form_of_an_ellipse_and_of_two_frequencies() -> None:
    """(cos, s sin) is (1 + s)/2 at omega 1 and (1 - s)/2 at -1, of squared norm (1 + s^2)/2: 1 - (1+s)^2 / 2(1+s^2).

    Amplitudes p at omega 1 and q at omega 3 in one plane leave q^2 / (p^2 + q^2).
    """
    a, b = ANGLES.T
    s, p, q = 0.3, 0.8, 0.6
    codes = np.column_stack(
        [np.cos(a), s * np.sin(a), p * np.cos(b) + q * np.cos(3 * b), p * np.sin(b) + q * np.sin(3 * b)]
    )
    expected = [1 - (1 + s) ** 2 / (2 * (1 + s**2)), q**2]
    np.testing.assert_allclose(score_of(codes).per_subgroup, expected, atol=1e-12)
    np.testing.assert_allclose(score_of(codes, norm="axes").per_subgroup, [0, 2 * q**2], atol=1e-12)


def test_dispersion_holds_every_frequency() -> None:
    a, b = ANGLES.T
    codes = np.column_stack([0.8 * np.cos(a) + 0.6 * np.cos(3 * a), 0.8 * np.sin(a) + 0.6 * np.sin(3 * a), b * 0])
    result = score_of(codes, max_frequency=4)
    np.testing.assert_allclose(result.dispersion[0], [1, 0.36, 1, 0.64, 1], atol=1e-12)


@pytest.mark.parametrize("norm", ["unit", "axes"])
def test_unchanged_by_rotating_permuting_and_flipping_but_not_by_scaling_one_code(norm: Any) -> None:
    codes = half_good()
    before = score_of(codes, norm=norm).score
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((5, 5)))[0]
    for change in (codes @ turn, codes[:, ::-1], -codes, 7 * codes, codes + 100):
        assert score_of(change, norm=norm).score == pytest.approx(before, abs=1e-9)
    assert abs(score_of(codes * [1, 3, 1, 1, 1], norm=norm).score - before) > 0.01


def test_projected_points_are_what_a_picture_needs() -> None:
    """Turned back by the frequency reported, the projected points have the dispersion reported."""
    result = score_of(half_good())
    for k in range(2):
        points = result.projected[k] @ [1, 1j]
        assert np.mean(np.abs(points) ** 2) == pytest.approx(1)
        turns = np.exp(1j * result.frequencies[0, k] * result.angles[:, k])
        assert min(np.var(points * turns), np.var(points / turns)) == pytest.approx(result.per_subgroup[k])
        plane = result.planes[0, k]
        np.testing.assert_allclose(plane.T @ plane, np.eye(2), atol=1e-12)


def test_one_plane_for_two_factors_scores_0_and_is_flagged() -> None:
    a, b = ANGLES.T
    result = score_of(np.column_stack([np.cos(a) + np.cos(2 * b), np.sin(a) + np.sin(2 * b)]))
    assert result.score == pytest.approx(0, abs=1e-12)
    assert result.smallest_plane_angle == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(result.plane_angles[0, 1], 0, atol=1e-6)
    assert any("overlapping planes (smallest angle 0 degrees)" in note for note in result.notes)
    assert not any("overlapping" in note for note in score_of(torus()).notes)


def test_plane_angles_by_hand() -> None:
    """The second plane shares no axis with the first, but one of its axes leans towards it by 60 degrees."""
    a, b = ANGLES.T
    zero = np.zeros_like(a)
    lean = np.array([0.5, 0, np.sqrt(0.75), 0])
    codes = np.column_stack([np.cos(a), np.sin(a), zero, zero]) + np.outer(np.cos(b), lean)
    codes[:, 3] += np.sin(b)
    result = score_of(codes)
    np.testing.assert_allclose(result.plane_angles[0, 1], np.radians([60, 90]), atol=1e-9)
    assert result.smallest_plane_angle == pytest.approx(np.pi / 3)


def test_plane_angles_are_the_mean_over_objects() -> None:
    """One object's planes stand at right angles, the other's share an axis: (90 + 0) / 2 and 90 degrees."""
    space = FactorSpace(("object", "x", "y"), (2, 6, 8), ("categorical", "cyclic", "cyclic"))
    which, *levels = space.grid().T
    a, b = (2 * np.pi * level / size for level, size in zip(levels, (6, 8), strict=True))
    zero = np.zeros_like(a)
    apart = np.column_stack([np.cos(a), np.sin(a), np.cos(b), np.sin(b)])
    sharing = np.column_stack([np.cos(a), np.sin(a) + np.cos(b), np.sin(b), zero])
    result = d_lsbd(np.where(which[:, None] == 0, apart, sharing), space.grid(), kinds=space.kinds)
    np.testing.assert_allclose(np.degrees(result.plane_angles[0, 1]), [45, 90], atol=1e-5)
    assert np.degrees(result.smallest_plane_angle) == pytest.approx(45, abs=1e-5)


@pytest.mark.parametrize("norm", ["unit", "axes", "released"])
@pytest.mark.parametrize("scale", [1e-90, 1e-20, 1e20, 1e90])
def test_the_unit_of_all_codes_changes_nothing(norm: Any, scale: float) -> None:
    before, after = (score_of(codes, norm=norm) for codes in (half_good(), half_good() * scale))
    assert after.score == pytest.approx(before.score, abs=1e-12)
    np.testing.assert_allclose(after.explained, before.explained)


@pytest.mark.parametrize("norm", ["unit", "axes", "released"])
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e6])
def test_a_factor_that_moves_nothing_scores_1(norm: Any, constant: float) -> None:
    codes = torus()
    codes[:, 2:] = constant
    result = score_of(codes, norm=norm)
    np.testing.assert_allclose(result.per_subgroup, [0, 1], atol=1e-9)
    assert result.frequencies[0, 1] == 0
    assert "factor 1 moves no code: scored 1" in result.notes
    dead = score_of(np.full((len(GRID), 3), constant), norm=norm)
    assert dead.score == 1.0
    assert np.isfinite(dead.projected).all()


@pytest.mark.parametrize("sizes", [(12, 16), (32, 32), (8, 1), (40, 1)])
@pytest.mark.parametrize("n_codes", [1, 2, 10])
def test_noise_scores_what_is_stated(sizes: tuple[int, int], n_codes: int) -> None:
    kinds = ("cyclic", "cyclic" if sizes[1] > 1 else "categorical")
    grid = FactorSpace(("x", "y"), (sizes[0], max(sizes[1], 3)), kinds).grid()
    scores = [
        d_lsbd(np.random.default_rng(seed).standard_normal((len(grid), n_codes)), grid, kinds=kinds).score
        for seed in range(20)
    ]
    stated = d_lsbd_of_noise(check_inputs(np.zeros((len(grid), n_codes)), grid, kinds))
    assert np.mean(scores) == pytest.approx(stated.score, abs=0.1 if n_codes == 1 else 0.05)
    assert np.std(scores) < 1.5 * stated.spread


def test_parity_is_a_rotation_by_half_the_levels_and_is_noted() -> None:
    """(-1)^level is where a rotation by half a turn a level comes to lie: perfect, and yet two values for 12 levels."""
    result = score_of((-1.0) ** GRID[:, :1])
    assert result.per_subgroup[0] == pytest.approx(0.0, abs=1e-12)
    assert result.frequencies[0, 0] == 6
    assert any("factor 0: at the best frequency, half its 12 levels" in note for note in result.notes)
    assert not any("half its" in note for note in score_of(torus()).notes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_plane_that_variances_do_not_determine_is_noted(dtype: type) -> None:
    level = np.arange(16)[:, None]
    angle = level * 2 * np.pi / 16
    both = np.hstack([np.cos(angle), np.sin(angle), np.cos(2 * angle), np.sin(2 * angle)]).astype(dtype)
    tied = [d_lsbd(codes, level, kinds=("cyclic",)) for codes in (both, np.eye(16, dtype=dtype)[level[:, 0]])]
    larger = d_lsbd(both * np.array([1.01, 1.01, 1.0, 1.0], dtype=dtype), level, kinds=("cyclic",))
    assert larger.score == pytest.approx(0.0, abs=1e-9)
    for result, noted in ((tied[0], True), (tied[1], True), (larger, False)):
        assert any("depend on the order of the codes" in note for note in result.notes) == noted


def test_a_single_code_spans_a_line() -> None:
    result = score_of(np.cos(ANGLES[:, :1]))
    np.testing.assert_allclose(result.per_subgroup, [0.5, 1.0], atol=1e-12)
    assert result.planes.shape == (1, 2, 1, 2)
    assert "one code: it is a line and not a plane: the best possible score is .5" in result.notes


def test_each_object_has_its_own_plane_frequency_and_share() -> None:
    """Three objects turning at frequency 1, 2 and not at all, in planes of their own: (0 + 0 + 1) / 3."""
    space = FactorSpace(("object", "turn"), (3, 16), ("categorical", "cyclic"))
    which, level = space.grid().T
    angle = 2 * np.pi * level / 16
    codes = np.zeros((48, 3))
    codes[which == 0, :2] = np.column_stack([np.cos(angle), np.sin(angle)])[which == 0]
    codes[which == 1, 1:] = 5 * np.column_stack([np.sin(2 * angle), np.cos(2 * angle)])[which == 1]
    codes[which == 2] = 7
    order = np.random.default_rng(0).permutation(48)
    result = d_lsbd(codes[order], space.grid()[order], kinds=space.kinds)
    assert result.score == pytest.approx(1 / 3, abs=1e-12)
    assert result.frequencies.tolist() == [[1], [2], [0]]
    assert result.subgroups.tolist() == [1]
    assert "averaged over 3 combinations" in result.notes[1]
    assert "factor 1 moves no code in 1 of 3" in result.notes[2]


def test_aliasing_is_noted_where_levels_are_few() -> None:
    """At 8 levels frequencies 5 and -3 are the same points; the lower is reported."""
    space = FactorSpace(("x",), (8,), ("cyclic",))
    angle = 2 * np.pi * np.arange(8) / 8
    result = d_lsbd(np.column_stack([np.cos(5 * angle), np.sin(5 * angle)]), space.grid(), kinds=space.kinds)
    assert result.score == pytest.approx(0, abs=1e-12)
    assert result.frequencies.tolist() == [[3]]
    assert "frequencies above 4 alias" in result.notes[1]
    assert not any("alias" in note for note in score_of(torus(), max_frequency=5).notes)


def test_rows_must_fill_the_grid() -> None:
    with pytest.raises(NotDefined, match="2 of 192 cells missing"):
        d_lsbd(torus()[2:], GRID[2:], kinds=SPACE.kinds)
    with pytest.raises(NotDefined, match="rows must fill the grid of the cyclic factors: 64 of 256 cells missing"):
        score_of(torus(), sizes=(16, 16))
    with pytest.raises(NotDefined, match="each cell once: 3 rows repeat a cell"):
        d_lsbd(np.vstack([torus(), torus()[:3]]), np.vstack([GRID, GRID[:3]]), kinds=SPACE.kinds)
    with pytest.raises(NotDefined, match="each cell once: 1 row repeats a cell"):
        d_lsbd(np.vstack([torus(), torus()[:1]]), np.vstack([GRID, GRID[:1]]), kinds=SPACE.kinds)
    replaced = GRID.copy()
    replaced[0] = replaced[1]
    with pytest.raises(NotDefined, match="1 of 192 cells missing"):
        d_lsbd(torus(), replaced, kinds=SPACE.kinds)


@pytest.mark.parametrize(
    ("factors", "arguments", "message"),
    [
        (GRID, {"sizes": (12,)}, "sizes must have one entry per factor"),
        (GRID, {"sizes": (12, 10)}, "factors column 1 is cyclic with 10 levels and must hold 0 to 9; got 0 to 15"),
        (GRID - 1, {}, "factors column 0 is cyclic with 11 levels and must hold 0 to 10; got -1 to 10"),
    ],
)
def test_unsound_arguments_are_refused(factors: FloatArray, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        d_lsbd(torus(), factors, kinds=SPACE.kinds, **arguments)


def test_points_turned_back_are_where_they_began() -> None:
    """Around three times in either sense, from 1 + 2i."""
    angle = 2 * np.pi * np.arange(10) / 10
    for sense in (-1, 1):
        points = (1 + 2j) * np.exp(1j * sense * 3 * angle)
        back = turned_back(np.column_stack([points.real, points.imag]), angle, 3)
        np.testing.assert_allclose(back, np.tile([1.0, 2.0], (10, 1)), atol=1e-12)


def test_a_level_that_is_the_first_again_is_taken_for_it() -> None:
    """40 orientations from 0 to 2 pi, both ends among them, as of dSprites: codes that turn by their angles score 0.

    Taken for 40 levels around they would not, nor would their cosine and sine be read exactly.
    """
    turns = np.linspace(0, 2 * np.pi, 40)
    space = FactorSpace(("size", "turn"), (2, 40), ("ordinal", "cyclic"), ((0.0, 1.0), tuple(turns)))
    assert space.turns == (2, 39)
    size, level = space.grid().T
    angle = turns[level]
    codes = np.column_stack([np.cos(angle), np.sin(angle), 3 * size])
    order = np.random.default_rng(0).permutation(80)
    result = d_lsbd(codes[order], space.grid()[order], kinds=space.kinds, sizes=space.turns)
    assert result.score == pytest.approx(0, abs=1e-12)
    assert "factor 1: level 39 is level 0 again, 39 levels go around" in result.notes
    np.testing.assert_allclose(np.exp(1j * result.angles[:, 0]), np.exp(1j * angle[order]), atol=1e-12)
    found = dict(zip(map(tuple, space.grid()[order].tolist()), result.projected[0], strict=True))
    assert (found[1, 39] == found[1, 0]).all()
    wrong = d_lsbd(codes, space.grid(), kinds=space.kinds)
    assert wrong.score > 0.001
    read = as_blocks(check_inputs(codes, space.grid(), space.kinds), space.turns).columns
    np.testing.assert_allclose(read[:, 1:], codes[:, :2], atol=1e-12)
    with pytest.raises(NotDefined, match="1 of 78 cells missing"):
        d_lsbd(np.delete(codes, 0, 0), np.delete(space.grid(), 0, 0), kinds=space.kinds, sizes=space.turns)
