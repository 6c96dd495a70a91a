"""Evaluation results of a model card, as huggingface_hub reads them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from huggingface_hub import EvalResult, ModelCard, ModelCardData
from huggingface_hub.repocard_data import eval_results_to_model_index, model_index_to_eval_results

import unbraid
from tests.examples import entangled_codes, grid_factors
from unbraid import ScoreCard

FACTORS = np.tile(grid_factors(2), (3, 1))
CODES = entangled_codes(FACTORS)
NAMES = {"model": "my-lab/beta", "dataset": "Rendered shapes"}


@pytest.fixture(scope="module")
def card() -> ScoreCard:
    names = ["shape", "size", "hue"][: FACTORS.shape[1]]
    metrics = ["mig", "dci_lasso", "factor_leakage", own]
    return unbraid.score(CODES, FACTORS, names=names, metrics=metrics, confidence=0.9, null=5)


def own(codes: Any, factors: Any) -> float:
    return float(codes[0, 0] > factors[0, 0])


def test_the_library_of_the_hub_reads_every_number_and_writes_the_same_again(card: ScoreCard) -> None:
    index = card.to_hf(**NAMES, dataset_id="me/shapes", config="c", split="test", revision="abc")["model-index"]
    name, results = model_index_to_eval_results(index)
    assert (name, eval_results_to_model_index(name, results)) == ("my-lab/beta", index)
    assert ModelCardData(**card.to_hf(**NAMES)).to_dict() == card.to_hf(**NAMES)
    frame = card.to_frame()
    frame = frame[(frame.factor == "") & (frame.direction != "")]
    found = {each.metric_type: each for each in results}
    assert found.keys() == {*(frame.metric + "." + frame.name)}
    for row in frame.to_dict("records"):
        each = found[f"{row['metric']}.{row['name']}"]
        assert isinstance(each, EvalResult)
        assert each.metric_value == row["value"]
        assert each.metric_args is not None
        assert each.metric_args["higher_is_better"] is (row["direction"] == "higher")
        assert (each.metric_args["low"], each.metric_args["high"]) == (row["low"], row["high"])
        assert each.metric_args.get("p") == (row["p"] if row["headline"] else None)
        assert each.metric_args.get("by_chance") == (row["null"] if row["headline"] else None)
    mig = found["mig.score"]
    where = mig.dataset_type, mig.dataset_name, mig.dataset_config, mig.dataset_split, mig.dataset_revision
    assert where == ("me/shapes", "Rendered shapes", "c", "test", "abc")
    assert mig.dataset_args == {"rows": len(CODES), "factors": list(card.representation.names)}
    assert mig.metric_args is not None
    assert (mig.metric_args["confidence"], mig.metric_args["range"]) == (0.9, [0.0, 1.0])
    assert mig.verified is None


BEFORE = """\
---
license: mit
model-index:
- name: my-lab/beta
  results:
  - task: {type: feature-extraction}
    dataset: {type: Rendered-shapes, name: Rendered shapes}
    metrics:
    - {type: mig.score, value: 0.5}
    - {type: accuracy, value: 0.7}
  - task: {type: image-classification}
    dataset: {type: mnist, name: MNIST}
    metrics:
    - {type: mig.score, value: 0.25}
tags: [a, b]
---
# Mine

---
The text.
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_all_else_in_a_readme_stays(card: ScoreCard, tmp_path: Path, newline: str) -> None:
    path = tmp_path / "README.md"
    path.write_bytes(BEFORE.replace("\n", newline).encode())
    card.to_hf(path, **NAMES)
    after = path.read_bytes().decode()
    assert after.count("\r\n") == (after.count("\n") if newline == "\r\n" else 0)
    assert after.replace("\r\n", "\n").endswith("\n---\n# Mine\n\n---\nThe text.\n")
    data = ModelCard.load(path).data
    assert (data.license, data.tags) == ("mit", ["a", "b"])
    [entry] = data.to_dict()["model-index"]
    here, there = sorted(entry["results"], key=lambda each: each["dataset"]["name"] == "MNIST")
    values = {each["type"]: each["value"] for each in here["metrics"]}
    assert (values["accuracy"], values["mig.score"]) == (0.7, card["mig"].score)
    assert there["metrics"] == [{"type": "mig.score", "value": 0.25}]
    card.to_hf(path, **NAMES)
    assert path.read_bytes().decode() == after


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("Words.\n", "---\nmodel-index:\n"),
        ("---\nlicense: mit\n---\nWords.\n", "---\nlicense: mit\nmodel-index:\n"),
        ("\n---\nlicense: mit\n---\nWords.\n", "---\nlicense: mit\nmodel-index:\n"),
        ("\ufeff---\nlicense: mit\n---\nWords.\n", "---\nlicense: mit\nmodel-index:\n"),
    ],
)
def test_results_are_added_to_a_head_or_make_one(card: ScoreCard, tmp_path: Path, text: str, begins: str) -> None:
    (tmp_path / "README.md").write_text(text)
    card.to_hf(tmp_path / "README.md", **NAMES)
    after = (tmp_path / "README.md").read_text()
    assert after.startswith(begins)
    assert after.endswith("---\nWords.\n")
    assert ModelCard(after).data.model_name == "my-lab/beta"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\n- a\n---\n", "the front matter cannot be read: "),
        ("---\nmodel-index: [{name: my-lab/beta, results: [{}]}]\n---\n", "the front matter cannot be read: "),
        (BEFORE.replace("my-lab/beta", "other"), "has the results of other, not of my-lab/beta"),
    ],
)
def test_a_head_that_cannot_be_read_is_left_alone(card: ScoreCard, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "README.md"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"README.md.*{said}"):
        card.to_hf(path, **NAMES)
    assert path.read_text() == text


def test_a_card_that_was_read_gives_the_same(card: ScoreCard, tmp_path: Path) -> None:
    card.save(tmp_path / "scores.json")
    assert ScoreCard.load(tmp_path / "scores.json").to_hf(**NAMES) == card.to_hf(**NAMES)
