"""The code of each guide runs from top to bottom, and prints the table that stands below it."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NEEDS = {
    "anndata": ["anndata"],
    "sparse-autoencoders": ["torch"],
    "neurons": ["pandas"],
    "scikit-learn": ["pandas"],
    "lightning": ["lightning", "torchmetrics"],
}


NUMBER = re.compile(r" *-?\d\.\d{3}")


@pytest.mark.lengthy
@pytest.mark.filterwarnings("default")  # Lightning's own, on workers and devices
@pytest.mark.parametrize("page", NEEDS)
def test_a_guide_runs_and_prints_what_it_shows(
    page: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NEEDS[page]:
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    names: dict = {"__name__": "__main__"}
    n_shown = 0
    for kind, block in re.findall(r"```(python|text)\n(.*?)```", text, flags=re.DOTALL):
        if kind == "python":
            exec(compile(block, f"{page}.md", "exec"), names)
            printed = re.sub(r" +$", "", capsys.readouterr().out, flags=re.MULTILINE)
        else:
            n_shown += 1
            assert NUMBER.sub("#", printed) == NUMBER.sub("#", block)
            numbers = [[float(each) for each in NUMBER.findall(each)] for each in (printed, block)]
            assert numbers[0] == pytest.approx(numbers[1], abs=0.02)
    assert n_shown
