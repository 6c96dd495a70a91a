"""What rules say of tables: effects as scipy and small examples have them, verdicts, and which came first."""

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from unbraid.data import Representation
from unbraid.metrics import dci_forest, dci_lasso

effects: Any = import_module("effects")
gates: Any = import_module("gates")
rules: Any = import_module("claims_rules")
trials: Any = import_module("trials")
make_claims: Any = import_module("make_claims")


RUNS = pd.DataFrame(
    {
        "dataset": "d", "family": np.repeat(["a", "b"], 12), "setting": np.tile(np.repeat(["1", "2", "3"], 4), 2),
        "seed": np.tile(np.arange(4), 6), "x": np.random.default_rng(0).normal(size=24),
        "y": np.random.default_rng(1).normal(size=24), "z": np.random.default_rng(2).normal(size=24),
    }
)  # fmt: skip
A, B = {"family": "a"}, {"family": "b"}


def measure(kind: str, unit: str = "seed", rows: Any = None, less: Any = None, **columns: Any) -> Any:
    return effects.Measure(kind, unit, rows or {}, less, columns)


def settings(*columns: str) -> np.ndarray:
    return RUNS.groupby(["family", "setting"])[list(columns)].mean().to_numpy()


def test_means_and_pairs_have_students_interval() -> None:
    means = settings("x", "y")
    for found, values in (
        (measure("mean", "setting", x="x"), means[:, 0]),
        (measure("mean", x="x", rows=A), RUNS["x"][:12]),
        (measure("paired", "setting", x="x", less="y"), means[:, 0] - means[:, 1]),
    ):
        interval: Any = stats.ttest_1samp(values, 0).confidence_interval(0.95)
        effect = effects.measured(found, RUNS)
        assert (effect.value, effect.low, effect.high) == pytest.approx((np.mean(values), *interval))
        assert effect.units == len(values)


def test_means_of_what_cannot_be_negative_have_intervals_that_are_not() -> None:
    """Three of four seeds have 0, as where most seeds converge."""
    table = pd.DataFrame({"family": "f", "setting": "s", "seed": range(4), "d_lsbd(norm=axes).score": [0, 0, 0, 0.4]})
    effect = effects.measured(measure("mean", x="d_lsbd(norm=axes).score"), table)
    assert (effect.value, effect.low) == (pytest.approx(0.1), 0.0)
    assert effect.high == pytest.approx(0.1 + stats.t.ppf(0.975, 3) * 0.1)


def test_differences_have_welchs_interval_and_one_unit_has_none() -> None:
    effect = effects.measured(measure("difference", x="x", rows=A, less=B), RUNS)
    interval: Any = stats.ttest_ind(RUNS["x"][:12], RUNS["x"][12:], equal_var=False).confidence_interval(0.95)
    assert (effect.low, effect.high) == pytest.approx(tuple(interval))
    alone = effects.measured(measure("mean", x="x"), RUNS[:1])
    assert (alone.low, alone.high) == (-np.inf, np.inf)
    assert make_claims.rounded(alone)["low"] is None


@pytest.mark.filterwarnings("ignore:Precision loss")  # which SciPy has of the same interval
@pytest.mark.parametrize("flip", [False, True])
def test_one_group_that_does_not_vary_leaves_the_interval_of_the_other(flip: bool) -> None:
    groups = (A, B) if flip else (B, A)
    still = RUNS.assign(x=np.where(np.arange(len(RUNS)) < 12, 1.0, RUNS["x"]))
    effect = effects.measured(measure("difference", x="x", rows=groups[0], less=groups[1]), still)
    one, other = (still["x"][:12], still["x"][12:]) if flip else (still["x"][12:], still["x"][:12])
    interval: Any = stats.ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    assert (effect.low, effect.high) == pytest.approx(tuple(interval))


def test_what_lies_beyond_one_run_is_the_mean_less_that_run() -> None:
    pca = pd.DataFrame({"family": ["pca"], "setting": [""], "seed": [0], "x": [0.25]})
    both = pd.concat([RUNS, pca], ignore_index=True)
    effect = effects.measured(measure("beyond", x="x", rows=A, less={"family": "pca"}), both)
    plain = effects.measured(measure("mean", x="x", rows=A), RUNS)
    assert (effect.value, effect.low, effect.high) == pytest.approx(
        (plain.value - 0.25, plain.low - 0.25, plain.high - 0.25)
    )


def test_shares_have_clopper_and_pearsons_interval() -> None:
    """3 of 12, from the quantiles of beta distributions."""
    third = np.sort(RUNS["x"][:12])[2:4].mean()
    effect = effects.measured(measure("share", x="x", rows=A, below=float(third)), RUNS)
    assert (effect.value, effect.low, effect.high) == pytest.approx(
        (0.25, stats.beta.ppf(0.025, 3, 10), stats.beta.ppf(0.975, 4, 9))
    )


def test_correlations_are_over_the_means_of_units_with_fishers_interval() -> None:
    means = settings("x", "y")
    pearson: Any = stats.pearsonr(means[:, 0], means[:, 1])
    effect = effects.measured(measure("pearson", "setting", x="x", y="y"), RUNS)
    assert (effect.value, effect.low, effect.high) == pytest.approx(
        (pearson.statistic, *pearson.confidence_interval(0.95))
    )
    spearman = effects.measured(measure("spearman", x="x", y="y"), RUNS)
    assert spearman.value == pytest.approx(stats.spearmanr(RUNS["x"], RUNS["y"])[0])
    wider = np.sqrt((1 + spearman.value**2 / 2) / 21) * stats.norm.ppf(0.975)
    assert np.arctanh([spearman.low, spearman.high]) == pytest.approx(np.arctanh(spearman.value) + [-wider, wider])
    assert effects.measured(measure("pearson", "setting", x="x", y="y", rows=A), RUNS).low == -1  # of three units


@pytest.mark.lengthy
def test_a_gap_of_correlations_holds_the_true_one_as_often_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of normal numbers that correlate by .8 and by .2, twenty of each: in about 190 of 200 samples."""
    monkeypatch.setattr(effects, "RESAMPLES", 300)
    rng, held = np.random.default_rng(0), 0
    gap = measure("correlation_gap", x="x", y="y", rows=A, less=B)
    for _ in range(200):
        pairs = np.concatenate([rng.multivariate_normal([0, 0], [[1, r], [r, 1]], 20) for r in (0.8, 0.2)])
        table = pd.DataFrame(pairs, columns=["x", "y"]).assign(family=np.repeat(["a", "b"], 20), seed=np.arange(40))
        effect = effects.measured(gap, table.assign(setting="s"))
        held += effect.low <= 0.6 <= effect.high
    assert 182 <= held <= 198
    assert effect.value == pytest.approx(np.corrcoef(pairs[:20].T)[0, 1] - np.corrcoef(pairs[20:].T)[0, 1])


def test_within_settings_compares_seeds_of_one_setting_alone() -> None:
    """Seeds go together in each setting, settings against each other: 1 within, though negative over all."""
    seeds, places = np.tile(np.arange(4.0), 3), np.repeat([0.0, 10, 20], 4)
    table = pd.DataFrame({"family": "f", "setting": places, "seed": seeds, "x": seeds + places, "y": seeds - places})
    assert effects.measured(measure("spearman_within", "setting", x="x", y="y"), table).value == pytest.approx(1)
    assert effects.measured(measure("spearman", x="x", y="y"), table).value < -0.5


def test_statistics_of_picks_and_settings_are_those_of_pandas() -> None:
    best = RUNS.loc[RUNS["x"].idxmax()]
    means = RUNS.groupby(["family", "setting"])[["x", "y", "z"]].mean()
    correlations = means.corr().loc["y"]
    for found, value in (
        (measure("pick", by="x", y="y", against="median"), best["y"] - RUNS["y"].median()),
        (measure("pick", by="x", y="y", against="best"), best["y"] - RUNS["y"].max()),
        (measure("pick", by="x", y="y", against="z"), best["y"] - RUNS["y"][RUNS["z"].idxmax()]),
        (measure("best_setting", x="x", rows=A, less=B), means.loc["a", "x"].max() - means.loc["b", "x"].max()),
        (measure("lead", "setting", x="x", others=["z"], y="y"), correlations["x"] - correlations["z"]),
    ):
        assert effects.measured(found, RUNS).value == pytest.approx(value), found.kind


def test_spreads_and_best_seeds_are_those_of_pandas() -> None:
    sd = RUNS.groupby(["family", "setting"])[["x", "y"]].std()
    best = RUNS.groupby(["family", "seed"])["x"].max()
    found = effects.measured(measure("spread", "setting", x="x", rows=A, less=B), RUNS)
    interval: Any = stats.ttest_ind(sd.loc["a", "x"], sd.loc["b", "x"], equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(interval))
    found = effects.measured(measure("best_of_seed", x="x", rows=A, less=B), RUNS)
    assert (found.value, found.units) == (pytest.approx((best["a"] - best["b"]).mean()), 8)


def test_correlations_by_family_are_means_of_scipys() -> None:
    def rho(family: str, first: str, second: str) -> float:
        own = RUNS[RUNS["family"] == family]
        return float(stats.spearmanr(own[first], own[second])[0])

    plain = [np.mean([rho(family, "x", "y"), rho(family, "x", "z")]) for family in "ab"]
    found = effects.measured(measure("spearman_by_family", "family", x="x", ys=["y", "z"]), RUNS)
    assert (found.value, found.units) == (pytest.approx(np.mean(plain)), 2)


def test_the_largest_disagreement_is_of_shares_of_runs_below() -> None:
    def below(column: str, place: int) -> float:
        values = RUNS[column]
        return float((values < values[place]).mean() + (values == values[place]).mean() / 2)

    expected = max(below("x", place) - below("y", place) for place in range(len(RUNS)))
    assert effects.measured(measure("disagreement", "setting", x="x", y="y"), RUNS).value == pytest.approx(expected)


def test_errors_are_turned_round_before_they_compete() -> None:
    """An error that goes perfectly against the target predicts it perfectly."""
    table = RUNS.assign(**{"dci_lasso.informativeness": -RUNS["y"], "mig.score": RUNS["x"]})
    found = measure("lead", x="mig.score", others=["dci_lasso.informativeness"], y="y")
    assert effects.measured(found, table).value == pytest.approx(RUNS["x"].corr(RUNS["y"]) - 1)


def test_settings_that_are_drawn_anew_spread_as_settings_and_seeds_as_seeds() -> None:
    """Seeds of a setting are alike: the interval over settings is many times that over seeds."""
    rng = np.random.default_rng(0)
    level = np.repeat(rng.normal(size=(12, 2)), 8, axis=0)
    table = pd.DataFrame({"family": "f", "setting": np.repeat(np.arange(12), 8), "seed": np.tile(np.arange(8), 12)})
    table[["x", "y"]] = level + 0.01 * rng.normal(size=(96, 2))
    for kind, more in (
        ("lead", {"x": "x", "others": ["y"], "y": "y"}),
        ("pick", {"by": "x", "y": "y", "against": "median"}),
    ):
        seeds, places = (effects.measured(measure(kind, unit, **more), table) for unit in ("seed", "setting"))
        assert (seeds.units, places.units) == (96, 12)
        assert places.high - places.low > 10 * (seeds.high - seeds.low), kind


RULE = {
    "id": "table1-mig", "claim": "x goes with y", "where": "table 1", "published": ".5", "setting": "theirs",
    "study": "udr-2020-laptop", "unit": "setting", "above": 0, "counts": 0.2, "effect": 0.5,
    "measure": {"kind": "spearman", "x": "udr.score", "y": "mig.score"},
}  # fmt: skip


def written(folder: Path, *claims: Any, **others: Any) -> Any:
    path = folder / "udr-2020.yaml"
    path.write_text(yaml.safe_dump({"paper": "UDR 2020", "claims": list(claims), **others}), encoding="utf-8")
    return rules.read(path)


def test_a_verdict_asks_for_the_whole_interval_and_for_an_effect_that_counts(tmp_path: Path) -> None:
    (rule,) = written(tmp_path, RULE).claims
    below = replace(rule, above=None, below=0.0, counts=-0.2)
    for value, low, high, verdict in (
        (0.5, 0.1, 0.8, "reproduced"),
        (0.1, 0.05, 0.3, "undecided"),  # it may count
        (0.1, 0.05, 0.19, "not reproduced"),  # there, and too small
        (0.5, -0.1, 0.8, "undecided"),
        (-0.5, -0.8, -0.1, "not reproduced"),
    ):
        assert rule.verdict(effects.Effect(value, low, high, 9)) == verdict
        assert below.verdict(effects.Effect(-value, -high, -low, 9)) == verdict


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unit": "run"}, "unit must be one of seed, setting, model, dataset_model"),
        ({"counts": -0.1}, r"what counts \(-0.1\) lies on the wrong side of the bound \(0.0\)"),
        ({"below": 1}, "needs the paper's effect, counts, and either above or below"),
        ({"measure": {"kind": "median", "x": "a"}}, "no measure is called 'median'; there are mean, difference"),
        ({"published": ""}, "table1-mig: lacks published"),
        ({"colour": "red"}, "no rule has colour"),
    ],
)
def test_rules_that_lack_something_are_refused(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        written(tmp_path, RULE | change)
    with pytest.raises(ValueError, match="table1-mig stands there twice"):
        written(tmp_path, RULE, RULE)


def test_an_observation_has_no_bound(tmp_path: Path) -> None:
    observation = {name: value for name, value in RULE.items() if name not in ("above", "counts", "effect")}
    (rule,) = written(tmp_path, observations=[observation]).observations
    assert rule.counts is None
    with pytest.raises(ValueError, match="an observation has no above, counts, effect"):
        written(tmp_path, observations=[RULE])


def test_runs_decide_only_about_a_rule_that_their_own_commit_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule from before there were trials is the same rule, unless its trial was made again."""
    (rule,) = written(tmp_path, RULE).claims
    plain = {name: value for name, value in RULE.items() if name != "effect"}
    claims = {"a": [RULE], "b": [RULE | {"above": -1}], "c": [], "d": [RULE | {"effect": 0.4}], "e": [plain]}

    def deciding(claims: list[Any]) -> Any:
        return rules._deciding(yaml.safe_dump({"claims": claims}))

    monkeypatch.setattr(rules, "rule_text", lambda _: deciding([RULE]))
    monkeypatch.setattr(rules, "_rules_of", lambda commit, _: list(deciding(claims[commit[0]]).values()))
    for commit, again, reason in (
        ("a" * 40, True, ""),
        ("b" * 40, False, "made at bbbbbbb, before its rule"),
        ("c" * 40, False, "made at ccccccc, before its rule"),
        ("d" * 40, False, "made at ddddddd, before its rule"),
        ("e" * 40, False, ""),
        ("e" * 40, True, "made at eeeeeee, before its rule"),
        ("a" * 40 + "-dirty", False, "made before its rule, or at no clean commit"),
        (None, False, "made before its rule, or at no clean commit"),
    ):
        assert rules.why_not(rule, pd.DataFrame({"commit": ["a" * 40, commit]}), again) == reason
    assert rules.why_not(rule, pd.DataFrame({"x": [1]}))


def test_a_group_may_be_replaced_by_runs_made_later_and_what_it_is_compared_with_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compared(model: str, less: str, x: str = "mig.score") -> dict[str, Any]:
        measure = {"kind": "difference", "x": x, "rows": {"family": model}, "less": {"family": less}}
        return RULE | {"measure": measure, "spread": 0.1}

    claims = {"a": compared("old", "vae"), "b": compared("new", "vae"), "c": compared("old", "vae", "sap.score")}
    (rule,) = written(tmp_path, claims["b"]).claims
    texts = {name: rules._deciding(yaml.safe_dump({"claims": [claim]})) for name, claim in claims.items()}
    monkeypatch.setattr(rules, "rule_text", lambda _: texts["b"])
    monkeypatch.setattr(rules, "_rules_of", lambda commit, _: list(texts[commit[0]].values()))

    def reason(commit: str, other: str) -> str:
        return rules.why_not(rule, pd.DataFrame({"commit": [commit * 40]}), True, other)

    assert reason("a", "rows") == "", "VAEs from before the new models were named"
    assert reason("a", "less") == "made at aaaaaaa, before its rule", "models that the rule does not name any more"
    assert reason("b", "less") == reason("b", "rows") == ""
    assert reason("c", "rows") == "made at ccccccc, before its rule", "another metric"


def kept(name: str) -> dict[tuple[str, str], Any]:
    rows = json.loads((rules.ROOT / "evidence" / "claims.json").read_text(encoding="utf-8"))[name]
    return {(row["file"], row["id"]): row for row in rows}


PAPERS = [rules.read(path) for path in sorted((rules.ROOT / rules.CLAIMS).glob("*.yaml"))]
CLAIMED = [rule for paper in PAPERS for rule in paper.claims]
OBSERVED = [rule for paper in PAPERS for rule in paper.observations]


def test_every_claim_has_its_verdict_from_its_own_table() -> None:
    rows = kept("claims")
    assert list(rows) == [(rule.file, rule.id) for rule in CLAIMED]
    assert list(kept("observations")) == [(rule.file, rule.id) for rule in OBSERVED]
    for rule in CLAIMED:
        row = rows[rule.file, rule.id]
        assert (row["claim"], row["published"]) == (rule.claim, rule.published)
        if "value" in row:
            effect = effects.Effect(*(row[name] for name in ("value", "low", "high", "units")))
            assert row["verdict"] == rule.verdict(effect), rule.id
            assert trials.passes(row["trial"]), rule.id


def test_numbers_that_stand_on_the_page_are_those_of_the_tables() -> None:
    """Where the interval has a formula; the others are of a thousand draws each."""
    for rule in (*CLAIMED, *OBSERVED):
        row = {**kept("claims"), **kept("observations")}[rule.file, rule.id]
        if "value" in row and "_resampled" not in effects.KINDS[rule.measure.kind].effect.__qualname__:
            now = make_claims.rounded(effects.measured(rule.measure, make_claims.table(rule.study)))
            assert {name: row[name] for name in now} == pytest.approx(now, abs=2e-4), rule.id


def test_scores_by_all_images_take_the_place_of_those_by_some(monkeypatch: pytest.MonkeyPatch) -> None:
    factors = np.random.default_rng(0).normal(size=(400, 3))
    codes = np.random.default_rng(1).normal(0.3 * factors, 1) + factors

    class Run:
        def dataset(self) -> list[int]:
            return [0] * len(codes)

        def representation(self, n: int) -> Representation:
            return Representation(codes[:n], factors[:n], names=["azimuth", "red", "green"])

    monkeypatch.setattr(make_claims.unbraid, "load_run", lambda folder: {Path("study/runs/a"): Run()}[folder])
    columns = ["dci_lasso.nrmse", "dci_forest.nrmse", "dci_forest.disentanglement", "mig.score"]
    frame = pd.DataFrame([["a", "finished", 9, *[0.5] * 4], ["b", "waiting", None, *[None] * 4]])
    frame.columns = ["run", "state", "n_rows", *columns]
    scored = make_claims.by_all_images(frame, Path("study"))
    lasso, forest = dci_lasso(codes, factors), dci_forest(codes, factors)
    expected = [400, lasso.nrmse, forest.nrmse, forest.disentanglement, 0.5]
    assert scored.loc[0, ["n_rows", *columns]].tolist() == pytest.approx(expected)
    assert scored.loc[1, columns].isna().all()
    assert scored.loc[0, "dci_lasso.errors.red"] == pytest.approx(lasso.errors[1])
    assert scored.loc[0, "dci_forest.per_factor.green"] == pytest.approx(forest.per_factor[2])


# ---- trials

SIX = pd.DataFrame(
    {
        "dataset": "d", "dataset_options": "", "family": np.repeat(["a", "b"], 60),
        "setting": np.tile(np.repeat(np.arange(6), 10), 2), "seed": np.tile(np.arange(10), 12),
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("found", "effect", "spread"),
    [
        (measure("mean", x="x", rows=A), 0.4, 0.3),
        (measure("difference", x="x", rows=A, less=B), -0.4, 0.3),
        (measure("beyond", x="x", rows=A, less={"family": "b", "setting": 0, "seed": 0}), 0.4, 0.3),
        (measure("paired", "setting", x="x", less="y"), 0.4, 0.3),
        (measure("share", x="x", below=0.1), 0.4, 0.0),
        (measure("pearson", "setting", x="x", y="y"), 0.8, 0.0),
        (measure("spearman", x="x", y="y"), -0.4, 0.0),
        (measure("best_of_seed", x="x", rows=A, less=B), 0.4, 0.3),
        (measure("spearman_by_family", "family", x="x", ys=["y", "z"]), 0.4, 0.05),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_what_is_planted_is_measured(found: Any, effect: float, spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of sixty simulated tables is the planted effect."""
    monkeypatch.setattr(effects, "RESAMPLES", 2)  # for intervals, which nobody reads here
    rng = np.random.default_rng(0)
    groups = [effects.chosen(SIX, rows) for rows in found.groups]
    tables = [trials.simulated(found, groups, effect, spread, rng) for _ in range(60)]
    assert np.mean([effects.measured(found, table).value for table in tables]) == pytest.approx(effect, abs=0.04)


def test_the_best_setting_and_a_lead_are_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "RESAMPLES", 2)
    rng = np.random.default_rng(0)
    best = measure("best_setting", x="x", rows=A, less=B)
    groups = [effects.chosen(SIX, rows) for rows in best.groups]
    for effect in (2.0, -2.0):
        tables = [trials.simulated(best, groups, effect, 0.1, rng) for _ in range(20)]
        assert np.mean([effects.measured(best, table).value for table in tables]) == pytest.approx(effect, abs=0.1)
    lead = measure("lead", x="mig.score", others=["dci_lasso.informativeness"], y="y")
    tables = [trials.simulated(lead, [SIX], [0.8, 0.3], 0, rng) for _ in range(60)]
    assert np.mean([effects.measured(lead, table).value for table in tables]) == pytest.approx(0.5, abs=0.04)


def test_every_claim_has_a_trial_of_its_present_rule() -> None:
    stored = trials.stored()
    for rule in (rule for rule in CLAIMED if rule.measure):
        assert stored[f"{rule.file} {rule.id}"]["digest"] == trials.digest(rule), (
            f"{rule.id}: run python evidence/trials.py"
        )
    assert len(stored) == sum(rule.measure is not None for rule in CLAIMED)


@pytest.mark.lengthy
def test_trials_have_the_units_that_their_studies_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "RESAMPLES", 2)  # for intervals, which nobody reads here
    stored = trials.stored()
    for rule in (rule for rule in CLAIMED if rule.measure):
        assert stored[f"{rule.file} {rule.id}"]["units"] == trials.units(rule), (
            f"{rule.id}: run python evidence/trials.py"
        )


def test_a_rule_that_misses_the_papers_effect_or_sees_one_where_there_is_none_judges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paper = written(tmp_path, RULE)
    (rule,) = paper.claims
    trial = {"digest": trials.digest(rule), "units": 36, "without": 0.05, "with": 0.8}
    monkeypatch.setattr(make_claims, "unfinished", lambda *_: "it waits")
    for change, verdict in (
        ({}, "awaits a run"),
        ({"with": 0.79}, "rule too weak"),
        ({"without": 0.055}, "rule too weak"),
        ({"digest": "of another rule"}, "awaits its trial"),
    ):
        assert make_claims.judged(paper, rule, trial | change)["verdict"] == verdict
    assert make_claims.judged(paper, rule, None)["verdict"] == "awaits its trial"


def test_rules_name_columns_that_their_studies_will_have() -> None:
    """A metric that a study is scored by, or what training, ranking and held-out images add."""
    added = ("train.", "udr.", "hyper.", "compositional.", "zero_shot.", "elbo", "seconds")
    scored = {}
    for path in (rules.ROOT / "evidence" / "studies").rglob("*.yaml"):
        known = yaml.safe_load(path.read_text(encoding="utf-8"))
        scored[known.get("name")] = [rules.full_name(each) for each in known.get("metrics", [])]
    for rule in (each for each in (*CLAIMED, *OBSERVED) if each.measure):
        for column in rule.measure.all_columns:
            metric = column.rpartition(".")[0]
            for study in rule.study:
                assert column.startswith(added) or {metric, metric.partition("(")[0]} & {*scored[study]}, (
                    f"{rule.id}: {column} in {study}"
                )


def test_columns_are_named_as_results_have_them(tmp_path: Path) -> None:
    """A default that is said is none."""
    named = {"kind": "paired", "x": "beta_vae_score(batch_size=64).score", "less": "beta_vae_score(batch_size=1).score"}
    (rule,) = written(tmp_path, RULE | {"measure": named, "spread": 1}).claims
    assert rule.measure.all_columns == ["beta_vae_score.score", "beta_vae_score(batch_size=1).score"]


def test_a_claim_waits_for_every_run_of_its_own_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"kind": "difference", "x": "mig.score", "rows": A, "less": B}
    (rule,) = written(tmp_path, RULE | {"measure": known, "unit": "seed", "spread": 1}).claims
    runs = pd.DataFrame({"family": ["a", "a", "b", "c"], "state": ["finished", "failed", "finished", "waiting"]})
    monkeypatch.setattr(make_claims, "read_table", lambda _: runs)
    assert make_claims.all_ended(rule)
    assert len(make_claims.table(rule.study)) == 3
    for state in ("waiting", "running"):
        monkeypatch.setattr(make_claims, "read_table", lambda _, state=state: runs.replace("failed", state))
        assert not make_claims.all_ended(rule)
    monkeypatch.setattr(make_claims, "read_table", lambda _: runs[runs["family"] != "b"])
    assert not make_claims.all_ended(rule), "it has no runs of one group yet"


def test_a_claim_waits_for_held_out_models_only_where_it_needs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = pd.DataFrame({"family": ["a", "b"], "mig.score": [0.2, 0.1], "compositional.mlp.both": [0.5, None]})
    runs["state"] = ["finished", make_claims.HELD_OUT_WAITS]
    monkeypatch.setattr(make_claims, "read_table", lambda _: runs)
    assert len(make_claims.table(["x"])) == 2
    for column, ended in (("mig.score", True), ("compositional.mlp.both", False), ("compositional.lost", False)):
        known = {"kind": "difference", "x": column, "rows": A, "less": B}
        (rule,) = written(tmp_path, RULE | {"measure": known, "unit": "seed", "spread": 1}).claims
        assert make_claims.all_ended(rule) is ended, column


def test_a_gate_of_models_that_wait_says_nothing_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else claims about a study's VAEs would wait for its other models."""
    known = {"statistic": "mean", "columns": ["mig.score"], "rows": {"family": "b"}, "at_least": 0.5, "why": "table 1"}
    paper = written(tmp_path, RULE)
    (rule,) = paper.claims
    paper = paper._replace(gates=gates.read_gates([{"study": rule.study[0], **known}], "x.yaml"))
    runs = pd.DataFrame({"family": ["a", "b", "b"], "state": ["finished", "finished", "waiting"], "mig.score": 0.1})
    monkeypatch.setattr(make_claims, "read_table", lambda _: runs)
    assert not make_claims.unlearnt(paper, rule)
    monkeypatch.setattr(make_claims, "read_table", lambda _: runs[:2])
    assert len(make_claims.unlearnt(paper, rule)) == 1
    monkeypatch.setattr(make_claims, "read_table", lambda _: runs[:1])
    monkeypatch.setattr(make_claims, "RESULTS", tmp_path)
    (tmp_path / f"{rule.study[0]}.csv").touch()
    assert make_claims.pilot_failures(paper, rule) == [], "its models have not begun"
    with pytest.raises(ValueError, match="no run has"):
        make_claims.unlearnt(paper, rule)


def test_only_the_runs_that_a_rule_compares_decide_about_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"kind": "difference", "x": "mig.score", "rows": A, "less": B}
    (rule,) = written(tmp_path, RULE | {"measure": known, "unit": "seed", "spread": 1}).claims
    runs = pd.DataFrame({"family": ["a", "b", "c"], "commit": ["1", "2", "3"], "state": "finished", "mig.score": 0.1})
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(make_claims, "read_table", lambda _: runs)
    monkeypatch.setattr(make_claims, "RESULTS", tmp_path)
    monkeypatch.setattr(
        make_claims, "why_not", lambda _, own, __, other: asked.append(("".join(own["commit"]), other)) or ""
    )
    for name in rule.study:
        (tmp_path / f"{name}.csv").touch()
    assert make_claims.unfinished(rule, {"digest": ""}) == ""
    assert asked == [("1", "less"), ("2", "rows")]
    assert make_claims.looked_at(rule)["commit"].tolist() == ["1", "2"]


def test_no_verdict_is_given_before_all_runs_have_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (rule,) = written(tmp_path, RULE).claims
    for name in rule.study:
        (tmp_path / f"{name}.csv").touch()
    monkeypatch.setattr(make_claims, "RESULTS", tmp_path)
    monkeypatch.setattr(make_claims, "table", lambda _: pd.DataFrame({"family": ["a", "b"]}))
    monkeypatch.setattr(make_claims, "why_not", lambda *_: "")
    monkeypatch.setattr(make_claims, "all_ended", lambda _: False)
    assert make_claims.unfinished(rule, {}).startswith("not all runs have ended of ")
