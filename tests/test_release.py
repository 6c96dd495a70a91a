"""What `make release` writes, and what it refuses."""

import re
import runpy
import tomllib
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = ("pyproject.toml", "CITATION.cff", "src/unbraid/base/references.bib", "CHANGELOG.md")
fill = runpy.run_path(str(ROOT / "evidence" / "release.py"))["fill"]
DAY = date(2027, 3, 1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src" / "unbraid" / "base").mkdir(parents=True)
    for name in FILES:
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    return tmp_path


def begin(root: Path, heading: str, below: str = "- Something.\n") -> None:
    path = root / "CHANGELOG.md"
    head, _, rest = path.read_text(encoding="utf-8").partition("## ")
    path.write_text(f"{head}## {heading}\n\n{below}\n## {rest}", encoding="utf-8")


def test_a_release_is_in_all_files_that_say_its_version(root: Path) -> None:
    begin(root, "9.8.7 (unreleased)")
    fill(root, "9.8.7", DAY)
    assert tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"] == "9.8.7"
    assert "version: 9.8.7\ndate-released: 2027-03-01\n" in (root / "CITATION.cff").read_text()
    assert "\n  version = {9.8.7},\n" in (root / "src" / "unbraid" / "base" / "references.bib").read_text()
    assert re.search(r"^## (.*)", (root / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == "9.8.7 (2027-03-01)"  # pyright: ignore[reportOptionalSubscript]
    begin(root, "9.9.0 (unreleased)")
    fill(root, "9.9.0", DAY)  # a second one replaces the date of the first
    assert (root / "CITATION.cff").read_text().count("date-released") == 1


@pytest.mark.parametrize(
    ("heading", "below", "version", "said"),
    [
        ("9.8.7 (unreleased)", "- Something.\n", "9.8", "three numbers"),
        ("9.8.7 (unreleased)", "- Something.\n", "9.8.8", "must begin with '## 9.8.8"),
        ("9.8.7 (2027-01-01)", "- Something.\n", "9.8.7", "must begin with"),
        ("9.8.7 (unreleased)", "", "9.8.7", "says nothing of 9.8.7"),
    ],
)
def test_what_is_no_release_is_refused_and_nothing_is_written(
    root: Path, heading: str, below: str, version: str, said: str
) -> None:
    begin(root, heading, below)
    before = [(root / name).read_text() for name in FILES]
    with pytest.raises(ValueError, match=re.escape(said)):
        fill(root, version, DAY)
    assert [(root / name).read_text() for name in FILES] == before
