"""Every field of the files of a study, with what it may not hold: one line that names the file and the key."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runs.test_run_json import fields
from unbraid.files.json_records import read_record
from unbraid.files.marks import ReadOnce
from unbraid.studies import store
from unbraid.studies.holdout.answers import read_answers
from unbraid.studies.study_json import AddedRecord, AnswerRecord, EnvironmentRecord, FailureRecord

QUESTION = {
    "kind": "compositional", "of": "0f", "split": "combination", "number": 0, "name": "", "without": [], "terms": {},
}  # fmt: skip
ERRORS = {each: {"gap": {"x": 0.5}, "ordinary": {"x": 0.5}} for each in ("lasso", "forest")}
THIRDS = [0.1, 0.2, 0.3]
SOUND: dict[str, Any] = {
    "study.json": {
        "format": 1,
        "unbraid": "0.1.0",
        "source": {"name": "square"},
        "dataset": {
            "name": "square", "options": {}, "n_images": 64, "image_shape": [16, 16, 1], "content": "", "white": 255,
        },
        "device": "cpu",
        "precision": "float32",
        "training": {"vae": 1},
        "code": {"nets:pair": "0f"},
    },
    "failed/0f.json": {
        "id": "0f", "family": "vae", "setting": "", "seed": 0, "reason": "no", "attempts": 1, "details": "",
    },
    "added/mine/config.json": {
        "family": "mine", "setting": "", "seed": 0, "hyperparameters": {"beta": 1.0}, "source": "mine.npz",
    },
    "held_out.json": {
        "0f": {
            "question": QUESTION, "accuracy": {"mlp": THIRDS, "linear": THIRDS, "single": THIRDS},
            "chance": THIRDS, "n_train": 9,
            "n_test": 3,
        },
        "0a": {"question": {**QUESTION, "kind": "zero_shot", "split": "gap"}, "errors": ERRORS},
    },
}  # fmt: skip
READ: dict[str, Callable[[Path], Any]] = {
    "study.json": lambda folder: store.check_folder(folder, ReadOnce()),
    "failed/0f.json": lambda folder: store.read_failure(folder, "0f", ReadOnce()),
    "added/mine/config.json": lambda folder: read_record(folder / "added/mine/config.json", AddedRecord),
    "held_out.json": read_answers,
}
INTEGER, TEXT, DICTIONARY = "should be a valid integer", "should be a valid string", "should be a mapping"
WRONG: dict[str, list[tuple[Any, str]]] = {
    "study.json format": [("1", INTEGER), (True, INTEGER), (None, INTEGER)],
    "study.json unbraid": [(1, TEXT)],
    "study.json source": [("square", DICTIONARY)],
    "study.json dataset": [("square", "mapping"), (None, "mapping")],
    "study.json dataset.name": [(3, TEXT)],
    "study.json dataset.options": [({"name": "x"}, "options of a dataset only")],
    "study.json dataset.n_images": [(0, "greater than or equal to 1")],
    "study.json dataset.image_shape": [([1, 2], "[height, width, channels] or [n_features]")],
    "study.json dataset.content": [(None, TEXT)],
    "study.json dataset.white": [(0, "greater than or equal to 1"), ("255", INTEGER)],
    "study.json device": [("cpu ", "match pattern"), (0, TEXT)],
    "study.json precision": [("auto", "'float32', 'bfloat16' or 'float64'")],
    "study.json training": [([], DICTIONARY), ({"vae": 0}, "greater than or equal to 1"), ({"vae": "1"}, INTEGER)],
    "study.json code": [("0f", DICTIONARY), ({"nets:pair": 1}, TEXT)],
    "failed/0f.json id": [(0, TEXT)],
    "failed/0f.json family": [(None, TEXT)],
    "failed/0f.json setting": [({}, TEXT)],
    "failed/0f.json seed": [(-1, "greater than or equal to 0"), ("0", INTEGER)],
    "failed/0f.json reason": [(None, TEXT), (["no"], TEXT)],
    "failed/0f.json attempts": [(0, "greater than or equal to 1")],
    "failed/0f.json details": [(3, TEXT)],
    "failed/0f.json trained": [(1, "boolean")],
    "added/mine/config.json family": [(3, TEXT)],
    "added/mine/config.json setting": [(3, TEXT)],
    "added/mine/config.json seed": [(0.5, INTEGER), (2**63, "less than or equal to")],
    "added/mine/config.json run": [([], DICTIONARY), (3, DICTIONARY)],
    "added/mine/config.json status": [([], DICTIONARY), ("x", DICTIONARY)],
    "added/mine/config.json hyperparameters": [([], DICTIONARY), ("beta", DICTIONARY)],
    "added/mine/config.json hyperparameters.beta": [([1], "a finite number or a text"), (None, "a finite number")],
    "added/mine/config.json source": [(3, TEXT)],
    "held_out.json 0f": [([], "mapping"), ({"question": QUESTION}, "the answer to a question of its kind")],
    "held_out.json 0f.question": [({**QUESTION, "split": "gap"}, ""), (None, "mapping")],
    "held_out.json 0f.question.kind": [("other", "'compositional' or 'zero_shot'")],
    "held_out.json 0f.question.of": [(1, TEXT)],
    "held_out.json 0f.question.split": [("others", "'combination', 'random' or 'gap'")],
    "held_out.json 0f.question.number": [(-1, "greater than or equal to 0"), ("0", INTEGER)],
    "held_out.json 0f.question.name": [(None, TEXT)],
    "held_out.json 0f.question.terms": [([], DICTIONARY)],
    "held_out.json 0f.accuracy": [(THIRDS, "mapping")],
    "held_out.json 0f.accuracy.mlp": [([0.1, 0.2], "needs at least 3 entries; has 2"), (0.1, "valid list")],
    "held_out.json 0f.accuracy.linear[0]": [([1.1, 0, 0], "less than or equal to 1"), (["x", 0, 0], "valid number")],
    "held_out.json 0f.chance": [(THIRDS * 2, "takes at most 3 entries; has 6")],
    "held_out.json 0f.n_train": [(0, "greater than or equal to 1")],
    "held_out.json 0f.n_test": [(1.0, INTEGER)],
    "held_out.json 0a.errors": [({}, ""), ({"lasso": ERRORS["lasso"]}, "forest")],
    "held_out.json 0a.errors.lasso": [({"gap": {"x": 1.0}}, "ordinary")],
    "held_out.json 0a.errors.lasso.gap": [({}, "needs at least one"), ({"x": "1"}, "valid number"), ([1.0], "mapping")],
}


def test_every_field_is_in_the_table() -> None:
    assert {
        *fields(EnvironmentRecord, "study.json "), *fields(FailureRecord, "failed/0f.json "),
        *(f"added/mine/config.json {name}" for name in AddedRecord.model_fields),  # a run's are in its own table
    } <= WRONG.keys()  # fmt: skip
    known = set(AnswerRecord.model_fields)
    assert known == {key.split(".")[2] for key in WRONG if key.startswith("held_out.json 0") and key.count(".") > 1}


def written(folder: Path, name: str, content: Any) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize("name", SOUND)
def test_what_the_table_begins_with_is_sound(tmp_path: Path, name: str) -> None:
    READ[name](written(tmp_path, name, SOUND[name]))


@pytest.mark.filterwarnings("error:.*it counts as missing:UserWarning")
@pytest.mark.parametrize(("key", "value", "said"), [(key, *each) for key in WRONG for each in WRONG[key]])
def test_a_wrong_field_is_one_line_with_the_file_and_the_key(tmp_path: Path, key: str, value: Any, said: str) -> None:
    name, _, place = key.partition(" ")
    content = holder = json.loads(json.dumps(SOUND[name]))
    *outer, last = place.removesuffix("[0]").split(".")
    for each in outer:
        holder = holder[each]
    holder[last] = value
    with pytest.raises((ValueError, UserWarning), match=r"\A[^\n]*\Z") as caught:
        READ[name](written(tmp_path, name, content))
    assert str(caught.value).startswith(f"{tmp_path / name}: {place if said else place.split('.')[0]}")
    assert said in str(caught.value)


@pytest.mark.parametrize(("name", "key"), [(name, key) for name in SOUND for key in SOUND[name]])
def test_a_key_that_is_missing_or_unknown_is_named(tmp_path: Path, name: str, key: str) -> None:
    if name != "held_out.json":
        with pytest.raises(ValueError, match=f"{name}: {key}_: unknown"):
            READ[name](written(tmp_path, name, {**SOUND[name], f"{key}_": 1}))
    content = {each: value for each, value in SOUND[name].items() if each != key}
    optional = ("code",) if name == "study.json" else ("details", "hyperparameters", "source")
    if name == "held_out.json" or key in optional:
        READ[name](written(tmp_path, name, content))
        return
    with pytest.raises(ValueError, match=f"{name}: {key}: is missing"):
        READ[name](written(tmp_path, name, content))


@pytest.mark.filterwarnings("error:.*it counts as missing:UserWarning")
@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, '{"a": NaN}', '{"a": 1' + "0" * 5000 + "}"])
def test_what_is_no_object_is_one_line(tmp_path: Path, name: str, text: str) -> None:
    written(tmp_path, name, {})
    (tmp_path / name).write_text(text)
    with pytest.raises((ValueError, UserWarning), match=rf"\A[^\n]*{name} is damaged \([^\n]*\)[^\n]*\Z"):
        READ[name](tmp_path)
