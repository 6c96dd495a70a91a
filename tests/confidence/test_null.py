"""Scores beside those of shuffled rows."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp
from typer.testing import CliRunner

import unbraid
from unbraid import Representation
from unbraid.cli.app import app
from unbraid.confidence.null import Null, Shuffle, null_of
from unbraid.factors import FactorSpace
from unbraid.metrics import METRICS, mig, mig_exact, sap
from unbraid.scoring import uncertainty
from unbraid.scoring.tables import footnote, score_table

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
    for seed in range(3):
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


def test_rows_keep_their_codes_and_posteriors_together() -> None:
    given = Representation(CODES, FACTORS, log_variances=CODES * 2)
    moved = Shuffle("rows", 1).of(given, 0, 0)
    assert (moved.factors == given.factors).all()
    assert (moved.log_variances == moved.codes * 2).all()
    assert not (moved.codes == given.codes).all()
    assert (np.sort(moved.codes, axis=0) == np.sort(given.codes, axis=0)).all()


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
    assert "not significant: " in str(card)
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
    _, *rows = score_table({"noise": card}).texts
    assert [cell[1][-1] for cell in rows] == ["°", "°"]
    below = "400 rows; ° not significantly better than shuffled rows (p > 0.05); seed 0 of"
    assert footnote({"noise": card}).startswith(below)
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


def test_shuffles_that_share_their_work_are_those_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact MIG takes several orders at once, without draws; the loop scores each alone."""
    monkeypatch.setattr(uncertainty, "ORDERED", 3 * FACTORS.size)
    sharp = np.random.default_rng(1).uniform(-5, 0, CODES.shape)
    given = Representation(CODES, FACTORS, log_variances=sharp)
    null = unbraid.score(given, metrics="mig_exact", null=7, seed=2).scored["mig_exact"].null
    assert null is not None
    alone = [
        mig_exact(each.codes, each.factors, log_variances=each.log_variances, method="quadrature")
        for each in (given, *(Shuffle("rows", 7).of(given, 2, which) for which in range(7)))
    ]
    assert null.score == pytest.approx(alone[0].score, abs=1e-12)
    assert null.scores == pytest.approx([each.score for each in alone[1:]], abs=1e-12)
    higher = np.array([each.per_factor >= alone[0].per_factor for each in alone[1:]])
    assert null.p_per_factor == pytest.approx((1 + higher.sum(axis=0)) / 8)


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


def test_the_command_shows_both_and_refuses_nonsense(tmp_path: Path) -> None:
    path = tmp_path / "codes.npz"
    Representation(CODES, FACTORS).save(path)
    shown = CliRunner().invoke(app, ["score", str(path), "--metrics", "mig,med", "--null", "4"]).stdout
    assert "shuffled" in shown
    assert "±" in shown
    assert " above " in shown
    assert "0.2 !" in shown, "four shuffles cannot show anything"
    with pytest.raises(ValueError, match="null must be a whole number, 0 or more; got -1"):
        unbraid.score(CODES, FACTORS, null=-1)


def test_a_null_of_too_few_times_says_that_nothing_could_be_significant() -> None:
    """Of 18 the least p is 1 / 19, of 19 it is 1 / 20."""
    draws = np.linspace(0.0, 0.1, 19)
    few, enough = (null_of(METRICS["mig"], 0.9, draws[:n]) for n in (18, 19))
    assert few.note.startswith("not significant, which takes 19 times or more: with rows shuffled")
    assert enough.note.startswith("with rows shuffled")
    assert null_of(METRICS["mig"], 0.0, draws).note.startswith("not significant: with rows shuffled")
