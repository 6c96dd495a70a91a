"""No damaged file makes a command end in a traceback, leave half of its output, take long or fill the memory."""

import warnings
from pathlib import Path

import pytest

from tests.fuzzed_commands import Target, sample, targets
from tests.processes import started

DAILY, LONG = 60, 2000  # files


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Target]:
    return targets(tmp_path_factory.mktemp("commands") / "files")


@pytest.mark.lengthy
def test_every_command_takes_its_sound_file(found: dict[str, Target]) -> None:
    assert {name: told for name, target in found.items() if (told := target.call())[0]} == {}


@pytest.mark.lengthy
def test_damaged_files_are_one_line_or_a_result(found: dict[str, Target]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a library says of numbers at the edge
        assert sample(found, DAILY, seed=0) == []


@pytest.mark.slow
def test_two_thousand_damaged_files(tmp_path: Path) -> None:
    with started(
        "-W", "ignore", "-m", "tests.fuzzed_commands", str(tmp_path / "files"), str(LONG), "1", stdout=-1
    ) as process:
        said, _ = process.communicate()
    assert (process.returncode, said) == (0, "")
