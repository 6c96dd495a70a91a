"""How factors are read before anything is computed of them."""

import numpy as np

from unbraid.metrics._shared.inputs import as_levels, check_inputs


def test_angles_are_cut_around_the_circle() -> None:
    """Into twenty bins of 18 degrees each, from 0 on; those below 0 are the last ones."""
    degrees = np.arange(40) * 9 - 180 + 4.5
    levels = as_levels(check_inputs(np.zeros((40, 1)), np.radians(degrees)[:, None], ["cyclic"]))
    assert levels.levels[:, 0].tolist() == [int(each % 360 // 18) for each in degrees]
    assert levels.sizes == (20,)
