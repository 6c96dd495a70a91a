"""Tests of the tool that changes formulas by one token: on a module of three lines."""

from pathlib import Path

import pytest

from tests.mutants import outcome
from tests.mutations import mutations

MODULE = "def mean(total, n):\n    return total / (n - 1)\n"
TEST = "from toy import mean\n\n\ndef test_mean():\n    assert mean({}, 3) == {}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/toy.py").write_text(MODULE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n  lengthy\n")
    return tmp_path


def test_changes_of_one_token(root: Path):
    found = mutations(root / "src/toy.py", root)
    assert [(each.kind, each.old, each.new) for each in found] == [
        ("normaliser", "/", "*"),
        ("sign", "-", "+"),
        ("off by one", "1", "2"),
    ]
    assert found[1].applied(MODULE) == MODULE.replace("-", "+")


@pytest.mark.parametrize(("total", "result", "expected"), [(4, 2, "killed"), (0, 0, "survived")])
def test_outcome(root: Path, total: int, result: int, expected: str):
    (root / "test_toy.py").write_text(TEST.format(total, result))
    changed = mutations(root / "src/toy.py", root)[0]
    assert outcome(changed, root, ["test_toy.py"], timeout=60) == expected
