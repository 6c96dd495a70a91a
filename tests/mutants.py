"""Formulas with one token changed, each under the tests that concern it: which no test notices.

    python tests/mutants.py --sample 400 --seed 0 [FILES...]

Every outcome is a line of JSON in --out as soon as it is known; the same command goes on where it stopped.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from tests.mutations import Mutation, mutations, sources  # noqa: E402

ROOMS = tuple(f"src/unbraid/{room}" for room in ("metrics", "scoring", "confidence", "objectives", "families"))
MOST_FILES = 6  # of tests that a mutant meets
NOTHING_RAN = 5  # exit status of pytest


def main() -> None:
    asked = _arguments()
    files = [Path(each).resolve() for each in asked.files] or list(sources(ROOT, ROOMS))
    every = [each for file in files for each in mutations(file, ROOT)]
    sample = random.Random(asked.seed).sample(every, min(asked.sample, len(every)))
    known = _known(asked.out)
    try:
        for each in sample:
            if (key := _key(each)) not in known:
                known[key] = _tried(each, asked.timeout)
                with asked.out.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps({"key": key, "outcome": known[key], **asdict(each)}) + "\n")
    except KeyboardInterrupt:
        print("Stopped; the same command goes on from here.")
    met = [each for each in sample if _key(each) in known]
    print(f"{len(met)} of {len(sample)} tried:", dict(Counter(known[_key(each)] for each in met)))
    for each in met:
        if known[_key(each)] in ("survived", "no tests", "red before"):
            print(f"{known[_key(each)]}: {each.shown}")


def _tried(mutation: Mutation, timeout: float) -> str:
    """`outcome`, or "red before" where the tests do not pass in time on the unchanged file either."""
    tests = concerning(mutation.file)
    return outcome(mutation, ROOT, tests, timeout) if _passes(mutation.file, tuple(tests), timeout) else "red before"


@cache
def _passes(file: str, tests: tuple[str, ...], timeout: float) -> bool:
    unchanged = Mutation(file, 0, 0, "", "", "", "", "", 0, 0)
    return outcome(unchanged, ROOT, list(tests), timeout) in ("survived", "no tests")


def outcome(mutation: Mutation, root: Path, tests: list[str], timeout: float) -> str:
    """What the tests made of it: "killed", "survived", "timeout" or "no tests"."""
    if not tests:
        return "no tests"
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        shutil.copytree(root / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__"))
        mutated = place / mutation.file
        mutated.write_text(mutation.applied(mutated.read_text(encoding="utf-8")), encoding="utf-8")
        paths = {"PYTHONPATH": str(place / "src"), "NUMBA_CACHE_DIR": str(place / "numba")}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += ["-m", "not slow and not lengthy", *tests]
        try:
            ended = subprocess.run(command, cwd=root, env=os.environ | paths, timeout=timeout, capture_output=True)
        except subprocess.TimeoutExpired:
            return "timeout"
    return {0: "survived", NOTHING_RAN: "no tests"}.get(ended.returncode, "killed")


def concerning(file: str) -> list[str]:
    """The tests of a module: the file of its name first, then those that import or name it."""
    room, name = Path(file).parent.name, Path(file).stem
    own = ROOT / "tests" / room / f"test_{name.removeprefix('_')}.py"
    named = re.compile(rf"\b{re.escape(name)}\b")
    near = sorted((ROOT / "tests").rglob("test_*.py"), key=lambda each: (each.parent.name != room, str(each)))
    found = [each for each in near if each != own and named.search(each.read_text(encoding="utf-8"))]
    return [str(each) for each in [*([own] if own.exists() else []), *found][:MOST_FILES]]


def _key(mutation: Mutation) -> str:
    """The same as long as line and change are, wherever in the file the line stands."""
    return "|".join((mutation.file, mutation.function, mutation.text, str(mutation.column), mutation.old, mutation.new))


def _known(out: Path) -> dict[str, str]:
    return {line["key"]: line["outcome"] for line in _lines(out)} if out.exists() else {}


def _lines(out: Path) -> Iterator[dict[str, str]]:
    for line in out.read_text(encoding="utf-8").splitlines():
        if line.endswith("}"):  # not one that a kill cut off
            yield json.loads(line)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", help="modules; without, all that compute scores and losses")
    parser.add_argument("--sample", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=60, help="seconds for the tests of one change")
    parser.add_argument("--out", type=Path, default=Path("mutants.jsonl"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
