"""What `unbraid bench` says of a metric is what SciPy says of its scores."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from tests.zoo.drawn import of_sorts
from unbraid import zoo
from unbraid.scoring.correlation import correlation_interval
from unbraid.zoo.bench import bench_metrics, mean_interval
from unbraid.zoo.listing import PACKAGED


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zoo")
    of_sorts(folder, "one", 12, seed=0)
    of_sorts(folder, "two", 7, seed=1)
    return folder


def first_code(codes: Any, factors: Any) -> float:
    return float(abs(np.corrcoef(codes[:, 0], factors[:, 0])[0, 1]))


def test_correlations_are_scipys_and_their_mean(folder: Path) -> None:
    (found,) = bench_metrics(first_code, folder=folder)
    models = zoo.list(folder)
    models["own"] = [first_code(held.codes.astype(float), held.factors) for held in map(in_(folder), models.index)]
    assert found.scores == pytest.approx(models["own"].to_dict())
    for rank in found.ranks:
        each = {name: spearmanr(own["own"], own[rank.metric]).statistic for name, own in models.groupby("dataset")}
        assert rank.by_dataset == pytest.approx(each)
        assert rank.value == pytest.approx(np.mean([*each.values()]))
        assert (rank.models, rank.settings) == (19, 6 + 4)
    assert [rank.metric for rank in found.ranks] == ["mig", "b"]  # by correlation
    assert found.left_out == {"c": "on two it is constant (1)"}


def in_(folder: Path) -> Any:
    return lambda name: zoo.load(name, folder)


def test_the_interval_is_of_settings_and_adds_distances_in_squares(folder: Path) -> None:
    (found,) = bench_metrics(first_code, folder=folder)
    rank = next(each for each in found.ranks if each.metric == "b")
    parts = [(rank.by_dataset["one"], 6), (rank.by_dataset["two"], 4)]
    ends = [correlation_interval(value, n) for value, n in parts]
    below = math.hypot(*(value - low for (value, _), (low, _) in zip(parts, ends, strict=True))) / 2
    above = math.hypot(*(high - value for (value, _), (_, high) in zip(parts, ends, strict=True))) / 2
    assert (rank.low, rank.high) == pytest.approx((rank.value - below, rank.value + above))


def test_the_interval_holds_the_mean_as_often_as_it_says() -> None:
    """Pairs of normal columns with Pearson's r .5 have Spearman's 6 / pi arcsin(r / 2)."""
    rng, truth, inside = np.random.default_rng(0), 6 / math.pi * math.asin(0.25), 0
    for _ in range(300):
        parts = []
        for n in (20, 40):
            x, y = rng.normal(size=(2, n))
            parts.append((float(spearmanr(x, 0.5 * x + math.sqrt(0.75) * y).statistic), n))
        low, high = mean_interval(parts)
        inside += low <= truth <= high
    assert 0.92 <= inside / 300 <= 0.98


def test_two_settings_tell_nothing() -> None:
    assert mean_interval([(0.25, 2)]) == (-1.0, 1.0)


@pytest.mark.lengthy
def test_a_metric_of_the_zoo_agrees_with_itself() -> None:
    (found,) = bench_metrics("mig", folder=PACKAGED)
    assert (found.ranks[0].metric, found.ranks[0].value) == ("mig", 1.0)
    assert found.scores == pytest.approx(zoo.list(PACKAGED)["mig"].to_dict(), abs=1e-9)
    assert found.notes == ()  # every score inside the package is of today's versions


def test_lower_is_better_turns_the_order(folder: Path) -> None:
    (up,), (down,) = (bench_metrics(first_code, folder=folder, higher_is_better=each) for each in (True, False))
    assert {rank.metric: rank.value for rank in down.ranks} == pytest.approx(
        {rank.metric: -rank.value for rank in up.ranks}
    )
    assert up.scores == down.scores


def test_scores_of_models_with_a_defect_and_without(folder: Path) -> None:
    (found,) = bench_metrics(first_code, folder=folder)
    with_, without = [], []
    for dataset, n in (("one", 12), ("two", 7)):
        scores = [found.scores[f"{dataset}/vae-s{k}"] for k in range(n)]
        with_.append(np.mean(scores[-2:]))
        without.append(np.mean(scores[:-2]))
    (only,) = found.defects
    assert (only.defect, only.models) == ("collapsed", 4)
    assert (only.score, only.without) == pytest.approx((np.mean(with_), np.mean(without)))
    assert only.score < only.without


def test_each_number_of_a_mapping_is_a_value(folder: Path) -> None:
    def both(codes: Any, factors: Any) -> dict[str, float]:
        return {"one": first_code(codes, factors), "minus": -first_code(codes, factors)}

    one, minus = bench_metrics(both, folder=folder)
    assert (one.value, minus.value) == ("one", "minus")
    assert {rank.metric: rank.value for rank in one.ranks} == pytest.approx(
        {rank.metric: -rank.value for rank in minus.ranks}
    )
