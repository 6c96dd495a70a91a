"""The code of each section of docs/libraries.md runs from top to bottom, and prints the tables below it."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "libraries.md"
SECTIONS = dict(
    re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
)
NEEDS = {"AnnData": ["anndata"], "torchmetrics and Lightning": ["lightning", "torchmetrics"]}

NUMBER = re.compile(r" *-?\d\.\d{3}")


@pytest.mark.lengthy
@pytest.mark.filterwarnings("default")  # Lightning's own, on workers and devices
@pytest.mark.parametrize("section", SECTIONS)
def test_a_guide_runs_and_prints_what_it_shows(
    section: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NEEDS.get(section, ()):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "__main__"}
    n_shown = 0
    for kind, block in re.findall(r"```(python|text)\n(.*?)```", SECTIONS[section], flags=re.DOTALL):
        if kind == "python":
            exec(compile(block, "libraries.md", "exec"), names)
            printed = re.sub(r" +$", "", capsys.readouterr().out, flags=re.MULTILINE)
        else:
            n_shown += 1
            assert NUMBER.sub("#", printed) == NUMBER.sub("#", block)
            numbers = [[float(each) for each in NUMBER.findall(each)] for each in (printed, block)]
            assert numbers[0] == pytest.approx(numbers[1], abs=0.02)
    assert n_shown
