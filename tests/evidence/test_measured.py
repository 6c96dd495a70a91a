"""Means over the seeds of a setting as records, put beside the numbers of a paper."""

import copy
import json
from datetime import date
from statistics import mean, stdev

import pytest
from join_results import joined
from records.measured import means
from records.schema import Results

from tests.evidence.examples import COMMIT, of_paper
from unbraid.metrics import METRICS

pandas = pytest.importorskip("pandas")
T_4 = 2.776445  # Student's t of four degrees of freedom, 97.5 %, as printed tables have it
MIG = [0.30, 0.34, 0.29, 0.36, 0.31]
TODAY = date(2026, 1, 5)


def frame(values: list[float], **columns: object) -> "pandas.DataFrame":
    n = len(values)
    rows = {
        "run": [f"{place:016x}" for place in range(n)], "family": "beta_vae", "setting": "beta=4",
        "seed": range(n), "state": "finished", "dataset": "square", "content": "a", "commit": COMMIT,
        "processor": "one core", "hyper.beta": 4.0, "mig.score": values,
    }  # fmt: skip
    return pandas.DataFrame(rows | columns)


def test_means_have_students_interval() -> None:
    [(column, number)] = means(frame(MIG), "small", ["mig.score"]).items()
    half = T_4 * stdev(MIG) / 5**0.5
    assert column == "mig.score"
    assert [number["value"], number["low"], number["high"]] == pytest.approx(
        [mean(MIG), mean(MIG) - half, mean(MIG) + half], abs=1e-5
    )
    assert number["seeds"] == [0, 1, 2, 3, 4]
    assert (number["units"], number["unit"], number["commit"], number["machine"]) == (5, "seed", COMMIT, "one core")


def test_one_run_has_no_interval() -> None:
    number = means(frame([0.4]), "small", ["mig.score"])["mig.score"]
    assert (number["value"], number["units"], "low" in number) == (0.4, 1, False)


def test_runs_without_a_number_do_not_count() -> None:
    number = means(frame([0.4, float("nan"), 0.6]), "small", ["mig.score"])["mig.score"]
    assert (number["value"], number["units"], number["seeds"]) == (0.5, 2, [0, 2])


@pytest.mark.parametrize(
    ("commits", "commit"),
    [([COMMIT] * 5, COMMIT), ([COMMIT] * 4 + ["f" * 40], ""), ([COMMIT] * 4 + [None], ""), (["dirty"] * 5, "")],
)
def test_only_runs_of_one_clean_commit_have_one(commits: list[str | None], commit: str) -> None:
    assert means(frame(MIG, commit=commits), "small", ["mig.score"])["mig.score"]["commit"] == commit


def test_the_version_of_a_metric_is_that_on_which_all_runs_agree() -> None:
    told = [json.dumps({"mig": {"version": 2}})] * 5

    def version(computed_with: list[str | None]) -> int | None:
        return means(frame(MIG, computed_with=computed_with), "t", ["mig.score"])["mig.score"].get("metric_version")

    assert version(told) == 2
    assert version([None, *told[1:]]) is None


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"run": ["0" * 16] * 5}, "is there more than once"),
        ({"setting": ["beta=4"] * 4 + ["beta=1"]}, "more than one dataset, family or setting"),
        ({"content": ["a"] * 4 + ["b"]}, "different content"),
        (
            {"computed_with": [json.dumps({"mig": {"version": version}}) for version in (1, 1, 1, 1, 2)]},
            "mig",
        ),
    ],
)
def test_runs_that_are_not_alike_are_refused(columns: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        means(frame(MIG, **columns), "small", ["mig.score"])


def test_a_column_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="mig.value"):
        means(frame(MIG), "small", ["mig.value"])


def test_numbers_go_beside_those_of_a_paper() -> None:
    content = of_paper()
    before = copy.deepcopy(content)
    measured = means(frame(MIG), "small", ["mig.score"])
    assert joined(content, "beta=1", measured, "Smaller images.", TODAY) == 1
    assert Results.model_validate(content)
    score = content["scores"][0]
    assert score["measured"] == measured["mig.score"]
    assert score["reported"] == before["scores"][0]["reported"]
    assert "reason" not in score
    assert content["scores"][1] == before["scores"][1]
    assert content["history"] == [*before["history"], {"date": "2026-01-05", "reason": "Smaller images."}]
    assert joined(content, "beta=1", measured, "Smaller images.", TODAY) == 0
    assert joined(content, "beta=2", measured, "Smaller images.", TODAY) == 0
    assert len(content["history"]) == 2


def test_a_number_that_differs_from_the_reported_one_has_the_reason() -> None:
    content = of_paper()
    joined(content, "beta=1", means(frame([0.8] * 5), "small", ["mig.score"]), "Smaller images.", TODAY)
    assert content["scores"][0]["reason"] == "Smaller images."


def test_older_numbers_without_a_version_stay_as_they_are() -> None:
    content = of_paper()
    told = [json.dumps({"mig": {"version": METRICS["mig"].version}})] * 5
    joined(content, "beta=1", means(frame(MIG), "small", ["mig.score"]), "Smaller images.", TODAY)
    versioned = means(frame(MIG, computed_with=told), "small", ["mig.score"])
    assert joined(content, "beta=1", versioned, "Smaller images.", TODAY) == 0
    changed = means(frame([0.5, *MIG[1:]], computed_with=told), "small", ["mig.score"])
    assert joined(content, "beta=1", changed, "Smaller images.", TODAY) == 1
    assert (content["schema"], content["scores"][0]["measured"]["metric_version"]) == (2, METRICS["mig"].version)
    assert Results.model_validate(content)


def test_numbers_outside_the_range_of_their_metric_are_refused() -> None:
    measured = {"mig.score": {**means(frame(MIG), "small", ["mig.score"])["mig.score"], "value": 1.7}}
    with pytest.raises(ValueError, match="measured 1.7 lies outside the range of mig, 0 to 1"):
        joined(of_paper(), "beta=1", measured, "Smaller images.", TODAY)
