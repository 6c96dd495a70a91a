import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from tests.examples import entangled_codes, grid_factors
from unbraid.base.types import FloatArray
from unbraid.metrics import mig
from unbraid.show import plot_hinton

MATRIX = np.array([[4.0, 0.0, 1.0], [0.25, -1.0, 0.0]])


def squares(ax: Axes) -> PolyCollection:
    collection = ax.collections[0]
    assert isinstance(collection, PolyCollection)
    return collection


def areas_and_centres(ax: Axes) -> tuple[FloatArray, FloatArray]:
    """By the shoelace formula, from the corners that are drawn."""
    corners = np.array([path.vertices[:4] for path in squares(ax).get_paths()])
    x, y = corners[..., 0], corners[..., 1]
    areas = 0.5 * np.abs((x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1)).sum(axis=1))
    return areas, corners.mean(axis=1)


def test_areas_are_proportional_to_the_entries_and_sit_on_column_and_row() -> None:
    areas, centres = areas_and_centres(plot_hinton(MATRIX))
    np.testing.assert_allclose(centres, [[0, 0], [2, 0], [0, 1], [1, 1]], atol=1e-12)
    np.testing.assert_allclose(areas / areas[0], [1, 1 / 4, 1 / 16, 1 / 4])
    assert areas[0] < 1  # the largest stays inside its cell


def test_a_result_is_drawn_by_its_matrix() -> None:
    factors = grid_factors(2)
    result = mig(entangled_codes(factors), factors)
    areas, _ = areas_and_centres(plot_hinton(result))
    drawn = result.mutual_information[result.mutual_information > 0]
    np.testing.assert_allclose(areas / areas.max(), drawn / drawn.max())
