"""Input that is legal and unusual: it is scored as it says, or refused in one line."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unbraid import Representation, ScoreCard, compare, score
from unbraid.metrics import mig

RNG = np.random.default_rng(0)
FACTORS = np.column_stack([RNG.integers(0, 4, 200), RNG.integers(0, 5, 200)])
CODES = FACTORS + 0.3 * RNG.standard_normal(FACTORS.shape)


def test_blocks_of_factors_stay_where_one_factor_is_taken_for_the_groups() -> None:
    factors = np.column_stack([FACTORS, np.arange(200) // 10]).astype(float)
    blocks = {"A": ["y"], "B": ["x"]}
    held = Representation(
        CODES, factors, names=("x", "y", "trial"), kinds=("ordinal",) * 3, code_blocks="0,1", factor_blocks=blocks
    )
    note = next(note for note in score(held, metrics="mig").notes if "A" in note)
    card = score(held, metrics="mig", groups="trial")
    assert note in card.notes
    assert card["block_r2"].score < 0.1, "codes are in the places of the other factor"


def test_models_whose_factors_are_of_other_kinds_or_levels_are_not_compared() -> None:
    one = Representation(CODES, FACTORS[:, :1], names=("s",), kinds=("ordinal",))
    other = Representation(CODES, FACTORS[:, :1], names=("s",), kinds=("categorical",))
    with pytest.raises(ValueError, match="factor s is ordinal in a and categorical in b"):
        compare({"a": one, "b": other}, metrics="sap", confidence=(0.95, 20))
    named = [
        Representation(CODES, FACTORS[:, :1], names=("s",), kinds=("categorical",), levels=(levels,))
        for levels in (tuple("abcd"), tuple("bcde"))
    ]
    with pytest.raises(ValueError, match="the levels of factor s are a, b, c, d in a and b, c, d, e in b"):
        compare(dict(zip("ab", named, strict=True)), metrics="sap", confidence=(0.95, 20))


@pytest.mark.parametrize("n", [12, 20, 40])
def test_a_short_series_is_shifted_no_more_often_than_shifts_differ(n: int) -> None:
    def agreement(codes: np.ndarray, factors: np.ndarray) -> float:
        return float(abs(np.corrcoef(codes[:, 0], factors[:, 0])[0, 1]))

    card = score(CODES[:n, :1], CODES[:n, 1:], kinds=["continuous"], metrics=agreement, null="shift")
    (own,) = card.scored.values()
    assert own.null is not None
    assert len(own.null.scores) == 2 * (n // 4)
    assert len(np.unique(own.null.scores)) == len(own.null.scores)
    assert f"shifted {2 * (n // 4)} times: no more stretches of these rows differ" in card.notes


def test_a_card_is_kept_whatever_type_its_numbers_came_in(tmp_path: Path) -> None:
    card = score(
        CODES,
        FACTORS,
        sizes=np.array([4, 5]),
        metrics="sap",
        confidence=(np.float32(0.9), np.int64(20)),
        seed=np.int64(3),
    )
    card.save(tmp_path / "card.json")
    assert ScoreCard.load(tmp_path / "card.json")["sap"].score == card["sap"].score
    with pytest.raises(ValueError, match="seed must be a whole number, 0 to"):
        score(CODES, FACTORS, metrics="sap", seed=2**63)


def test_a_card_goes_with_the_codes_that_were_scored(tmp_path: Path) -> None:
    score(CODES, FACTORS, metrics="mig").save(tmp_path / "card.json")
    kept = ScoreCard.load(tmp_path / "card.json", Representation(CODES, FACTORS))
    assert len(kept.representation) == 200
    for codes, factors, what in ((CODES + 1, FACTORS, "codes"), (CODES, FACTORS[::-1], "factors")):
        with pytest.raises(ValueError, match=f"these are the scores of other {what}"):
            ScoreCard.load(tmp_path / "card.json", Representation(codes, factors))


def test_no_baseline_takes_the_place_of_a_column() -> None:
    with pytest.raises(ValueError, match=r"baselines: 'null' is a column of to_frame\(\) already"):
        score(CODES, FACTORS, metrics="mig", baselines={"null": CODES})


def test_a_mask_of_held_out_rows_means_in_parts_of_them_what_the_condition_means() -> None:
    inside = (FACTORS[:, 0] > 1) & (FACTORS[:, 1] > 2)
    gaps = (inside.tolist(), "factor_0 > 1 and factor_1 > 2")
    shifted = [score(CODES, FACTORS, metrics="zero_shot", held_out=gap, null="shift:3") for gap in gaps]
    by_mask, by_text = (card.scored["zero_shot"].null for card in shifted)
    assert by_mask is not None
    assert by_text is not None
    np.testing.assert_array_equal(by_mask.scores, by_text.scores)


def test_a_mask_of_held_out_rows_follows_the_rows_that_stay() -> None:
    """Given for all rows, it is that of the rows which lack no label and have a weight; or it is given for these."""
    x = np.where(np.arange(200) % 7 == 3, np.nan, FACTORS[:, 0])
    labels, used = {"x": x, "y": FACTORS[:, 1]}, ~np.isnan(x)
    mask = (FACTORS[:, 0] > 1) & (FACTORS[:, 1] > 2)
    alone = score(CODES[used], FACTORS[used], metrics="zero_shot", held_out=mask[used])["zero_shot"].score
    for held_out in (mask, mask.tolist(), mask[used], "x > 1 and y > 2"):
        assert score(CODES, labels, metrics="zero_shot", held_out=held_out)["zero_shot"].score == alone
    with pytest.raises(ValueError, match=r"held_out must be one boolean per row, shape \(171,\)"):
        score(CODES, labels, metrics="zero_shot", held_out=mask[1:])
    weights = np.arange(200) % 3
    held = Representation(CODES, FACTORS, weights=weights)
    for card in (
        score(CODES, FACTORS, metrics="mig", weights=weights, held_out=mask),
        score(held, metrics="mig", held_out=mask),
        score(replace(held, weights=None), metrics="mig", weights=weights, held_out=mask),
    ):
        assert len(card.representation) == (weights > 0).sum()


def test_a_factor_that_is_constant_is_called_by_its_name() -> None:
    constant = FACTORS * [1, 0]
    with pytest.raises(ValueError, match="^labels: 'size' is constant over the 200 rows in use"):
        score(CODES, constant, names=["x", "size"], metrics="mig")
    with pytest.raises(ValueError, match="^factor size is constant \\(always 0\\)"):
        score(Representation(CODES, constant, names=("x", "size")), metrics="mig")


def test_a_column_of_a_matrix_that_numbers_the_rows_is_refused_once() -> None:
    numbered = np.column_stack([np.arange(200), FACTORS[:, 0]])
    with pytest.raises(ValueError, match="^factors column factor_0 numbers the rows: leave it out, or give its kind"):
        score(CODES, numbered)
    with pytest.raises(ValueError, match="^factors column id numbers the rows"):
        score(CODES, numbered, names=["id", "x"])
    assert "mig" in score(CODES, numbered, kinds=["continuous", "ordinal"], metrics="mig")


@pytest.mark.parametrize("labels", [lambda factors: factors, lambda factors: {"x": factors[:, 0], "y": factors[:, 1]}])
def test_codes_of_rows_without_a_label_need_not_be_numbers(labels: Any) -> None:
    codes, factors = CODES.copy(), FACTORS.astype(float)
    factors[[3, 7], 0] = np.nan
    codes[3, 1], codes[7, 0] = np.nan, np.inf
    used = ~np.isnan(factors[:, 0])
    there = score(codes[used], labels(factors[used]), metrics="mig")["mig"]
    for card in (
        score(codes, labels(factors), metrics="mig"),
        score(Representation.of(codes, labels(factors)), metrics="mig"),
    ):
        assert card["mig"].score == pytest.approx(there.score)
    codes[9, 1] = np.nan
    with pytest.raises(ValueError, match=r"codes must be finite; row 9, column 1 is nan \(1 such values in all\)"):
        score(codes, labels(factors), metrics="mig")


def test_a_list_of_models_in_memory_is_compared_by_their_places(tmp_path: Path) -> None:
    one, other = (Representation.of(CODES + noise * RNG.standard_normal(CODES.shape), FACTORS) for noise in (0, 1))
    found = compare([one, other], metrics="mig", confidence=(0.95, 10))
    named = compare({"model 0": one, "model 1": other}, metrics="mig", confidence=(0.95, 10))
    assert str(found) == str(named)
    assert str(found).count("model 0 - model 1") == 1
    one.save(tmp_path / "a.npz")
    assert list(compare([tmp_path / "a.npz", other], metrics="mig", confidence=(0.95, 10)).cards)[1] == "model 1"
    with pytest.raises(ValueError, match="^two of the models are the same file; give each once, or name them by a map"):
        compare([tmp_path / "a.npz", tmp_path / "a.npz"], metrics="mig")


def test_swapped_codes_and_factors_are_refused_where_both_look_it() -> None:
    levels, real = RNG.integers(0, 5, (300, 2)), RNG.standard_normal((300, 3))
    said = "^are codes and factors swapped\\? All codes are a few whole numbers"
    gap = np.where(np.arange(300)[:, None] == 7, np.nan, real)
    for labels in (real, {"factor_0": real[:, 0]}, gap):
        with pytest.raises(ValueError, match=said):
            score(levels, labels, metrics="mig")
    quantised = np.rint(2 * real)
    for codes, factors, told in (
        (real, levels, {}),
        (quantised, levels, {}),  # codes of a quantised model, and levels
        (real, real, {}),
        (np.column_stack([levels, real]), real, {}),
        (levels, np.column_stack([real, levels[:, 0]]), {}),
        (levels, real, {"kinds": ["continuous"] * 3}),
        (levels, real, {"names": ["x", "y", "z"]}),
        (levels, {"speed": real[:, 0]}, {}),
    ):
        assert "mig" in score(codes, factors, metrics="mig", **told)


def test_ten_thousand_levels_are_refused_in_one_line_that_gives_the_kind() -> None:
    levels = np.append(np.arange(10_000), RNG.integers(0, 10_000, 50_000))[:, None]
    codes, kinds = levels + RNG.standard_normal((60_000, 2)), ("categorical",)
    named, end = "^factor cell_id has 10,000 levels, and at most 1,000 are scored as classes", "; else leave it out .*$"
    line = named + r"; if it is measured, give kinds={'cell_id': 'continuous'} \(--kinds cell_id=continuous\)" + end
    with pytest.raises(ValueError, match=line):
        score(codes, {"cell_id": levels[:, 0]}, kinds={"cell_id": "ordinal"})
    with pytest.raises(ValueError, match=named + end):
        score(codes, {"cell_id": levels[:, 0].astype(str)}, columns=["cell_id"])
    with pytest.raises(ValueError, match=line):
        score(codes, levels, kinds=kinds, names=["cell_id"])
    with pytest.raises(ValueError, match=named + "; if it is measured, its kind is 'continuous'" + end):
        score(Representation(codes, levels, names=("cell_id",), kinds=kinds))
    with pytest.raises(ValueError, match="factor 0 has 10,000 levels"):
        mig(codes, levels, kinds=kinds)
    assert score(codes, levels, metrics="mig")["mig"].factor_entropy == pytest.approx(np.log(20), abs=0.01)


def test_metrics_that_fit_a_model_to_each_level_are_skipped_where_levels_are_many() -> None:
    few, many = RNG.permutation(np.arange(300) % 100), RNG.permutation(np.arange(303) % 101)
    asked = {"metrics": ["mig", "linear_accuracy", "r2"]}
    for kind, left_out in (("categorical", ["linear_accuracy", "r2"]), ("ordinal", ["linear_accuracy"])):
        card = score(RNG.standard_normal((303, 2)), many[:, None], names=["gene"], kinds=[kind], **asked)
        assert list(card.skipped) == left_out
        assert card.skipped["linear_accuracy"] == (
            "fits a model to each level, of 100 at most, and factor gene has 101; if it is measured, its kind is "
            "continuous"
        )
        assert not score(RNG.standard_normal((300, 2)), few[:, None], kinds=[kind], **asked).skipped
