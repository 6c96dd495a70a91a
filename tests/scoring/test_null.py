"""Scores beside those of shuffled rows."""

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp

import unbraid
from unbraid import Representation
from unbraid.base import threads
from unbraid.data import FactorSpace
from unbraid.metrics import (
    METRICS,
    dci_boosted,
    dci_forest,
    explicitness,
    independence_score,
    linear_accuracy,
    mig,
    mig_exact,
    sap,
    snc,
)
from unbraid.metrics._solvers import logistic
from unbraid.scoring import card_memory as memory
from unbraid.scoring import null_scores
from unbraid.scoring.null import Null, Shuffle, null_of

QUICK = ("mig", "sap", "snc", "mcc", "irs", "r2", "beta_vae_score")
RNG = np.random.default_rng(0)
FACTORS = np.stack([RNG.integers(0, size, 400) for size in (3, 4)], axis=1)
CODES = np.hstack([FACTORS[:, :1] + 0.3 * RNG.standard_normal((400, 1)), RNG.standard_normal((400, 3))])


def test_p_and_distance_by_hand() -> None:
    null = null_of(METRICS["mig"], 0.5, np.array([0.1, 0.5, 0.2, 0.4]))
    assert (null.mean, null.p, null.above) == pytest.approx((0.3, 2 / 5, 0.2 / 0.7))
    lower = null_of(METRICS["irs"], 0.3, np.array([0.1, 0.2]))
    assert lower.p == pytest.approx(1 / 3)
    error = next(row for row in METRICS.values() if not row.higher_is_better and row.best == 0)
    assert null_of(error, 0.1, np.array([0.4, 0.6])).above == pytest.approx((0.1 - 0.5) / (0 - 0.5))
    assert null_of(error, 0.1, np.array([0.4, 0.6])).p == pytest.approx(1 / 3)
    assert null_of(METRICS["mig"], 1.0, np.array([1.0, 1.0])).above is None
    assert Null(0.3, np.array([0.2]), 0.5, None).spread == 0.0
    assert Null(0.3, np.array([0.0, 1.0]), 0.5, None).spread == pytest.approx(np.sqrt(0.5))


def test_orders_that_come_to_the_same_are_as_good_however_their_sums_are_rounded() -> None:
    """Of six animals, three of each kind, one order in ten keeps or exchanges the two kinds."""
    null = null_of(METRICS["sap"], 0.3, np.array([0.3 - 1e-16, 0.1 + 0.2, 0.29]))
    assert null.p == pytest.approx(3 / 4)
    assert null_of(METRICS["irs"], 0.0, np.zeros(3)).p == 1.0
    animal = np.repeat(np.arange(6), 20)
    kind = (animal >= 3).astype(int)[:, None]
    for seed in range(2):
        codes = 2.0 * kind + 0.5 * np.random.default_rng(seed).standard_normal((120, 3))
        given = unbraid.Representation.of(codes, kind, groups=animal)
        card = unbraid.score(given, metrics=["irs", "med", "tad"], null=199)
        same = 0
        for which in range(199):
            order = np.random.default_rng([0, which]).permutation(6)
            same += len(set((order[:3] >= 3).tolist())) == 1
        assert all(each.null is not None and each.null.p >= (1 + same) / 200 for each in card.scored.values())


def test_each_factor_has_its_own_p() -> None:
    """Of the first factor a code tells and of the second none: shuffled by hand, the same shares are as good."""
    card = unbraid.score(CODES, FACTORS, names=["told", "untold"], metrics=["mig", "sap"], null=49)
    for name, function in (("mig", mig), ("sap", sap)):
        null, own = card.scored[name].null, function(CODES, FACTORS).per_factor
        assert null is not None
        assert null.p_per_factor is not None
        orders = [np.random.default_rng([0, which]).permutation(400) for which in range(49)]
        moved = np.array([function(CODES[order], FACTORS).per_factor for order in orders])
        assert null.p_per_factor.tolist() == [(1 + int((moved[:, k] >= own[k]).sum())) / 50 for k in range(2)]
        assert null.p_per_factor[0] == 0.02 < null.p_per_factor[1]
        frame = card.to_frame()
        rows = frame[(frame["metric"] == name) & (frame["name"] == "per_factor")].set_index("factor")
        assert rows["p"].to_dict() == dict(zip(["told", "untold"], null.p_per_factor, strict=True))


def test_factors_move_with_their_weights_and_codes_stay() -> None:
    weights = np.arange(1.0, 401.0)
    given = Representation(CODES, FACTORS, log_variances=CODES * 2, weights=weights)
    moved = Shuffle("rows", 1).apply(given, 0, 0)
    assert (moved.codes == given.codes).all()
    assert (moved.log_variances == given.codes * 2).all()
    order = np.random.default_rng([0, 0]).permutation(400)
    assert moved.weights is not None
    assert (moved.factors[order] == FACTORS).all(), "row i of the factors beside row order[i] of the codes"
    assert (moved.weights[order] == weights).all()


def test_the_null_is_that_of_a_plain_loop_in_distribution() -> None:
    card = unbraid.score(CODES, FACTORS, metrics=["mig", "sap"], null=99)
    rng = np.random.default_rng(1)
    for name, function in (("mig", mig), ("sap", sap)):
        loop = [function(CODES[rng.permutation(400)], FACTORS).score for _ in range(99)]
        null = card.scored[name].null
        assert null is not None
        distance: Any = ks_2samp(null.scores, loop)
        assert distance.pvalue > 0.001
        assert null.p == 0.01, "one factor is in its code"
        assert card[name].score == function(CODES, FACTORS).score


def test_noise_is_not_told_from_its_null_and_every_view_says_so(tmp_path: Path) -> None:
    noise = np.random.default_rng(4).standard_normal((400, 4))
    card = unbraid.score(noise, FACTORS, metrics=["mig", "irs"], null=19)
    assert any("not significant: " in note for note in card.scored["irs"].notes)
    card.save(tmp_path / "card.json")
    card.save(tmp_path / "card.html")
    page = (tmp_path / "card.html").read_text()
    assert page.count("<b>not significant</b>") == 2
    assert f"shuffled {card.to_dict()['metrics']['irs']['null']['mean']:.3f} ±" in page
    frame = card.to_frame()
    row = frame[(frame.metric == "irs") & frame.headline].iloc[0]
    null = card.scored["irs"].null
    assert null is not None
    assert row[["null", "p", "above_null"]].tolist() == [null.mean, null.p, null.above]
    others = frame[~frame.headline & (frame["name"] != "per_factor")]
    assert np.isnan(others["p"].to_numpy()).all()
    again = unbraid.ScoreCard.load(tmp_path / "card.json")
    assert again.to_dict()["metrics"] == card.to_dict()["metrics"]
    assert json.loads((tmp_path / "card.json").read_text())["metrics"]["irs"]["null"]["p"] > 0.05


def test_the_same_seed_gives_the_same_null_and_metrics_without_factors_have_none() -> None:
    given = Representation(CODES, FACTORS, log_variances=np.full(CODES.shape, -2.0))
    cards = [unbraid.score(given, metrics=["mig", "elbo_terms"], null=3, seed=seed) for seed in (0, 0, 1)]
    first, same, other = (card.to_dict()["metrics"]["mig"]["null"]["scores"] for card in cards)
    assert first == same != other
    assert cards[0].scored["elbo_terms"].null is None
    assert unbraid.score(given, metrics="mig").scored["mig"].null is None


def by_quadrature(given: Representation) -> Any:
    return mig_exact(given.codes, given.factors, log_variances=given.log_variances, method="quadrature")


@pytest.mark.parametrize(
    ("metric", "function", "exact"),
    [
        ("mig_exact", by_quadrature, 1e-12),
        (
            "explicitness",
            lambda given: explicitness(given.codes, given.factors, seed=2),
            1e-4,
        ),  # as far as it is solved
        ("independence_score", lambda given: independence_score(given.codes, given.factors, sizes=(3, 4)), 1e-9),
    ],
)
def test_shuffles_that_share_their_work_are_those_of_a_loop(
    monkeypatch: pytest.MonkeyPatch, metric: str, function: Any, exact: float
) -> None:
    """Several orders are taken at once; the loop scores each alone. Exact MIG is found without draws."""
    monkeypatch.setattr(null_scores, "ORDERED", 3 * FACTORS.size)
    sharp = np.random.default_rng(1).uniform(-5, 0, CODES.shape)
    given = Representation(CODES, FACTORS, log_variances=sharp, sizes=(3, 4))
    null = unbraid.score(given, metrics=metric, null=7, seed=2).scored[metric].null
    assert null is not None
    alone = [function(each) for each in (given, *(Shuffle("rows", 7).apply(given, 2, which) for which in range(7)))]
    assert null.score == pytest.approx(alone[0].score, abs=exact)
    assert null.scores == pytest.approx([each.score for each in alone[1:]], abs=exact)
    assert np.ptp(null.scores) > 100 * exact
    if metric == "independence_score":
        assert null.p_per_factor is None
        return
    higher = np.array([each.per_factor >= alone[0].per_factor for each in alone[1:]])
    assert null.p_per_factor == pytest.approx((1 + higher.sum(axis=0)) / 8)


@pytest.mark.lengthy
def test_shuffles_and_parts_have_the_same_bits_on_any_number_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    given = Representation(CODES + 0.5 * rng.standard_normal(CODES.shape), FACTORS, sizes=(3, 4))
    cards = []
    for cores, free in ((1, 1e12), (3, 1e12), (3, 0)):
        monkeypatch.setattr(threads, "n_cores", lambda cores=cores: cores)
        monkeypatch.setattr(memory, "free_memory", lambda free=free: free)
        card = unbraid.score(given, metrics=[*QUICK, "explicitness", "dci_forest"], null=5, confidence=0.9)
        cards.append({name: {**each, "seconds": 0} for name, each in card.to_dict()["metrics"].items()})
        assert all(each.null is not None and each.intervals is not None for each in card.scored.values())
    assert cards[0] == cards[1] == cards[2]
    assert {*QUICK} < {*cards[0]}


def test_functions_of_a_user_are_never_called_in_two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "n_cores", lambda: 3)
    seen: list[threading.Thread] = []

    def own(codes: Any, factors: Any) -> float:
        seen.append(threading.current_thread())
        return float(np.corrcoef(codes[:, 0], factors[:, 0])[0, 1])

    card = unbraid.score(Representation(CODES, FACTORS), metrics=["mig", own], null=5, confidence=0.9)
    assert {*seen} == {threading.main_thread()}
    assert len(seen) > 5 + 10
    assert card.scored["own"].null is not None


def test_of_each_shuffle_every_metric_says_what_it_says_of_these_rows_alone() -> None:
    functions = (dci_forest, dci_boosted, linear_accuracy, sap, snc)
    rng = np.random.default_rng(3)
    codes = (CODES + (FACTORS[:, :1] == 0) * rng.standard_normal(4)).astype(np.float32)
    given = Representation(codes, FACTORS)
    card = unbraid.score(given, metrics=[each.__name__ for each in functions], null=3, seed=1)
    moved = [Shuffle("rows", 3).apply(given, 1, which) for which in range(3)]
    for function in functions:
        scored = card.scored[function.__name__]
        assert scored.null is not None
        alone = [getattr(function(each.codes, each.factors, seed=1), scored.metric.headline) for each in moved]
        assert scored.null.scores == pytest.approx(alone, abs=1e-12)
    informative = card.scored["linear_accuracy"].null
    assert informative is not None
    assert len(set(informative.scores)) > 1


def test_what_follows_from_the_codes_alone_is_made_once_for_all_shuffles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "n_cores", lambda: 1)
    made, along = list[int](), logistic._along_axes
    monkeypatch.setattr(logistic, "_along_axes", lambda codes: made.append(codes.shape[1]) or along(codes))
    unbraid.score(Representation(CODES, FACTORS), metrics="linear_accuracy", null=4)
    assert made.count(CODES.shape[1]) == 2  # for the score, and for its null


def test_whole_objects_are_shuffled_among_themselves() -> None:
    space = FactorSpace(("turn", "kind"), (8, 3), ("cyclic", "categorical"))
    grid = space.grid()
    turn = 2 * np.pi * grid[:, :1] / 8
    whole = Representation(np.hstack([np.cos(turn), np.sin(turn)]), grid, names=space.names, kinds=space.kinds)
    part = Representation(whole.codes[:11], grid[:11], names=space.names, kinds=space.kinds)
    card = unbraid.score(part, metrics=["d_lsbd", "mig"], orbits=lambda: whole, null=5)
    null = card.scored["d_lsbd"].null
    assert null is not None
    alone = unbraid.score(part, metrics="mig", null=5).scored["mig"].null
    beside = card.scored["mig"].null
    assert alone is not None
    assert beside is not None
    assert alone.scores.tolist() == beside.scores.tolist(), "whatever else is scored"
    assert len(set(null.scores)) == 5
    assert null.scores.min() > card["d_lsbd"].score
    shifted = unbraid.score(part, metrics=["d_lsbd"], orbits=lambda: whole, null="shift:3").scored["d_lsbd"].null
    assert shifted is not None
    assert shifted.moved == "rows", "whole objects are no series"


def test_the_middle_of_a_series_goes_around_as_far_as_all_of_it() -> None:
    """An hour that rises once over the session: its middle half has the hours 6 to 17, of 24."""
    hours = np.repeat(np.arange(24), 30)
    angle = np.pi * hours / 12
    codes = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * RNG.standard_normal((720, 2))
    held = Representation(codes, hours[:, None], kinds=("cyclic",))
    found = [
        unbraid.score(each, metrics="r2", null="shift:3").scored["r2"].null
        for each in (held, replace(held, sizes=(24,)))
    ]
    scores = [[each.score, *each.scores] for each in found if each is not None]
    assert scores[0] == pytest.approx(scores[1], abs=1e-12)


def test_a_null_of_too_few_times_says_that_nothing_could_be_significant() -> None:
    """Of 18 the least p is 1 / 19, of 19 it is 1 / 20."""
    draws = np.linspace(0.0, 0.1, 19)
    few, enough = (null_of(METRICS["mig"], 0.9, draws[:n]) for n in (18, 19))
    assert few.note.startswith("not significant, which takes 19 times or more: with rows shuffled")
    assert enough.note.startswith("with rows shuffled")
    assert null_of(METRICS["mig"], 0.0, draws).note.startswith("not significant: with rows shuffled")
