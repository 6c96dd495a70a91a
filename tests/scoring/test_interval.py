"""Intervals beside scores."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid
from unbraid import Representation
from unbraid.base.types import FloatArray, IntArray, Kind
from unbraid.metrics import METRICS
from unbraid.metrics._shared.inputs import split_rows
from unbraid.metrics._shared.metric import PAIRS, PAIRS_AND_BIAS
from unbraid.metrics._shared.resampling import Resampling, all_but_a_block, draw_part, part_of_rows
from unbraid.scoring.card_tables import footnote
from unbraid.scoring.engine import score_each
from unbraid.scoring.interval import intervals, rows_needed, student
from unbraid.scoring.uncertainty import part_scorer

RNG = np.random.default_rng(0)
FACTORS = np.stack([RNG.integers(0, size, 400) for size in (3, 4)], axis=1)
CODES = np.hstack([FACTORS[:, :1] + 0.3 * RNG.standard_normal((400, 1)), RNG.standard_normal((400, 3))])
ROOT = Path(__file__).parents[2]
UNBOUNDED = (np.array([-np.inf]), np.array([np.inf]))


@dataclass(frozen=True)
class Shares:
    score: float
    auc: float  # that of somebody else, which may be anything


def parts(
    values: FloatArray, statistic: Callable[[FloatArray], float], method: Resampling, seed: int = 0
) -> FloatArray:
    draw = np.random.default_rng(seed)
    rows = (part_of_rows(len(values), method.one_in, order, draw) for order in range(method.times))
    return np.array([[statistic(values[each])] for each in rows])


@pytest.mark.parametrize("one_in", [2, 5])
def test_the_deviation_of_a_mean_is_the_one_in_every_textbook(one_in: int) -> None:
    values = np.random.default_rng(1).exponential(size=1000)
    method = Resampling(one_in, 2000, bias_checked=True)
    (found,) = intervals(values[:1] * 0 + values.mean(), parts(values, np.mean, method), UNBOUNDED, method, 0.95)
    assert found.deviation == pytest.approx(values.std() / np.sqrt(1000), rel=0.06)
    assert found.half_width == pytest.approx(1.961 * found.deviation, rel=0.001)
    assert found.bias is not None
    assert abs(found.bias) < 0.1 * found.deviation * (one_in - 1)


@pytest.mark.parametrize("one_in", [2, 5])
def test_the_bias_of_a_variance_is_the_one_in_every_textbook(one_in: int) -> None:
    values = np.random.default_rng(1).standard_normal(20)
    method = Resampling(one_in, 4000, bias_checked=True)
    (found,) = intervals(np.array([values.var()]), parts(values, np.var, method), UNBOUNDED, method, 0.95)
    assert found.bias == pytest.approx(-values.var() / 20, rel=0.3)


def test_intervals_of_means_hold_the_mean_as_often_as_they_say() -> None:
    rng, method = np.random.default_rng(2), Resampling(2, 20)
    held = 0
    for draw in range(150):
        values = rng.exponential(size=200)
        (found,) = intervals(np.array([values.mean()]), parts(values, np.mean, method, draw), UNBOUNDED, method, 0.9)
        held += found.low <= 1.0 <= found.high
    assert 0.83 < held / 150 < 0.97


@pytest.mark.parametrize(
    ("n_samples", "part", "size"),
    [
        (400, part_of_rows(400, 2, 7, np.random.default_rng(3)), 200),
        (1000, part_of_rows(1000, 5, 7, np.random.default_rng(3)), 800),
        (400, all_but_a_block(400, 40, 3, 7), 390),
    ],
)
def test_rows_to_train_on_stay_rows_to_train_on(n_samples: int, part: IntArray, size: int) -> None:
    assert len(set(part.tolist())) == len(part) == size
    for fractions in ((0.8, 0.2), (0.8, 0.1, 0.1), (0.5, 0.5)):
        for whole, own in zip(split_rows(n_samples, fractions, 7), split_rows(len(part), fractions, 7), strict=True):
            assert set(part[own]) <= set(whole)


def test_no_interval_ends_beyond_the_range_or_leaves_out_its_score() -> None:
    numbers, span = np.array([0.98, 1.3]), (np.array([0.0, 0.0]), np.array([1.0, 1.0]))
    resampled = np.array([[0.9, 1.3], [1.0, 1.3]])
    inside, beyond = intervals(numbers, resampled, span, Resampling(2, 2), 0.5)
    assert inside[:2] == pytest.approx((0.98 - np.sqrt(0.005), 1.0))  # t of one degree of freedom is 1 at 3/4
    assert beyond.low <= 1.3 <= beyond.high


def test_the_interval_of_a_ceiling_ends_at_the_top_of_the_range_too() -> None:
    """Of few rows with two uneven factors, as the score of the factors themselves is uncertain, yet at most 1."""
    few = np.random.default_rng(0).integers(0, [2, 7], (40, 2))
    found = unbraid.score(few + 0.1, few, metrics="mig", confidence=0.95).scored["mig"].intervals
    assert found is not None
    assert found.values["ceiling"].high == 1.0
    assert found.values["ceiling"].deviation > 0.03


@pytest.mark.parametrize("n_samples", [400, 413])
def test_of_parts_in_turn_each_lacks_another_block(n_samples: int) -> None:
    method, groups = Resampling(times=40, in_turn=True).on(n_samples), np.arange(n_samples) // 7
    parts = [draw_part(n_samples, None, method, 5, number) for number in range(method.times)]
    left_out = [set(range(n_samples)) - set(each.tolist()) for each in parts]
    assert sorted(row for each in left_out for row in each) == list(range(n_samples))
    assert {len(each) for each in left_out} <= {10, 11}
    of_groups = method.on(n_samples, groups[-1] + 1)
    without = [set(groups) - set(groups[draw_part(n_samples, groups, of_groups, 5, k)]) for k in range(of_groups.times)]
    assert sorted(group for each in without for group in each) == list(range(groups[-1] + 1))


def test_rows_left_out_one_by_one_are_the_jackknife_of_every_textbook() -> None:
    """Of a mean its variance is that of the mean itself, and of a variance over n its bias is mended exactly."""
    values = np.random.default_rng(1).exponential(size=30)
    method = Resampling(times=99, in_turn=True, bias_checked=True).on(30)
    parts = [values[draw_part(30, None, method, 4, number)] for number in range(method.times)]
    numbers = np.array([[each.mean(), each.var()] for each in parts])
    mean, variance = intervals(np.array([values.mean(), values.var()]), numbers, UNBOUNDED, method, 0.95)
    assert mean.deviation == pytest.approx(values.std(ddof=1) / np.sqrt(30))
    assert mean.bias == pytest.approx(0, abs=1e-12)
    assert variance.bias == pytest.approx(-values.var(ddof=1) / 30)
    assert mean.half_width == pytest.approx(2.045230 * mean.deviation)  # t of 29 degrees of freedom at .975
    assert mean.degrees == 29


def test_degrees_of_freedom_are_few_where_few_blocks_decide() -> None:
    method = Resampling(times=40, in_turn=True, few_decide=True)
    one = np.zeros(40)
    one[7] = 1
    even = np.tile([-1.0, 1.0], 20)
    four = np.repeat([3.0, -1.0], [10, 30])  # deviations 3 and -1: the fourth moment is 21, the square of the second 9
    still = np.ones(40)
    found = method.degrees(np.stack([one, even, four, still], axis=1))
    assert found == pytest.approx([3, 39, 40 / (21 / 9 - 1), 39])
    assert method.degrees(four) == pytest.approx(30)
    assert method.on(400, 12).degrees(even[:12]) == 11
    normal = np.random.default_rng(0).standard_normal((40, 2000))
    assert np.median(method.degrees(normal)) == pytest.approx(40 / (3 - 1), rel=0.15)
    assert Resampling(times=40, in_turn=True).degrees(one) == 39


def test_few_degrees_of_freedom_widen_an_interval() -> None:
    resampled, method = np.random.default_rng(0).standard_normal((30, 1)), Resampling(5, 30, freedom=4)
    (found,) = intervals(np.zeros(1), resampled, UNBOUNDED, method, 0.95)
    assert found.half_width == pytest.approx(2.776445 * found.deviation)  # t of 4 degrees of freedom at .975
    assert found.deviation == pytest.approx(2 * resampled.std(ddof=1))
    assert found.degrees == 4
    assert method.degrees(resampled[:3]) == 2


@pytest.mark.parametrize("method", [Resampling(5, pairs=25), Resampling(times=40, in_turn=True, pairs=25)])
def test_pairs_of_halves_show_terms_of_two_rows_about_as_they_are(method: Resampling) -> None:
    """A mean alone, and with a product of two others whose variance from sample to sample is the same: 1 and 2 / n.

    Parts alone make 1 + 2 of the second, or 1 + 2.25.
    """
    draw, n = np.random.default_rng(3), 200
    scores = []
    for seed in range(120):
        x = draw.standard_normal((n, 3))
        rows = [draw_part(n, None, method, seed, number) for number in range(method.n_parts)]
        one, *others = np.array([x[each].mean(axis=0) for each in rows]).T
        scores.append(np.stack([one, one + np.sqrt(n) * others[0] * others[1]], axis=1))
    found = n * np.mean([method.variance(each) for each in scores], axis=0)
    assert found == pytest.approx([1, 2.3], rel=0.2)
    alone = replace(method, pairs=0)
    without = n * np.mean([alone.variance(each[: method.times]) for each in scores], axis=0)
    assert without[0] == pytest.approx(1, rel=0.1)
    assert 2.7 < without[1] < 3.7


def test_pairs_take_off_no_more_than_they_show_and_never_add() -> None:
    """Of single parts with a variance of 2.5, times 4, and pairs by hand."""
    method = Resampling(5, times=5, pairs=2)
    single = np.array([1.0, 2, 3, 4, 5])

    def variance(*halves: float) -> float:
        return float(method.variance(np.array([*single, *halves])))

    assert variance(2, -2, -2, 2) == pytest.approx(10), "means of pairs do not stray"
    assert variance(3, 1, -1, -3) == pytest.approx((1 + 8) / 3), "no less than a third: 10 - 16, 1 - 8"
    assert variance(1, -1, -1, -3) == pytest.approx(10 - 2 * 2), "means 0 and -2, half differences of 1"
    assert variance(9, -9, 9, -9) == pytest.approx(10), "no more than without pairs"
    assert method.bias(np.array([*single, 70, 80, 90, 99]), np.array(2.5)) == pytest.approx(4 * 0.5)


@pytest.mark.parametrize("n_samples", [400, 413])
def test_the_halves_of_a_pair_share_no_row(n_samples: int) -> None:
    method = Resampling(5, times=6, pairs=3)
    groups = np.arange(n_samples) // 7
    for of in (None, groups):
        rows = [set(draw_part(n_samples, of, method, 5, number).tolist()) for number in range(method.n_parts)]
        for first, second in zip(rows[6::2], rows[7::2], strict=True):
            assert not first & second
            assert len(first | second) >= n_samples - 7
            if of is not None:
                assert not set(groups[list(first)]) & set(groups[list(second)])
        assert rows[6] != rows[8], "pairs differ"
    for first in (6, 7):
        part = draw_part(400, None, method, 7, first)
        for whole, own in zip(split_rows(400, (0.8, 0.2), 7), split_rows(200, (0.8, 0.2), 7), strict=True):
            assert set(part[own]) <= set(whole)


def test_of_groups_the_luck_of_halves_is_taken_off_once() -> None:
    """Of the variance 4 * 100 by fifths, that of means of two halves, 36, comes off twice for rows, once for groups."""
    fifths = np.sqrt(49 / 50) * 10 * np.array([1.0, -1] * 25)
    means, halves = 6 * np.array([1.0, -1] * 12 + [0]), np.resize([1.0, -1], 25)
    scores = np.concatenate([fifths, np.stack([means + halves, means - halves], axis=1).ravel()])
    for method, times in ((PAIRS_AND_BIAS, 1), (PAIRS, 2)):
        assert method.on(300).variance(scores) == pytest.approx(400 - 2 * 36)
        assert method.on(300, 30).variance(scores) == pytest.approx(400 - times * 36)


def test_so_many_parts_are_half_in_pairs_where_there_are_pairs() -> None:
    method = Resampling(5, pairs=25)
    assert (method.times, method.n_parts) == (50, 100)
    for n_parts, of_pairs in ((100, 25), (41, 10), (40, 10), (39, 0), (2, 0)):
        asked = method.of_parts(n_parts)
        assert (asked.n_parts, asked.pairs) == (n_parts, of_pairs)
    assert Resampling(5).of_parts(40) == Resampling(5, times=40)
    scores = np.random.default_rng(0).standard_normal(100)
    assert method.degrees(scores) == pytest.approx(12)
    assert method.of_parts(40).degrees(scores[:40]) == pytest.approx(4.8)
    assert method.on(400, 12).degrees(scores) == 5
    assert method.on(400, 30).degrees(scores) == 12


def test_rows_needed_by_hand() -> None:
    assert rows_needed(0.02, 1000, 0.95, 0.01, 10**9) == pytest.approx(1000 * (1.959964 * 2) ** 2, abs=1)
    assert rows_needed(0.02, 1000, 0.95, 0.01, 3) == pytest.approx(1000 * (3.182446 * 2) ** 2, abs=1)
    assert rows_needed(0.0, 1000, 0.95, 0.01, 19) == 40
    assert rows_needed(0.02, 1000, 0.95, 1e-300, 19) == rows_needed(1e300, 1000, 0.95, 0.01, 19) == 10**21
    names = ["mig", "irs", "d_lsbd"]
    card = unbraid.score(CODES, FACTORS, metrics=names, confidence=(0.95, 20))
    for name in names[:2]:
        known = card.scored[name].intervals
        assert known is not None
        as_now = known.values["score"].half_width
        assert card.rows_needed(as_now)[name] == pytest.approx(400, abs=1), "of which its interval is so wide"
        assert card.rows_needed(as_now / 2)[name] == pytest.approx(1600, abs=1)
    assert "d_lsbd" not in card.rows_needed(0.1)
    with pytest.raises(ValueError, match="half_width must be a finite number, above 0; got 0"):
        card.rows_needed(0)


def test_an_interval_is_that_of_a_plain_loop_over_parts() -> None:
    card = unbraid.score(CODES, FACTORS, metrics=["irs", "med", "sap"], confidence=(0.9, 30), seed=4)
    rows = [part_of_rows(400, 5, 4, np.random.default_rng([4, 5, done])) for done in range(30)]
    known = card.scored["med"].intervals
    assert known is not None
    loop = [unbraid.metrics.med(CODES[each], FACTORS[each]) for each in rows]
    strays = np.std([each.per_factor for each in loop], axis=0, ddof=1)
    assert [each.deviation for each in known.per_factor or ()] == pytest.approx(2 * strays)
    assert known.values["score"].deviation == pytest.approx(2 * np.std([each.score for each in loop], ddof=1))
    assert known.values["score"].half_width == pytest.approx(1.699127 * known.values["score"].deviation)
    alone = unbraid.score(CODES, FACTORS, metrics="med", confidence=(0.9, 30), seed=4).scored["med"].intervals
    assert alone is not None
    assert alone.values == known.values, "whatever else is scored"
    assert card.scored["irs"].intervals is not None
    assert card.scored["irs"].intervals.times == 30


def test_parts_score_as_those_rows_do_alone() -> None:
    """Whatever a metric keeps from one part to the next, or computes otherwise, it says what the plain call says."""
    draw = np.random.default_rng(7)
    factors = np.stack([draw.integers(0, size, 90) for size in (3, 2, 40)], axis=1)
    codes = np.hstack([factors[:, :2] + 0.3 * draw.standard_normal((90, 2)), draw.standard_normal((90, 2))])
    codes = np.hstack([codes, np.rint(codes[:, :1]), np.full((90, 1), 0.1), -codes[:, :1], np.eye(90)[:, :1]])
    names = ["mig", "med", "modularity", "factor_leakage", "mcc", *(n for n, row in METRICS.items() if row.of_parts)]
    chosen = {name: METRICS[name] for name in names}
    ordinal: tuple[Kind, ...] = ("ordinal", "ordinal", "ordinal")
    both: tuple[tuple[Kind, ...], ...] = (ordinal, ("categorical", "categorical", "continuous"))
    for kinds in both:
        given = Representation(1e3 * codes, factors, kinds=kinds)
        scorer = part_scorer(given, chosen, 3, None)
        for one_in in (2, 5):
            rows = part_of_rows(90, one_in, 3, draw)
            found = scorer(rows, names)
            for name, alone in score_each(given.keep_rows(rows), chosen, seed=3, with_chance=False):
                part = found[name]
                if isinstance(alone, Exception) or isinstance(part, Exception):
                    assert str(part) == str(alone)
                    continue
                expected = alone.numbers
                assert dict(part.values) == pytest.approx(dict(expected.values), abs=1e-9), (name, kinds, one_in)
                assert part.per_factor == pytest.approx(expected.per_factor, abs=1e-9), (name, kinds, one_in)


def test_parts_without_the_last_level_go_around_the_circle_of_all_rows() -> None:
    """Hours of the day of which the last is rare: many a half lacks it, and is no circle of 8 hours for that."""
    draw = np.random.default_rng(1)
    hours = np.where(draw.random(200) < 0.02, 11, draw.integers(0, 8, 200))
    factors, angle = np.column_stack([hours, draw.integers(0, 3, 200)]), np.pi * hours / 6
    codes = np.column_stack([np.cos(angle), np.sin(angle), factors[:, 1]]) + 0.05 * draw.standard_normal((200, 3))
    held = Representation(codes, factors, kinds=("cyclic", "ordinal"))
    frames = [
        unbraid.score(each, metrics=["mcc", "r2"], confidence=0.95).to_frame()
        for each in (held, replace(held, sizes=(12, 3)))
    ]
    for column in ("value", "low", "high", "deviation", "bias"):
        assert frames[0][column].tolist() == pytest.approx(frames[1][column].tolist(), abs=1e-12), column
    assert held.sizes is None
    assert held.keep_rows(np.flatnonzero(hours < 8)).sizes == (12, 3)


def test_a_mask_and_posteriors_go_with_their_rows() -> None:
    given = Representation(CODES, FACTORS, log_variances=2 * CODES)
    part = given.keep_rows(np.array([5, 3]))
    assert (part.log_variances == 2 * CODES[[5, 3]]).all()
    assert (part.factors == FACTORS[[5, 3]]).all()
    gap = (FACTORS[:, 0] == 2) & (FACTORS[:, 1] > 1)
    text = unbraid.score(given, metrics="zero_shot", confidence=(0.9, 4), held_out="factor_0 == 2 and factor_1 > 1")
    mask = unbraid.score(given, metrics="zero_shot", confidence=(0.9, 4), held_out=gap)
    assert mask.to_frame()["low"].tolist() == text.to_frame()["low"].tolist()
    assert np.isfinite(mask.to_frame()["low"].to_numpy()).all()


def test_bias_is_shown_where_it_was_checked_alone(tmp_path: Path) -> None:
    """Of `modularity` a simulation showed -.072 of a true -.023; of `mig` it held."""
    card = unbraid.score(CODES, FACTORS, metrics=["mig", "modularity"], confidence=(0.9, 9))
    card.save(tmp_path / "card.json")
    for read in (card, unbraid.ScoreCard.load(tmp_path / "card.json")):
        found = (read.scored[name].intervals for name in ("mig", "modularity"))
        known, guessed = (each.values["score"] for each in found if each is not None)
        assert isinstance(known.bias, float)
        assert guessed.bias is None
        assert guessed.deviation > 0
        frame = read.to_frame().query("headline").set_index("metric")
        assert frame["bias"].isna().to_dict() == {"mig": False, "modularity": True}
        assert frame["bias"].dtype == float
    card.save(tmp_path / "card.html")
    assert len(re.findall(r"\bbias [−.0-9]", (tmp_path / "card.html").read_text())) == 1


def test_every_view_has_the_interval_and_the_file_gives_it_back(tmp_path: Path) -> None:
    card = unbraid.score(CODES, FACTORS, metrics=["mig", "snc", "d_lsbd", "modularity"], confidence=(0.9, 9))
    known = card.scored["snc"].intervals
    assert known is not None
    assert set(known.values) == set(card.scored["snc"].values)
    low, high, deviation, _, degrees = known.values["score"]
    assert low < card["snc"].score < high
    assert f"{low:.3f} to {high:.3f}" in str(card)
    frame = card.to_frame()
    row = frame[(frame.metric == "snc") & frame.headline].iloc[0]
    assert row[["low", "high", "deviation", "degrees"]].tolist() == [low, high, deviation, degrees]
    share = (known.by_seed or {})["score"]
    assert row["by_seed"] == share
    assert f"{100 * share:.0f} % of its variance comes from the metric's seed" in card.details()
    assert np.isfinite(frame["low"].to_numpy()).all()
    card.save(tmp_path / "card.json")
    card.save(tmp_path / "card.html")
    page = (tmp_path / "card.html").read_text()
    assert f"{low:.3f} to {high:.3f}" in page
    again = unbraid.ScoreCard.load(tmp_path / "card.json")
    assert again.to_dict()["metrics"] == card.to_dict()["metrics"]
    assert again.to_frame()["high"].tolist() == frame["high"].tolist()
    assert again.to_frame()["by_seed"].equals(frame["by_seed"])
    assert again.scored["snc"].notes == card.scored["snc"].notes
    plain = unbraid.score(CODES, FACTORS, metrics=["mig"])
    assert np.isnan(plain.to_frame()["low"].to_numpy()).all()
    assert "intervals" not in plain.to_dict()["metrics"]["mig"]


def test_the_share_of_seeds_is_that_of_a_plain_loop_over_them() -> None:
    kinds: tuple[Kind, ...] = ("categorical", "ordinal")
    kept = slice(0, 150)
    card = unbraid.score(
        CODES[kept], FACTORS[kept], metrics=["snc", "sap", "dci_lasso", "mig"], confidence=(0.9, 5), seed=3,
        kinds=kinds,
    )  # fmt: skip
    for name, value in (("snc", "score"), ("sap", "score"), ("dci_lasso", "completeness")):
        known, row = card.scored[name].intervals, METRICS[name]
        assert known is not None
        results = [row.function(CODES[kept], FACTORS[kept], kinds=kinds, seed=seed) for seed in range(3, 8)]
        variance = np.var([getattr(each, value) for each in results], ddof=1)
        share = (known.by_seed or {})[value]
        assert share == pytest.approx(min(1.0, variance / known.values[value].deviation ** 2), abs=1e-9), name
        assert share > 0
    mig = card.scored["mig"].intervals
    assert mig is not None
    assert mig.by_seed is None, "it draws nothing"


def test_a_metric_without_interval_says_why(tmp_path: Path) -> None:
    grid = np.stack(np.meshgrid(np.arange(8), np.arange(8), indexing="ij"), axis=-1).reshape(-1, 2)
    turns = 2 * np.pi * grid / 8
    codes = np.hstack([np.cos(turns), np.sin(turns)])
    given = Representation(codes, grid, names=("x", "y"), kinds=("cyclic", "cyclic"))
    card = unbraid.score(given, metrics=["d_lsbd", "mig"], confidence=(0.9, 5))
    assert card.scored["d_lsbd"].intervals is None
    reason = "no interval: resampled rows would leave gaps in the grid that it needs"
    assert reason in card.scored["d_lsbd"].notes
    assert card.to_dict()["metrics"]["d_lsbd"]["no_interval"] == METRICS["d_lsbd"].interval
    card.save(tmp_path / "card.json")
    assert reason in str(unbraid.ScoreCard.load(tmp_path / "card.json"))
    rare = np.zeros((100, 1))
    rare[0] = 1
    card = unbraid.score(np.arange(100.0)[:, None], rare, metrics=["mig"], confidence=(0.9, 20))
    assert card.scored["mig"].no_interval == (
        "part of the rows cannot be scored: factor_0 differs in 1 of 100 rows: too few to resample"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"confidence": 95}, "confidence must be a finite number, above 0 and below 1; got 95"),
        ({"confidence": (0.9, 1)}, "parts beside confidence must be a whole number, 2 or more; got 1"),
    ],
)
def test_what_makes_no_interval_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unbraid.score(CODES, FACTORS, metrics="mig", **given)


def test_too_few_rows_are_refused_before_anything_is_scored() -> None:
    with pytest.raises(ValueError, match="intervals need 40 rows or more; there are 39"):
        unbraid.score(CODES[:39], FACTORS[:39], metrics="mig", confidence=0.9)


@pytest.mark.lengthy
def test_an_interval_that_no_simulation_checked_says_so_and_the_others_are_in_the_table() -> None:
    measured = {row["metric"] for row in json.loads((ROOT / "evidence" / "coverage.json").read_text(encoding="utf-8"))}
    checked = {n for n, row in METRICS.items() if isinstance(row.interval, Resampling) and row.interval.checked}
    assert checked <= measured
    given = Representation(CODES, FACTORS, log_variances=np.full(CODES.shape, -2.0))
    card = unbraid.score(given, metrics=["mig", "beta_vae_score"], confidence=(0.9, 2))
    assert "interval not validated" in card.scored["beta_vae_score"].notes
    assert "interval not validated" not in card.scored["mig"].notes
    names = ["mig", "beta_vae_score"]
    compared = unbraid.compare({"a": given, "b": given.keep_rows(np.arange(200))}, metrics=names, confidence=(0.95, 2))
    for foot in (footnote({"a": card}), compared.footnote):
        assert "; intervals not validated: beta_vae_score; seed 0" in foot


def test_intervals_of_other_values_end_at_the_ends_of_their_ranges() -> None:
    """Compactness is at most 1, the mean error of a regression at least 0; of one's own function nothing is known."""
    rng = np.random.default_rng(0)
    factors = rng.integers(0, [3, 4], (300, 2))
    codes = factors + 0.05 * rng.standard_normal((300, 2))

    def own(codes: FloatArray, factors: FloatArray) -> Shares:
        return Shares(0.5, 3.0 + float((codes - factors).std()))

    asked = (("infomec", "compactness", 1.0), ("latent_matching", "msgs_smi", 1.0), (own, "auc", None))
    for metric, value, most in asked:
        (scored,) = unbraid.score(codes, factors, metrics=[metric], confidence=0.95).scored.values()
        assert scored.intervals is not None
        found = scored.intervals.values[value]
        assert found.low <= scored.values[value] <= found.high
        assert found.degrees is not None
        free = scored.values[value] + float(student(0.95, found.degrees)) * found.deviation
        assert found.high == pytest.approx(free if most is None else most)
        assert most is None or free > 1
    rows = {name: METRICS[name] for name in ("dci_lasso", "factor_leakage", "infomec", "explicitness")}
    assert rows["dci_lasso"].range_of("completeness") == (0.0, 1.0)
    assert rows["dci_lasso"].range_of("nrmse") == (0.0, np.inf)
    assert rows["factor_leakage"].range_of("norm_mean") == (0.0, 1.0)
    assert rows["factor_leakage"].range_of("mean") == (0.0, np.inf)
    assert METRICS["amari"].range_of("error") == (0.0, np.inf)
    assert rows["infomec"].range_of("explicitness") == (-np.inf, 1.0)
    assert rows["explicitness"].range_of("score") == (-1.0, 1.0)
    assert rows["explicitness"].range_of("auc") == (0.0, 1.0)
