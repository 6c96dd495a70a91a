import numpy as np

from tests.examples import SPACE, grid_factors, perfect_codes
from unbraid.show import plot_important_codes
from unbraid.show.important import most_important_codes

FACTORS = grid_factors(2)
CODES = perfect_codes(FACTORS)  # the codes are the factors in reverse


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
