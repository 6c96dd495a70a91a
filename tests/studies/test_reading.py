"""How often the files of a study are opened by a command that reads it: each of them once."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.processes import forked
from tests.studies.study_examples import SMALL, written
from unbraid import Study
from unbraid.studies.added import add, encode_sample

COUNTING = """
import json, os, sys
folder, opened = os.path.realpath(sys.argv.pop(1)), []

def note(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and arguments[0].endswith(".json") and arguments[1] != "w":
        path = os.path.realpath(arguments[0])
        if path.startswith(folder):
            opened.append(os.path.relpath(path, folder))

sys.addaudithook(note)
from unbraid.cli.app import main
from unbraid.files import marks
marks.SETTLED = 0.0  # what was just written counts as old enough to be read once
try:
    main()
except SystemExit as left:
    assert not left.code, left.code
print(json.dumps(opened), file=sys.stderr)
"""
OF_RUNS = ("config.json", "status.json", "scores.json")
ONE = SMALL + "baselines: true\n"
SEVERAL = SMALL.replace(
    "dataset: {name: square, positions: 8, shrink: 4}",
    "datasets:\n  - {name: square, positions: 8, shrink: 4, label: a}\n"
    "  - {name: square, positions: 4, shrink: 8, label: b}",
)
COMMANDS = (
    ("study", "status", "OUT", "--again"),
    ("rank", "OUT"),
    ("rank", "OUT", "--metric", "mig.score"),
    ("export", "OUT", "--out", "NEW/table.csv"),
    ("study", "agreement", "OUT"),
    ("compare", "OUT", "--by", "setting"),
    ("study", "run", "YAML", "--out", "OUT", "--processes", "0"),
    ("report", "OUT"),
)


@pytest.fixture(scope="module", params=["one dataset", pytest.param("several", marks=pytest.mark.lengthy)])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six finished runs of a dataset, with baselines and one that was added; or six of each of two datasets."""
    home = tmp_path_factory.mktemp("study")
    if request.param == "several":
        Study.load(written(home, SEVERAL), home / "out").run(processes=0)
        return home
    study = Study.load(written(home, ONE), home / "out")
    study.run(processes=0)
    encode_sample(lambda images: np.asarray(images, dtype=float).reshape(len(images), -1)[:, :3], study).save(
        home / "mine.npz"
    )
    add(study, [home / "mine.npz"], family="mine")
    return home


def opened(folder: Path, *arguments: str) -> Counter[str]:
    """How often a command opens each JSON file below a folder to read it."""
    with forked(COUNTING, str(folder), *arguments) as process:
        _, printed = process.communicate()
    assert process.returncode == 0, printed
    return Counter(json.loads(printed.splitlines()[-1]))


@pytest.mark.lengthy
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_file_of_a_study_is_read_once(made: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    places = {"OUT": str(made / "out"), "YAML": str(made / "study.yaml")}
    words = (places.get(word, word.replace("NEW", str(tmp_path))) for word in command)
    counts = {path: n for path, n in opened(made / "out", *words).items() if not Path(path).name.startswith(".")}
    runs = {path.relative_to(made / "out").as_posix() for path in made.glob("out/**/runs/*/*.json")}
    abouts = {path.relative_to(made / "out").as_posix() for path in made.glob("out/**/study.json")}
    assert {Path(path).name for path in runs} == {*OF_RUNS}
    assert counts.keys() >= runs | abouts
    assert {path: count for path, count in counts.items() if count > 1} == {}
