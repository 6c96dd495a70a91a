"""The repository's own results/."""

import pytest
from records.check import faults
from records.earlier import changes, latest
from records.files import FOLDER, paths

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="there are no results here")


def test_every_file_passes_the_check() -> None:
    assert faults(FOLDER) == []


def test_every_file_is_one_of_results() -> None:
    assert {path for path in FOLDER.rglob("*") if path.is_file()} == set(paths(FOLDER))


def test_no_number_has_vanished_since_the_last_commit_that_touched_them() -> None:
    last = latest(FOLDER)
    if last is None:
        pytest.skip("no history of git")
    assert changes(FOLDER, last) == []
