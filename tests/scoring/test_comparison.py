"""Groups of runs compared: ranks, intervals and corrections against brute force and SciPy."""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu, ttest_1samp

from unbraid.scoring.agreement import agreement
from unbraid.scoring.correlation import holm
from unbraid.scoring.group_comparison import _critical, compare_groups, rank_test, shift_interval
from unbraid.scoring.result_columns import mean_interval

RNG = np.random.default_rng(0)


def study(better: float = 1.0, n: int = 6) -> pd.DataFrame:
    scores = RNG.standard_normal((2, n))
    return pd.DataFrame({
        "family": ["a"] * n + ["b"] * n, "setting": "", "seed": [*range(n)] * 2,
        "mig.score": np.concatenate([scores[0] + 10 * better, scores[0]]),
        "factor_leakage.nm_auc": scores.ravel(),
    })  # fmt: skip


def test_a_column_that_never_varies_is_left_out_and_named() -> None:
    frame = study().assign(**{"sap.score": 0.5})
    found = compare_groups(frame, "family", ["mig.score", "sap.score"])
    assert {each.column for each in found.shifts} == {each.column for each in found.groups} == {"mig.score"}
    assert "left out, since it is the same for every run: sap.score" in found.notes
    assert len(compare_groups(frame, "family", "sap.score").shifts) == 1


def test_the_exact_distribution_is_that_of_all_orders() -> None:
    n, m = 3, 4
    ranks = np.arange(n + m)
    counts = np.zeros(n * m + 1)
    for chosen in combinations(ranks, n):
        others = np.setdiff1d(ranks, chosen)
        counts[int(np.sum(np.array(chosen)[:, None] > others))] += 1
    below = np.cumsum(counts) / counts.sum()
    for tail in (0.01, 0.025, 0.05, 0.2, 0.4):
        assert _critical(n, m, tail) == np.sum(below <= tail)


def test_the_interval_holds_what_the_rank_test_does_not_reject() -> None:
    x, y = RNG.standard_normal(7) + 1, RNG.standard_normal(8)
    shift, low, high = shift_interval(x, y, 0.95)
    assert shift == pytest.approx(np.median([a - b for a in x for b in y]))
    for inside in (low + 1e-6, shift, high - 1e-6):
        assert rank_test(x - inside, y) > 0.05
    for outside in (low - 1e-6, high + 1e-6):
        assert rank_test(x - outside, y) <= 0.05
    assert shift_interval([1.0, 2.0], [0.0, 0.5])[1:] == (-np.inf, np.inf), "two and two runs never tell"


def test_many_runs_take_the_normal_approximation_which_is_near_the_exact_one() -> None:
    x, y = RNG.standard_normal(60), RNG.standard_normal(60)
    assert rank_test(x, y) == pytest.approx(mannwhitneyu(x, y, method="exact").pvalue, abs=0.005)
    assert abs(_critical(51, 50, 0.025) - _critical(50, 50, 0.025)) < 40


def test_intervals_cover() -> None:
    covered = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        _, low, high = shift_interval(rng.gamma(2.0, size=8) + 0.5, rng.gamma(2.0, size=9))
        covered += low <= 0.5 <= high
    assert 0.93 < covered / 300 < 0.99


def test_means_of_scores_have_intervals_within_the_range_of_their_metric() -> None:
    frame = study().assign(**{"mig.score": [0.0, 0.0, 0.0, 0.0, 0.0, 0.3] * 2})
    group = compare_groups(frame, "family", ["mig.score"]).groups[0]
    whole: Any = ttest_1samp(frame["mig.score"][:6], 0).confidence_interval(0.95)
    assert whole.low < 0
    assert (group.low, group.high) == (0, pytest.approx(whole.high))
    for highest in (1.0, 1.0 + 1e-15):  # a perfect score, and one that rounding has lifted
        assert mean_interval("mig.score", np.array([highest, 0.97, 0.96]), 0.95)[1] == 1.0


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]


def test_a_difference_that_the_correction_takes_away_makes_no_group_better() -> None:
    frame = pd.DataFrame({
        "family": ["a"] * 4 + ["b"] * 4 + ["c"] * 4, "setting": "",
        "mig.score": [1.0, 2, 3, 4, 5, 6, 7, 8, 1.5, 2.5, 6.5, 7.5],
    })  # fmt: skip
    first, *others = compare_groups(frame, "family").shifts
    assert first.p == pytest.approx(2 / 70), "all of a below all of b: one of 8 choose 4 orders, both sides"
    assert first.p_holm == pytest.approx(6 / 70)
    assert [each.better for each in (first, *others)] == ["", "", ""]
    assert compare_groups(frame.iloc[:8], "family").shifts[0].better == "b"


def test_over_settings_the_sample_are_means_of_settings() -> None:
    frame = pd.DataFrame({
        "family": ["a"] * 3 + ["b"] * 3, "setting": ["1", "1", "2"] * 2, "seed": [0, 1, 0] * 2,
        "mig.score": [1.0, 3, 5, 10, 12, 20],
    })  # fmt: skip
    found = compare_groups(frame, "family", over="settings")
    assert [(each.n, each.mean) for each in found.groups] == [(2, 3.5), (2, 15.5)], "2 and 5; 11 and 20"
    (own,) = found.shifts
    assert own.shift == -12, "the median of 2 - 11, 2 - 20, 5 - 11, 5 - 20"
    assert own.p == pytest.approx(2 / 6), "one of 4 choose 2 orders, both sides"
    assert found.footnote.startswith("2 settings of 2 seeds per family; ")
    with pytest.raises(ValueError, match="needs two groups of at least 2 settings with a score"):
        compare_groups(frame.iloc[[0, 1, 3, 4]], "family", over="settings")
    with pytest.raises(ValueError, match="over must be runs or settings; got 'seeds'"):
        compare_groups(frame, "family", over="seeds")


def test_scores_of_unequal_numbers_of_rows_are_not_compared() -> None:
    frame = study().assign(n_rows=[300] * 6 + [3000] * 6, **{"train.kl": range(12), "label": ["x"] * 6 + ["y"] * 6})
    with pytest.raises(ValueError, match="mig.score: scores are of 300 to 3,000 rows, and scores depend on how many"):
        compare_groups(frame, "family")
    assert compare_groups(frame, "family", ["train.kl"]).shifts[0].better == ""
    both = pd.concat([frame.assign(family="c"), frame])
    assert compare_groups(both, "family", within="label").shifts, "each is compared with those of as many rows"
    assert compare_groups(frame.assign(n_rows=[300] * 6 + [306] * 6), "family").shifts, "2 % more are as many"
    with pytest.raises(ValueError, match="the table has no n_rows, .*; export it again, or compare the folder"):
        compare_groups(frame.drop(columns="n_rows"), "label")


def test_the_better_group_is_named_where_there_is_no_doubt() -> None:
    found = compare_groups(study(), "family")
    mig, leak = found.shifts
    assert (mig.column, mig.first, mig.second, mig.better) == ("mig.score", "a", "b", "a")
    assert mig.p == pytest.approx(2 / 924), "the least of 12 choose 6 orders, both sides"
    assert mig.p_holm == pytest.approx(2 * mig.p)
    assert leak.better == ""
    frame = study()
    group, own = compare_groups(frame, "family").groups[0], frame["mig.score"][:6]
    expected: Any = ttest_1samp(own, 0)
    interval = expected.confidence_interval(0.95)
    assert (group.n, group.mean, group.low, group.high) == pytest.approx((6, own.mean(), interval.low, interval.high))
    frame["factor_leakage.nm_auc"] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
    assert [each.better for each in compare_groups(frame, "family").shifts] == ["a", "a"], "lower is better"


def test_nothing_is_found_in_noise_more_often_than_said() -> None:
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame({"family": ["a", "b", "c"] * 6, "setting": "", "mig.score": rng.standard_normal(18)})
        found += any(each.better for each in compare_groups(frame, "family").shifts)
    assert found / 60 < 0.09


def test_what_differs_within_settings_makes_no_groups_of_settings() -> None:
    frame = study().assign(setting=["1", "1", "2", "2", "3", "3"] * 2, **{"hyper.network": ["x"] * 6 + ["y"] * 6})
    with pytest.raises(ValueError, match="seed differs within the setting a 1, whose runs are averaged; compare over"):
        compare_groups(frame, "seed", over="settings")
    found = compare_groups(frame, "hyper.network", over="settings")
    assert [(each.group, each.n) for each in found.groups if each.column == "mig.score"] == [("x", 3), ("y", 3)]
    frame.loc[[0, 1], "hyper.network"] = None
    assert "(no value)" in " ".join(compare_groups(frame, "hyper.network").notes)


@pytest.mark.parametrize(
    ("by", "columns", "confidence", "message"),
    [
        ("famly", None, 0.95, "no column 'famly'; did you mean 'family'"),
        ("seed", ["setting"], 0.95, "column 'setting' does not hold numbers"),
        ("mig.score", ["mig.score"], 0.95, "needs two groups of at least 2 runs"),
        ("family", None, 1.5, "confidence must be a finite number, above 0 and below 1"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    by: str, columns: list[str] | None, confidence: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        compare_groups(study(), by, columns, confidence=confidence)


def test_groups_within_a_column_are_compared_as_they_are_alone() -> None:
    first, second = study(1.0).assign(label="x", content="0"), study(0.02).assign(label="y", content="1")
    both = pd.concat([first, second], ignore_index=True)
    found = compare_groups(both, "family", within="label")
    alone = [compare_groups(frame, "family") for frame in (first, second)]
    for column in ("mig.score", "factor_leakage.nm_auc"):
        for label, one in zip("xy", alone, strict=True):
            (own,), (expected,) = (
                [each for each in of if each.column == column and each.first.startswith(start)]
                for of, start in ((found.shifts, label), (one.shifts, ""))
            )
            assert (own.first, own.second) == (f"{label} a", f"{label} b")
            assert (own.shift, own.low, own.high, own.p) == (expected.shift, expected.low, expected.high, expected.p)
    assert [each.p_holm for each in found.shifts] == holm([each.p for each in found.shifts])
    assert [group.mean for group in found.groups if group.column == "mig.score"] == [
        group.mean for one in alone for group in one.groups if group.column == "mig.score"
    ]
    bold = [cell.startswith("**") for cell in found.table()[1][0][1:]]
    assert bold == [each.better == name for each in found.shifts[:2] for name in (each.first, each.second)]
    assert any(bold)
    with pytest.raises(ValueError, match="runs of different content"):
        compare_groups(both, "family")
    one_name = both.assign(dataset="square", n_rows=100)
    with pytest.raises(ValueError, match="square: runs of different content"):
        compare_groups(pd.concat([one_name, one_name.assign(dataset="other", content="2")]), "dataset")
    by_label = compare_groups(one_name, "label")
    assert len(by_label.shifts) == 2
    assert by_label.notes[0] == "groups are of different images; their scores are of as many rows each"
    assert not any("how many" in note for note in found.notes)


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        ([0.5] * 3, [0.2] * 3, 2 / 20),
        ([0.9, 0.8, 0.7, 0.6], [0.2] * 3, 2 / 35),
        ([1.0] * 5, [0.0] * 2, 1 / 21),
        ([0.3] * 4, [0.3] * 3, 1.0),
    ],
)
def test_equal_values_are_judged_by_all_orders_of_their_mean_ranks(first: list, second: list, p: float) -> None:
    assert rank_test(first, second) == pytest.approx(p)


def test_what_differs_by_rounding_alone_is_equal() -> None:
    perfect = np.ones(6)
    assert rank_test(perfect, perfect - 2e-16) == 1.0
    assert rank_test(perfect, perfect - 2e-9) == pytest.approx(2 / 924)


def test_p_of_ties_is_that_of_every_choice() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = rng.integers(0, 4, 9).astype(float)
        ranks = np.array([(values < each).sum() + ((values == each).sum() + 1) / 2 for each in values])
        sums = np.array([sum(ranks[list(chosen)]) for chosen in combinations(range(9), 4)])
        expected = (np.abs(sums - 4 * ranks.mean()) >= abs(ranks[:4].sum() - 4 * ranks.mean()) - 1e-9).mean()
        assert rank_test(values[:4], values[4:]) == pytest.approx(expected)


def test_a_p_of_the_share_that_may_be_wrong_is_enough() -> None:
    frame = pd.DataFrame({"family": ["a"] * 3 + ["b"] * 3, "mig.score": [0.7, 0.8, 0.9, 0.1, 0.2, 0.3]})
    (found,) = compare_groups(frame, "family", ["mig.score"], confidence=0.9).shifts
    assert (found.better, np.isfinite(found.low)) == ("a", True)


def test_many_equal_values_are_judged_at_once() -> None:
    first, second = np.repeat([0.0, 1.0], 600), np.array([0.5, 1.0])
    expected = mannwhitneyu(first, second, alternative="two-sided", method="asymptotic").pvalue
    assert rank_test(first, second) == pytest.approx(expected)


def test_groups_by_a_number_are_named_as_the_number_is_written() -> None:
    """Pandas makes floats of whole numbers where some runs, as of another family, have none."""
    beta = [1, 1, 4, 4, 0.5, 0.5, None, None]
    frame = pd.DataFrame({"family": "a", "setting": "", "hyper.beta": beta, "mig.score": np.arange(8) / 10})
    assert [each.group for each in compare_groups(frame, "hyper.beta").groups] == ["0.5", "1", "4"]
    columns = ["mig.score", "sap.score"]
    table = pd.concat([frame] * 2).assign(**{"sap.score": np.arange(16) ** 2.0})
    assert agreement(table, columns, by="hyper.beta").groups == ("all", "0.5", "1", "4")
