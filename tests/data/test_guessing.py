"""Columns as they are recorded: which kind a colleague would take each for, and which are no factors at all."""

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

import unbraid
from unbraid.data import Representation
from unbraid.data.guessing import MOST_LEVELS, angle_period, guess_kind
from unbraid.data.labels import read_labels
from unbraid.metrics import mig

N = 2000
RNG = np.random.default_rng(0)
CATEGORICAL, ORDINAL, CONTINUOUS, NOT_SCORED = "categorical", "ordinal", "continuous", "not scored"


def drawn(*levels: Any) -> np.ndarray:
    return RNG.choice(np.array(levels), N)


def walk(step: float) -> np.ndarray:
    return np.cumsum(RNG.normal(0, step, N))


# Each column stands in a table beside one that is a factor. "angle" and what follows: the note must ask about it.
COLUMNS = {
    # Single cells, anndata.obs
    "n_counts": (np.exp(RNG.normal(8, 0.5, N)).astype(int), CONTINUOUS, ""),
    "n_genes": (RNG.integers(200, 5000, N).astype(float), CONTINUOUS, ""),
    "percent_mito": (RNG.beta(2, 30, N), CONTINUOUS, ""),
    "louvain": (drawn("0", "1", "2", "3", "10"), CATEGORICAL, ""),
    "phase": (drawn("G1", "S", "G2M"), CATEGORICAL, ""),
    "batch": (drawn("a", "b"), CATEGORICAL, ""),
    "dosage": (drawn(0, 0.1, 1, 10), ORDINAL, ""),
    "dosage_uM": (drawn(0.0, 1.0, 10.0, 100.0), ORDINAL, ""),
    "doublet_score": (np.round(RNG.beta(1, 20, N), 4), CONTINUOUS, ""),
    "barcode": (np.array([f"AAAC{row:05}-1" for row in range(N)]), NOT_SCORED, ""),
    # Recordings and behaviour
    "head_direction": (np.rad2deg(walk(0.3)) % 360, CONTINUOUS, "360"),
    "heading": (np.angle(np.exp(1j * walk(0.3))), CONTINUOUS, "2pi"),
    "theta_phase": (RNG.uniform(0, 2 * np.pi, N), CONTINUOUS, "2pi"),
    "wheel": (RNG.integers(-180, 180, N), CONTINUOUS, "360"),
    "speed": (np.abs(RNG.normal(0, 12, N)), CONTINUOUS, ""),
    "position_cm": (np.abs(walk(1.0)) % 150, CONTINUOUS, ""),
    "trial": (np.repeat(np.arange(100), 20), NOT_SCORED, ""),
    "time": (np.arange(N) / 30.0, NOT_SCORED, ""),
    "frame": (np.arange(N) % 500, NOT_SCORED, ""),
    "animal id": (np.repeat([12, 17, 31, 40], N // 4), NOT_SCORED, ""),
    "sessionID": (np.repeat(["m1_s1", "m1_s2", "m2_s1", "m2_s2"], N // 4), NOT_SCORED, ""),
    "reward": (drawn(0, 1), ORDINAL, ""),
    "reward_ul": (drawn(0.0, 2.5, 5.0), ORDINAL, ""),
    "licks": (RNG.poisson(2, N), ORDINAL, ""),
    "spikes": (RNG.integers(0, 1901, N), CONTINUOUS, ""),
    # Images
    "Smiling": (drawn(-1, 1), ORDINAL, ""),
    "scale": (drawn(*np.linspace(0.5, 1, 6)), ORDINAL, ""),
    "latents_classes_3": (drawn(*range(40)), ORDINAL, ""),
    "latents_values_3": (drawn(*np.linspace(0, 2 * np.pi, 40)), ORDINAL, "2pi"),
    "floor_hue": (drawn(*np.arange(10) / 10), ORDINAL, "1"),
    "object_colour": (drawn(*range(6)), ORDINAL, ""),
    "object_id": (drawn(*range(25)), ORDINAL, ""),
    # Experiments, surveys
    "step": (np.tile(np.arange(0, 50_000, 100), 4), NOT_SCORED, ""),
    "seed": (drawn(0, 1, 2, 3, 4), ORDINAL, ""),
    "lr": (drawn(1e-4, 3e-4, 1e-3, 1e-2), ORDINAL, ""),
    "run_id": (np.array([f"{row * 7919 % 99991:x}" for row in range(N)]), NOT_SCORED, ""),
    "birthday": (np.datetime64("1950-01-01") + RNG.integers(0, 20_000, N), CONTINUOUS, ""),
    "recorded": ((np.datetime64("2024-05-01T12:00") + np.arange(N)).astype(str), NOT_SCORED, ""),
    "smoker": (drawn("yes", "no"), CATEGORICAL, ""),
    "rating": (drawn(1, 2, 3, 4, 5), ORDINAL, ""),
    "age": (RNG.integers(18, 91, N), CONTINUOUS, ""),
    "row": (RNG.permutation(N), NOT_SCORED, ""),
}


def test_columns_as_they_are_recorded_are_read_as_a_colleague_would() -> None:
    assert len(COLUMNS) >= 40
    for name, (column, kind, period) in COLUMNS.items():
        read = read_labels({"shape": RNG.integers(0, 3, N), name: column})
        found = dict(zip(read.names, read.kinds, strict=True)).get(name, NOT_SCORED)
        notes = " ".join(read.notes)
        assert (name, found) == (name, kind)
        assert notes.startswith(f"not scored as factors: {name} (") == (kind == NOT_SCORED)
        assert ("an angle?" in notes) == bool(period), name
        assert not period or f"--period {name}={period})" in notes


@pytest.mark.parametrize(
    "named", [{"columns": ["time", "shape"]}, {"kinds": {"time": "continuous"}}, {"unwanted": "time"}]
)
def test_a_column_that_is_named_is_a_factor_whatever_it_is(named: dict[str, Any]) -> None:
    labels = {"time": np.arange(N) / 30, "shape": RNG.integers(0, 3, N), "trial": np.arange(N) // 20}
    assert "time" in read_labels(labels, **named).names
    read = read_labels(labels)
    assert read.names == ("shape",)
    assert read.notes[0] == (
        "not scored as factors: time (grows with the row), trial (names groups of rows); columns= (--factors) names "
        "those to score"
    )


def test_factors_in_an_array_are_all_factors() -> None:
    factors = np.column_stack([np.linspace(0, 1, N), np.arange(N) % 3])
    assert Representation.of(np.eye(N, 2), factors).names == ("factor_0", "factor_1")
    gap = np.where(np.arange(N)[:, None] == 5, np.nan, factors)
    assert Representation.of(np.eye(N, 2), gap).names == ("factor_0", "factor_1")


def test_numbers_are_levels_where_they_are_few_and_repeat() -> None:
    few, many = np.arange(float(MOST_LEVELS)), np.arange(MOST_LEVELS + 1.0)
    assert guess_kind(np.repeat(few, 5)) == "ordinal"
    assert guess_kind(np.repeat(many, 5)) == "continuous"
    assert guess_kind(np.repeat(few, 4)) == "continuous"  # a handful of rows each
    assert guess_kind(np.repeat(few, np.where(few < 25, 5, 1))) == "ordinal"
    assert guess_kind(np.repeat(few, np.where(few < 24, 5, 1))) == "continuous"
    assert guess_kind(np.arange(10.0)) == "ordinal"  # whole numbers of a small sample
    assert guess_kind(np.arange(11.0)) == "continuous"
    assert guess_kind(np.arange(10.0) + 0.5) == "continuous"
    assert guess_kind(np.append(np.zeros(1000), many)) == "continuous"


@pytest.mark.parametrize(
    ("name", "values", "period"),
    [
        ("x", np.arange(0, 360, 30), 360),
        ("x", np.arange(-180, 181, 45), 360),
        ("x", np.arange(0, 360, 30) + 30, None),  # 30 to 390
        ("x", np.arange(300), None),
        ("x", np.linspace(-np.pi, np.pi, 100), 2 * np.pi),
        ("x", np.clip(RNG.normal(size=N), -3.1, 3.1), None),  # a normal variable reaches as far
        ("x", np.arange(7), None),
        ("month", np.arange(1, 13), None),
        ("hour", np.arange(24), 24),
        ("hue", np.arange(12), 12),
        ("Hue", RNG.random(N), 1),
        ("shoulderAngle", RNG.uniform(20, 90, N), 360),
        ("angle", RNG.uniform(0, 4000, N), None),  # turns are counted
        ("direction", np.array([-1, 1] * 9), None),
        ("triangle", np.arange(12), None),
    ],
)
def test_angles_are_known_by_name_or_by_their_circle(name: str, values: np.ndarray, period: float | None) -> None:
    assert angle_period(name, values.astype(float)) == (None if period is None else pytest.approx(period))


def test_counts_are_scored_in_bins_and_not_as_a_class_for_each_number() -> None:
    """MIG by scikit-learn's mutual information of NumPy's 20 bins."""
    rng = np.random.default_rng(0)
    counts = rng.permutation(np.append(np.arange(1900), rng.integers(0, 1900, 1100)))  # none on an edge of a bin
    codes = np.column_stack([counts + rng.normal(0, 20, 3000), rng.normal(size=3000)])
    card = unbraid.score(codes, {"n_counts": counts}, metrics=["mig"])
    bins, *informed = (
        np.digitize(column, np.histogram_bin_edges(column, 20)[1:-1]) for column in (counts, codes[:, 0], codes[:, 1])
    )
    information = [mutual_info_score(bins, code) for code in informed]
    entropy = mutual_info_score(bins, bins)
    assert card["mig"].score == pytest.approx((information[0] - information[1]) / entropy, abs=1e-6)
    assert card.notes[0] == "kinds guessed: n_counts continuous (1,900 whole numbers); pass kinds= (--kinds) to change"


@pytest.mark.parametrize("given", [{}, {"kinds": ["ordinal"]}, {"kinds": {"factor_0": "ordinal"}}])
def test_levels_that_are_no_whole_numbers_count_by_rank(given: dict[str, Any]) -> None:
    rank = np.arange(400) % 4
    doses = np.array([0, 0.1, 1, 10])[rank] + np.array([0, 1e-17, 1e-16, 1e-15])[rank] * (np.arange(400) // 4 % 2)
    codes = rank[:, None] + np.random.default_rng(0).normal(0, 0.2, (400, 2))
    asked = {"metrics": ["mig", "sap", "r2", "nk", "irs"], **given}
    cards = [unbraid.score(codes, column[:, None], **asked) for column in (doses, rank)]
    for name in cards[0]:
        assert cards[0].scored[name].values == cards[1].scored[name].values
    assert mig(codes, doses[:, None]).score == cards[0]["mig"].score
    table = unbraid.score(codes, {"dose": doses}, metrics="mig")
    assert table["mig"].score == cards[0]["mig"].score
    assert table.representation.factors[:, 0] == pytest.approx(doses, abs=0)
    assert table.to_dict()["input"]["factors"][0]["size"] == 4
    assert table.notes[0] == "kinds guessed: dose ordinal (4 levels, by rank); pass kinds= (--kinds) to change"
