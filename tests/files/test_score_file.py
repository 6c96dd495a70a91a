"""The reader of files of scores, which believes nothing."""

import json
import math
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid
from unbraid.data import FactorSpace
from unbraid.files import score_file
from unbraid.files.score_file import SavedScores, read_scores_file
from unbraid.scoring.card import load_beside
from unbraid.studies.snapshot import read_scores

GRID = FactorSpace(("a", "b"), (4, 3), ("ordinal", "ordinal")).grid()
ROWS = np.tile(GRID, (6, 1))


@cache
def card() -> unbraid.ScoreCard:
    """Not at import: each process that tests imports all files."""
    return unbraid.score(
        ROWS, ROWS, metrics=["mig", "sap", "dci_lasso", "d_lsbd"], names=("a", "b"), confidence=(0.9, 3), null=3,
        baselines={"flat": 0 * ROWS},
    )  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    card().save(tmp_path / "scores.json")
    return tmp_path / "scores.json"


def test_what_a_card_writes_is_read_back(path: Path) -> None:
    read = read_scores_file(path)
    assert read.model_dump(exclude_unset=True) == json.loads(path.read_text())
    assert read.metrics["mig"].values["score"] == card()["mig"].score
    assert read.skipped == {"d_lsbd": card().skipped["d_lsbd"]}
    assert read.decisions() == card().to_dict()["computed_with"]


LONG = "x" * 1_000_001
HOSTILE: dict[str, tuple[tuple[str | int, ...], Any]] = {
    "not an object": ((), [1]),
    "no metrics": (("metrics",), None),
    "seed of text": (("seed",), "0"),
    "seed below 0": (("seed",), -1),
    "seed of a bool": (("seed",), True),
    "gap of a list": (("held_out",), ["y > 3"]),
    "long gap": (("held_out",), LONG),
    "no samples": (("input", "n_samples"), 0),
    "huge codes": (("input", "n_codes"), 10**12),
    "no factors": (("input", "factors"), []),
    "unknown kind": (("input", "factors", 0, "kind"), "colour"),
    "kind of a list": (("input", "factors", 0, "kind"), ["ordinal"]),
    "size below 0": (("input", "factors", 0, "size"), -3),
    "size that is huge": (("input", "factors", 0, "size"), 10**30),
    "path of a number": (("input", "path"), 7),
    "option that trusts code": (("input", "options"), ["--labels", "l.csv", "--trust-code", "evil:metric"]),
    "option without a value": (("input", "options"), ["--dense", "--labels"]),
    "option that is a file": (("input", "options"), ["other.npz"]),
    "metric of a list": (("metrics", "mig"), []),
    "nameless metric": (("metrics", ""), {}),
    "metric with a long name": (("metrics", LONG), {}),
    "version of text": (("metrics", "mig", "version"), "1"),
    "seconds below 0": (("metrics", "mig", "seconds"), -1.0),
    "seconds that never end": (("metrics", "mig", "seconds"), math.inf),
    "value that is none": (("metrics", "mig", "values", "score"), None),
    "value of text": (("metrics", "mig", "values", "score"), "0.5"),
    "value that is not a number": (("metrics", "mig", "values", "score"), math.nan),
    "value that is infinite": (("metrics", "mig", "values", "score"), -math.inf),
    "value with a strange name": (("metrics", "mig", "values", "__init__"), 1.0),
    "value with the name of a keyword": (("metrics", "mig", "values", "class"), 1.0),
    "headline without value": (("metrics", "mig", "headline"), "other"),
    "headline of a keyword": (("metrics", "mig", "headline"), "import"),
    "chance that is not a number": (("metrics", "mig", "chance", "score"), math.nan),
    "factor without a number": (("metrics", "mig", "per_factor", "a"), None),
    "per_factor that is infinite": (("metrics", "mig", "per_factor", "a"), math.inf),
    "null of text": (("metrics", "mig", "null", "mean"), "0"),
    "p above 1": (("metrics", "mig", "null", "p"), 1.5),
    "confidence of 1": (("metrics", "mig", "intervals", "confidence"), 1.0),
    "a single part": (("metrics", "mig", "intervals", "times"), 1),
    "interval without an end": (("metrics", "mig", "intervals", "values", "score", "high"), None),
    "interval without end": (("metrics", "mig", "intervals", "per_factor", "a", "low"), -math.inf),
    "deviation below 0": (("metrics", "mig", "intervals", "values", "score", "deviation"), -0.1),
    "share of seeds above 1": (("metrics", "sap", "intervals", "by_seed", "score"), 1.5),
    "share of seeds that is not a number": (("metrics", "sap", "intervals", "by_seed", "score"), math.nan),
    "share of seeds of a strange name": (("metrics", "sap", "intervals", "by_seed", "__init__"), 0.5),
    "reason of no interval that is none": (("metrics", "mig", "no_interval"), None),
    "baseline that is infinite": (("metrics", "mig", "baselines", "flat"), math.inf),
    "notes of numbers": (("metrics", "mig", "notes"), [1]),
    "many notes": (("metrics", "mig", "notes"), ["x"] * 1001),
    "array of a number": (("metrics", "mig", "arrays", "x"), 1.0),
    "array of objects": (("metrics", "mig", "arrays", "x"), [{}]),
    "ragged array": (("metrics", "mig", "arrays", "x"), [[1, 2], [3]]),
    "array with what is no number": (("metrics", "mig", "arrays", "x"), [[1.0, math.nan]]),
    "array of numbers too large": (("metrics", "mig", "arrays", "x"), [10**40]),
    "large array": (("metrics", "mig", "arrays", "x"), [0] * 20_001),
    "deep array": (("metrics", "mig", "arrays", "x"), [[[[[[[[[1]]]]]]]]]),
    "array with a strange name": (("metrics", "mig", "arrays", "a b"), [1]),
    "reason of a number": (("skipped", "x"), 1),
    "failure of text": (("failed",), {"x": "broken"}),
    "source that is none": (("computed_with", "mig", "source"), "../../x"),
    "blocks of a list": (("computed_with", "mig", "code_blocks"), [[0, 1]]),
    "version that is infinite": (("computed_with", "mig", "version"), math.inf),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_wrong_is_named_in_one_line_wherever_the_file_is_read(path: Path, what: str) -> None:
    keys, wrong = HOSTILE[what]
    content = json.loads(path.read_text())
    place = content
    for key in keys[:-1]:
        place = place[key]
    if keys:
        place[keys[-1]] = wrong
    path.write_text(json.dumps(content if keys else wrong))
    with pytest.warns(UserWarning, match="not the scores of unbraid.*it counts as missing"):
        assert not read_scores(path.parent).metrics
    for read in (read_scores_file, load_beside):
        with pytest.raises(ValueError, match="not the scores of unbraid") as caught:
            read(path)
        said = str(caught.value)
        assert said.startswith(str(path))
        assert "\n" not in said
        assert len(said) < 1000
        for key in keys[:2]:
            assert str(key)[:100] in said


def test_neither_pipes_nor_files_without_end_are_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_file, "LARGEST_FILE", 1000)
    with pytest.raises(ValueError, match="it is larger than"):
        read_scores_file(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(FileNotFoundError):
        read_scores_file(path)
    assert not read_scores(path.parent).metrics


def test_what_a_file_names_is_not_imported(path: Path) -> None:
    content = json.loads(path.read_text())
    for name in ("antigravity:geohash", "this:d"):
        content["metrics"][name] = content["metrics"]["mig"] | {"arrays": {"words": ["a", "b"], "numbers": [1, 2]}}
        content["computed_with"][name] = {"source": "0" * 64}
    path.write_text(json.dumps(content))
    assert "antigravity:geohash" in load_beside(path)
    assert "this:d" in read_scores(path.parent).metrics
    assert not {"antigravity", "this"} & set(sys.modules)


def test_bounds_leave_room_for_every_card_that_is_written() -> None:
    """A wide card with the largest array that is kept."""
    wide = {"large": np.zeros((100, 200)).tolist()}
    content = card().to_dict()
    for name in list(content["metrics"]):
        content["metrics"][name]["arrays"] = wide
    assert SavedScores.model_validate_json(json.dumps(content)).metrics["mig"].arrays == wide
