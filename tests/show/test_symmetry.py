from types import SimpleNamespace

import numpy as np

from unbraid.show import plot_dispersion, plot_symmetry
from unbraid.show.style import CYCLIC

ANGLES = np.column_stack([np.linspace(0, 2 * np.pi, 60, endpoint=False), np.zeros(60)])
RESULT = SimpleNamespace(
    projected=np.stack([np.column_stack([np.cos(2 * ANGLES[:, 0]), np.sin(2 * ANGLES[:, 0])]), np.zeros((60, 2))]),
    angles=ANGLES,
    dispersion=np.array([[1.0, 0.9, 0.125, 0.8], [1.0, 1.0, 1.0, 1.0]]),
)


def test_embeddings_are_dots_coloured_by_the_angle_of_their_subgroup() -> None:
    ax = plot_symmetry(RESULT)
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), RESULT.projected[0])
    colours = ax.collections[0].get_facecolor()
    np.testing.assert_allclose(colours[:, :3], CYCLIC(np.arange(60) / 60)[:, :3])
    assert ax.get_aspect() == 1.0


def test_chosen_rows_and_a_subgroup_that_moves_nothing() -> None:
    dots = plot_symmetry(RESULT, rows=[3, 5]).collections[0].get_offsets()
    np.testing.assert_array_equal(dots, RESULT.projected[0, [3, 5]])
    plot_symmetry(RESULT, subgroup=1).figure.savefig("/dev/null", format="svg")


def test_the_least_dispersion_is_marked() -> None:
    ax = plot_dispersion(RESULT)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), RESULT.dispersion[0])
    assert ax.lines[-1].get_xydata().tolist() == [[2, 0.125]]
    assert ax.texts[0].get_text() == "0.12"
