"""How tests are shared out among processes, and names that every docstring example may use."""

import ctypes
import gc
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

# A core for each process that tests: more threads would wait for one another, on a busy machine for minutes.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from _pytest.doctest import DoctestModule

TESTS = Path(__file__).parent / "tests"
gc.disable()  # until all tests are collected


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, object]) -> None:
    from unbraid import data, metrics, score

    named = {name: getattr(data, name) for name in data.__all__}
    doctest_namespace.update(vars(metrics) | named | {"np": np, "score": score})


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[Any], list[Any]]:
    """Tests have no examples in their docstrings: to look for some takes a quarter of the time of collecting."""
    collectors = yield
    if TESTS not in file_path.parents:
        return collectors
    return [each for each in collectors if not isinstance(each, DoctestModule)]


# Files that share a cluster or an object store, of which there is one.
SERVICES = {
    "tests/contracts/test_executors.py",
    "tests/files/test_object_store.py",
    "tests/studies/test_ray.py",
    "tests/files/test_trust.py",
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each file to one process, which sets up once what its tests share, and all of `SERVICES` to the same.

    Marks of groups are not enough: pytest 9.2 and xdist 3.8 lose them.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::")[0]
            return "services" if file in SERVICES else file

    return ByFile(config, log)


def pytest_collection_finish() -> None:
    """What is imported stays: to look through it for garbage again and again takes a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 20)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Give back to the system what a file's tests have freed: two processes and all they start share one memory."""
    if sys.platform == "linux" and (nextitem is None or nextitem.path != item.path):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl has not
        if trim is not None:
            trim(0)
