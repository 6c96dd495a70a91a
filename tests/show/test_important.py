import numpy as np

from tests.examples import SPACE, grid_factors, perfect_codes
from unbraid.metrics import d_lsbd, mig
from unbraid.show import plot_circles, plot_important_codes
from unbraid.show.important import most_important_codes

FACTORS = grid_factors(2)
CODES = perfect_codes(FACTORS)  # the codes are the factors in reverse


def test_each_factor_is_drawn_against_the_code_of_largest_entry() -> None:
    panels = plot_important_codes(mig(CODES, FACTORS), CODES, FACTORS, kinds=SPACE.kinds, factor_names=SPACE.names)
    assert [ax.get_title(loc="left") for ax in panels] == list(SPACE.names)
    assert [ax.get_ylabel() for ax in panels] == ["code 2", "code 1", "code 0"]
    dots = np.asarray(panels[1].collections[0].get_offsets())
    np.testing.assert_allclose(dots[:, 1], CODES[:, 1])
    np.testing.assert_array_equal(np.rint(dots[:, 0]), FACTORS[:, 1])  # but for the jitter


def test_negative_weights_count_by_their_size_and_no_weight_is_said() -> None:
    matrix = np.array([[0.1, 0.0, 0.0], [-0.9, 0.0, 0.2], [0.0, 0.0, 0.1]])
    panels = plot_important_codes(matrix, CODES, FACTORS, kinds=SPACE.kinds)
    assert [ax.get_ylabel() for ax in panels] == ["code 1", "", "code 1", "code 2"]
    assert panels[1].texts[0].get_text() == "no code matters"


def test_a_cyclic_factor_has_three_codes_at_most() -> None:
    """No single code holds a circle: DCI's figure 5 draws azimuth against three."""
    matrix = np.array([[0.1, 0.2], [0.4, 0.0], [-0.3, 0.1], [0.2, 0.0]])
    assert most_important_codes(matrix, ["cyclic", "ordinal"]) == [(0, 1), (0, 2), (0, 3), (1, 0)]
    assert most_important_codes(np.zeros((3, 1)), ["cyclic"]) == [(0, 0)]
    assert most_important_codes(matrix, ["continuous", "ordinal"], angles=[0]) == [(0, 1), (0, 2), (0, 3), (1, 0)]


def test_circles_have_one_panel_per_cyclic_factor_with_its_score() -> None:
    levels = np.stack(np.meshgrid(np.arange(8), np.arange(8), indexing="ij"), -1).reshape(-1, 2)
    angle = levels * 2 * np.pi / 8
    torus = np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
    result = d_lsbd(torus, levels, kinds=("cyclic", "cyclic"))
    panels = plot_circles(result, names=["x", "y"])
    assert [ax.get_title() for ax in panels] == ["x: D_LSBD 0.000", "y: D_LSBD 0.000"]
    for number, ax in enumerate(panels):
        points = np.asarray(ax.collections[0].get_offsets())
        np.testing.assert_allclose(np.hypot(*points.T), 1, atol=1e-9)
        np.testing.assert_allclose(points, result.projected[number])


def test_circles_turned_back_have_a_panel_of_their_own() -> None:
    angle = np.arange(8) * 2 * np.pi / 8
    result = d_lsbd(np.column_stack([np.cos(angle), np.sin(angle)]), np.arange(8)[:, None], kinds=("cyclic",))
    back = np.array([[[0.25, 0.5], [0.75, -1.0]]])
    before, after = plot_circles(result, names=["x"], rows=[2, 5], back=back)
    np.testing.assert_array_equal(np.asarray(before.collections[0].get_offsets()), result.projected[0, [2, 5]])
    np.testing.assert_array_equal(np.asarray(after.collections[0].get_offsets()), back[0])
    np.testing.assert_array_equal(before.collections[0].get_facecolor(), after.collections[0].get_facecolor())
    assert after.get_title() == "x: turned back"
