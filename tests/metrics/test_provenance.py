"""What decided a number: digests of the files that a metric of one's own stands in."""

import math
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from tests import examples
from unbraid.metrics._shared.provenance import source_digest


def quarter() -> float:
    return 0.25


@pytest.mark.parametrize(
    ("module", "function", "files"),
    [
        ("tests.examples", examples.grid_factors, [examples.__file__]),
        ("tests.examples", quarter, [__file__, examples.__file__]),
        ("builtins", math.fsum, []),
    ],
    ids=["one file", "of another module", "built in"],
)
def test_a_digest_is_that_of_the_files(module: str, function: Callable[..., object], files: list[str]) -> None:
    """Of the module that is named and of the one in which the function is written, in the order of their paths."""
    each = [sha256(Path(file).read_bytes()).digest() for file in sorted(files)]
    assert source_digest(f"{module}:{function.__name__}", function) == sha256(b"".join(each)).hexdigest()
