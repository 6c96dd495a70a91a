"""Tests of the tool that changes formulas by one token: on a module of three lines."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants import ROOMS, ROOT, SEPARATOR, concerning, judged, rest_of_room
from tests.mutations import mutations

MODULE = "def mean(total, n):\n    return total / (n - 1)\n"
TEST = "from toy import mean\n\n\ndef test_mean():\n    assert mean({}, 3) == {}\n"
SETTINGS = '[tool.pytest.ini_options]\nmarkers = ["slow", "lengthy"]\n'
TRIED = """
import sys
from pathlib import Path
from tests.mutants import Place
from tests.mutations import mutations
root = Path(sys.argv[1])
place = Place(root / "copy", root, 60)
for change in mutations(root / "src/toy.py", root):
    print(change.kind, place.outcome(change, ["tests/test_toy.py"]), sep=": ", flush=True)
print(place.outcome(change, ["tests/test_other.py"]), place.outcome(change, []))
print((root / "copy/src/toy.py").read_text() == (root / "src/toy.py").read_text())
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("src", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "src/toy.py").write_text(MODULE)
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    (tmp_path / "tests/test_other.py").write_text(TEST.format(4, 1))
    return tmp_path


def test_changes_of_one_token(root: Path):
    found = mutations(root / "src/toy.py", root)
    assert [(each.kind, each.old, each.new) for each in found] == [
        ("normaliser", "/", "*"),
        ("sign", "-", "+"),
        ("off by one", "1", "2"),
    ]
    assert found[1].applied(MODULE) == MODULE.replace("-", "+")


@pytest.mark.lengthy
@pytest.mark.parametrize(("total", "result", "outcomes"), [(4, 2, ["killed"] * 3), (0, 0, ["survived"] * 3)])
def test_what_tests_make_of_each(root: Path, total: int, result: int, outcomes: list[str]):
    (root / "tests/test_toy.py").write_text(TEST.format(total, result))
    done = subprocess.run(
        [sys.executable, "-c", TRIED, str(root)], cwd=ROOT, capture_output=True, text=True, check=True, timeout=100
    )
    *of_each, others, same = done.stdout.splitlines()
    assert of_each == [
        f"{kind}: {each}" for kind, each in zip(("normaliser", "sign", "off by one"), outcomes, strict=True)
    ]
    assert others == "red before no tests"
    assert same == "True"


def test_a_module_is_met_by_the_tests_of_its_name_and_by_the_laws_of_all():
    found = concerning("src/unbraid/metrics/mig.py")
    assert found[0] == "tests/metrics/test_mig.py"
    assert "tests/contracts/test_noise_laws.py" in found
    assert "tests/training/test_golden.py" in concerning("src/unbraid/families/beta_tcvae.py")
    assert all((ROOT / each).is_file() for room in ROOMS for each in concerning(f"{room}/no_module.py")[:-1])


def test_a_module_is_met_by_the_other_tests_of_its_room_last():
    file = "src/unbraid/scoring/dependence.py"
    found = concerning(file)
    rest = rest_of_room(file, found)
    assert "tests/scoring/test_unwanted.py" in rest
    assert not {*found} & {*rest}


def test_what_is_judged_stands_in_the_code():
    for key in judged():
        file, _, text, column, old, _ = key.split(SEPARATOR)
        assert text in {line.strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines()}
        assert text[int(column) :].startswith(old)
