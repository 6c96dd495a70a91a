"""Put faults into the middle of everything that writes: evidence/faults.json, which the page on faults shows.

python evidence/make_faults.py [EVERY]     at each write point, or at every so many; a quarter of an hour on one core
"""

import contextlib
import io
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.injected import DAMAGE, WORKS, Bench, Tally, few_handles  # noqa: E402

FILE = ROOT / "evidence" / "faults.json"
KILLS = {
    "killed before it": "kill before",
    "killed after it": "kill after",
    "killed, the file half written": "torn",
    "asked to stop there, by SIGTERM": "SIGTERM",
    "disk full from there on": "ENOSPC",
    "no file handles from there on": "EMFILE",
    "not writable from there on": "EACCES",
}
DAY = 86_400.0


@contextmanager
def _clock_back() -> Iterator[None]:
    now = time.time
    with patch("time.time", lambda: now() - DAY):
        yield


def interrupted(bench: Bench, every: int) -> dict[str, Tally]:
    """By what happened at its write points."""
    found = {}
    for name, how in KILLS.items():
        found[name] = tally = Tally()
        for at in range(0, len(bench.counted.points), every):
            if how != "torn" or bench.counted.points[at].startswith("fsync"):
                bench.interrupted(tally, at, how)
    found["killed, the clock then set back a day"] = tally = Tally()
    for at in range(0, len(bench.counted.points), 4 * every):
        with _clock_back():
            bench.interrupted(tally, at, "kill before")
    found["few file handles"] = tally = Tally()
    for more in range(0, 8, 2):
        folder = bench.fresh()
        with contextlib.suppress(OSError, ValueError), few_handles(more):
            bench.work.act(folder)
        tally.judge(f"{bench.name}, {more} file handles", folder, bench.expected, bench.work.act)
    return found


def starved(bench: Bench) -> Tally:
    """With little memory, from none to all but enough for the large network of one of its runs."""
    tally = Tally()
    for more in (0, 1, 8, 40, 100, 160):
        bench.starved(tally, more << 20)
    return tally


def damaged(bench: Bench) -> dict[str, Tally]:
    """By what was done to each of its files."""
    found = {}
    for how in DAMAGE:
        found[f"a file {how}"] = tally = Tally()
        for name in bench.files():
            bench.damaged(tally, name, how)
    return found


def main() -> None:
    """Write the outcomes by work and class."""
    threading.excepthook = lambda _: None  # of uploads that a kill ends
    every = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    table: dict[str, dict[str, dict[str, int]]] = {}
    for name, work in WORKS.items():
        with tempfile.TemporaryDirectory() as home, contextlib.redirect_stdout(io.StringIO()):
            bench = Bench(name, Path(home) / "bench")
            found = interrupted(bench, every) | (damaged(bench) if work.use else {})
            if name == "study":
                found["memory used up"] = starved(Bench("large study", Path(home) / "large"))
        table[name] = {
            kind: {"cases": t.cases, "same": t.same, "named": t.refused, "left": t.left, "faults": len(t.faults)}
            for kind, t in found.items()
        }
        for tally in found.values():
            print(*(f"FAULT {fault}" for fault in tally.faults), sep="\n", end="\n" if tally.faults else "")
        print(name, sum(tally.cases for tally in found.values()), "cases", flush=True)
        FILE.write_text(json.dumps({"every": every, "works": table}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "160")
    main()
