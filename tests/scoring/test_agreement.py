"""Correlations between columns of results, quartiles and trends, against scipy, pandas and by hand."""

import json
import statistics
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from unbraid.base.types import FloatArray
from unbraid.files.table_formats import Table
from unbraid.scoring.agreement import agreement, predictors
from unbraid.scoring.agreement_tables import _cell, of_predictors
from unbraid.scoring.by_setting import quartiles, setting_means, trend, with_elbo
from unbraid.scoring.correlation import correlation_interval
from unbraid.scoring.result_columns import agreement_columns, headline_columns, higher_is_better


def results(n: int = 30, seed: int = 0) -> pd.DataFrame:
    """Two families, three settings each, a diverged run, a metric that one family lacks and one that is constant."""
    rng = np.random.default_rng(seed)
    place = np.arange(n)
    family = np.where(place % 2, "beta_tcvae", "beta_vae")
    beta = np.array([4.0, 1.0, 16.0])[place // 2 % 3]
    quality = rng.standard_normal(n) - 0.05 * beta
    frame = pd.DataFrame(
        {
            "run": [f"run{number}" for number in place],
            "family": family,
            "setting": [f"beta={value:g}" for value in beta],
            "seed": place // 6,
            "state": "finished",
            "reason": None,
            "dataset": "sprites",
            "hyper.beta": beta,
            "hyper.latents": 10,
            "hyper.decoder": "bernoulli",
            "train.reconstruction": 30 + 2 * beta + rng.standard_normal(n),
            "train.kl": 20 - beta + rng.standard_normal(n),
            "mig.score": 0.3 + 0.1 * quality + 0.03 * rng.standard_normal(n),
            "dci_lasso.disentanglement": 0.5 + 0.1 * quality + 0.05 * rng.standard_normal(n),
            "dci_lasso.completeness": 0.5,
            "elbo_terms.total_correlation": np.where(family == "beta_vae", 2 - quality, np.nan),
            "factor_vae_score.score": 1.0,
            "med.score": 0.2 + 0.1 * quality + 0.1 * rng.standard_normal(n),
            "udr.score": 0.4 + 0.2 * quality + 0.1 * rng.standard_normal(n),
            "udr.informative": 6,
            "compositional.mlp.both": 0.2 + 0.1 * quality + 0.02 * rng.standard_normal(n),
        }
    )
    frame.loc[7, "state"] = "diverged"
    frame.loc[7, [name for name in frame.columns if name.split(".")[0] in {"mig", "dci_lasso", "med", "udr"}]] = np.nan
    return frame


FRAME = results()


# Which columns


def test_headlines_udr_generalisation_and_varying_hyperparameters_are_compared() -> None:
    assert headline_columns(FRAME) == [
        "mig.score", "dci_lasso.disentanglement", "elbo_terms.total_correlation", "factor_vae_score.score", "med.score",
    ]  # fmt: skip
    assert agreement_columns(FRAME)[5:] == ["udr.score", "compositional.mlp.both", "hyper.beta"]


def test_directions_are_those_of_the_metrics() -> None:
    assert higher_is_better("mig.score") is True
    assert higher_is_better("elbo_terms.total_correlation") is False
    assert higher_is_better("d_lsbd.score") is False
    assert higher_is_better("my_lab.scores:mine.score") is True
    assert higher_is_better("udr.score") is True
    assert higher_is_better("hyper.beta") is None
    assert higher_is_better("dci_lasso.completeness") is True  # beside the headline, as a score card says
    assert higher_is_better("dci_lasso.informativeness") is False  # an error
    assert higher_is_better("mig.ceiling") is None


# Agreement


def share_of_orders(value: float, n: int) -> float:
    """How many of all orders of n ranks agree or disagree as much."""
    return float((np.abs(of_orders(n)) >= abs(value) - 1e-9).mean())


@cache
def of_orders(n: int) -> FloatArray:
    return np.array([np.corrcoef(range(n), order)[0, 1] for order in permutations(range(n))])


@pytest.mark.parametrize("method", ["spearman", "pearson"])
def test_every_correlation_is_that_of_scipy_over_the_runs_that_have_both(method: Any) -> None:
    found = agreement(FRAME, method=method)
    reference = {"spearman": stats.spearmanr, "pearson": stats.pearsonr}[method]
    assert found.groups == ("all", "beta_tcvae", "beta_vae")
    assert {each.group for each in found.correlations} == set(found.groups)
    for each in found.correlations:
        rows = FRAME if each.group == "all" else FRAME[FRAME["family"] == each.group]
        both = rows[[each.first, each.second]].dropna()
        expected = reference(both[each.first], both[each.second])
        assert each.value == pytest.approx(expected.statistic, rel=1e-9)
        assert each.n == len(both)
        families = set(FRAME["family"][both.index])
        assert each.settings == 3 * len(families)
        t_of_settings = each.value * np.sqrt((each.settings - 2) / (1 - each.value**2))
        by_t = 2 * stats.t.sf(abs(t_of_settings), each.settings - 2)
        assert each.p == pytest.approx(max(by_t, share_of_orders(each.value, each.settings)))
        assert (each.low, each.high) == correlation_interval(each.value, each.settings, 0.95, method)
        assert each.low <= each.value <= each.high
    narrow = agreement(FRAME, method=method, confidence=0.5)
    assert all(few.high <= each.high for few, each in zip(narrow.correlations, found.correlations, strict=True))
    pairs = {(each.first, each.second) for each in found.correlations if each.group == "all"}
    assert len(pairs) == 7 * 6 / 2  # all but the constant column
    assert ("mig.score", "udr.score") in pairs
    assert ("udr.score", "hyper.beta") in pairs


@pytest.mark.parametrize("method", ["spearman", "pearson"])
def test_runs_that_are_each_a_setting_of_their_own_have_scipys_p(method: Any) -> None:
    reference = {"spearman": stats.spearmanr, "pearson": stats.pearsonr}[method]
    alone = FRAME.assign(setting=FRAME["run"])
    for frame in (alone, FRAME.drop(columns="setting")):
        found = agreement(frame, by=None, method=method)
        for each in found.correlations:
            both = frame[[each.first, each.second]].dropna()
            assert each.p == pytest.approx(reference(both[each.first], both[each.second]).pvalue, rel=1e-9)
            assert each.settings == each.n == len(both)
        order = np.argsort([each.p for each in found.correlations])
        smallest = found.correlations[order[0]]
        assert smallest.p_holm == pytest.approx(min(1, smallest.p * len(order)))


@pytest.mark.parametrize("alike", [0.0, 0.8])
def test_null_studies_seldom_have_a_star(alike: float) -> None:
    """Five columns that have nothing to do with each other, seeds of a setting alike: of 50 studies few have one."""
    rng, starred = np.random.default_rng(0), 0
    for _ in range(50):
        shared = np.repeat(rng.standard_normal((12, 5)), 8, axis=0)
        values = np.sqrt(alike) * shared + np.sqrt(1 - alike) * rng.standard_normal((96, 5))
        frame = pd.DataFrame(values, columns=list("abcde")).assign(family="vae", setting=np.repeat(np.arange(12), 8))
        found = agreement(frame, list("abcde"), by=None)
        assert all(each.p_holm >= each.p for each in found.correlations)
        starred += any(each.p_holm < 0.05 for each in found.correlations)
    assert starred <= 5  # 5 of 100, and luck


def test_what_cannot_be_correlated_is_left_out_with_the_reason_and_never_nan() -> None:
    found = agreement(FRAME)
    reasons = {(each.group, each.columns): each.reason for each in found.left_out}
    assert reasons["all", ("factor_vae_score.score",)] == "is constant (1)"
    assert reasons["beta_tcvae", ("elbo_terms.total_correlation",)] == "has 0 values; 3 are needed"
    few = agreement(FRAME[:2], by=None)
    assert few.correlations == ()
    assert {each.reason.partition(" ")[0] for each in few.left_out} == {"has"}
    frame = found.to_frame()
    assert frame.notna().to_numpy().all()
    assert list(frame.columns) == ["group", "first", "second", "value", "low", "high", "p", "p_holm", "n", "settings"]
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_matrix_is_symmetric_and_leaves_out_what_is_compared_with_nothing() -> None:
    found = agreement(FRAME)
    names, values, p = found.matrix("beta_tcvae")
    assert "factor_vae_score.score" not in names
    assert "elbo_terms.total_correlation" not in names
    np.testing.assert_array_equal(values, values.T)
    assert values.diagonal().tolist() == [1.0] * len(names)
    mine = next(
        each for each in found.correlations
        if (each.group, each.first, each.second) == ("beta_tcvae", "mig.score", "med.score")
    )  # fmt: skip
    assert values[names.index("med.score"), names.index("mig.score")] == mine.value
    assert p[names.index("mig.score"), names.index("med.score")] == mine.p_holm


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["mig"], "no column 'mig'; did you mean 'mig.score'"),
        (["mig.score", "hyper.decoder"], "column 'hyper.decoder' does not hold numbers"),
    ],
)
def test_unknown_columns_and_text_are_refused(columns: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        agreement(FRAME, columns)
    with pytest.raises(ValueError, match="infinite in row 3"):
        agreement(FRAME.assign(bad=[0.0, 1, 2, np.inf, *range(26)]), ["bad", "mig.score"])


# Which metric predicts a target best


def test_predictors_compare_each_two_metrics_on_the_runs_that_have_all_three() -> None:
    found = predictors(FRAME, "compositional.mlp.both", test="paper")
    both = next(each for each in found.predictions if (each.first, each.second) == ("mig.score", "med.score"))
    rows = FRAME.dropna(subset=["mig.score", "med.score", "compositional.mlp.both"])
    target = rows["compositional.mlp.both"]
    r = [stats.pearsonr(rows[name], target).statistic for name in ("mig.score", "med.score")]
    z = (np.arctanh(r[0]) - np.arctanh(r[1])) * np.sqrt(6 - 3)  # of two families with three settings each
    assert (both.first_value, both.second_value) == (pytest.approx(r[0]), pytest.approx(r[1]))
    assert (both.n, both.settings) == (29, 6)
    assert (both.z, both.p) == (pytest.approx(z), pytest.approx(stats.norm.sf(z)))
    names, p = found.matrix()
    assert "compositional.mlp.both" not in names
    assert "hyper.beta" not in names
    others = ("mig.score", "dci_lasso.disentanglement", "med.score", "udr.score")
    by_scipy = {name: stats.pearsonr(rows[name], target).statistic for name in others}
    assert [name for name in names if name in others] == sorted(others, key=lambda name: -by_scipy[name])
    i, j = names.index("mig.score"), names.index("med.score")
    assert p[i, j] + p[j, i] == pytest.approx(1)
    assert {
        reason for each in found.left_out if "factor_vae_score.score" in each.columns if (reason := each.reason)
    } == {"factor_vae_score.score is constant (1)"}
    json.dumps(found.to_dict(), allow_nan=False)
    assert pd.DataFrame(found.predictions).notna().to_numpy().all()


def test_the_correlation_of_a_metric_with_the_target_is_of_all_runs_that_have_both() -> None:
    """And not of those that some third column has, too."""
    goal, few = "compositional.mlp.both", "sap.score"
    frame = FRAME.assign(**{few: np.where(np.arange(len(FRAME)) < 7, np.cos(np.arange(len(FRAME))), np.nan)})
    found = predictors(frame, goal, ["mig.score", "med.score", few])
    for name in ("mig.score", "med.score", few):
        rows = frame.dropna(subset=[name, goal])
        assert found.values[name] == pytest.approx(stats.pearsonr(rows[name], rows[goal]).statistic)
        assert found.n[name] == len(rows)
    third = next(each for each in found.predictions if (each.first, each.second) == ("mig.score", few))
    assert third.n < found.n["mig.score"]
    assert third.first_value != pytest.approx(found.values["mig.score"])
    assert found.matrix()[0] == sorted(found.values, key=lambda name: -found.values[name])
    shown = next(iter(of_predictors(found)))
    assert isinstance(shown, Table)
    assert {row[0].split()[1]: row[1:3] for row in shown.rows} == {
        name: [f"{found.values[name]:.2f}", str(found.n[name])] for name in found.values
    }
    assert [_cell(-0.534, 0.049), _cell(0.5, 0.06)] == ["-.53*", ".50 "], "a star below .05"


def test_columns_that_are_better_when_lower_are_turned_round() -> None:
    names = ["elbo_terms.total_correlation", "mig.score"]
    frame = FRAME.drop(columns="setting")  # so that each run is one of its own
    found = predictors(frame, "compositional.mlp.both", names)
    rows = frame.dropna(subset=names)
    raw = stats.pearsonr(rows[names[0]], rows["compositional.mlp.both"]).statistic
    assert raw < -0.5
    assert found.predictions[0].first_value == pytest.approx(-raw)
    error = frame.assign(**{"zero_shot.lasso.gap": -frame["compositional.mlp.both"]})
    turned = predictors(error, "zero_shot.lasso.gap", names).predictions
    assert [each.z for each in turned] == pytest.approx([each.z for each in found.predictions])


@pytest.mark.parametrize("test", ["dependent", "independent", "paper"])
def test_seeds_that_repeat_their_setting_make_no_metric_a_surer_predictor(test: Any) -> None:
    columns = ["mig.score", "med.score", "mig.score"]
    frame = FRAME.head(7).assign(setting=[f"beta={number}" for number in range(7)])
    alone = predictors(frame, "compositional.mlp.both", columns, test=test).predictions
    again = predictors(pd.concat([frame] * 5), "compositional.mlp.both", columns, test=test).predictions
    assert [(each.n, each.settings) for each in again] == [(35, 7)] * 2
    assert [each.p for each in again] == pytest.approx([each.p for each in alone])
    few = predictors(pd.concat([frame.head(3)] * 5), "compositional.mlp.both", columns, test=test)
    assert [each.reason for each in few.left_out] == ["3 settings with all three; 4 are needed"]


def test_equal_metrics_and_perfect_correlations_are_left_out_with_the_reason() -> None:
    frame = FRAME.assign(same=FRAME["mig.score"], goal=FRAME["med.score"] * 2)
    found = predictors(frame, "goal", ["mig.score", "same", "med.score"])
    reasons = {each.columns: each.reason for each in found.left_out}
    assert "between the two metrics must be" in reasons["mig.score", "same"]
    assert "no Fisher transform" in reasons["same", "med.score"]
    assert found.predictions == ()
    with pytest.raises(ValueError, match="two columns are needed to predict 'goal'; there are mig.score"):
        predictors(frame, "goal", ["mig.score", "goal"])


# By setting


def test_quartiles_are_those_of_the_standard_library_and_settings_in_order() -> None:
    found = quartiles(FRAME, "mig.score")
    assert [(box.family, box.setting) for box in found.boxes] == [
        (family, setting) for family in ("beta_tcvae", "beta_vae") for setting in ("beta=1", "beta=4", "beta=16")
    ]
    for box in found.boxes:
        rows = FRAME[(FRAME["family"] == box.family) & (FRAME["setting"] == box.setting)]["mig.score"].dropna().tolist()
        expected = statistics.quantiles(rows, n=4, method="inclusive")
        assert [box.lower_quartile, box.median, box.upper_quartile] == pytest.approx(expected)
        assert (box.n, box.lowest, box.highest) == (len(rows), min(rows), max(rows))
        assert box.mean == pytest.approx(statistics.fmean(rows))
        assert sorted(box.values) == sorted(rows)
    lacking = quartiles(FRAME, "elbo_terms.total_correlation")
    assert lacking.left_out["beta_tcvae beta=4"] == "none of its 5 runs has a value"
    json.dumps(found.to_dict(), allow_nan=False)
    assert len(found.to_frame()) == 6


def test_means_per_setting_and_their_correlation_by_family() -> None:
    frame = with_elbo(FRAME)
    assert frame["elbo"].to_numpy() == pytest.approx(-(FRAME["train.reconstruction"] + FRAME["train.kl"]).to_numpy())
    found = trend(frame, "elbo", "mig.score")
    known = frame.dropna(subset=["mig.score"])
    means = known.groupby(["family", "setting"])[["elbo", "mig.score"]].mean()
    for each in found.means:
        assert (each.x, each.y) == pytest.approx(tuple(means.loc[(each.family, each.setting)]))
    for each in found.correlations:
        own = means.loc[each.family]
        expected = stats.pearsonr(own["elbo"], own["mig.score"])
        assert (each.value, each.p, each.n) == (*map(pytest.approx, expected), 3)
    json.dumps(found.to_dict(), allow_nan=False)


def test_setting_means_are_a_frame_to_correlate_over_settings_as_the_paper() -> None:
    means = setting_means(FRAME)
    assert len(means) == 6
    found = agreement(means, ["mig.score", "udr.score"], method="pearson", by=None).correlations[0]
    expected = FRAME.groupby(["family", "setting"])[["mig.score", "udr.score"]].mean()
    assert found.value == pytest.approx(stats.pearsonr(expected["mig.score"], expected["udr.score"]).statistic)
    assert found.n == 6


def test_means_of_equal_hyperparameters_stay_equal():
    families, seeds = np.repeat(["a", "b", "c"], [9, 6, 3]), np.concatenate([np.repeat(range(3), n) for n in (3, 2, 1)])
    rates = np.array([0.1, 0.2, 0.7])[seeds]
    frame = pd.DataFrame({"family": families, "setting": rates.astype(str), "hyper.rate": rates, "mig.score": 0.5})
    assert set(setting_means(frame)["hyper.rate"]) == {0.1, 0.2, 0.7}
