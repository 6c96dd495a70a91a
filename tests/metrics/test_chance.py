"""Noise and its spread: what is drawn, and from which spread on a score cannot be read."""

import numpy as np
import pytest

from tests.examples import grid_factors
from unbraid.metrics import METRICS
from unbraid.metrics._shared.chance import Noise, drawn, notes_on_noise
from unbraid.metrics._shared.inputs import check_inputs


def test_the_spread_is_that_of_a_sample() -> None:
    assert drawn([0.0, 1.0]) == pytest.approx((0.5, np.sqrt(0.5)))


def test_a_score_cannot_be_read_where_noise_strays_by_more_than_a_tenth() -> None:
    assert notes_on_noise(Noise(0.3, 0.1), 0.3) == ()
    (note,) = notes_on_noise(Noise(0.3, 0.101), 0.7)
    assert note.endswith("independent noise would score 0.30, give or take 0.10")


def test_a_score_that_noise_does_not_reach_can_be_read() -> None:
    assert notes_on_noise(Noise(0.0, 0.13), 1.0) == notes_on_noise(Noise(0.0, 0.13), -0.53) == ()
    assert notes_on_noise(Noise(0.0, 0.13), -0.51)


def test_a_difference_of_two_heads_strays_by_the_root_of_two() -> None:
    """NK is the score of one perceptron less that of another: of noise, as independent, their variances add up."""
    factors = grid_factors(4)
    inputs = check_inputs(np.zeros((len(factors), 3)), factors)
    one, two = METRICS["mlp_accuracy"].chance, METRICS["nk"].chance
    assert one is not None
    assert two is not None
    assert two(inputs).spread == pytest.approx(np.sqrt(2) * one(inputs).spread, rel=0.01)
