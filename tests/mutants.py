"""Formulas with one token changed, each under the tests that concern it: which no test notices.

    python tests/mutants.py --sample 400 --seed 0 [FILES...]

Every outcome is a line of JSON in --out as soon as it is known; the same command goes on where it stopped. A change
that no test can notice stands in tests/mutants.yaml with its reason.
"""

import argparse
import contextlib
import importlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from zlib import crc32

import yaml

ROOT = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from tests.mutations import Mutation, mutations, sources  # noqa: E402

NUMBERS = ("metrics", "scoring", "ranking", "families", "training")  # folders that decide a number
TRUTHS = ("data", "datasets", "files", "runs", "studies")  # or whether a file says what is true
ROOMS = tuple(f"src/unbraid/{room}" for room in NUMBERS + TRUTHS)
JUDGED = ROOT / "tests" / "mutants.yaml"
COPIED = ("src", "tests", "docs", "evidence", "examples", "conftest.py", "pyproject.toml", "README.md")
HEAVY = (  # what tests import that is not ours: once, before a process is forked for each change
    *("numpy", "scipy.stats", "scipy.optimize", "scipy.sparse", "sklearn.linear_model", "sklearn.ensemble"),
    *("sklearn.feature_selection", "sklearn.model_selection", "numba", "torch", "pandas", "matplotlib.pyplot"),
)
TESTED = {  # the folders of tests that a package's changes meet
    "metrics": ("metrics", "contracts", "scoring"),
}
LAWS = {  # what goes through all metrics, objectives or families of a table, and names none
    "metrics": tuple(f"tests/contracts/test_{name}.py" for name in ("metric_laws", "noise_laws")),
    "scoring": ("tests/scoring/test_score.py", "tests/scoring/test_diagnose.py", "tests/cli/test_command_tables.py"),
    "studies": ("tests/cli/test_study_command.py",),
    "families": ("tests/families/test_published_presets.py", "tests/training/test_golden.py"),
}
COMPILED = re.compile(r"njit|@(kernel|helper)\(")  # in a module of compiled functions
IDLE = 10  # a process that waits for nothing is ended after so many times the seconds that it may compute
FEW = 4  # files of tests that a change meets: one, a few, the others that concern it, and the rest of its room
GREEN, NOTHING_RAN, RED = 0, 5, 1  # exit codes of pytest
QUICK, LENGTHY = "not slow and not lengthy", "lengthy and not slow"  # the second where no quick test fails
SEPARATOR = " ¦ "
AT_A_TIME = 50  # changes that are sorted by file: whoever stops in between has a sample still


def main() -> None:
    asked = _arguments()
    files = [Path(each).resolve() for each in asked.files] or list(sources(ROOT, ROOMS))
    every = [each for file in files for each in mutations(file, ROOT)]
    for each in HEAVY:
        importlib.import_module(each)
    known, reasons = _known(asked.out), judged()
    # Those that were tried before are of the sample; others by a number of their own, whatever is added elsewhere.
    drawn = sorted(every, key=lambda each: (key_of(each) not in known, crc32(f"{asked.seed} {key_of(each)}".encode())))
    sample = drawn[: asked.sample]
    left = [each for each in sample if key_of(each) not in known]
    places = {each: place // AT_A_TIME for place, each in enumerate(left)}
    left.sort(key=lambda each: (places[each], each.file))  # what is compiled serves its neighbours
    if asked.again:
        left += [each for each in sample if known.get(key_of(each)) in ("survived", "red before", "timeout")]
    with tempfile.TemporaryDirectory() as folder, asked.out.open("a", encoding="utf-8") as lines:
        free = SimpleQueue[Place]()
        for number in range(asked.workers):
            free.put(Place(Path(folder) / str(number), ROOT, asked.timeout))

        def tried(mutation: Mutation) -> tuple[Mutation, str]:
            place = free.get()
            try:
                tests = concerning(mutation.file)
                return mutation, place.outcome(mutation, tests, rest_of_room(mutation.file, tests))
            finally:
                free.put(place)

        with ThreadPoolExecutor(asked.workers) as pool:
            try:
                for number, (each, outcome) in enumerate(pool.map(tried, left), 1):
                    known[key_of(each)] = outcome
                    lines.write(json.dumps({"outcome": outcome, **asdict(each)}) + "\n")
                    lines.flush()
                    print(f"{number} of {len(left)} {outcome}: {each.shown}", flush=True)
            except KeyboardInterrupt:
                pool.shutdown(cancel_futures=True)
                print("Stopped; the same command goes on from here.")
    met = [each for each in sample if key_of(each) in known]
    counts = Counter("judged" if key_of(each) in reasons else known[key_of(each)] for each in met)
    print(f"{len(met)} of {len(sample)} tried:", dict(counts))
    for each in met:
        if known[key_of(each)] not in ("killed", "timeout") and key_of(each) not in reasons:
            print(f"{known[key_of(each)]}: {each.shown}")


@dataclass(frozen=True)
class Place:
    """A copy of the project in which one change at a time is tried."""

    folder: Path
    root: Path
    timeout: float  # seconds of computing for the tests of one change, however busy the machine is

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        for name in COPIED:
            if (self.root / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.png")
                shutil.copytree(self.root / name, self.folder / name, ignore=ignored)
            elif (self.root / name).exists():
                shutil.copy2(self.root / name, self.folder / name)
        (self.folder / "compiled").mkdir()
        (self.folder / "code").write_text("")

    def outcome(self, mutation: Mutation, tests: Sequence[str], rest: Sequence[str] = ()) -> str:
        """What the tests made of it: "killed", "survived", "timeout", "no tests", or "red before" the change.

        Tests of the rest are those that need not concern it.
        """
        found = "no tests"
        quick = (tests[:1], tests[1:FEW], tests[FEW:], rest)
        for some, marks in (*((some, QUICK) for some in quick), (tests, LENGTHY)):
            if some and (met := self._changed(mutation, some, marks)) != "no tests":
                found = met
            if found not in ("survived", "no tests"):
                return found if self._before(self._failed() or tuple(some), marks) == "survived" else "red before"
        return found

    def _failed(self) -> tuple[str, ...]:
        """The one test that has just failed, at which pytest stopped."""
        output = (self.folder / "output").read_text(encoding="utf-8", errors="replace")
        return tuple(re.findall(r"^FAILED (\S+::.+?)(?: - .*)?$", output, re.MULTILINE)[:1])

    def _before(self, tests: tuple[str, ...], marks: str) -> str:
        """The same of the unchanged project; what is compiled then is kept."""
        noted = self.folder / f"{abs(hash((tests, marks)))}.before"
        if not noted.exists():
            noted.write_text(self._ran(tests, marks, self.folder / "compiled", 10 * self.timeout))
        return noted.read_text()

    def _changed(self, mutation: Mutation, tests: Sequence[str], marks: str) -> str:
        file = self.folder / mutation.file
        source, times = file.read_text(encoding="utf-8"), file.stat()
        compiled = self.folder / "compiled"
        if COMPILED.search(source):
            self._before(tuple(tests), marks)  # to compile what stays the same
            compiled = self.folder / "compiled anew"
            shutil.copytree(self.folder / "compiled", compiled, dirs_exist_ok=True)
            for stem in self._compiled_with(mutation.file):
                for each in compiled.glob(f"*/{stem}.*.nb[ic]"):
                    each.unlink()
        try:
            file.write_text(mutation.applied(source), encoding="utf-8")
            return self._ran(tests, marks, compiled, self.timeout)
        finally:
            file.write_text(source, encoding="utf-8")
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # what was compiled of it stays valid
            shutil.rmtree(self.folder / "compiled anew", ignore_errors=True)

    def _ran(self, tests: Sequence[str], marks: str, compiled: Path, timeout: float) -> str:
        """A forked process runs them, in a session of its own, so that what they start ends with them."""
        process = os.fork()
        if not process:
            self._run(tests, marks, compiled, int(timeout))
        ends = time.monotonic() + IDLE * timeout
        while not (ended := os.waitpid(process, os.WNOHANG))[0]:
            if time.monotonic() > ends:
                _end(process)
                os.waitpid(process, 0)
                return "timeout"
            time.sleep(0.05)
        _end(process)
        if os.WIFSIGNALED(ended[1]) and os.WTERMSIG(ended[1]) in (signal.SIGXCPU, signal.SIGKILL):
            return "timeout"
        code = int((self.folder / "code").read_text() or RED)
        (self.folder / "code").write_text("")
        return {GREEN: "survived", NOTHING_RAN: "no tests"}.get(code, "killed")

    def _run(self, tests: Sequence[str], marks: str, compiled: Path, timeout: int) -> None:
        """In the forked process: pytest as if the copy were the project. Does not return."""
        code = RED
        try:
            os.setsid()
            used = int(time.process_time())
            resource.setrlimit(resource.RLIMIT_CPU, (used + timeout, used + timeout + 5))
            signal.signal(signal.SIGINT, signal.default_int_handler)
            output = os.open(self.folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for descriptor in (1, 2):
                os.dup2(output, descriptor)
            os.chdir(self.folder)
            source = str(self.folder / "src")
            os.environ |= {"PYTHONPATH": source, "NUMBA_CACHE_DIR": str(compiled), "OMP_NUM_THREADS": "1"}
            # Else bytecode of a change could be taken for that of what stood there a moment before.
            os.environ["PYTHONDONTWRITEBYTECODE"], sys.dont_write_bytecode = "1", True
            with contextlib.suppress(KeyError):
                sys.modules["numba.core.config"].__dict__["CACHE_DIR"] = str(compiled)
            for name in [each for each in sys.modules if each.split(".")[0] in ("tests", "unbraid", "conftest")]:
                del sys.modules[name]
            sys.path[:] = [str(self.folder), source, *(each for each in sys.path if each != str(ROOT))]
            import pytest

            few = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header", "--tb=short"]
            code = pytest.main([*few, "-m", marks, *tests])
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            (self.folder / "code").write_text(str(int(code)))
            os._exit(0)

    def _compiled_with(self, file: str) -> set[str]:
        """The modules whose compiled functions contain some of `file`'s: numba does not look for that itself."""
        sources = {each.stem: each.read_text(encoding="utf-8") for each in (self.folder / "src").rglob("*.py")}
        found, fresh = set[str](), {Path(file).stem}
        while fresh:
            found |= fresh
            imports = re.compile(rf"^\s*from unbraid\.[\w.]*\b({'|'.join(fresh)}) import", re.MULTILINE)
            fresh = {stem for stem, text in sources.items() if COMPILED.search(text) and imports.search(text)} - found
        return found


def _end(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


def concerning(file: str) -> list[str]:
    """Tests of a module: those of its name, then of what imports it, the laws of all metrics, and its own examples.

    They stand in the room of the module, or are those of commands.
    """
    name, package = Path(file).stem, Path(file).parts[2]
    users = {each.stem.removesuffix("_command") for each in (ROOT / "src").rglob("*.py") if _imports(each, name)}
    rooms = TESTED.get(package, (package,))
    tests = _concerning(name, users - {"__init__"}, (*rooms, "cli"))
    return [*tests, *(each for each in LAWS.get(package, ()) if each not in tests), file]


def rest_of_room(file: str, tests: Sequence[str]) -> list[str]:
    """The other tests of the room of a module, which hold some of it by way of others."""
    room = sorted((ROOT / "tests" / Path(file).parts[2]).rglob("test_*.py"))
    return [path for each in room if (path := str(each.relative_to(ROOT))) not in tests]


def _concerning(name: str, users: set[str], rooms: Sequence[str]) -> list[str]:
    found = list[tuple[int, str]]()
    for room in rooms:
        for each in sorted((ROOT / "tests" / room).rglob("test_*.py")):
            of = each.stem.removeprefix("test_")
            near = (of == name, _imports(each, name), of in users, any(of.startswith(user) for user in users))
            if any(near) or name in each.read_text(encoding="utf-8"):
                found.append((near.index(True) if any(near) else len(near), str(each.relative_to(ROOT))))
    return [path for _, path in sorted(found)]


def _imports(file: Path, name: str) -> bool:
    text = file.read_text(encoding="utf-8")
    return bool(re.search(rf"\.{name} import|^(from|import) .*\b{name}\b|^    {name},$", text, re.MULTILINE))


def judged() -> dict[str, str]:
    """The reason why no test can notice a change, by its key."""
    listed = yaml.safe_load(JUDGED.read_text(encoding="utf-8")) if JUDGED.exists() else None
    return {key: each["reason"] for each in listed or () for key in each["changes"]}


def key_of(mutation: Mutation) -> str:
    """The same as long as line and change are, wherever in the file the line stands."""
    text = mutation.text.strip()
    column = mutation.column - (len(mutation.text) - len(mutation.text.lstrip()))
    return SEPARATOR.join((mutation.file, mutation.function, text, str(column), mutation.old, mutation.new))


def _known(out: Path) -> dict[str, str]:
    names = {each.name for each in fields(Mutation)}
    found = _lines(out) if out.exists() else ()
    return {key_of(Mutation(**{name: line[name] for name in names})): line["outcome"] for line in found}


def _lines(out: Path) -> Iterator[dict[str, Any]]:
    for line in out.read_text(encoding="utf-8").splitlines():
        if line.endswith("}"):  # not one that a kill cut off
            yield json.loads(line)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", help="modules; without, all that decide a number or the truth of a file")
    parser.add_argument("--sample", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=120, help="seconds of computing for one change's tests")
    parser.add_argument("--workers", type=int, default=1, help="changes tried at a time")
    parser.add_argument("--again", action="store_true", help="try those once more that were not noticed, or timed out")
    parser.add_argument("--out", type=Path, default=Path("mutants.jsonl"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
