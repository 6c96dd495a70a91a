"""How often the files of a study are opened by a command that reads it."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.studies.examples import written
from unbraid.studies.study import Study

COUNTING = """
import atexit, json, os, sys
folder, opened = os.path.realpath(sys.argv.pop(1)), []

def note(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and arguments[0].endswith(".json") and arguments[1] != "w":
        path = os.path.realpath(arguments[0])
        if path.startswith(folder):
            opened.append(os.path.relpath(path, folder))

sys.addaudithook(note)
atexit.register(lambda: print(json.dumps(opened), file=sys.stderr))
from unbraid.cli.app import main
main()
"""
OF_RUNS = ("config.json", "status.json", "scores.json")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six runs, finished."""
    folder = tmp_path_factory.mktemp("study")
    Study.load(written(folder), folder / "out").run(processes=0)
    return folder / "out"


def opened(folder: Path, *arguments: str | Path) -> Counter[str]:
    """How often a command opens each JSON file below a folder to read it."""
    command = [sys.executable, "-c", COUNTING, str(folder), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Counter(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    "command",
    [("status", "--again"), ("rank",), ("rank", "--metric", "mig.score"), ("export", "--out", "table.csv")],
    ids=" ".join,
)
def test_each_file_of_a_run_is_read_once(made: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    name, *options = (str(tmp_path / each) if each.endswith(".csv") else each for each in command)
    counts = opened(made, "study", name, made, *options)
    of_runs = {path: count for path, count in counts.items() if path.startswith("runs/")}
    assert {Path(path).name for path in of_runs} == {*OF_RUNS}
    assert len(of_runs) == 6 * len(OF_RUNS)
    assert set(of_runs.values()) == {1}
