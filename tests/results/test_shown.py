"""`unbraid results table` and `show`: which numbers pass a filter, and what is said of each."""

import csv
import json
from pathlib import Path

import pytest

from tests.results.examples import COMMIT, of_paper, of_study, put


@pytest.fixture
def results(unbraid_cli, tmp_path: Path):
    paper = of_paper()
    paper["scores"][0]["reason"] = "Fewer steps."
    put(tmp_path, paper)
    put(tmp_path, of_study())
    return lambda *words: unbraid_cli("results", *words, "--folder", tmp_path)


@pytest.mark.parametrize(
    ("words", "metrics"),
    [
        ([], {"mig.score", "agreement_of_seeds", "sap.score"}),
        (["--paper", "paper-2020"], {"mig.score", "agreement_of_seeds"}),
        (["--paper", "unbraid"], {"sap.score"}),
        (["--model", "vae"], {"mig.score", "agreement_of_seeds", "sap.score"}),
        (["--model", "unbraid__vae"], {"sap.score"}),
        (["--dataset", "disk"], {"sap.score"}),
        (["--metric", "mig"], {"mig.score"}),
        (["--metric", "mig.score", "--paper", "paper-2020"], {"mig.score"}),
    ],
)
def test_filters_leave_the_numbers_that_they_name(results, words: list[str], metrics: set[str]) -> None:
    code, printed, _ = results("table", *words, "--json", "-")
    assert code == 0
    assert {each["metric"] for each in json.loads(printed)} == metrics


def test_the_table_shows_reported_and_measured_side_by_side(results, tmp_path: Path) -> None:
    code, printed, _ = results("table", "--markdown", "-")
    assert code == 0
    assert printed.splitlines()[0] == "| model | dataset | metric | setting | reported | measured | place |"
    assert "| paper-2020__vae | square | mig.score | beta=1 | .31 | 0.300 [0.200, 0.400] | table 1 |" in printed
    assert "| paper-2020__vae | square | agreement_of_seeds |  | 50 % | - | section 4 |" in printed
    assert "| unbraid__vae | disk | sap.score |  | - | 0.300 [0.200, 0.400] | small |" in printed
    assert results("table", "--csv", tmp_path / "all.csv", "--latex", tmp_path / "all.tex")[0] == 0
    rows = list(csv.DictReader((tmp_path / "all.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["reported.value"] for row in rows] == ["0.31", "0.5", ""]
    assert rows[0]["reason"] == "Fewer steps."
    assert rows[2]["measured.commit"] == COMMIT
    assert "paper-2020" in (tmp_path / "all.tex").read_text(encoding="utf-8")


def test_show_has_source_reasons_and_history(results) -> None:
    code, printed, _ = results("show", "vae")
    assert code == 0
    assert "paper-2020__vae, external, squares" in printed
    assert "source: A et al. 2020, Of Squares" in printed
    assert "reason: Fewer steps. (mig.score beta=1)" in printed
    assert "2020-01-01: first record" in printed
    assert f"unbraid__vae, {COMMIT[:12]}, small" in printed
    code, printed, _ = results("show", "unbraid__vae", "--json", "-")
    assert json.loads(printed) == [of_study()]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["table", "--metric", "mg"], "--metric mg: no such metric; "),
        (["table", "--dataset", "squar"], "--dataset squar: no such dataset; did you mean 'square'?"),
        (["table", "--dataset", "disk", "--metric", "mig"], "no number passes --dataset disk --metric mig together"),
        (["show", "pca"], "unbraid: no such model: pca; there are vae"),
    ],
)
def test_what_there_is_not_is_one_line(results, words: list[str], said: str) -> None:
    code, _, error = results(*words)
    assert code == 2
    assert said in error
    assert error.count("\n") == 1
