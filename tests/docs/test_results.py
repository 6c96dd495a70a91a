"""The page of results has a row for each number, and a value in its boxes for each thing to choose."""

import re
from pathlib import Path

import pytest

from tests.evidence.examples import of_paper, of_study, put


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    from pages import results

    paper = of_paper()
    paper["scores"][0]["setting"] = "a<b"
    put(tmp_path, paper)
    put(tmp_path, of_study())
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    return results.page()


def test_each_number_has_a_row(page: str) -> None:
    rows = re.findall(r"<tr>(<td.*?)</tr>", page)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]
    assert cells == [
        ["paper-2020", "vae", "square", "mig.score", "a&lt;b", ".31", "0.300 [0.200, 0.400]", "table 1"],
        ["paper-2020", "vae", "square", "agreement_of_seeds", "", "50 %", "", "section 4"],
        ["unbraid", "vae", "disk", "sap.score", "", "", "0.300 [0.200, 0.400]", "small"],
    ]
    assert 'title="3 seeds; small; 0123456789ab; one core"' in rows[2]


def test_each_box_has_what_there_is_to_choose(page: str) -> None:
    [boxes] = re.findall(r"<form.*?</form>", page)
    found = {
        name: re.findall("<option>(.*?)</option>", box) for name, box in re.findall(r'name="(\w+)">(.*?)</sel', boxes)
    }
    assert found == {
        "paper": ["paper-2020", "unbraid"], "model": ["vae"], "dataset": ["disk", "square"],
        "metric": ["agreement_of_seeds", "mig.score", "sap.score"],
    }  # fmt: skip
