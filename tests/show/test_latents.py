import numpy as np
import pytest
from matplotlib.colors import to_hex

from tests.examples import SPACE, entangled_codes, grid_factors
from unbraid.data import FactorSpace
from unbraid.show import plot_latents
from unbraid.show.style import PALETTE

FACTORS = grid_factors(4)
CODES = entangled_codes(FACTORS)


def test_a_line_is_the_mean_code_of_one_shape_at_each_size() -> None:
    panels = plot_latents(CODES, FACTORS, kinds=SPACE.kinds)
    lines = panels[1][2].lines[1:]  # the first is the zero line
    assert [to_hex(line.get_color()) for line in lines] == list(PALETTE[:3])
    for shape, line in enumerate(lines):
        for size, mean in np.asarray(line.get_xydata()):
            own = (FACTORS[:, 0] == shape) & (FACTORS[:, 1] == size)
            assert mean == pytest.approx(CODES[own, 2].mean())


def test_a_category_shows_mean_and_percentiles_of_each_level() -> None:
    ax = plot_latents(CODES, FACTORS, kinds=SPACE.kinds)[0][1]
    bars, means = ax.collections
    for shape in range(3):
        own = CODES[FACTORS[:, 0] == shape, 1]
        np.testing.assert_allclose(bars.get_segments()[shape][:, 1], np.percentile(own, (10, 90)))
        assert means.get_offsets()[shape][1] == pytest.approx(own.mean())


def test_a_position_is_one_map_with_x_across_and_y_up() -> None:
    space = FactorSpace(("pos_x", "shape", "pos_y"), (3, 2, 4), ("ordinal", "categorical", "ordinal"))
    factors = space.grid()
    codes = np.column_stack([10.0 * factors[:, 0] + factors[:, 2], factors[:, 2]])
    panels = plot_latents(codes, factors, kinds=space.kinds, factor_names=space.names)
    assert [row[0].get_ylabel() for row in panels] == ["pos_x\npos_y", "shape"]
    image = panels[0][0].images[0]
    assert image.origin == "lower"
    np.testing.assert_allclose(image.get_array(), [[0, 10, 20], [1, 11, 21], [2, 12, 22], [3, 13, 23]])
    low, _, high = image.cmap([0.0, 0.5, 1.0])
    assert low[0] > low[2]  # low is red
    assert high[2] > high[0]  # high is blue
