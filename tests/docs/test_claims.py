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

DOCS = Path(__file__).parents[2] / "docs"
effects: Any = import_module("effects")
rules: Any = import_module("claims_rules")
make_claims: Any = import_module("make_claims")
generate: Any = import_module("generate")
JUDGED = json.loads((rules.ROOT / "evidence" / "claims.json").read_text(encoding="utf-8"))

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


def test_ratios_have_fiellers_interval_whose_ends_are_where_a_t_test_just_decides() -> None:
    """q is inside where Student's test does not tell x - q y from 0."""
    table = RUNS.assign(x=RUNS["x"] + 2, y=RUNS["y"] + 5)
    effect = effects.measured(measure("ratio", x="x", of="y"), table)
    assert effect.value == pytest.approx(table["x"].mean() / table["y"].mean())
    for end in (effect.low, effect.high):
        assert stats.ttest_1samp(table["x"] - end * table["y"], 0).pvalue == pytest.approx(0.05)
    assert effect.low < effect.value < effect.high
    unbounded = effects.measured(measure("ratio", x="x", of="y"), RUNS)  # of a mean that may be 0
    assert (unbounded.low, unbounded.high) == (-np.inf, np.inf)


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
def test_a_gap_of_correlations_holds_the_true_one_as_often_as_it_says() -> None:
    """Of normal numbers that correlate by .8 and by .2, twenty of each: in about 380 of 400 samples."""
    rng, held = np.random.default_rng(0), 0
    gap = measure("correlation_gap", x="x", y="y", rows=A, less=B)
    for _ in range(400):
        pairs = np.concatenate([rng.multivariate_normal([0, 0], [[1, r], [r, 1]], 20) for r in (0.8, 0.2)])
        table = pd.DataFrame(pairs, columns=["x", "y"]).assign(family=np.repeat(["a", "b"], 20), seed=np.arange(40))
        effect = effects.measured(gap, table.assign(setting="s"))
        held += effect.low <= 0.6 <= effect.high
    assert 365 <= held <= 395
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
    above = np.mean([(RUNS[each] < best[each]).mean() + (RUNS[each] == best[each]).mean() / 2 for each in "yz"])
    correlations = means.corr().loc["y"]
    for found, value in (
        (measure("pick", by="x", y="y", against="median"), best["y"] - RUNS["y"].median()),
        (measure("pick", by="x", y="y", against="best"), best["y"] - RUNS["y"].max()),
        (measure("pick", by="x", y="y", against="z"), best["y"] - RUNS["y"][RUNS["z"].idxmax()]),
        (measure("pick_share", by="x", ys=["y", "z"]), above),
        (measure("best_setting", x="x", rows=A, less=B), means.loc["a", "x"].max() - means.loc["b", "x"].max()),
        (measure("cost_of_best", best="x", x="y"), means.loc[means["x"].idxmax(), "y"] - means["y"].max()),
        (measure("lead", "setting", x="x", others=["z"], y="y"), correlations["x"] - correlations["z"]),
    ):
        assert effects.measured(found, RUNS).value == pytest.approx(value), found.kind


def test_spreads_best_seeds_and_variances_are_those_of_pandas() -> None:
    sd = RUNS.groupby(["family", "setting"])[["x", "y"]].std()
    best = RUNS.groupby(["family", "seed"])["x"].max()
    found = effects.measured(measure("spread", "setting", x="x", rows=A, less=B), RUNS)
    interval: Any = stats.ttest_ind(sd.loc["a", "x"], sd.loc["b", "x"], equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(interval))
    found = effects.measured(measure("spread", "setting", x="x", less="y"), RUNS)
    assert found.value == pytest.approx((sd["x"] - sd["y"]).mean())
    found = effects.measured(measure("best_of_seed", x="x", rows=A, less=B), RUNS)
    assert (found.value, found.units) == (pytest.approx((best["a"] - best["b"]).mean()), 8)
    found = effects.measured(measure("variance_ratio", x="x", of="y"), RUNS)
    assert found.value == pytest.approx(RUNS["x"].var() / RUNS["y"].var())
    for end in (found.low, found.high):  # Pitman: sums and differences of columns of one variance do not correlate
        scaled = RUNS["x"] / np.sqrt(end)
        assert stats.pearsonr(scaled + RUNS["y"], scaled - RUNS["y"]).pvalue == pytest.approx(0.05)


def test_correlations_by_family_are_means_of_scipys() -> None:
    def rho(family: str, first: str, second: str) -> float:
        own = RUNS[RUNS["family"] == family]
        return float(stats.spearmanr(own[first], own[second])[0])

    plain = [np.mean([rho(family, "x", "y"), rho(family, "x", "z")]) for family in "ab"]
    found = effects.measured(measure("spearman_by_family", "family", x="x", ys=["y", "z"]), RUNS)
    assert (found.value, found.units) == (pytest.approx(np.mean(plain)), 2)
    among = [rho(family, "y", "z") for family in "ab"]
    found = effects.measured(measure("spearman_by_family", "family", x="x", ys=["y", "z"], less="pairs"), RUNS)
    assert found.value == pytest.approx(np.mean(plain) - np.mean(among))
    found = effects.measured(measure("spearman_by_family", "family", x="x", ys=["y"], less="z"), RUNS)
    assert found.value == pytest.approx(np.mean([rho(f, "x", "y") - rho(f, "z", "y") for f in "ab"]))


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


@pytest.mark.lengthy
def test_intervals_hold_what_they_promise() -> None:
    """Of 400 tables of noise the interval of the difference of two groups holds 0 in about 380."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(400):
        table = pd.DataFrame({"family": np.repeat(["a", "b"], 5), "seed": np.arange(10), "x": rng.normal(size=10)})
        effect = effects.measured(measure("difference", x="x", rows=A, less=B), table.assign(setting="s"))
        held += effect.low <= 0 <= effect.high
    assert 365 <= held <= 395


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "found",
    [
        measure("difference", x="x", rows=A, less=B),
        measure("paired", x="x", less="y"),
        measure("spearman", "setting", x="x", y="y"),
        measure("correlation_gap", x="x", y="y", rows=A, less=B),
        measure("spearman_within", "setting", x="x", y="y"),
        measure("mean", x="x"),
        measure("ratio", x="x", of="z"),
        measure("variance_ratio", x="x", of="z"),
        measure("spread", "setting", x="x", less="y"),
        measure("best_of_seed", x="x", rows=A, less=B),
        measure("disagreement", "setting", x="x", y="y"),
        measure("share", x="x", above=0.5),
    ],
    ids=lambda each: each.kind,
)
def test_tables_without_an_effect_have_none(found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of tables made from one in which everything holds, few are beyond 0 (or a share of a half)."""
    monkeypatch.setattr(effects, "RESAMPLES", 100)
    many = pd.concat([RUNS.assign(setting=RUNS["setting"] + place) for place in "rstu"], ignore_index=True)
    x = np.random.default_rng(3).normal(size=len(many))
    strong = many.assign(x=x + 20 * (many["family"] == "a"), y=x, z=5 + many["z"])
    bound = {"share": 0.5, "variance_ratio": 1.0}.get(found.kind, 0.0)
    rng, beyond = np.random.default_rng(0), 0
    for _ in range(100):
        effect = effects.measured(found, effects.without_effect(found, strong, bound, rng))
        beyond += effect.low > bound
    assert beyond <= 9  # 2.5 of a hundred, and luck


@pytest.mark.lengthy
@pytest.mark.parametrize("bound", [-0.1, 0.5])
def test_a_table_without_an_effect_is_at_the_bound_of_a_difference(bound: float) -> None:
    """Else "not much lower" would hold wherever nothing is done, and its check would tell nothing."""
    many = pd.concat([RUNS.assign(setting=RUNS["setting"] + place) for place in "rstu"], ignore_index=True)
    found, rng = measure("difference", x="x", rows=A, less=B), np.random.default_rng(0)
    made = many.assign(x=np.random.default_rng(3).normal(size=len(many)) + 2 * (many["family"] == "a"))
    nothing = [effects.measured(found, effects.without_effect(found, made, bound, rng)) for _ in range(200)]
    assert abs(np.mean([each.value for each in nothing]) - bound) < 0.1
    assert np.mean([each.low > bound for each in nothing]) <= 0.06


RULE = {
    "id": "table1-mig", "claim": "x goes with y", "where": "table 1", "published": ".5", "setting": "theirs",
    "study": "udr-2020-laptop", "unit": "setting", "above": 0, "counts": 0.2,
    "measure": {"kind": "spearman", "x": "udr.score", "y": "mig.score"},
}  # fmt: skip


def written(folder: Path, *claims: Any) -> Path:
    path = folder / "udr-2020.yaml"
    path.write_text(yaml.safe_dump({"paper": "UDR 2020", "claims": list(claims)}), encoding="utf-8")
    return path


def test_a_verdict_asks_for_the_whole_interval_and_for_an_effect_that_counts(tmp_path: Path) -> None:
    _, (rule,) = rules.read(written(tmp_path, RULE))
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
        ({"below": 1}, "needs a measure, counts, and either above or below"),
        ({"measure": {"kind": "median", "x": "a"}}, "no measure is called 'median'; there are mean, difference"),
        ({"measure": {"kind": "mean", "y": "a"}}, "a mean has x; see x"),
        ({"measure": {"kind": "paired", "x": "a"}}, "a paired compares with column, not with None"),
        ({"published": ""}, "table1-mig: lacks published"),
        ({"cost": "much"}, "needs one of study, cost, data, unmeasured"),
        ({"colour": "red"}, "no rule has colour"),
    ],
)
def test_rules_that_lack_something_are_refused(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        rules.read(written(tmp_path, RULE | change))
    with pytest.raises(ValueError, match="table1-mig stands there twice"):
        rules.read(written(tmp_path, RULE, RULE))


def test_runs_decide_only_about_a_rule_that_their_own_commit_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, (rule,) = rules.read(written(tmp_path, RULE))
    held = {"a" * 40: [RULE], "b" * 40: [RULE | {"above": -1}], "c" * 40: []}

    def of(claims: list[Any]) -> Any:
        return rules._deciding(yaml.safe_dump({"claims": claims}))

    monkeypatch.setattr(rules, "_held_now", lambda _: of([RULE]))
    monkeypatch.setattr(rules, "_held", lambda commit, _: of(held[commit]))
    for commit, reason in (
        ("a" * 40, ""),
        ("b" * 40, "made at bbbbbbb, when its rule was another"),
        ("c" * 40, "made at ccccccc, before its rule"),
        ("a" * 40 + "-dirty", "made before its rule, or at no clean commit"),
        (None, "made before its rule, or at no clean commit"),
    ):
        assert rules.why_not(rule, pd.DataFrame({"commit": ["a" * 40, commit]})) == reason
    assert rules.why_not(rule, pd.DataFrame({"x": [1]}))


def test_every_claim_has_its_verdict_from_its_own_table() -> None:
    """Undecided where its rule says "reproduced" of more than one table in twenty without the effect."""
    kept = {(row["file"], row["id"]): row for row in JUDGED}
    known = [rule for path in sorted((rules.ROOT / rules.CLAIMS).glob("*.yaml")) for rule in rules.read(path)[1]]
    assert list(kept) == [(rule.file, rule.id) for rule in known]
    for rule in known:
        row = kept[rule.file, rule.id]
        assert (row["claim"], row["published"]) == (rule.claim, rule.published)
        if "value" in row:
            effect = effects.Effect(*(row[name] for name in ("value", "low", "high", "units")))
            fair = row["null"] <= 0.05
            assert row["verdict"] == (rule.verdict(effect) if fair else "undecided"), rule.id


def test_numbers_that_stand_on_the_page_are_those_of_the_tables() -> None:
    """Where the interval has a formula; the others are of a thousand draws each."""
    kept = {(row["file"], row["id"]): row for row in JUDGED}
    for path in sorted((rules.ROOT / rules.CLAIMS).glob("*.yaml")):
        for rule in rules.read(path)[1]:
            drawn = rule.measure is None or "_resampled" in rule_effect(rule)
            for each in [] if drawn else kept[rule.file, rule.id]["tried"]:
                now = make_claims.rounded(effects.measured(rule.measure, make_claims.table(each["studies"])))
                assert {name: each[name] for name in now} == pytest.approx(now, abs=2e-4), rule.id


def rule_effect(rule: Any) -> str:
    return effects.KINDS[rule.measure.kind].effect.__qualname__


def test_rules_name_columns_that_their_studies_will_have() -> None:
    """A metric that a study is scored by, or what training, ranking and held-out images add."""
    added = ("train.", "udr.", "hyper.", "compositional.", "zero_shot.", "elbo", "seconds")
    scored = {}
    for path in (rules.ROOT / "evidence" / "studies").rglob("*.yaml"):
        known = yaml.safe_load(path.read_text(encoding="utf-8"))
        scored[known.get("name")] = [rules.full_name(each) for each in known.get("metrics", [])]
    for path in sorted((rules.ROOT / rules.CLAIMS).glob("*.yaml")):
        for rule in (each for each in rules.read(path)[1] if each.measure):
            for column in rule.measure.all_columns:
                metric = column.rpartition(".")[0]
                for study in rule.study:
                    assert column.startswith(added) or {metric, metric.partition("(")[0]} & {*scored[study]}, (
                        f"{rule.id}: {column} in {study}"
                    )


def test_columns_are_named_as_results_have_them(tmp_path: Path) -> None:
    """A default that is said is none."""
    named = {"kind": "paired", "x": "beta_vae_score(batch_size=64).score", "less": "beta_vae_score(batch_size=1).score"}
    _, (rule,) = rules.read(written(tmp_path, RULE | {"measure": named}))
    assert rule.measure.all_columns == ["beta_vae_score.score", "beta_vae_score(batch_size=1).score"]


def test_a_claim_waits_for_every_run_of_its_own_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"kind": "difference", "x": "mig.score", "rows": A, "less": B}
    _, (rule,) = rules.read(written(tmp_path, RULE | {"measure": known, "unit": "seed"}))
    runs = pd.DataFrame({"family": ["a", "a", "b", "c"], "state": ["finished", "failed", "finished", "waiting"]})
    monkeypatch.setattr(make_claims, "read_table", lambda _: runs)
    assert make_claims.all_ended(rule)
    assert len(make_claims.table(rule.study)) == 3
    for state in ("waiting", "running"):
        monkeypatch.setattr(make_claims, "read_table", lambda _, state=state: runs.replace("failed", state))
        assert not make_claims.all_ended(rule)
    monkeypatch.setattr(make_claims, "read_table", lambda _: runs[runs["family"] != "b"])
    assert not make_claims.all_ended(rule), "it has no runs of one group yet"


def test_no_verdict_is_given_and_nothing_counts_as_tried_before_all_runs_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"kind": "difference", "x": "mig.score", "rows": A, "less": B}
    _, (rule,) = rules.read(written(tmp_path, RULE | {"measure": known, "unit": "seed"}))
    for name in rule.study:
        (tmp_path / f"{name}.csv").touch()
    monkeypatch.setattr(make_claims, "RESULTS", tmp_path)
    monkeypatch.setattr(make_claims, "table", lambda _: pd.DataFrame({"family": ["a", "b"]}))
    monkeypatch.setattr(make_claims, "why_not", lambda *_: "")
    monkeypatch.setattr(make_claims, "all_ended", lambda _: False)
    monkeypatch.setattr(make_claims, "comparable", lambda _: [])
    monkeypatch.setattr(make_claims, "measured", lambda *_: pytest.fail("it is measured too early"))
    row = make_claims.judged("paper", rule)
    assert (row["verdict"], row["tried"]) == ("awaits a run", [])
    assert row["why"].startswith("not all runs have ended of ")


def test_rules_read_as_sentences(tmp_path: Path) -> None:
    _, (rule,) = rules.read(written(tmp_path, RULE))
    assert make_claims.in_words(rule) == (
        "rank correlation of `udr.score` and `mig.score`, over settings: above 0, counts from 0.2"
    )
