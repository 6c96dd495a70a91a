"""Records of score cards, held to the schema of Every Eval Ever."""

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import unbraid
from tests.examples import entangled_codes, grid_factors
from unbraid import ScoreCard
from unbraid._utils.arrays import array_digest

FACTORS = grid_factors(6)
CODES = entangled_codes(FACTORS)
SCHEMA = json.loads((Path(__file__).parent / "every_eval_ever.json").read_text(encoding="utf-8"))
ASKED: dict[str, Any] = {
    "model": "My lab/β-VAE", "dataset": "Rendered shapes", "organisation": "My lab", "relationship": "first_party",
    "now": 12.5,
}  # fmt: skip


def check(record: Any) -> None:
    jsonschema.Draft7Validator(SCHEMA).validate(record)


@pytest.fixture(scope="module")
def card() -> ScoreCard:
    metrics = ["mig(bins=10)", "factor_leakage", own]
    return unbraid.score(CODES, FACTORS, names=["a", "b", "c"], metrics=metrics, confidence=0.9, null=5)


def own(codes: Any, factors: Any) -> float:
    return float(np.abs(codes[:, 0] - factors[:, 0]).mean())


def test_a_record_of_a_card_is_valid_and_says_all_that_the_card_does(card: ScoreCard) -> None:
    record = card.to_every_eval_ever(**ASKED)
    check(record)
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["evaluation_id"] == "unbraid-Rendered-shapes/My-lab/VAE/12.500000"
    assert record["model_info"]["name"] == "β-VAE"
    assert record["model_info"]["id"] == "My-lab/VAE"
    assert record["source_metadata"]["source_organization_name"] == "My lab"
    frame = card.to_frame()
    frame = frame[(frame.factor == "") & (frame.direction != "")]
    rows = {f"{row['metric']}.{row['name']}": row for row in frame.to_dict("records")}
    found = {each["evaluation_name"]: each for each in record["evaluation_results"]}
    assert found.keys() == rows.keys()
    for name, each in found.items():
        row, details = rows[name], each["score_details"]
        between = details["uncertainty"]["confidence_interval"]
        assert details["score"] == row["value"]
        assert details["uncertainty"]["standard_error"]["value"] == row["deviation"]
        assert (between["lower"], between["upper"], between["confidence_level"]) == (row["low"], row["high"], 0.9)
        assert details["uncertainty"]["num_samples"] == len(CODES)
        assert each["metric_config"]["lower_is_better"] is (row["direction"] == "lower")
        assert details["details"].get("by_chance") == (repr(row["null"]) if row["headline"] else None)
    mig = found["mig(bins=10).score"]["metric_config"]
    assert (mig["metric_id"], mig["metric_parameters"]["bins"]) == ("unbraid.mig.score", 10)
    assert (mig["min_score"], mig["max_score"]) == (0.0, 1.0)
    data = found["mig(bins=10).score"]["source_data"]
    assert (data["dataset_name"], data["source_type"]) == ("Rendered shapes", "other")
    about = data["additional_details"]
    assert about["codes_sha256"] == array_digest(card.representation.codes)
    assert (about["samples"], json.loads(about["factors"])) == (str(len(CODES)), ["a", "b", "c"])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"source": "https://a.org/b"}, {"source_type": "url", "url": ["https://a.org/b"]}),
        (
            {"source": "me/shapes", "split": "test"},
            {"source_type": "hf_dataset", "hf_repo": "me/shapes", "hf_split": "test", "samples_number": len(CODES)},
        ),
    ],
)
def test_where_the_data_are_is_said_as_the_schema_has_it(card: ScoreCard, given: Any, told: Any) -> None:
    record = card.to_every_eval_ever(**ASKED, **given)
    check(record)
    assert record["evaluation_results"][0]["source_data"].items() >= told.items()


@pytest.mark.parametrize(
    ("model", "told"), [("lab/vae-v1.5", "lab/vae-v1.5"), ("../..", "-/-"), ("a/-../b", "a/b"), ("a./.b.", "a/b")]
)
def test_models_keep_their_dots_and_no_path_leads_out(card: ScoreCard, model: str, told: str) -> None:
    assert card.to_every_eval_ever(**ASKED | {"model": model})["model_info"]["id"] == told


def test_a_record_is_stored_as_that_project_stores_it(card: ScoreCard, tmp_path: Path) -> None:
    record = card.to_every_eval_ever(tmp_path, **ASKED, availability="open_weights", details={"beta": "4"})
    (path,) = tmp_path.rglob("*.json")
    uuid = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert re.fullmatch(f"data/unbraid-Rendered-shapes/My-lab/VAE/{uuid}.json", path.relative_to(tmp_path).as_posix())
    assert json.loads(path.read_text(encoding="utf-8")) == record
    details = record["model_info"]["additional_details"]
    assert (details["model_availability"], details["beta"], details["n_codes"]) == ("open_weights", "4", "3")
    with pytest.raises(FileNotFoundError, match="absent: the folder does not exist"):
        card.to_every_eval_ever(tmp_path / "absent", **ASKED)


def test_details_are_text_whatever_is_given(card: ScoreCard) -> None:
    given = {"beta": np.float32(4), "rate": np.float64(0.5), "sizes": [1, 2], "place": Path("lab")}
    details = card.to_every_eval_ever(**ASKED, details=given)["model_info"]["additional_details"]  # pyright: ignore[reportArgumentType]
    assert [details[key] for key in given] == ["4", "0.5", "[1, 2]", '"lab"']


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "beta-vae"}, "model must be 'developer/name', as on the Hugging Face Hub; got 'beta-vae'"),
        ({"dataset": ""}, "dataset must be a name"),
        ({"organisation": " "}, "organisation must be a name"),
        ({"relationship": "self"}, "relationship must be one of first_party, third_party, collaborative, other"),
        ({"availability": "open"}, "availability must be one of open_weights, closed_weights, unknown; got 'open'"),
        ({"source": "a/b/c"}, "source must be an address with :// or a dataset of the Hub, 'owner/name'"),
        ({"split": "test"}, "split is of a dataset of the Hub; give source='owner/name' too"),
    ],
)
def test_what_the_card_does_not_know_must_be_said(card: ScoreCard, given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        card.to_every_eval_ever(**{**ASKED, **given})


DAMAGE: dict[str, Callable[[Any], Any]] = {
    "a key that is unknown": lambda record: record.update(extra=1),
    "no model": lambda record: record.pop("model_info"),
    "no availability": lambda record: record["model_info"]["additional_details"].pop("model_availability"),
    "a number where a text must be": lambda record: record["model_info"]["additional_details"].update(beta=4),
    "no bound": lambda record: record["evaluation_results"][0]["metric_config"].pop("max_score"),
    "no direction": lambda record: record["evaluation_results"][0]["metric_config"].pop("lower_is_better"),
    "a score in letters": lambda record: record["evaluation_results"][0]["score_details"].update(score="0.5"),
    "no data": lambda record: record["evaluation_results"][0].pop("source_data"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_the_schema_refuses_what_is_wrong(card: ScoreCard, damage: str) -> None:
    record = copy.deepcopy(card.to_every_eval_ever(**ASKED))
    DAMAGE[damage](record)
    with pytest.raises(jsonschema.ValidationError):
        check(record)
