"""scores.json: no number stands under terms that it was not computed on, and nobody overwrites another's."""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid
from unbraid import Representation, load_run
from unbraid.files.run_files import SCORES
from unbraid.files.trust import Trusted, UntrustedCode
from unbraid.metrics import METRICS, Metric, NotDefined
from unbraid.metrics._shared import provenance
from unbraid.studies.run_scores import complete_scores, keep_by_hand, score_requirements
from unbraid.studies.snapshot import missing_metrics, read_scores

SQUARE = {"name": "square", "positions": 8, "shrink": 4}
METRIC = "number"
NARROW, WIDE = "y > 5 and x > 5", "y > 3 and x > 3"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings: dict[str, Any] = {"latents": 3, "steps": 1, "processes": 0}
    return unbraid.train("pca", SQUARE, out=tmp_path_factory.mktemp("runs"), **settings)[0].path


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return shutil.copytree(trained, tmp_path / trained.name)


def codes(run: Path) -> Representation:
    return load_run(run).codes()


def saved(run: Path) -> dict[str, Any]:
    return json.loads((run / SCORES).read_text())


def value(run: Path, metric: str) -> float:
    return saved(run)["metrics"][metric]["values"]["score"]


def test_another_gap_gives_its_own_number_and_leaves_the_others(run: Path) -> None:
    metrics = ["mig", "zero_shot"]
    complete_scores(run, metrics)
    assert "held_out" in saved(run)["skipped"]["zero_shot"]
    for gap in (NARROW, WIDE, NARROW):
        mig = saved(run)["metrics"]["mig"]
        complete_scores(run, metrics, held_out=gap)
        assert (
            value(run, "zero_shot") == unbraid.score(codes(run), metrics="zero_shot", held_out=gap)["zero_shot"].score
        )
        assert saved(run)["held_out"] == gap
        assert saved(run)["skipped"] == {}
        assert saved(run)["metrics"]["mig"] == mig  # its seconds as well
    complete_scores(run, metrics)
    assert saved(run)["held_out"] is None
    assert "zero_shot" not in saved(run)["metrics"]


def test_another_seed_gives_its_own_number_where_the_metric_takes_one(run: Path) -> None:
    found = []
    for seed in (0, 1):
        complete_scores(run, ["mig", "factor_vae_score"], seed=seed)
        card = unbraid.score(codes(run), metrics="factor_vae_score", seed=seed)
        assert value(run, "factor_vae_score") == card["factor_vae_score"].score
        found.append(saved(run)["metrics"])
    assert found[0]["factor_vae_score"] != found[1]["factor_vae_score"]
    assert found[0]["mig"] == found[1]["mig"]


def test_what_is_asked_again_is_not_computed_again(run: Path) -> None:
    complete_scores(run, ["mig", "zero_shot", "sap"], held_out=NARROW)
    before = (run / SCORES).stat().st_mtime_ns
    complete_scores(run, ["sap", "mig", "zero_shot"], held_out=NARROW)
    assert (run / SCORES).stat().st_mtime_ns == before


def test_the_diagnosis_is_kept_and_made_once(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    complete_scores(run, ["mig"])
    diagnosis = saved(run)["diagnosis"]
    assert diagnosis == json.loads(json.dumps(unbraid.diagnose(codes(run)).to_dict()))
    monkeypatch.delattr("unbraid.studies.run_scores.diagnose_representation")
    complete_scores(run, ["mig", "sap"])
    assert saved(run)["diagnosis"] == diagnosis
    assert read_scores(run).diagnosis is not None


def test_scores_from_before_it_was_kept_get_a_diagnosis_with_the_next_metric(run: Path) -> None:
    complete_scores(run, ["mig"])
    content = saved(run)
    diagnosis = content.pop("diagnosis")
    del content["checksum"]
    (run / SCORES).write_text(json.dumps(content))
    assert read_scores(run).diagnosis is None
    assert not complete_scores(run, ["mig"])
    card = unbraid.score(codes(run), metrics="sap", seed=3)
    assert card.diagnosis is not None
    keep_by_hand(run, card)
    assert "diagnosis" not in saved(run)
    complete_scores(run, ["mig", "sap", "med"])
    assert saved(run)["diagnosis"] == diagnosis


def test_numbers_without_their_terms_are_computed_again(run: Path) -> None:
    """As in files of before: the gap beside them may be that of another metric's number."""
    complete_scores(run, ["mig", "sap"])
    content = saved(run)
    del content["computed_with"], content["checksum"]
    content["metrics"]["sap"]["values"]["score"] = 0.123
    (run / SCORES).write_text(json.dumps(content))
    assert missing_metrics(read_scores(run), score_requirements(["mig", "sap"])) == ["mig", "sap"]
    complete_scores(run, ["mig", "sap"])
    assert value(run, "sap") == unbraid.score(codes(run), metrics="sap")["sap"].score


def test_a_flipped_digit_of_a_score_is_damage(run: Path) -> None:
    complete_scores(run, ["mig"])
    text = (run / SCORES).read_text()
    digit = str(saved(run)["metrics"]["mig"]["values"]["score"])
    (run / SCORES).write_text(text.replace(digit, digit[:-1] + str((int(digit[-1]) + 1) % 10)))
    with pytest.warns(UserWarning, match=r"scores\.json is damaged: its checksum .* counts as missing"):
        assert not read_scores(run).metrics
    complete_scores(run, ["mig"])
    assert str(saved(run)["metrics"]["mig"]["values"]["score"]) == digit


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Writes a module with a metric, as an editor would, for a program that starts afterwards; gives its name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    name = f"lab_{tmp_path.name}"

    def write(body: str) -> str:
        (tmp_path / f"{name}.py").write_text(f"def {METRIC}(codes, factors):\n    {body}\n")
        sys.modules.pop(name, None)
        return Trusted(f"{name}:{METRIC}")

    return write


def test_a_metric_of_the_users_that_was_changed_is_computed_again(run: Path, own: Callable[[str], str]) -> None:
    metric = own("return 1.0")
    complete_scores(run, [metric, "mig"])
    mig = saved(run)["metrics"]["mig"]
    assert value(run, metric) == 1.0
    own("return 2.0")
    complete_scores(run, [metric, "mig"])
    assert value(run, metric) == 2.0
    assert saved(run)["metrics"]["mig"] == mig
    own("raise ValueError('broken by an edit')")
    complete_scores(run, [metric])
    assert saved(run)["failed"][metric]["reason"] == "ValueError: broken by an edit"
    assert metric not in saved(run)["metrics"]
    own("return 3.0")
    complete_scores(run, [metric])
    assert (value(run, metric), saved(run).get("failed", {})) == (3.0, {})


def test_a_file_changed_under_a_running_program_is_not_what_it_computed_by(
    run: Path, own: Callable[[str], str], tmp_path: Path
) -> None:
    metric = own("return 1.0")
    complete_scores(run, [metric])
    kept = saved(run)["computed_with"][metric]
    source = tmp_path / f"{metric.partition(':')[0]}.py"
    source.write_text(source.read_text().replace("1.0", "2.0"))
    (run / SCORES).unlink()
    complete_scores(run, [metric])
    assert (value(run, metric), saved(run)["computed_with"][metric]) == (1.0, kept)


def test_a_metric_that_is_exported_by_another_module_counts_by_both(
    run: Path, own: Callable[[str], str], tmp_path: Path
) -> None:
    inner = own("return 1.0").partition(":")[0]
    outer = f"{inner}_package"
    (tmp_path / f"{outer}.py").write_text(f"from {inner} import {METRIC}\n")
    digests = set()
    for body, ending in (("return 1.0", ""), ("return 2.0", ""), ("return 2.0", "# edited\n")):
        own(body)
        (tmp_path / f"{outer}.py").write_text(f"from {inner} import {METRIC}\n{ending}")
        sys.modules.pop(outer, None)
        complete_scores(run, [Trusted(f"{outer}:{METRIC}")])
        digests.add(saved(run)["computed_with"][f"{outer}:{METRIC}"]["source"])
    assert len(digests) == 3
    assert provenance.source_digest("math:fsum", sum)  # built in, so that no file tells


def test_what_only_looks_imports_nothing(run: Path, own: Callable[[str], str]) -> None:
    metric = own("return 1.0")
    complete_scores(run, [metric])
    own("return 2.0")
    assert missing_metrics(read_scores(run), score_requirements([metric])) == []
    assert missing_metrics(read_scores(run), score_requirements([metric], held_out=NARROW)) == [metric]
    assert missing_metrics(read_scores(run), score_requirements([metric], seed=1)) == [metric]
    assert metric.partition(":")[0] not in sys.modules


@dataclass(frozen=True)
class Odd:
    score: float
    notes: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (ZeroDivisionError("nothing to divide by"), "ZeroDivisionError: nothing to divide by"),
        (ValueError("two\nlines"), "ValueError: two lines"),
        (MemoryError(), "MemoryError:"),
        (float("nan"), "every number of a score must be finite"),
        ("a text", "gave str; expected a number"),
        (Odd(1.0, ("\ud800",)), "what it gave cannot be kept"),
        (Odd(1.0, (1,)), "gave notes that are no list of texts"),
        (NotDefined("not here"), None),
    ],
)
def test_a_metric_that_fails_is_its_own_fault(
    run: Path, monkeypatch: pytest.MonkeyPatch, result: Any, reason: str | None
) -> None:
    given = [result]
    monkeypatch.setattr(f"{__name__}.given", lambda: given[0])
    broken = Trusted(f"{__name__}:broken")
    complete_scores(run, ["mig", broken, "sap"])
    content = saved(run)
    assert list(content["metrics"]) == ["mig", "sap"]
    if reason is None:
        assert content["skipped"] == {broken: "not here"}
        return
    assert reason in content["failed"][broken]["reason"]
    assert "Error" in content["failed"][broken]["details"]
    before = (run / SCORES).stat().st_mtime_ns
    given[0] = 0.5
    complete_scores(run, ["mig", broken])
    assert (run / SCORES).stat().st_mtime_ns == before
    complete_scores(run, ["mig", broken], retry=True)
    assert value(run, broken) == 0.5
    assert saved(run)["metrics"]["mig"] == content["metrics"]["mig"]
    assert not saved(run).get("failed")


def given() -> Any:
    """Replaced by tests."""


def broken(codes: object, factors: object) -> Any:  # noqa: ARG001
    result = given()
    if isinstance(result, Exception):
        raise result
    return result


def test_a_module_that_cannot_be_imported_is_its_own_fault(run: Path, own: Callable[[str], str]) -> None:
    metric = own("return (")
    complete_scores(run, ["mig", metric, Trusted("absent_module:metric")])
    assert list(saved(run)["metrics"]) == ["mig"]
    assert saved(run)["failed"][metric]["reason"].startswith(f"ValueError: metric {metric!r} cannot be imported: ")
    assert "cannot be imported" in saved(run)["failed"]["absent_module:metric"]["reason"]
    own("return 1.0")
    complete_scores(run, ["mig", metric])
    assert value(run, metric) == 1.0
    with pytest.raises(ValueError, match="unknown metric 'mgi'"):
        complete_scores(run, ["mgi"])
    before = (run / SCORES).read_bytes()
    with pytest.raises(UntrustedCode, match="would execute that code"):
        complete_scores(run, ["med", str(metric)])
    assert (run / SCORES).read_bytes() == before


def test_what_another_process_added_meanwhile_stays(run: Path) -> None:
    def meanwhile(metric: str, *_: int) -> None:
        if metric == "sap":
            complete_scores(run, ["med"])

    complete_scores(run, ["mig", "sap"], progress=meanwhile)
    assert set(saved(run)["metrics"]) == {"mig", "sap", "med"}
    assert saved(run)["computed_with"].keys() == {"mig", "sap", "med"}


def card_of(run: Path, *metrics: str, factors: tuple[str, ...] = (), **terms: Any) -> unbraid.ScoreCard:
    representation = codes(run).keep_factors(factors) if factors else codes(run)
    card = unbraid.score(representation, metrics=list(metrics), **terms)
    return replace(card, chosen_factors=factors, path="by hand")


@pytest.mark.parametrize(
    ("metrics", "terms"),
    [
        (["mig", "zero_shot", "sap"], {"factors": ("y",), "seed": 9}),
        (["mig", "sap", "irs"], {"factors": ("y",)}),
        (["factor_vae_score", "linear_accuracy"], {"seed": 9}),
        (["zero_shot"], {"held_out": WIDE}),
        (["zero_shot", "mig"], {"held_out": lambda factors: factors[:, 0] > 3}),
        (["mig", "zero_shot"], {}),
    ],
)
def test_scores_by_hand_never_change_or_remove_what_is_there(
    run: Path, metrics: list[str], terms: dict[str, Any]
) -> None:
    complete_scores(run, ["mig", "zero_shot", "sap", "factor_vae_score"], held_out=NARROW)
    before = (run / SCORES).read_bytes()
    assert keep_by_hand(run, card_of(run, *metrics, **terms)) == []
    assert (run / SCORES).read_bytes() == before


def test_unwanted_factors_are_nothing_for_the_folder(run: Path) -> None:
    complete_scores(run, ["mig"])
    before = (run / SCORES).read_bytes()
    assert keep_by_hand(run, unbraid.score(codes(run), metrics=["mig", "sap"], unwanted="y")) == []
    assert (run / SCORES).read_bytes() == before


def test_scores_by_hand_add_what_is_lacking(run: Path) -> None:
    assert keep_by_hand(run, card_of(run, "mig", "zero_shot", held_out=NARROW)) == ["mig"]
    assert set(saved(run)["metrics"]) == {"mig"}
    assert saved(run)["input"]["path"] == "by hand"
    complete_scores(run, ["zero_shot", "sap"], held_out=NARROW)
    before = saved(run)
    assert keep_by_hand(run, card_of(run, "mig", "irs", "d_lsbd", "zero_shot", "sap", "med", held_out=WIDE)) == [
        "irs", "d_lsbd", "med",
    ]  # fmt: skip
    after = saved(run)
    assert after["held_out"] == before["held_out"] == NARROW
    assert {name: after["metrics"][name] for name in before["metrics"]} == before["metrics"]
    assert after["metrics"].keys() == {"mig", "irs", "zero_shot", "sap", "d_lsbd", "med"}
    for name in after["metrics"]:
        expected = unbraid.score(codes(run), metrics=name, held_out=NARROW).scored[name].headline
        assert after["metrics"][name]["values"][METRICS[name].headline] == expected


def test_scores_by_hand_replace_what_is_out_of_date_or_failed(
    run: Path, monkeypatch: pytest.MonkeyPatch, own: Callable[[str], str]
) -> None:
    metric = own("raise ValueError('no')")
    complete_scores(run, ["mig", "sap", metric])
    own("return 4.0")
    newer: dict[str, Metric] = {**METRICS, "mig": replace(METRICS["mig"], version=METRICS["mig"].version + 1)}
    monkeypatch.setattr("unbraid.metrics._shared.metric_arguments.METRICS", newer)
    assert keep_by_hand(run, card_of(run, "sap", metric, "mig")) == [metric, "mig"]
    assert saved(run)["metrics"]["mig"]["version"] == newer["mig"].version
    assert value(run, metric) == 4.0
    assert not saved(run).get("failed")


def test_a_card_saved_by_hand_says_what_decided_it(run: Path) -> None:
    card = card_of(run, "mig", "sap", "zero_shot", seed=np.int64(3), held_out=NARROW)
    version = {name: METRICS[name].version for name in ("mig", "sap", "zero_shot")}
    assert card.to_dict()["computed_with"] == {
        "mig": {"version": version["mig"]},
        "sap": {"version": version["sap"], "seed": 3},
        "zero_shot": {"version": version["zero_shot"], "seed": 3, "held_out": NARROW},
    }
    masked = card_of(run, "zero_shot", factors=("y",), held_out=codes(run).factors[:, 0] > 3)
    assert masked.to_dict()["computed_with"]["zero_shot"] == {
        "version": version["zero_shot"], "seed": 0, "held_out": "an array or a function", "factors": ["y"],
    }  # fmt: skip
    json.dumps(card.to_dict())
