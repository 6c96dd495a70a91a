"""Cyclic factors whose values are radians, or degrees told by their period: circles without steps."""

import numpy as np
import pytest

import unbraid
from unbraid.metrics import NotDefined, block_r2, dcimig, infomec, linear_accuracy, mcc, mig, r2, snc
from unbraid.metrics._shared.inputs import as_levels, check_inputs

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("top", [2 * np.pi, np.pi, 1.5, 0.9])
def test_cosine_and_sine_of_an_angle_are_all_that_is_to_know_of_it(top: float) -> None:
    angle = RNG.uniform(0, top, 600)
    codes = np.column_stack([np.cos(angle), np.sin(angle)])
    assert r2(codes, angle[:, None], kinds=["cyclic"]).score == pytest.approx(1, abs=1e-9)
    assert mcc(codes, angle[:, None], kinds=["cyclic"], alignment="linear").score == pytest.approx(1, abs=1e-9)
    found = block_r2(codes, angle[:, None], kinds=["cyclic"], code_blocks=[[0, 1]], factor_blocks=[[0]])
    assert found.score == pytest.approx(1, abs=1e-9)


def test_an_angle_stands_beside_a_factor_that_turns_in_steps() -> None:
    degrees, step = RNG.uniform(0, 360, 600), RNG.integers(0, 8, 600)
    angle, turn = np.radians(degrees), 2 * np.pi * step / 8
    codes = np.column_stack([np.cos(angle), np.sin(angle), np.cos(turn), np.sin(turn)])
    metrics = ["r2", "mcc", "tmex", "infomec(variant=training)"]
    card = unbraid.score(codes, {"heading": degrees, "turn": step}, period={"heading": 360, "turn": 8}, metrics=metrics)
    assert not card.skipped
    assert card["r2"].score == pytest.approx(1, abs=1e-9)


def test_a_value_on_an_edge_stays_there_whatever_rounding_does() -> None:
    step = np.repeat(np.arange(20), 50)
    angle = step * np.pi / 10
    rounded = np.arctan2(np.sin(angle), np.cos(angle))[:, None]
    strayed = (angle + 1e-15 * RNG.standard_normal(len(angle)))[:, None]
    for values in (angle[:, None], rounded, rounded.astype(np.float32), strayed):
        assert as_levels(check_inputs(step[:, None] * 1.0, values, ["cyclic"])).sizes == (20,)
        assert mig(step[:, None] * 1.0, values, kinds=["cyclic"]).score == pytest.approx(1)
        assert snc(step[:, None] * 1.0, values, kinds=["cyclic"]).score == pytest.approx(1)
        assert linear_accuracy(np.eye(20)[step], values, kinds=["cyclic"]).score == pytest.approx(1)


@pytest.mark.parametrize("metric", [mig, dcimig, infomec, snc])
def test_what_falls_into_one_bin_has_no_classes(metric) -> None:
    angle = RNG.uniform(0.01, 0.3, 300)[:, None]
    with pytest.raises(NotDefined, match="factors column 0 has all its values in one of 20 bins"):
        metric(angle, angle, kinds=["cyclic"])
    same = np.array([[0.3], [0.1 + 0.2]] * 50)
    with pytest.raises(NotDefined, match="factors column 0 has all its values in one of 20 bins"):
        metric(np.array([[0.0], [1.0]] * 50), same)
