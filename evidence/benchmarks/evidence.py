"""Hold every metric against what we did not write: evidence/evidence.json, which docs/is-this-number-right.md shows.

    python evidence/benchmarks/evidence.py                  every check of evidence/evidence.yaml that can be run here
    python evidence/benchmarks/evidence.py --only mig,mcc   those of some metrics

evidence/evidence.yaml says in words what each metric is held against. A check is a test of this repository, of which every
comparison of two numbers is recorded, or a function of evidence_peers.py, which gives ours and theirs in pairs. A check
whose packages are not installed keeps the numbers that it had, and is named.
"""

import argparse
import importlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import pytest
import yaml

from unbraid.metrics import BLOCKED, MEASURES

ROOT = Path(__file__).parents[2]
WORDS, FILE = ROOT / "evidence" / "evidence.yaml", ROOT / "evidence" / "evidence.json"
PEERS = "evidence/benchmarks/evidence_peers.py::"
PLAIN = pytest.approx


@dataclass
class Found:
    """What the comparisons of one check came to."""

    numbers: int = 0
    largest: float = 0.0

    def add(self, ours: Any, theirs: Any) -> None:
        """Take in numbers, or lists, arrays or dictionaries of them, of the same form or of one that broadcasts."""
        if isinstance(theirs, Mapping):
            for name, value in theirs.items():
                self.add(ours[name], value)
            return
        one, other = np.broadcast_arrays(np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float))
        if one.size:
            same = (one == other) | (np.isnan(one) & np.isnan(other))
            apart = np.where(same, 0.0, np.nan_to_num(np.abs(one - other), nan=np.inf))
            self.numbers += one.size
            self.largest = max(self.largest, float(apart.max()))


class Listening:
    """A plugin of pytest: what every test compares, by its id without parameters."""

    def __init__(self) -> None:
        self.found: dict[str, Found] = {}
        self.now = ""

    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Know which test is speaking."""
        self.now = item.nodeid.partition("[")[0]

    def heard(self, ours: Any, theirs: Any) -> None:
        """Keep one comparison of the test that runs."""
        self.found.setdefault(self.now, Found()).add(ours, theirs)

    def install(self) -> None:
        """Stand between the tests and what they compare with, before their modules are imported."""
        listening = self

        class Approximately:
            __array_ufunc__ = None  # else NumPy compares entry by entry
            __array_priority__ = 100

            def __init__(self, expected: Any, *arguments: Any, **options: Any) -> None:
                self.expected, self.plain = expected, PLAIN(expected, *arguments, **options)

            def __eq__(self, actual: object) -> bool:
                listening.heard(actual, self.expected)
                return self.plain == actual

            def __ne__(self, actual: object) -> bool:
                return self.plain != actual

            def __repr__(self) -> str:
                return repr(self.plain)

            __hash__ = None  # pyright: ignore[reportAssignmentType]

        pytest.approx = Approximately
        for name in ("assert_allclose", "assert_array_equal"):
            setattr(np.testing, name, self._between(getattr(np.testing, name)))

    def _between(self, compare: Any) -> Any:
        def listened(actual: Any, desired: Any, *arguments: Any, **options: Any) -> None:
            self.heard(actual, desired)
            compare(actual, desired, *arguments, **options)

        return listened


def of_tests(ids: Iterable[str]) -> dict[str, Found]:
    """What these tests compare; the first that fails ends it."""
    listening = Listening()
    listening.install()
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(ROOT)]
    if pytest.main([*options, *(str(ROOT / name) for name in ids)], plugins=[listening]):
        sys.exit("a test failed: nothing is written")
    return listening.found


def of_peer(name: str) -> Found:
    """Our numbers beside those of a function of evidence_peers.py."""
    found = Found()
    for ours, theirs in getattr(importlib.import_module("evidence_peers"), name)():
        found.add(ours, theirs)
    return found


def missing(packages: Iterable[str]) -> list[str]:
    """Those that are not installed."""
    names = {distribution.metadata["Name"].lower() for distribution in metadata.distributions()}
    return [name for name in packages if name.lower() not in names]


def versions(check: str, words: Mapping[str, list[dict[str, Any]]]) -> dict[str, int]:
    """Of the metrics that a check is about, for a higher one has numbers that were not compared."""
    rows = {**MEASURES, **BLOCKED}
    return {
        name: rows[name].version
        for name, records in words.items()
        if name in rows and check in {each["by"] for each in records}
    }


def main() -> None:
    """Measure, and write."""
    words: dict[str, list[dict[str, Any]]] = yaml.safe_load(WORDS.read_text(encoding="utf-8"))
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(words))
    only = parser.parse_args().only.split(",")
    if unknown := set(only) - set(words):
        sys.exit(f"{', '.join(sorted(unknown))}: no such metric in evidence/evidence.yaml")
    packages = {each["by"]: each.get("packages", []) for records in words.values() for each in records}
    asked = dict.fromkeys(each["by"] for name in only for each in words[name])
    for check in list(asked):
        if lacking := missing(packages[check]):
            print(f"left as it is, for want of {', '.join(lacking)}: {check}")
            del asked[check]
    found = of_tests([check for check in asked if not check.startswith(PEERS)])
    found |= {check: of_peer(check.removeprefix(PEERS)) for check in asked if check.startswith(PEERS)}
    if silent := [check for check in asked if check not in found or not found[check].numbers]:
        sys.exit(f"nothing was compared by {', '.join(silent)}: name a test that compares numbers by pytest.approx")
    today = datetime.now(UTC).date().isoformat()
    for check in asked:
        kept[check] = {
            "largest": float(f"{found[check].largest:.1e}"),
            "numbers": found[check].numbers,
            "packages": {name: metadata.version(name).partition("+")[0] for name in packages[check]},
            "versions": versions(check, words),
            "date": today,
        }
    known = {check: kept[check] for check in packages if check in kept}
    FILE.write_text(json.dumps(known, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    if never := set(packages) - set(known):
        sys.exit(f"never measured yet: {', '.join(sorted(never))}")


if __name__ == "__main__":
    main()
