"""The table of claims: as judged now from the tables of the studies, by statistics that scipy computes too."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

DOCS = Path(__file__).parents[2] / "docs"
effects: Any = import_module("effects")
make_claims: Any = import_module("make_claims")


def test_the_file_holds_the_claims_and_their_verdicts() -> None:
    kept = json.loads((DOCS / "claims.json").read_text(encoding="utf-8"))
    assert [(row["paper"], row["says"], row["study"]) for row in kept] == [
        (claim.paper, claim.says, claim.study) for claim in make_claims.CLAIMS
    ]
    for row, claim in zip(kept, make_claims.CLAIMS, strict=True):
        effect = effects.Effect(row["value"], row["low"], row["high"], row["n"])
        assert claim.verdict(effect) == row["verdict"], claim.says
        assert effect.low <= effect.value <= effect.high, claim.says


def test_numbers_are_those_of_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals too where they are Student's or Welch's; the others are of a thousand resamples each."""
    monkeypatch.setattr(effects, "RESAMPLES", 1)
    kept = {row["says"]: row for row in json.loads((DOCS / "claims.json").read_text(encoding="utf-8"))}
    for claim in make_claims.CLAIMS:
        effect, row = claim.found(), kept[claim.says]
        assert effect.value == pytest.approx(row["value"], abs=1e-4), claim.says
        if claim.measure.__qualname__.startswith(("paired", "mean", "difference", "beyond_pca")):
            assert (effect.low, effect.high) == pytest.approx((row["low"], row["high"]), abs=1e-4), claim.says


def test_correlations_over_pairs_are_those_of_their_means(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two seeds of a model pull apart what their means put on a line; a second dataset is another pair."""
    monkeypatch.setattr(effects, "RESAMPLES", 2)
    pairs = pd.DataFrame({"dataset": [*"ssrr"], "family": [*"abab"], "x": [1.0, 2, 4, 3], "y": [1.0, 3, 2, 5]})
    seeds = [
        pairs.assign(setting="", seed=n, x=pairs["x"] + pull, y=pairs["y"] - pull) for n, pull in ((0, 9), (1, -9))
    ]
    found = effects.over_pairs("x", "y")(pd.concat(seeds))
    assert found.value == pytest.approx(stats.pearsonr(pairs["x"], pairs["y"])[0])
    assert found.n == 8


def test_correlations_over_runs_are_spearmans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "RESAMPLES", 20)
    runs = make_claims.table(make_claims.UDR)
    found = effects.over_runs("udr.score", "mig.score")(runs)
    assert found.value == pytest.approx(stats.spearmanr(runs["udr.score"], runs["mig.score"])[0])
    assert found.n == len(runs) == 192


def test_means_and_pairs_have_students_interval() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"one": rng.normal(2, 1, 7), "other": rng.normal(0, 3, 7)})
    for found, values in (
        (effects.mean("one")(table), table["one"]),
        (effects.paired("one", "other")(table), table["one"] - table["other"]),
    ):
        interval: Any = stats.ttest_1samp(values, 0)
        low, high = interval.confidence_interval(0.95)
        assert (found.value, found.low, found.high) == pytest.approx((values.mean(), low, high))


def test_within_settings_compares_seeds_of_one_setting_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds go together in each setting, settings against each other: 1 within, though negative over all."""
    monkeypatch.setattr(effects, "RESAMPLES", 2)
    seeds, settings = np.tile(np.arange(4.0), 3), np.repeat([0.0, 10, 20], 4)
    table = pd.DataFrame({"family": "f", "setting": settings, "udr": seeds + settings, "mig": seeds - settings})
    assert effects.within_settings("udr", "mig")(table).value == pytest.approx(1)
    assert effects.over_runs("udr", "mig")(table).value < -0.5


def test_intervals_hold_what_they_promise() -> None:
    """Of 400 tables of noise the 95 % interval of the difference of two groups holds 0 in about 380."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(400):
        table = pd.DataFrame({"group": ["a"] * 5 + ["b"] * 5, "score": rng.standard_normal(10)})
        effect = effects.difference("score", {"group": "a"}, {"group": "b"})(table)
        held += effect.low <= 0 <= effect.high
    assert 365 <= held <= 395
