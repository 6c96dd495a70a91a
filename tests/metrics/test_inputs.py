"""How factors are read before anything is computed of them."""

import numpy as np
import pytest

from unbraid.metrics import METRICS, snc
from unbraid.metrics._shared.inputs import as_levels, check_inputs

RNG = np.random.default_rng(0)


def test_angles_are_cut_around_the_circle() -> None:
    """Into twenty bins of 18 degrees each, from 0 on; those below 0 are the last ones."""
    degrees = np.arange(40) * 9 - 180 + 4.5
    levels = as_levels(check_inputs(np.zeros((40, 1)), np.radians(degrees)[:, None], ["cyclic"]))
    assert levels.levels[:, 0].tolist() == [int(each % 360 // 18) for each in degrees]
    assert levels.sizes == (20,)


def test_what_is_wrong_with_test_factors_names_them_and_their_row() -> None:
    codes = RNG.standard_normal((100, 2))
    factors = (codes[:, :1] > 0) * 1.0
    with pytest.raises(ValueError, match=r"test_factors column 0 must number the levels of factors: 0, 1, "):
        snc(codes, factors, test_codes=codes[:20], test_factors=factors[:20] + 0.5)


@pytest.mark.parametrize("metric", ["snc", "dci_boosted", "linear_accuracy", "nk"])
def test_an_outlier_among_test_rows_moves_no_class(metric: str) -> None:
    factors, asked = RNG.uniform(size=(500, 1)), RNG.uniform(size=(200, 1))
    asked[0] = 1.0
    codes, row = np.column_stack([factors, RNG.standard_normal(500)]), METRICS[metric]
    far = np.where(np.arange(200)[:, None] == 0, 1000.0, asked)
    scores = [
        getattr(
            row.function(codes, factors, test_codes=np.column_stack([each, asked]), test_factors=each), row.headline
        )
        for each in (asked, far)
    ]
    assert scores[1] == pytest.approx(scores[0], abs=0.02)
    assert scores[0] > 0.1
