"""How often the files of a study are opened by a command that reads it: each of them once."""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Cli
from tests.studies.study_examples import SMALL, written
from unbraid import Study
from unbraid.files import marks
from unbraid.studies.added import add, encode_sample

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


READ: list[str] = []  # files that this process has opened to read


@pytest.fixture(scope="module")
def listening() -> Iterator[None]:
    at_work = True

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if at_work and event == "open" and str(arguments[0]).endswith(".json") and arguments[1] != "w":
            READ.append(os.path.realpath(str(arguments[0])))

    sys.addaudithook(note)
    yield
    at_work = False


@pytest.mark.lengthy
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.usefixtures("listening")
def test_each_file_of_a_study_is_read_once(
    made: Path, tmp_path: Path, command: tuple[str, ...], unbraid_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "SETTLED", 0.0)  # what was just written counts as old enough to be read once
    places = {"OUT": str(made / "out"), "YAML": str(made / "study.yaml")}
    words = (places.get(word, word.replace("NEW", str(tmp_path))) for word in command)
    READ.clear()
    code, _, error = unbraid_cli(*words)
    assert code == 0, error
    folder = (made / "out").resolve()
    opened = (Path(path) for path in READ if Path(path).is_relative_to(folder))
    counts = Counter(path.relative_to(folder).as_posix() for path in opened if not path.name.startswith("."))
    runs = {path.relative_to(made / "out").as_posix() for path in made.glob("out/**/runs/*/*.json")}
    abouts = {path.relative_to(made / "out").as_posix() for path in made.glob("out/**/study.json")}
    assert {Path(path).name for path in runs} == {*OF_RUNS}
    assert counts.keys() >= runs | abouts
    assert {path: count for path, count in counts.items() if count > 1} == {}
