"""The check of records: each fault, made by hand, is one line; what vanished is told from git."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from check_results import main
from records.check import faults, outside
from records.earlier import changes, latest

from tests.evidence.examples import COMMIT, measured, of_paper, of_study, put


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path / "results", of_paper())
    put(tmp_path / "results", of_study())
    return tmp_path / "results"


Capture = pytest.CaptureFixture[str]


def test_sound_files_have_no_fault(folder: Path, capsys: Capture) -> None:
    assert faults(folder) == []
    assert main(["--folder", str(folder)]) == 0
    assert capsys.readouterr().out == "0 faults in 2 files\n"


Edit = Callable[[dict[str, Any]], object]
SCHEMA: dict[str, tuple[Edit, str]] = {
    "version": (lambda c: c.update(schema=3), "schema: "),
    "unknown key": (lambda c: c.update(extra=1), "extra: unknown"),
    "no history": (lambda c: c.update(history=[]), "history: "),
    "no place": (lambda c: c["scores"][1]["reported"].pop("place"), "scores[1].reported.place: is missing"),
    "blank place": (lambda c: c["scores"][1]["reported"].update(place=" "), "scores[1].reported.place: "),
    "not printed": (lambda c: c["scores"][1]["reported"].pop("printed"), "scores[1].reported.printed: is missing"),
    "kind of spread": (lambda c: c["scores"][0]["reported"].update(spread_is="sd"), "scores[0].reported.spread_is: "),
    "text for a number": (lambda c: c["scores"][1]["reported"].update(value=".5"), "scores[1].reported.value: "),
    "half a commit": (lambda c: c["scores"][0]["measured"].update(commit="0123"), "scores[0].measured.commit: "),
    "no scores": (lambda c: c.update(scores=[]), "scores: "),
    "model": (lambda c: c.update(model="vae"), "model: "),
    "revision": (lambda c: c.update(revision="main"), "revision: "),
}
RULES: dict[str, tuple[Edit, str]] = {
    "study": (lambda c: c.update(study="other"), "results of this model, revision and study lie in "),
    "source": (lambda c: c.pop("source"), "has no source"),
    "twice": (lambda c: c["scores"].append(c["scores"][1]), "agreement_of_seeds of square is there 2 times"),
    "nothing": (lambda c: c["scores"][1].pop("reported"), "has neither a reported nor a measured number"),
    "no column": (lambda c: c["scores"][0].update(metric="mig"), "write mig.score, the name of the column"),
    "no reason": (
        lambda c: c["scores"][0]["reported"].update(value=0.41),
        "mig.score of square (beta=1): reported 0.41 lies outside [0.2, 0.4] that was measured: give a reason",
    ),
    "spread alone": (lambda c: c["scores"][0]["reported"].pop("spread_is"), "spread and spread_is go together"),
    "out of range": (
        lambda c: (
            c["scores"][0].update(metric="sap(variant=disentanglement_lib).score", measured=measured(0.9, 0.8, 1.1))
            or c["scores"][0].pop("reported")
        ),
        "measured high 1.1 lies outside the range of sap(variant=disentanglement_lib), 0 to 1",
    ),
    "half an interval": (lambda c: c["scores"][0]["measured"].pop("low"), "low and high go together"),
    "outside itself": (lambda c: c["scores"][0]["measured"].update(value=0.5), "lies outside its own interval"),
    "no date": (lambda c: c["history"].insert(0, {"date": "2019-02-30", "reason": "x"}), "2019-02-30 is no date"),
    "no day": (
        lambda c: c.update(schema=2) or c["scores"][0]["measured"].update(date="2019-02-30"),
        "measured on 2019-02-30, which is no date",
    ),
    "order": (lambda c: c["history"].append({"date": "2019-01-01", "reason": "x"}), "the oldest entry comes first"),
}


@pytest.mark.parametrize(("edit", "said"), [*SCHEMA.values(), *RULES.values()], ids=[*SCHEMA, *RULES])
def test_each_fault_is_one_line_that_names_the_file(tmp_path: Path, edit: Edit, said: str) -> None:
    content = of_paper()
    path = put(tmp_path, content)
    edit(content)
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    [fault] = faults(tmp_path)
    assert fault.startswith(f"{path}: ")
    assert said in fault
    assert "\n" not in fault


def test_a_perfect_score_that_rounding_has_lifted_is_not_outside_its_range() -> None:
    assert [*outside({"metric": "sap.score", "reported": {"value": 1.0 + 4e-16}})] == []
    assert len([*outside({"metric": "sap.score", "reported": {"value": 1.0 + 4e-6}})]) == 1


def test_a_reason_makes_a_reported_number_outside_the_interval_sound(tmp_path: Path) -> None:
    content = of_paper()
    content["scores"][0]["reported"]["value"] = 0.41
    content["scores"][0]["reason"] = "Fewer steps."
    put(tmp_path, content)
    assert faults(tmp_path) == []


def test_a_measured_number_without_an_interval_is_apart_from_every_other(tmp_path: Path) -> None:
    content = of_paper()
    for end in ("low", "high"):
        del content["scores"][0]["measured"][end]
    put(tmp_path, content)
    [fault] = faults(tmp_path)
    assert "reported 0.31 lies outside [0.3, 0.3]" in fault


@pytest.mark.parametrize(
    ("revision", "commit", "said"),
    [
        ("unclean", COMMIT, "lies under unclean"),
        ("several", COMMIT, "lies under several"),
        (COMMIT[:12], "", "by no commit"),
        ("f" * 12, COMMIT, "lies under ffff"),
    ],
)
def test_the_folder_is_that_of_the_commit(tmp_path: Path, revision: str, commit: str, said: str) -> None:
    content = of_study()
    content["revision"], content["scores"][0]["measured"] = revision, measured(0.3, 0.2, 0.4, commit)
    put(tmp_path, content)
    [fault] = faults(tmp_path)
    assert said in fault


def test_reported_numbers_lie_under_external(tmp_path: Path) -> None:
    content = of_paper() | {"revision": "unclean"}
    put(tmp_path, content)
    assert [each.partition(": ")[2].partition(": ")[2] for each in faults(tmp_path)] == [
        "a reported number lies under external, not under unclean"
    ] * 2


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": NaN}'])
def test_what_is_no_record_is_a_fault_and_other_files_are_checked(folder: Path, text: str) -> None:
    path = folder / "paper-2020__vae" / "external" / "other.json"
    path.write_text(text)
    [fault] = faults(folder)
    assert fault.startswith(f"{path}: ")


@pytest.mark.parametrize("change", [lambda text: text[:-1], lambda text: text.replace("\n ", "\n  ")])
def test_files_are_laid_out_alike(folder: Path, change: Callable[[str], str]) -> None:
    path = folder / "unbraid__vae" / COMMIT[:12] / "small.json"
    path.write_text(change(path.read_text()))
    [fault] = faults(folder)
    assert "is not laid out as results are" in fault


def git(folder: Path, *words: str) -> None:
    known = ["-c", "user.name=a", "-c", "user.email=a@b.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *known, *words], check=True, capture_output=True)


@pytest.fixture
def kept(folder: Path) -> Path:
    """The folder in a repository, committed."""
    git(folder.parent, "init", "-q")
    git(folder.parent, "add", ".")
    git(folder.parent, "commit", "-qm", "first")
    return folder


def new_entry(content: dict[str, Any]) -> None:
    content["history"].append({"date": "2021-01-01", "reason": "misread"})


def test_nothing_vanished_from_what_is_as_it_was_or_has_more(kept: Path) -> None:
    assert changes(kept, "HEAD") == []
    content = of_paper()
    content["scores"][1]["measured"] = measured(0.5, 0.4, 0.6)
    content["scores"][0]["reason"] = "Other images."
    put(kept, content)
    put(kept, of_study() | {"study": "another"})
    assert changes(kept, "HEAD") == []


def test_what_vanished_or_changed_in_silence_is_told(capsys: Capture, kept: Path) -> None:
    content = of_paper()
    content["scores"][0]["reported"]["value"] = 0.32
    del content["scores"][1]
    path = put(kept, content)
    other = kept / "unbraid__vae" / COMMIT[:12] / "small.json"
    other.unlink()
    assert main(["--folder", str(kept), "--against", "HEAD"]) == 2
    assert capsys.readouterr().out.splitlines() == [
        f"{path}: mig.score of square (beta=1): reported has changed, value from 0.31 to 0.32, without a new entry in "
        "history",
        f"{path}: agreement_of_seeds of square: the reported number 0.5 has vanished",
        f"{other}: sap.score of disk: the measured number 0.3 has vanished",
        "3 faults in 1 files",
    ]


def test_a_new_entry_lets_a_number_change_and_none_lets_it_vanish(kept: Path) -> None:
    content = of_paper()
    content["scores"][0]["reported"]["value"] = 0.32
    new_entry(content)
    put(kept, content)
    assert changes(kept, "HEAD") == []
    del content["scores"][0]["measured"]
    put(kept, content)
    [fault] = changes(kept, "HEAD")
    assert fault.endswith("the measured number 0.3 has vanished")


def test_the_history_only_grows(kept: Path) -> None:
    content = of_paper()
    content["history"][0]["reason"] = "another"
    put(kept, content)
    [fault] = changes(kept, "HEAD")
    assert "an earlier entry was changed or removed" in fault


@pytest.mark.parametrize("revision", ["nowhere", "--all", ""])
def test_a_revision_that_there_is_not_is_one_line(kept: Path, revision: str) -> None:
    with pytest.raises(ValueError, match="git does not know what was there"):
        changes(kept, revision)


def test_the_latest_commit_is_the_last_that_touched_the_folder(kept: Path) -> None:
    first = latest(kept)
    (kept.parent / "other.txt").write_text("x")
    git(kept.parent, "add", ".")
    git(kept.parent, "commit", "-qm", "second")
    assert first == latest(kept)
    assert latest(Path("/")) is None


def test_a_folder_that_there_is_not_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such folder"):
        faults(tmp_path / "none")
