import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from unbraid.base.types import FloatArray, Kind
from unbraid.show import plot_code_plane, plot_factor_code
from unbraid.show.style import CYCLIC, PALETTE, cyclic_colours, thinned

RNG = np.random.default_rng(0)
LEVELS = np.repeat(np.arange(4.0), 50)
CODE = 2 * LEVELS + RNG.standard_normal(200)


def dots(ax: Axes) -> FloatArray:
    return np.asarray(ax.collections[0].get_offsets())


@pytest.mark.parametrize("kind", ["categorical", "ordinal", "cyclic", "continuous"])
def test_every_sample_is_a_dot_near_its_level(kind: Kind) -> None:
    ax = plot_factor_code(CODE, LEVELS, kind=kind, code_name="code 3", factor_name="size")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("size", "code 3")
    np.testing.assert_array_equal(dots(ax)[:, 1], CODE)
    assert np.abs(dots(ax)[:, 0] - LEVELS).max() <= 0.3


def test_the_line_is_the_mean_of_each_level_and_the_band_its_percentiles() -> None:
    ax = plot_factor_code(CODE, LEVELS)
    groups = CODE.reshape(4, 50)
    np.testing.assert_allclose(ax.lines[0].get_xydata(), np.column_stack([np.arange(4), groups.mean(axis=1)]))
    outline = ax.collections[1].get_paths()[0].vertices
    for level, group in enumerate(groups):
        edges = outline[outline[:, 0] == level][:, 1]
        assert edges.min() == pytest.approx(np.percentile(group, 10))
        assert edges.max() == pytest.approx(np.percentile(group, 90))


def test_a_category_has_its_own_colour_mean_and_bar() -> None:
    ax = plot_factor_code(CODE, LEVELS, kind="categorical")
    colours = [to_hex(colour) for colour in ax.collections[0].get_facecolor()]
    assert colours == [PALETTE[int(level)] for level in LEVELS]
    bars = [np.asarray(each.get_segments()[0]) for each in ax.collections[1:]]
    np.testing.assert_allclose(bars[0][:, 1], np.percentile(CODE[:50], (10, 90)))
    np.testing.assert_allclose(bars[1][:, 1], CODE[:50].mean())


def test_many_samples_are_thinned_to_the_same_dots_every_time() -> None:
    code, factor = RNG.standard_normal(30_000), RNG.standard_normal(30_000)
    first, second = (dots(plot_factor_code(code, factor, kind="continuous", max_points=500)) for _ in range(2))
    assert first.shape == (500, 2)
    np.testing.assert_array_equal(first, second)
    rows = thinned(30_000, 500)
    assert len(np.unique(rows)) == 500
    np.testing.assert_array_equal(first[:, 1], code[rows])


def test_a_factor_of_many_values_has_a_band_of_few_steps() -> None:
    factor = np.linspace(0, 1, 5_000)
    line = plot_factor_code(factor**2, factor, kind="continuous").lines[0].get_xydata()
    assert len(line) == 30
    np.testing.assert_allclose(line[:, 1], line[:, 0] ** 2, atol=2e-3)


def test_two_codes_share_one_scale_and_are_coloured_by_angle() -> None:
    levels = np.tile(np.arange(8.0), 20)
    angle = 2 * np.pi * levels / 8
    plane = np.column_stack([np.cos(angle), 3 * np.sin(angle)])
    ax = plot_code_plane(plane, levels, size=8, code_names=("code 1", "code 5"))
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_aspect()) == ("code 1", "code 5", 1.0)
    np.testing.assert_array_equal(dots(ax), plane)
    np.testing.assert_allclose(ax.collections[0].get_facecolor()[:, :3], CYCLIC(levels / 8)[:, :3])


def test_the_cyclic_colours_close_and_differ_within_the_cycle() -> None:
    loop = CYCLIC(np.arange(256) / 256)[:, :3]
    steps = np.linalg.norm(np.diff(np.vstack([loop, loop[:1]]), axis=0), axis=1)
    assert steps.max() < 0.02
    assert np.linalg.norm(loop[:128] - loop[128:], axis=1).min() > 0.3
    # For those without red-green vision, who see little more than lightness and blue against yellow.
    grey_blue = np.column_stack([loop @ [0.2126, 0.7152, 0.0722], loop[:, 2]])
    assert np.linalg.norm(grey_blue[:128] - grey_blue[128:], axis=1).min() > 0.2
    np.testing.assert_array_equal(
        cyclic_colours(np.array([0.0, 3.0]), 3)[0], cyclic_colours(np.array([0.0, 3.0]), 3)[1]
    )


@pytest.mark.parametrize(("period", "low", "ticks"), [
    (0.0, 0.0, ["0", "π", "2π"]),
    (2 * np.pi, -np.pi, ["−π", "0", "π"]),
    (np.pi, 0.0, ["0", "π/2", "π"]),
    (360, 0.0, ["0", "180", "360"]),
    (360, -np.pi, ["−180", "0", "180"]),
    (24, 0.0, ["0", "12", "24"]),
    (1, 0.0, ["0", "0.5", "1"]),
])  # fmt: skip
def test_axes_of_angles_are_marked_in_the_unit_of_their_labels(period: float, low: float, ticks: list[str]) -> None:
    angles = low + np.linspace(0.01, 2 * np.pi - 0.01, 200)
    ax = plot_factor_code(np.cos(angles), angles, kind="cyclic", period=period)
    assert [text.get_text() for text in ax.get_xticklabels()] == ticks
    np.testing.assert_allclose(ax.get_xticks(), low + np.pi * np.arange(3))
