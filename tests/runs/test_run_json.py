"""Every field of the files of a run, with what it may not hold: one line that names the file and the key."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel, ValidationError

from unbraid.families.family_table import FAMILIES
from unbraid.files import json_records
from unbraid.files.run_files import CONFIG, STATUS
from unbraid.runs.folder import read_folder
from unbraid.runs.run import open_run
from unbraid.runs.run_json import RunRecord, StatusRecord, StudyDatasetRecord

CONTENT: dict[str, Any] = {
    "format": 1,
    "family": "vae",
    "dataset": {
        "name": "square", "options": {"shrink": 2}, "n_images": 64, "image_shape": [16, 16, 1], "content": "",
        "white": 4095,
    },
    "seed": 0,
    "hyperparameters": {name: each.default for name, each in FAMILIES["vae"].hyperparameters.items()},
    "steps": 10,
    "batch_size": 8,
    "device": "cpu",
    "precision": "float32",
    "requested_precision": "auto",
    "training_version": 2,
    "hold_out": {"images": 0.1, "every": 5, "patience": 2},
    "supervision": {"pairs": 3},
    "facts": {
        "circles": 1, "euclidean": 0, "turning": ["x"], "blocks": ["x"], "values": [3], "latents": 2,
        "categoricals": ["x"], "sizes": [2], "n_classes": 2, "codes": 4, "n_actions": 2, "planes": [0, 0],
        "class_factors": ["x"], "kinds": ["cyclic"], "ranges": [2], "relations": 1,
    },
    "codes": [{"name": "z", "kind": "gaussian", "size": 3}],
    "code": {"my_lab.nets": "0f" * 32},
    "probe": [[0.5, 1.0]],
}  # fmt: skip
ENDED: dict[str, Any] = {
    "state": "finished", "step": 10, "reason": None, "seconds": 1, "last": {"kl": 0.5}, "unbraid": "0.1.0",
    "continued": {"run": "0f", "step": 5}, "held_out": {"step": 5, "elbo": -0.5, "stopped": True}, "note": "none",
    "provenance": {
        "commit": "0f" * 20, "python": "3.11.7", "torch": "2.13.0", "numpy": "2.4.6", "processor": "a",
        "accelerator": "b", "cores": 2, "threads": 1, "host": "Linux x86_64", "began": "2026-01-02T03:04:05+00:00",
        "ended": "2026-01-02T03:04:06+00:00", "together": 1, "packages": {"vae": "extra 1.0"},
    },
    "files": {},
    "checksum": "",
}  # fmt: skip
INTEGER, FINITE, TEXT = "input should be a valid integer", "input should be a finite number", "should be a valid string"
SETTING = "input should be a finite number or a text"

WRONG: dict[str, list[tuple[Any, str]]] = {
    "config.json format": [("1", f"{INTEGER}; got '1'"), (None, INTEGER), (True, INTEGER), ([1], INTEGER)],
    "config.json family": [(None, TEXT), (["vae"], TEXT), ({}, TEXT), (3, TEXT)],
    "config.json dataset": [("square", "input should be a mapping"), ([], "mapping")],
    "config.json dataset.name": [(3, TEXT), ("x" * 10_001, "at most 10000 characters")],
    "config.json dataset.options": [([], "mapping"), ({"a b": 1}, "options of a dataset only")],
    "config.json dataset.n_images": [(0, "greater than or equal to 1"), (2.0, INTEGER), (2**63, "less than or equal")],
    "config.json dataset.image_shape": [
        ([16, 16], "[height, width, channels] or [n_features]"), ([65536, 65536, 3], "16777216 numbers at most"),
        ("16", "valid list"), ([], "[n_features]"),
    ],
    "config.json dataset.image_shape[0]": [
        (["/bin/sh", "-c", "true"], f"{INTEGER}; got '/bin/sh'"), ([0, 1, 1], "greater than or equal to 1; got 0"),
        ([-1], "greater than or equal to 1; got -1"), ([16.0, 1, 1], INTEGER), ([True, 1, 1], INTEGER),
        ([[16], 1, 1], INTEGER), ([1 << 25], "less than or equal to 16777216"),
    ],
    "config.json dataset.content": [(5, TEXT), (None, TEXT)],
    "config.json dataset.white": [(0, "greater than or equal to 1"), ("255", INTEGER), (65536, "less than or equal")],
    "config.json seed": [(-1, "greater than or equal to 0; got -1"), ("0", INTEGER), (2**63, "less than or equal to")],
    "config.json hyperparameters": [([], "mapping"), ("beta", "mapping")],
    "config.json hyperparameters.network": [
        (["conv"], SETTING), (None, SETTING), ({}, SETTING), ("x" * 10_001, SETTING), ("", "must be one of conv"),
        (3, "must be one of conv"), ("os.system", "must be one of conv"),
    ],
    "config.json hyperparameters.latents": [
        (True, SETTING), (2**63, SETTING), (0, "must lie between 1 and 1000; got 0"), (2.5, "must be a whole number"),
        ("3", "must be a whole number"), (10**6, "must lie between 1 and 1000"),
    ],
    "config.json hyperparameters.learning_rate": [(-0.1, "must lie between 0 and 1"), ("1e-4", "must be a number")],
    "config.json hyperparameters.likelihood": [("poisson", "must be one of bernoulli, gaussian; got 'poisson'")],
    "config.json steps": [(0, "greater than or equal to 1"), (10.0, INTEGER), (False, INTEGER)],
    "config.json batch_size": [(0, "greater than or equal to 1"), ([8], INTEGER)],
    "config.json device": [("cpu; rm", "match pattern"), ("", "match pattern"), (None, TEXT)],
    "config.json precision": [("half", "'float32', 'bfloat16' or 'float64'"), (32, "'float32'")],
    "config.json requested_precision": [("float32", "'auto'"), (3, "'auto'")],
    "config.json training_version": [(0, "greater than or equal to 1"), ("1", INTEGER)],
    "config.json hold_out": [(3, "input should be a mapping"), ([], "mapping")],
    "config.json hold_out.images": [(0, "greater than 0; got 0"), (2.0**64, "less than or equal to"), ("1", "number")],
    "config.json hold_out.every": [(0, "greater than or equal to 1"), (5.0, INTEGER)],
    "config.json hold_out.patience": [(-1, "greater than or equal to 0"), (True, INTEGER)],
    "config.json supervision": [([], "mapping")],
    "config.json supervision.pairs": [(-1, "greater than or equal to 0"), (1.5, INTEGER)],
    "config.json facts": [([], "mapping"), (None, "mapping")],
    "config.json codes": [({}, "valid list")],
    "config.json codes[0].name": [(3, TEXT)],
    "config.json codes[0].kind": [("cube", "'gaussian', 'point', 'circle', 'sphere' or 'quantized'")],
    "config.json codes[0].size": [(0, "greater than or equal to 1"), ("3", INTEGER)],
    "config.json code": [([], "mapping"), ({"nets": 3}, TEXT), (None, "mapping")],
    "config.json probe": [({}, "valid list"), ([0.5], "valid list"), ([["0.5"]], "valid number")],
    "status.json state": [("running", "'finished' or 'diverged'"), (None, "'finished' or 'diverged'")],
    "status.json step": [(-1, "greater than or equal to 0"), ("10", INTEGER)],
    "status.json reason": [(3, TEXT), ([], TEXT)],
    "status.json seconds": [(-1, "greater than or equal to 0"), ("1", "valid number"), (True, "valid number")],
    "status.json last": [([], "mapping"), (None, "mapping")],
    "status.json last.kl": [("0.5", "valid number"), ([0.5], "valid number"), (None, "valid number")],
    "status.json unbraid": [(0.1, TEXT)],
    "status.json continued": [("0f", "mapping"), ([], "mapping")],
    "status.json continued.run": [(3, TEXT), (None, TEXT)],
    "status.json continued.step": [(-1, "greater than or equal to 0"), ("5", INTEGER)],
    "status.json provenance": [([], "mapping"), ("x", "mapping")],
    "status.json files": [([], "mapping"), ({"codes.safetensors": -1}, "greater than or equal to 0")],
    "status.json checksum": [(3, TEXT), (None, TEXT)],
    "status.json note": [(3, TEXT), ([], TEXT)],
    "status.json held_out": [(0.5, "mapping"), ([], "mapping")],
    "status.json held_out.step": [(-1, "greater than or equal to 0"), (5.0, INTEGER)],
    "status.json held_out.elbo": [("0.5", "valid number"), ([], "valid number")],
    "status.json held_out.stopped": [(1, "valid boolean"), (None, "valid boolean")],
}  # fmt: skip
for fact in ("circles", "latents", "n_classes", "codes", "n_actions", "relations"):
    WRONG[f"config.json facts.{fact}"] = [(0, "greater than or equal to 1"), ("2", INTEGER), (1 << 17, "65536")]
WRONG["config.json facts.euclidean"] = [(-1, "greater than or equal to 0"), ("2", INTEGER)]
for fact in ("values", "sizes", "ranges", "planes"):
    WRONG[f"config.json facts.{fact}"] = [(2, "valid list")]
    WRONG[f"config.json facts.{fact}[0]"] = [([-1], "greater than or equal to"), (["2"], INTEGER)]
for fact in ("turning", "blocks", "categoricals", "class_factors"):
    WRONG[f"config.json facts.{fact}"] = [("x", "valid list")]
    WRONG[f"config.json facts.{fact}[0]"] = [([2], TEXT)]
for name in ENDED["provenance"]:
    count = name in ("cores", "threads", "together")
    WRONG[f"status.json provenance.{name}"] = [(0, "greater than or equal to 1") if count else (3, TEXT)]
WRONG["status.json provenance.packages"] = [([], "mapping"), ({"vae": 1}, TEXT)]
WRONG["config.json facts.kinds"] = [("cyclic", "valid list")]
WRONG["config.json facts.kinds[0]"] = [(["round"], "'categorical'")]


def fields(record: Any, path: str) -> Iterator[str]:
    """Every key of a record, those of records within it included."""
    for name, field in record.model_fields.items():
        yield f"{path}{name}"
        inner = [each for each in (field.annotation, *get_args(field.annotation)) if isinstance(each, type)]
        for each in inner:
            if issubclass(each, BaseModel):
                several = "[0]" if get_origin(field.annotation) is list else ""
                yield from fields(each, f"{path}{name}{several}.")


def test_every_field_is_in_the_table() -> None:
    assert {*fields(RunRecord, "config.json "), *fields(StatusRecord, "status.json ")} <= WRONG.keys()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path / "run")


def written(folder: Path, **contents: Any) -> Path:
    folder.mkdir()
    for name, content in ((CONFIG, CONTENT), (STATUS, ENDED)):
        (folder / name).write_text(json.dumps(contents.get(name, content)))
    return folder


def changed(content: Any, key: str, value: Any) -> Any:
    """A copy with another value; a key that ends in [0] is replaced as a whole."""
    copy = holder = json.loads(json.dumps(content))
    *outer, last = key.removesuffix("[0]").replace("[0]", ".0").split(".")
    for name in outer:
        holder = holder[int(name) if name.isdecimal() else name]
    holder[last] = value
    return copy


def test_what_the_table_begins_with_is_sound(folder: Path) -> None:
    assert read_folder(folder) == (CONTENT, {name: each for name, each in ENDED.items() if name != "checksum"})
    with pytest.raises(ValueError, match="weights.safetensors is damaged"):  # the only thing that it lacks
        open_run(folder)


@pytest.mark.parametrize(("key", "value", "said"), [(key, *each) for key in WRONG for each in WRONG[key]])
def test_a_wrong_field_is_one_line_with_the_file_and_the_key(tmp_path: Path, key: str, value: Any, said: str) -> None:
    name, _, place = key.partition(" ")
    before = CONTENT if name == CONFIG else ENDED
    folder = written(tmp_path / "run", **{name: changed(before, place, value)})
    with pytest.raises(ValueError, match=r"\A[^\n]*\Z") as caught:
        open_run(folder)
    assert str(caught.value).startswith(f"{folder / name}: {place}")
    assert said in str(caught.value)
    assert len(str(caught.value)) < len(str(folder)) + 250


OPTIONAL = {
    *("supervision", "facts", "codes", "code", "probe", "hold_out", "requested_precision", "training_version"),
    *("dataset.white", "continued", "held_out", "note", "provenance", "provenance.packages", "checksum", "files"),
}


@pytest.mark.parametrize("key", [*fields(RunRecord, "config.json "), *fields(StatusRecord, "status.json ")])
def test_a_missing_key_is_named_and_one_too_many_as_well(tmp_path: Path, key: str) -> None:
    name, _, place = key.partition(" ")
    before = json.loads(json.dumps(CONTENT if name == CONFIG else ENDED))
    holder = before
    *outer, last = place.replace("[0]", ".0").split(".")
    for each in outer:
        holder = holder[int(each) if each.isdecimal() else each]
    holder[f"{last}_"] = holder[last]
    folder = written(tmp_path / "run", **{name: before})
    with pytest.raises(
        ValueError, match=r"run/" + name + rf": {'.'.join(outer).replace('.0', r'.0.').strip('.')}.*unknown"
    ):
        read_folder(folder)
    del holder[f"{last}_"]
    del holder[last]
    (folder / name).write_text(json.dumps(before))
    if place in OPTIONAL or place.startswith("facts."):
        read_folder(folder)
        return
    with pytest.raises(ValueError, match="is missing") as caught:
        read_folder(folder)
    assert str(caught.value) == f"{folder / name}: {place}: is missing"


@pytest.mark.parametrize("name", [CONFIG, STATUS])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Expecting value"),
        ("[]", "it holds no object"),
        ("null", "it holds no object"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "it is nested too deeply"),
        ('{"a":' * 40 + "1" + "}" * 40, "it is nested too deeply"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        ('{"a": 1' + "0" * 5000 + "}", "Exceeds the limit"),
        ('{"a": "\ud800"}', "surrogate"),
        (b"\xff\xfe{}", "decode"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_what_is_no_object_is_one_line(folder: Path, name: str, text: str | bytes, said: str) -> None:
    content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    (folder / name).write_bytes(content)
    with pytest.raises(
        ValueError, match=rf"\A[^\n]*{name} is damaged \([^\n]*; delete the folder and train again\Z"
    ) as caught:
        read_folder(folder)
    assert said in str(caught.value) or said == "surrogate"


def test_a_lone_surrogate_is_no_text(folder: Path) -> None:
    (folder / CONFIG).write_text(json.dumps({**CONTENT, "family": "\ud800"}))
    with pytest.raises(ValueError, match="config.json: family: input should be a valid string"):
        read_folder(folder)


def test_a_file_that_is_too_large_or_no_file_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_records, "LARGEST", 100)
    with pytest.raises(ValueError, match=r"config.json is damaged \(it is larger than"):
        read_folder(folder)
    monkeypatch.setattr(json_records, "LARGEST", 1 << 20)
    monkeypatch.setattr(json_records, "MOST_VALUES", 10)
    with pytest.raises(ValueError, match=r"config.json is damaged \(it holds too much\)"):
        read_folder(folder)
    monkeypatch.undo()
    (folder / STATUS).unlink()
    os.mkfifo(folder / STATUS)  # to open it would wait for ever
    with pytest.raises(ValueError, match=r"status.json is damaged \(it is missing\)"):
        read_folder(folder)


@pytest.mark.parametrize("family", [name for name, row in FAMILIES.items() if row.facts])
def test_facts_that_do_not_go_together_are_one_line(tmp_path: Path, family: str) -> None:
    config = {
        **CONTENT,
        "family": family,
        "hyperparameters": {name: each.default for name, each in FAMILIES[family].hyperparameters.items()},
        "facts": {},
    }
    folder = written(tmp_path / "run", **{CONFIG: config})
    (folder / "weights.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    with pytest.raises(ValueError, match=r"\A[^\n]*does not (describe networks that can be used|fit the architecture)"):
        assert open_run(folder).modules


def test_a_study_of_codes_alone_has_no_images_and_no_other_has_a_side_of_0() -> None:
    for shape in ([0, 0, 0], [64, 32, 1]):
        assert StudyDatasetRecord.model_validate(CONTENT["dataset"] | {"image_shape": shape}).image_shape == shape
    for shape in ([0, 64, 1], [64, 64, 0]):
        with pytest.raises(ValidationError, match="image_shape"):
            StudyDatasetRecord.model_validate(CONTENT["dataset"] | {"image_shape": shape})
