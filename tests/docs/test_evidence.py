"""Every metric has been held against something that we did not write, and what the pages say of it was measured."""

import json
import re
from importlib import import_module, metadata
from typing import Any

import numpy as np
import pytest
import yaml

from tests.docs.conftest import ROOT
from unbraid import metrics as every
from unbraid.metrics import BLOCKED, MEASURES

WORDS: dict[str, list[dict[str, Any]]] = yaml.load(
    (ROOT / "evidence" / "evidence.yaml").read_text(encoding="utf-8"),
    Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader),  # ten times as fast, which collecting waits for
)
MEASURED: dict[str, dict[str, Any]] = json.loads((ROOT / "evidence" / "evidence.json").read_text(encoding="utf-8"))
ROWS = {**MEASURES, **BLOCKED}
RECORDS = [(name, record) for name, records in WORDS.items() for record in records]
ASKED, GIVEN = {"against", "kind", "by", "data", "why"}, {"packages", "program"}
WANTED = """{} has no record in evidence/evidence.yaml. Add what its number was held against that we did not write
(another program, a paper, a closed form, or the definition in plain loops) with the test that compares them, as of the
metrics there, and run python evidence/benchmarks/evidence.py --only {} and python evidence/generate.py."""


@pytest.mark.parametrize("name", ROWS)
def test_every_metric_was_held_against_something(name: str) -> None:
    assert WORDS.get(name), WANTED.format(name, name)


def test_records_are_of_functions_that_there_are_and_say_what_is_asked_for() -> None:
    from pages.evidence import KINDS, OTHERS

    assert set(WORDS) <= set(every.__all__)
    for name, record in RECORDS:
        assert set(record) >= ASKED, f"{name}: a record lacks {ASKED - set(record)}"
        assert set(record) <= ASKED | GIVEN, f"{name}: {set(record) - ASKED - GIVEN} is no part of a record"
        assert record["kind"] in KINDS, f"{name}: kind must be one of {list(KINDS)}"
        assert ("program" in record) == (record["kind"] == "printed"), f"{name}: whose program printed it?"
        if record["kind"] == OTHERS[0]:
            assert record.get("packages"), f"{name}: which packages is {record['against']}?"


@pytest.mark.parametrize(("name", "record"), RECORDS, ids=lambda part: part if isinstance(part, str) else part["by"])
def test_every_check_is_there_and_was_measured(name: str, record: dict[str, Any]) -> None:
    path, _, function = record["by"].partition("::")
    source = (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).is_file() else ""
    assert re.search(rf"^def {re.escape(function)}\(", source, re.MULTILINE), f"{name}: there is no {record['by']}"
    found = MEASURED.get(record["by"])
    assert found, f"run python evidence/benchmarks/evidence.py --only {name}"
    assert set(found["packages"]) == set(record.get("packages", ())), (
        f"python evidence/benchmarks/evidence.py --only {name}"
    )
    assert found["numbers"] > 0
    if name in ROWS:
        stale = f"{name} has another version since: run python evidence/benchmarks/evidence.py --only {name}"
        assert found["versions"][name] == ROWS[name].version, stale


@pytest.mark.parametrize(("name", "record"), RECORDS, ids=lambda part: part if isinstance(part, str) else part["by"])
def test_a_difference_has_a_reason(name: str, record: dict[str, Any]) -> None:
    if MEASURED[record["by"]]["largest"] > 1e-6:
        assert len(record["why"]) > 10, f"{name}: why do {record['by']} and ours differ?"
        assert record["why"] != "rounding", f"{name}: {record['by']} differs by more than rounding"


LONG = {"mlp_accuracy_of_scikit_learn", "infomec_of_scikit_learn"}  # ten seconds and more
INSTALLED = {each.metadata["Name"].lower() for each in metadata.distributions()}
PEERS = {
    record["by"].partition("::")[2]: MEASURED[record["by"]]["largest"]
    for _, record in RECORDS
    if record["by"].startswith("evidence/benchmarks/")
    and {name.lower() for name in record.get("packages", ())} <= INSTALLED
}


@pytest.mark.lengthy
@pytest.mark.parametrize("peer", sorted(set(PEERS) - LONG))
@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_programs_that_are_installed_still_say_the_same(peer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within three times the difference that the page states, since what is drawn may be drawn otherwise."""
    monkeypatch.syspath_prepend(str(ROOT / "evidence" / "benchmarks"))
    assert import_module("evidence").of_peer(peer).largest <= 3 * PEERS[peer] + 1e-9


def test_nothing_is_kept_that_no_record_names() -> None:
    assert set(MEASURED) == {record["by"] for _, record in RECORDS}


def test_a_comparison_is_recorded_and_still_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever form it has; what is asserted to differ is no comparison."""
    monkeypatch.syspath_prepend(str(ROOT / "evidence" / "benchmarks"))
    listening = import_module("evidence").Listening()
    for place, name in ((pytest, "approx"), (np.testing, "assert_allclose"), (np.testing, "assert_array_equal")):
        monkeypatch.setattr(place, name, getattr(place, name))  # put back when this test ends
    listening.install()
    listening.now = "one"
    assert pytest.approx(1, abs=1) == 1.25
    assert np.array([1.0, np.nan]) == pytest.approx([1.0, np.nan], nan_ok=True)
    assert pytest.approx({"a": 3.0}) == {"a": 3.0}
    assert pytest.approx(900.0) != 5.0
    np.testing.assert_allclose(np.eye(2) + 0.125, np.eye(2), atol=1)
    one = listening.found["one"]
    assert (one.numbers, one.largest) == (8, 0.25)
    listening.now = "other"
    assert pytest.approx([1.0, 2.0]) != [1.0, 2.5]
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal([1.0, 2.0], [1.0, 2.5])
    assert listening.found["other"].largest == 0.5
