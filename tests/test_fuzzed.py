"""No mutation of a file gives a traceback, another number unseen, a long wait or a full memory."""

from pathlib import Path

import pytest

from tests.fuzzed import Reader, fuzz, readers
from tests.processes import forked

DAILY, LONG = 6, 2000  # cases of each reader


@pytest.fixture(scope="module")
def all_readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reader]:
    return readers(tmp_path_factory.mktemp("fuzzed"))


@pytest.mark.filterwarnings("error:.*it counts as missing:UserWarning")
def test_mutated_files_are_one_line_or_a_value(all_readers: dict[str, Reader]) -> None:
    found = [fuzz(name, reader, DAILY) for name, reader in all_readers.items()]
    assert not [fault for each in found for fault in each.faults]
    assert sum(each.refused for each in found) > sum(each.cases for each in found) / 2


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_thousands_of_mutated_files_of_each_reader(tmp_path: Path) -> None:
    """In a process of its own, whose memory is limited."""
    with forked(SCRIPT, str(tmp_path), str(LONG)) as process:
        said, failed = process.communicate()
    assert not said
    assert not failed


SCRIPT = """
import sys, warnings
from pathlib import Path
from tests.fuzzed import fuzz, limit_memory, readers
warnings.simplefilter("error")
every = readers(Path(sys.argv[1]))
limit_memory()
for name, reader in every.items():
    for fault in fuzz(name, reader, int(sys.argv[2]), seed=1).faults:
        print(fault)
"""
