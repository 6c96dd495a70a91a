"""Models side by side, on the same images or on others."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t
from typer.testing import CliRunner

import unbraid
from unbraid import Representation
from unbraid.base.types import FloatArray, IntArray
from unbraid.cli.app import app
from unbraid.metrics import med, mig_sup, modularity, r2
from unbraid.metrics._shared.resampling import Resampling, part_of_rows, permutation
from unbraid.scoring.compare import Difference, _decided, _difference
from unbraid.scoring.equal_rows import Sampled

RNG = np.random.default_rng(0)
FACTORS = np.stack([RNG.integers(0, size, 400) for size in (3, 4)], axis=1)
HARD = RNG.standard_normal((400, 2))  # what makes an image hard for every model


def model(noise: float, seed: int, n_samples: int = 400) -> Representation:
    own = np.random.default_rng(seed).standard_normal((n_samples, 2))
    codes: FloatArray = FACTORS[:n_samples] + noise * (0.98 * HARD[:n_samples] + 0.2 * own)
    return Representation(codes, FACTORS[:n_samples], names=("x", "y"))


GOOD, TWIN, BAD = model(0.3, 1), model(0.3, 2), model(0.9, 3)


def test_a_difference_is_that_of_a_plain_loop_over_the_same_parts() -> None:
    found = unbraid.compare({"a": GOOD, "b": BAD}, metrics="med", confidence=(0.9, 20), seed=3)
    (own,) = found.differences
    rows = [part_of_rows(400, 5, 3, np.random.default_rng([3, 5, done])) for done in range(20)]
    first, second = (np.array([med(each.codes[k], FACTORS[k]).score for k in rows]) for each in (GOOD, BAD))
    apart = med(GOOD.codes, FACTORS).score - med(BAD.codes, FACTORS).score
    deviation = 2 * (first - second).std(ddof=1)
    assert own.difference == pytest.approx(apart)
    assert (own.low, own.high) == pytest.approx((apart - 1.729133 * deviation, apart + 1.729133 * deviation))
    assert own.p == pytest.approx(2 * t.sf(apart / deviation, 19))
    assert (found.paired, own.better, own.p_holm) == (True, "a", own.p)
    apart_too = unbraid.compare({"a": GOOD, "b": BAD}, metrics="med", confidence=(0.9, 20), seed=3, paired=False)
    variances = 4 * np.array([first.var(ddof=1), second.var(ddof=1)])
    freedom = 19 * variances.sum() ** 2 / (variances**2).sum()
    half = t.ppf(0.95, freedom) * np.sqrt(variances.sum())
    assert apart_too.differences[0].high == pytest.approx(apart + half)


def test_no_difference_is_larger_than_the_range_of_the_metric() -> None:
    """Perfect codes score 1 and noise about 0 of 1, so that their difference cannot reach more than 1."""
    perfect = Representation(FACTORS[:40] + 0.01 * HARD[:40], FACTORS[:40])
    noise = Representation(HARD[:40], FACTORS[40:80])
    (own,) = unbraid.compare({"a": perfect, "b": noise}, metrics="mig", confidence=(0.99, 5)).differences
    assert 0 < own.difference < own.high == 1
    (other,) = unbraid.compare({"b": noise, "a": perfect}, metrics="mig", confidence=(0.99, 5)).differences
    assert other.low == -1


def test_means_over_other_factors_are_not_compared() -> None:
    """A single code leaves a factor without one, which "drop" leaves out of the mean."""
    single = Representation(GOOD.codes[:, :1], FACTORS, names=("x", "y"))
    found = unbraid.compare(
        {"a": GOOD, "b": single, "c": BAD}, metrics=["med", "mcc(unmatched=drop)"], confidence=(0.95, 4)
    )
    pairs = {(each.metric, each.first, each.second) for each in found.differences}
    assert pairs == {*(("med", *pair) for pair in ("ab", "ac", "bc")), ("mcc(unmatched=drop)", "a", "c")}
    (note,) = (note for note in found.notes if "different sets" in note)
    assert note == (
        "not compared by mcc(unmatched=drop), as scores are means over different sets: "
        "a over all, b over 1 of 2 factors, c over all"
    )
    _, rows = found.table()
    assert "**" not in " ".join(rows[1]), "the best of two of three models"
    with pytest.raises(ValueError, match="nothing to compare: .*means over different sets: a over all, b over 1 of 2"):
        unbraid.compare({"a": GOOD, "b": single}, metrics="mcc(unmatched=drop)", confidence=(0.95, 4))


def test_without_metrics_there_are_unwanted_factors_to_compare_or_nothing() -> None:
    models = {"a": GOOD, "b": BAD}
    (found,) = unbraid.compare(models, metrics="none", unwanted="y", confidence=(0.95, 4)).differences
    assert found.metric == "unwanted(y)"
    with pytest.raises(ValueError, match="nothing to compare"):
        unbraid.compare(models, metrics="none", confidence=(0.95, 4))


def test_a_difference_of_blocks_in_turn_is_that_of_a_plain_loop() -> None:
    (own,) = unbraid.compare({"a": GOOD, "b": BAD}, metrics="mig_sup", confidence=(0.95, 20)).differences
    order = permutation(400, 0)
    parts = [np.empty(380, dtype=int) for _ in range(20)]
    for block, part in enumerate(parts):
        part[permutation(380, 0)] = np.delete(order, np.arange(block, 400, 20))
    first, second = (np.array([mig_sup(each.codes[k], FACTORS[k]).score for k in parts]) for each in (GOOD, BAD))
    strays = first - second - (first - second).mean()
    deviation = np.sqrt(19 / 20 * np.sum(strays**2))
    kurtosis = 20 * np.sum(strays**4) / np.sum(strays**2) ** 2
    freedom = min(max(20 / (kurtosis - 1), 3), 19)
    assert 3 < freedom < 19, "of the difference, not of one model"
    assert own.high - own.difference == pytest.approx(t.ppf(0.975, freedom) * deviation)
    assert own.p == pytest.approx(2 * t.sf(abs(own.difference) / deviation, freedom))


@pytest.mark.parametrize(("metric", "function"), [("modularity", modularity), ("r2", r2), ("med", med)])
def test_a_difference_with_pairs_of_halves_is_that_of_a_plain_loop(metric: str, function: Callable[..., Any]) -> None:
    (own,) = unbraid.compare({"a": GOOD, "b": BAD}, metrics=metric, confidence=(0.95, 40)).differences
    fifths = [part_of_rows(400, 5, 0, np.random.default_rng([0, 5, done])) for done in range(20)]
    order = permutation(400, 0).reshape(200, 2)
    of_pairs = []
    for done in range(10):
        out = np.random.default_rng([0, 2, done, 1]).integers(0, 2, (200, 1))
        for kept in (1 - out, out):
            part = np.empty(200, dtype=int)
            part[permutation(200, 0)] = np.take_along_axis(order, kept, 1)[:, 0]
            of_pairs.append(part)

    def apart(rows: IntArray) -> float:
        return function(GOOD.codes[rows], FACTORS[rows]).score - function(BAD.codes[rows], FACTORS[rows]).score

    single = 4 * np.var(list(map(apart, fifths)), ddof=1)
    first, second = (np.array(list(map(apart, of_pairs[start::2]))) for start in (0, 1))
    of_half, of_mean = np.mean((first - second) ** 2) / 4, np.var((first + second) / 2, ddof=1)
    wanted = min(single, max(of_half - of_mean, (of_half + of_mean) / 3, single - 2 * of_mean))
    assert metric == "r2" or wanted < 0.95 * single, "pairs matter here"
    assert own.high - own.difference == pytest.approx(t.ppf(0.975, 4.8) * np.sqrt(wanted))
    assert own.p == pytest.approx(2 * t.sf(abs(own.difference) / np.sqrt(wanted), 4.8))


def test_what_is_hard_for_all_models_cancels_where_rows_are_paired() -> None:
    paired, unpaired = (
        unbraid.compare({"a": GOOD, "b": TWIN}, metrics="r2", confidence=(0.95, 30), paired=each).differences[0]
        for each in (True, False)
    )
    assert paired.high - paired.low < 0.5 * (unpaired.high - unpaired.low)
    assert paired.better == unpaired.better == ""


def test_p_values_are_corrected_over_all_comparisons_and_alike_models_are_no_better() -> None:
    found = unbraid.compare({"a": GOOD, "b": GOOD, "c": BAD}, metrics=["mig", "snc", "irs"], confidence=(0.95, 20))
    assert [(each.metric, each.first, each.second) for each in found.differences[:3]] == [
        ("mig", "a", "b"), ("mig", "a", "c"), ("mig", "b", "c"),
    ]  # fmt: skip
    same = found.differences[0]
    assert (same.difference, same.low, same.high, same.p, same.p_holm, same.better) == (0, 0, 0, 1, 1, "")
    least = min(found.differences, key=lambda each: each.p)
    assert least.p_holm == pytest.approx(min(1, 9 * least.p))
    assert found.differences[1].better == "a"


def test_a_metric_that_is_the_same_for_every_model_is_left_out_of_the_table_and_the_correction() -> None:
    models = {"a": GOOD, "b": replace(GOOD, codes=GOOD.codes * [1.0, 3.0])}

    def first_value(codes: FloatArray, _factors: FloatArray) -> float:
        return float(codes[0, 1])

    def constant(_codes: FloatArray, _factors: FloatArray) -> float:
        return 0.25

    found = unbraid.compare(models, metrics=[first_value, constant, "mig"], confidence=(0.95, 9))
    assert [each.metric for each in found.differences] == ["first_value"]
    assert [row[0] for row in found.table()[1]] == ["first_value ↑"]
    assert any(
        note.startswith("left out, since it is the same for every model: constant (0.250)") for note in found.notes
    )
    assert "Holm over 1 comparison" in found.footnote
    alone = unbraid.compare(models, metrics=[constant], confidence=(0.95, 9))
    assert [each.difference for each in alone.differences] == [0], "nothing else is left"


@pytest.mark.parametrize("paired", [True, False])
def test_what_differs_by_rounding_alone_is_the_same(paired: bool) -> None:
    """The squared correlations of codes in another unit: each part of the rows differs by the same last digit."""
    method, parts = Resampling(), np.linspace(0.6, 0.7, 20)
    first, second = Sampled(method, [0.65 + 4e-16], [parts + 2e-16]), Sampled(method, [0.65], [parts])
    found = _difference("sap", ("a", "b"), {"a": {"sap": first}, "b": {"sap": second}}, 0.95, paired, (0.0, 1.0))
    assert (found.difference, found.p) == (0.0, 1.0)
    further = Sampled(method, [0.65 + 4e-6], [parts + 4e-6])
    found = _difference("sap", ("a", "b"), {"a": {"sap": further}, "b": {"sap": second}}, 0.95, paired, (0.0, 1.0))
    assert found.difference == pytest.approx(4e-6)
    assert (found.p < 0.05) == paired


def difference(metric: str, first: str, second: str, apart: float, p: float) -> Difference:
    return Difference(metric, first, second, apart, apart - 1, apart + 1, p, p, "")


def test_who_is_better_is_computed_with_the_corrected_p() -> None:
    found = [
        difference("mig", "a", "b", 0.3, 0.01),  # the least of three, 3 * .01
        difference("mig", "a", "c", 0.2, 0.04),  # the greatest, 1 * .04, but no less than the one before
        difference("mig", "b", "c", -0.1, 0.03),  # 2 * .03
    ]
    decided = _decided(found, {"mig": True}, 0.05)
    assert [each.p_holm for each in decided] == pytest.approx([0.03, 0.06, 0.06])
    assert [each.better for each in decided] == ["a", "", ""], "all three are below .05 uncorrected"
    assert [each.better for each in _decided(found, {"mig": False}, 0.0601)] == ["b", "c", "b"]
    assert [each.better for each in _decided(found[:1], {"mig": True}, 0.01)] == ["a"], "at most alpha decides"


def sample(n_samples: int, seed: int, noise: float = 0.3) -> Representation:
    rng = np.random.default_rng(seed)
    factors = np.stack([rng.integers(0, size, n_samples) for size in (3, 4)], axis=1)
    return Representation(factors + noise * rng.standard_normal((n_samples, 2)), factors, names=("x", "y"))


def test_of_equal_models_the_one_with_more_rows_is_no_better() -> None:
    found = unbraid.compare(
        {"few": sample(100, 1), "many": sample(2000, 2)}, metrics=["mig", "med", "jemmig"], confidence=(0.95, 20)
    )
    assert [each.better for each in found.differences] == ["", "", ""]
    noisier = unbraid.compare(
        {"few": sample(100, 1), "many": sample(2000, 2, 0.8)}, metrics="mig", confidence=(0.95, 20)
    )
    assert noisier.differences[0].better == "few"


def test_the_larger_model_is_the_mean_of_a_plain_loop_over_disjoint_subsets() -> None:
    few, many = sample(80, 1), sample(300, 2)
    found = unbraid.compare({"few": few, "many": many}, metrics="med", confidence=(0.95, 12), seed=5)
    subsets = np.random.default_rng(5).permutation(300)[:240].reshape(3, 80)
    scores = [med(many.codes[rows], many.factors[rows]).score for rows in subsets]
    parts = [part_of_rows(80, 5, 5, np.random.default_rng([5, 5, done])) for done in range(12)]
    variance = 4 * np.mean([
        np.var([med(many.codes[rows[part]], many.factors[rows[part]]).score for part in parts[:4]], ddof=1)
        for rows in subsets
    ])  # fmt: skip
    own = 4 * np.var([med(few.codes[part], few.factors[part]).score for part in parts], ddof=1)
    apart = med(few.codes, few.factors).score - np.mean(scores)
    freedom = (own + variance / 3) ** 2 / (own**2 / 11 + (variance / 3) ** 2 / 9)
    assert found.differences[0].difference == pytest.approx(apart)
    assert found.differences[0].p == pytest.approx(2 * t.sf(abs(apart) / np.sqrt(own + variance / 3), freedom))
    half_width = t.ppf(0.975, 9) * np.sqrt(variance / 3)
    assert found.compared["many"].scores["med"].score == pytest.approx(np.mean(scores))
    assert found.compared["many"].scores["med"].low == pytest.approx(np.mean(scores) - half_width)
    assert found.cards["many"]["med"].score == med(many.codes, many.factors).score
    assert "compared on 3 × 80 of these rows" in found.cards["many"].scored["med"].no_interval
    held = found.to_dict()["compared"]
    assert {name: (each["n_rows"], each["n_subsets"]) for name, each in held.items()} == {
        "few": (80, 1),
        "many": (80, 3),
    }
    head, ((_, _, cell),) = found.table()
    assert head == ["metric", "few (80 rows)", "many (3 × 80 rows)"]
    assert cell.strip("*") == f"{np.mean(scores):.3f} ± {half_width:.3f}"
    assert found.notes[1].startswith("scores depend on the number of rows: many is scored on 3 disjoint subsets of 80")


def test_what_is_compared_of_equal_numbers_of_rows_is_what_the_cards_say() -> None:
    found = unbraid.compare({"a": GOOD, "b": BAD}, metrics=["mig", "irs"], confidence=(0.95, 9))
    for name, card in found.cards.items():
        assert (found.compared[name].n_rows, found.compared[name].n_subsets) == (400, 1)
        for metric, own in found.compared[name].scores.items():
            intervals = card.scored[metric].intervals
            assert intervals is not None
            interval = intervals.values["score"]
            assert (own.score, own.low, own.high) == pytest.approx(
                (card.scored[metric].headline, interval.low, interval.high)
            )
    assert found.table()[0] == ["metric", "a", "b"]


@pytest.mark.parametrize(
    ("n_rows", "expected"), [((300, 305), (300, 305)), ((300, 310), (300, 300)), ((700, 500), (500, 500))]
)
def test_rows_that_make_no_whole_subset_are_left_out_and_a_few_more_are_kept(
    n_rows: tuple[int, int], expected: tuple[int, int]
) -> None:
    models = {"a": sample(n_rows[0], 1), "b": sample(n_rows[1], 2)}
    found = unbraid.compare(models, metrics="mig", confidence=(0.95, 4))
    assert tuple(each.n_rows for each in found.compared.values()) == expected
    if expected == (500, 500):
        assert "500 rows, unpaired; a: 500 rows of 700; ±" in found.footnote


def test_at_most_ten_subsets_are_scored_and_of_three_models_all_are_as_small_as_the_smallest() -> None:
    models = {"a": sample(50, 1), "b": sample(1000, 2), "c": sample(100, 3)}
    found = unbraid.compare(models, metrics="mig", confidence=(0.95, 20))
    assert [(each.n_rows, each.n_subsets) for each in found.compared.values()] == [(50, 1), (50, 10), (50, 2)]


def test_rows_with_weights_count_as_many_as_tell_as_much() -> None:
    even, uneven = sample(400, 1), sample(400, 2)
    weights = np.repeat([1.0, 3.0], 200)  # (200 + 600)² / (200 + 1800) = 320
    models = {"even": replace(even, weights=np.ones(400)), "uneven": replace(uneven, weights=weights)}
    found = unbraid.compare(models, metrics="mig", confidence=(0.95, 4))
    assert [each.n_rows for each in found.compared.values()] == [320, 400]
    assert "even is scored on 320 of its 400 rows" in found.notes[1]


def test_a_metric_that_a_subset_cannot_be_scored_by_is_left_out() -> None:
    few, many = sample(60, 1), sample(600, 2)
    rare, often = np.zeros((600, 1), dtype=int), np.arange(60)[:, None] % 2
    rare[0] = 1
    models = {
        "few": Representation(few.codes, often),
        "many": Representation(many.codes, rare),
    }
    with pytest.raises(
        ValueError, match="nothing to compare: .*not compared: mig: no interval for many .*differs in 1 of 600 rows"
    ):
        unbraid.compare(models, metrics="mig", confidence=(0.95, 4))


def test_rows_in_another_order_are_matched_by_their_factors_where_no_two_are_alike(tmp_path: Path) -> None:
    factors = np.random.default_rng(1).permutation(100)[:, None]
    codes = factors + 5 * np.random.default_rng(2).standard_normal((100, 1))
    other = np.random.default_rng(3).permutation(100)
    straight = Representation(codes, factors, kinds=("continuous",))
    turned = Representation(codes[other], factors[other], kinds=("continuous",))
    found = unbraid.compare({"a": straight, "b": turned}, metrics="r2", confidence=(0.95, 5))
    assert found.paired
    assert found.differences[0].difference == 0
    with pytest.raises(ValueError, match="the rows of b are not those of a: their factors do not match"):
        unbraid.compare({"a": GOOD, "b": GOOD.keep_rows(np.arange(400)[::-1])}, metrics="mig", paired=True)
    loose = unbraid.compare({"a": GOOD, "b": model(0.3, 2, 300)}, metrics="mig", confidence=(0.95, 5))
    assert not loose.paired
    assert loose.notes[0] == "unpaired: the rows of b are not those of a: their factors do not match"
    for name, each in (("a.npz", GOOD), ("b.npz", BAD)):
        each.save(tmp_path / name)
    by_path = unbraid.compare([tmp_path / "a.npz", tmp_path / "b.npz"], metrics="mig", confidence=(0.95, 5))
    assert list(by_path.cards) == [str(tmp_path / "a.npz"), str(tmp_path / "b.npz")]


def test_a_circle_is_as_long_for_one_model_as_for_another() -> None:
    """Hours of the morning alone, 12 of the 24 that one of the models knows of."""
    hours = np.tile(np.arange(12), 30)[:, None]
    angle = np.pi * hours / 12
    codes = np.hstack([np.cos(angle), np.sin(angle)]) + 0.01 * RNG.standard_normal((360, 2))
    plain = Representation(codes, hours, kinds=("cyclic",))
    told = replace(plain, sizes=(24,))
    for given in ({"a": plain, "b": told}, {"b": told, "a": plain}):
        found = unbraid.compare(given, metrics="r2", confidence=(0.9, 4))
        assert found.cards["a"]["r2"].score == pytest.approx(found.cards["b"]["r2"].score, abs=1e-9)
        assert found.cards["a"]["r2"].score > 0.99
    early = plain.keep_rows(np.flatnonzero(hours[:, 0] < 9))  # whose own highest level is another
    alike = unbraid.compare({"a": plain, "b": replace(early, sizes=None)}, metrics="r2", confidence=(0.9, 4))
    assert alike.cards["b"].representation.sizes == (12,)
    with pytest.raises(ValueError, match="factor_0 has 24 levels once around in b and 12 in a: give both the same"):
        unbraid.compare({"b": told, "a": replace(plain, sizes=(12,))}, metrics="r2")


def test_what_has_no_interval_is_not_compared_and_it_is_said() -> None:
    grid = np.stack(np.meshgrid(np.arange(8), np.arange(8), indexing="ij"), axis=-1).reshape(-1, 2)
    turns = 2 * np.pi * grid / 8
    cycle = Representation(np.hstack([np.cos(turns), np.sin(turns)]), grid, kinds=("cyclic", "cyclic"))
    found = unbraid.compare({"a": cycle, "b": cycle}, metrics=["mig", "d_lsbd"], confidence=(0.95, 4))
    assert {each.metric for each in found.differences} == {"mig"}
    why = "no model has an interval (resampled rows would leave gaps in the grid that it needs)"
    assert found.notes == (f"not compared: d_lsbd: {why}",)
    with pytest.raises(ValueError, match=f"nothing to compare: not compared: d_lsbd: {re.escape(why)}"):
        unbraid.compare({"a": cycle, "b": cycle}, metrics="d_lsbd", confidence=(0.95, 4))


def test_a_class_of_two_rows_is_said_to_be_too_small_to_resample() -> None:
    """That the column is constant, and should be left out, would be wrong: it is so only in a half of the rows."""
    factors = FACTORS[:60].copy()
    factors[:, 0] = 0
    factors[[5, 33], 0] = 1
    kinds, levels = ("categorical", "ordinal"), (("B cell", "rare"), ())
    rare = Representation(factors + HARD[:60], factors, names=("cell type", "y"), kinds=kinds, levels=levels)
    reason = "cell type differs in 2 of 60 rows: too few to resample"
    card = unbraid.score(rare, metrics=["mig", "r2"], confidence=0.95)
    assert all(each.no_interval.endswith(reason) for each in card.scored.values())
    with pytest.raises(ValueError, match=f"nothing to compare: not compared: mig: no model has .*{reason}"):
        unbraid.compare({"a": rare, "b": replace(rare, codes=rare.codes + HARD[60:120])}, metrics="mig")


@pytest.mark.parametrize(
    ("given", "arguments", "message"),
    [
        ({"a": GOOD}, {}, "give two or more models to compare; got 1"),
        ({"a": GOOD, "b": GOOD.keep_factors(["y"])}, {}, r"the factors of b \(y\) are not those of a \(x, y\)"),
        ({"a": GOOD, "b": model(0.3, 1, 39)}, {}, "b: intervals need 40 rows or more; there are 39"),
    ],
)
def test_what_cannot_be_compared_is_one_line(given: dict, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unbraid.compare(given, **{"metrics": "mig", **arguments})


def test_the_command_prints_and_writes_everything(tmp_path: Path) -> None:
    for name, each in (("a_1", GOOD), ("b", BAD)):
        each.save(tmp_path / f"{name}.npz")
    paths = [str(tmp_path / "a_1.npz"), str(tmp_path / "b.npz")]
    outs = {suffix: tmp_path / f"out.{suffix}" for suffix in ("json", "html", "tex", "md", "csv")}
    named = {"json": "--json", "html": "--html", "tex": "--latex", "md": "--markdown", "csv": "--csv"}
    options = [each for suffix, path in outs.items() for each in (named[suffix], path)]
    shown = CliRunner().invoke(
        app, ["compare", *paths, "--metrics", "mig,snc", "--resamples", "9", *map(str, options)], terminal_width=160
    )
    assert shown.exit_code == 0
    held = json.loads(outs["json"].read_text())
    assert [each["better"] for each in held["differences"]] == ["a_1", "a_1"]
    assert held["models"]["b"]["metrics"]["mig"]["intervals"]["times"] == 9
    assert held["paired"] is True
    page = outs["html"].read_text()
    assert f"<b>{held['models']['a_1']['metrics']['mig']['values']['score']:.3f} ± " in page
    low, high = (held["differences"][0][each] for each in ("low", "high"))
    assert f"{low:+.3f} to {high:+.3f}" in page
    frame = unbraid.compare(paths, metrics="mig", confidence=(0.95, 9)).to_frame()
    assert frame[["metric", "better"]].to_numpy().tolist() == [["mig", paths[0]]]
