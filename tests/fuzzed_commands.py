"""Every command that reads a file, under damaged ones: exit code 0 or 2, one line, in bounds, nothing half-written.

Each case is decided by the kind of file, the seed and its number, so that a failure names itself. What the readers do,
value by value, is in `tests.fuzzed`; here it is what a user meets.
"""

import contextlib
import io
import json
import os
import resource
import signal
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import unbraid.cli.app
from tests.fuzzed import YAML, mutated
from unbraid import Representation, Study, score

LONGEST, MEMORY = 20, 1 << 30  # seconds, and bytes beyond what there was, that a case may take
TEXTS = (".csv", ".json", ".yaml")


@dataclass(frozen=True)
class Target:
    """A sound file, and a command that reads it; what it writes goes to out.*."""

    path: Path
    words: tuple[str, ...]

    def call(self) -> tuple[object, str]:
        """Exit code, and what stands on standard error; raises what is a traceback for the user."""
        said = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            before, sys.argv = sys.argv, ["unbraid", *self.words]
            try:
                unbraid.cli.app.main()
            except SystemExit as left:
                return left.code or 0, said.getvalue()
            finally:
                sys.argv = before
        return 0, said.getvalue()


def targets(home: Path) -> dict[str, Target]:
    """All, by what is read and by which command, on small sound files."""
    home.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    codes, factors = rng.standard_normal((40, 3)), rng.integers(0, 3, (40, 2))
    whole = Representation(codes, factors, codes * 0, names=("a", "b"), levels=((), ("x", "y", "z")))
    found: dict[str, Target] = {}

    def add(name: str, path: Path, *words: object) -> None:
        found[f"{name}: {path.name}"] = Target(path, tuple(map(str, words)))

    html, out = home / "out.html", home / "out.json"
    whole.save(home / "ok.npz")
    np.save(home / "ok.npy", codes)
    for suffix in ("npz", "safetensors", "parquet"):
        whole.save(home / f"ours.{suffix}")
    np.savez_compressed(home / "plain.npz", codes=codes, factors=factors)
    np.save(home / "plain.npy", codes)
    rows = [f"{a},{b},{c},{f},{'xyz'[g]}" for (a, b, c), (f, g) in zip(codes.tolist(), factors.tolist(), strict=True)]
    (home / "plain.csv").write_text("code_0,code_1,code_2,factor_a,factor_b\n" + "\n".join(rows) + "\n")
    (home / "labels.csv").write_text("a,b\n" + "".join(f"{f},{'xyz'[g]}\n" for f, g in factors.tolist()))
    labels = home / "labels.csv"
    for path in [home / f"ours.{each}" for each in ("npz", "safetensors", "parquet")] + [home / "plain.npz"]:
        add("score", path, "score", path, "--metrics", "mig,mcc", "--json", out, "--html", html)
    for path in (home / "plain.npy", home / "plain.csv"):
        given = () if path.suffix == ".csv" else ("--labels", labels)
        add("score", path, "score", path, *given, "--metrics", "mig,sap", "--json", out, "--html", html)
    for suffix in ("csv", "parquet", "npz", "npy"):
        path = home / f"labels.{suffix}"
        if suffix == "parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table({"a": factors[:, 0], "b": ["xyz"[g] for g in factors[:, 1]]}), path)
        elif suffix != "csv":
            (np.save if suffix == "npy" else np.savez)(path, factors)
        add("labels", path, "score", home / "ok.npy", "--labels", path, "--metrics", "mig", "--json", out)
    add(
        "figure",
        home / "ours.npz",
        "figure",
        "hinton",
        home / "ours.npz",
        "--set",
        "metric=mig",
        "--out",
        home / "out.svg",
    )
    add("compare", home / "ours.parquet", "compare", home / "ours.parquet", home / "ok.npz", "--metrics", "mig")
    for suffix in ("npy", "csv", "safetensors"):
        path = home / f"{'ours' if suffix == 'safetensors' else 'plain'}.{suffix}"
        add("rank", path, "rank", path, home / "ok.npz", "--similarity", "spearman", "--json", out, "--html", html)
    score(whole, metrics=["mig", "sap", "dci_lasso"]).save(home / "card.json")
    add("report", home / "card.json", "report", home / "card.json", "--out", html)
    (home / "study.yaml").write_text(YAML)
    add("study", home / "study.yaml", "study", "run", home / "study.yaml", "--out", home / "out.study", "--dry-run")
    _of_images(home / "images", add)
    _of_a_study(home, add)
    return found


def _of_images(home: Path, add: Callable[..., None]) -> None:
    home.mkdir()
    images = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 1), dtype=np.uint8)
    np.save(home / "images.npy", images)
    (home / "factors.csv").write_text("size,shape\n" + "".join(f"{i // 2},{'ab'[i % 2]}\n" for i in range(6)))
    np.savez(home.with_name("own.npz"), images=images, factors=np.arange(12).reshape(6, 2), factor_names=["a", "b"])
    sheet = home.with_name("out.png")
    for path in (home / "images.npy", home / "factors.csv"):
        add("images", path, "data", "show", home, "--out", sheet)
    add("images", home.with_name("own.npz"), "data", "show", home.with_name("own.npz"), "--out", sheet)


def _of_a_study(home: Path, add: Callable[..., None]) -> None:
    place = home / "study"
    (home / "sound.yaml").write_text(YAML.replace("zero_shot: {held_out: x > 2}\n", ""))
    study = Study.load(home / "sound.yaml", out=place)
    first = study.run(processes=0)[0].path
    for suffix in ("parquet", "csv"):
        table = home / f"table.{suffix}"
        _quietly("export", place, "--out", table)
        _quietly("export", place, "--out", home / f"sound.{suffix}")
        add("merge", table, "study", "merge", table, "--out", home / "out.csv")
    for name in ("study.json", "study.yaml"):
        add("status", place / name, "study", "status", place)
    for name in ("config.json", "status.json", "scores.json"):
        add("agreement", first / name, "study", "agreement", place)
    add("score of a run", first / "codes.safetensors", "score", first, "--metrics", "mig", "--json", home / "out.json")


def _quietly(*words: object) -> None:
    code, said = Target(Path(), tuple(map(str, words))).call()
    assert code == 0, said


def lies(whole: bytes, suffix: str, rng: np.random.Generator) -> bytes:
    """What a hostile or broken program would write: headers that lie, odd encodings, endless nests and lines."""
    choices: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: whole[: int(rng.integers(len(whole)))],
        lambda: b"\xef\xbb\xbf" + whole,
        lambda: whole + whole,
        lambda: whole.replace(b"\n", b"\r\n"),
        lambda: b"\0" * 4096,
        lambda: bytes(rng.integers(0, 256, 4096, dtype=np.uint8)),
    ]
    if suffix in TEXTS:
        text = whole.decode()
        spots = [place for place, letter in enumerate(text) if letter.isdigit()]
        odd = [
            "NaN",
            "-Infinity",
            "1e999",
            "9" * 400,
            "-1e-400",
            "\0",
            "\ud7ff" * 9,
            "x" * 200_000,
            "null",
            '"',
            "[" * 5000,
        ]

        def other() -> bytes:
            place = spots[int(rng.integers(len(spots)))]
            return (text[:place] + odd[int(rng.integers(len(odd)))] + text[place + 1 :]).encode()

        choices += [
            *[other] * 6,
            lambda: text.encode("utf-16"),
            lambda: text.replace("a", "\xe4").encode("latin-1"),
            lambda: text.replace(",", ", " * 2000, 1).encode(),
            lambda: ("[" * 50_000 + text).encode(),
            lambda: text.replace("{", '{"seed": 1, "seed": 2, ', 1).encode(),
            lambda: (text + text.splitlines()[-1] + "\n" + text.splitlines()[0] + "\n").encode(),
        ]
    if suffix == ".yaml":
        bomb = "a0: &a0 [x, x]\n" + "".join(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]\n" for k in range(1, 12))
        choices += [
            lambda: bomb.encode() + whole,
            lambda: b"x: &x\n  <<: *x\n" + whole,
            lambda: b"seeds: !!python/object/apply:os.system ['true']\n",
            lambda: whole + b"seeds: [0]\n",
            lambda: whole.replace(b"seeds: [0, 1]", b"seeds: 1000000000000"),
            lambda: whole.replace(b"[1, 4]", b"[" + b"1, " * 100_000 + b"4]"),
            lambda: b"? " * 3000 + whole,
        ]
    if suffix in (".npy", ".npz"):
        shapes = [b"(40, 3)", b"(9999999999, 3)", b"(-1, 3)", b"(40,)", b"(0, 3)", b"(40, 0)", b"(1e3, 3)", b"((" * 90]
        choices += [
            lambda: whole.replace(b"(40, 3)", shapes[int(rng.integers(len(shapes)))]),
            lambda: whole.replace(
                b"<f8", [b"|O8", b"<f2", b"<c8", b"|V8", b"<M8", b">f8", b"<U9"][int(rng.integers(7))]
            ),
            lambda: whole.replace(b"False", b"True "),
        ]
    if suffix == ".safetensors":
        length = int.from_bytes(whole[:8], "little")
        header = json.loads(whole[8 : 8 + length])

        def retold() -> bytes:
            entry = header["codes"] | [
                {"shape": [1 << 40, 3]}, {"shape": [-1]}, {"dtype": "F16"}, {"dtype": "X"},
                {"data_offsets": [0, 1 << 60]},
                {"data_offsets": [9, 3]}, {"shape": []}, {"shape": [1 << 62, 1 << 62]}, {"dtype": "BF16"},
            ][int(rng.integers(9))]  # fmt: skip
            text = json.dumps({**header, "codes": entry}).encode()
            return len(text).to_bytes(8, "little") + text + whole[8 + length :]

        choices += [*[retold] * 3, lambda: (1 << 62).to_bytes(8, "little") + whole[8:]]
    return choices[int(rng.integers(len(choices)))]()


def one(name: str, target: Target, whole: bytes, number: int, seed: int) -> str:
    """The fault of one case, or nothing."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed, number])
    suffix = target.path.suffix
    content = lies(whole, suffix, rng) if rng.integers(2) else mutated(whole, rng, text=suffix in TEXTS)
    target.path.write_bytes(content)
    what, began = f"{name}, seed {seed}, case {number}", time.monotonic()
    before = _written(target)
    try:
        code, said = target.call()
    except BaseException as error:  # what a user sees as a traceback
        if isinstance(error, KeyboardInterrupt):
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        own = [each for each in traceback.extract_tb(error.__traceback__) if "unbraid" in each.filename][-1]
        return f"{what}: {type(error).__name__}: {str(error)[:200]} at {own.filename}:{own.lineno}, {place.name}"
    if code not in (0, 2):
        return f"{what}: exit code {code}: {said[-300:]}"
    last = said.rstrip("\n").rpartition("\n")[2]
    if code == 2 and (not last.startswith("unbraid: ") or len(last) > 3000):
        return f"{what}: no line of ours: {last[:300]!r}"
    if code == 2 and (left := _written(target) - before):
        return f"{what}: left {sorted(left)}"
    if (spent := time.monotonic() - began) > LONGEST:
        return f"{what}: {spent:.0f} s"
    return ""


def _written(target: Target) -> set[str]:
    places = {Path(word).parent for word in target.words if Path(word).name.startswith("out.")}
    return {str(path) for place in places for path in place.glob("out.*") if path.is_file() and path.stat().st_size}


def shares(cases: int, kinds: int) -> Iterator[tuple[int, int]]:
    """Kind and number of each case, as many of each kind."""
    yield from ((case % kinds, case // kinds) for case in range(cases))


def sample(found: dict[str, Target], cases: int, seed: int) -> list[str]:
    """The faults of some cases in this process."""
    faults, names = [], list(found)
    wholes = {name: target.path.read_bytes() for name, target in found.items()}
    for kind, number in shares(cases, len(names)):
        name = names[kind]
        for path in found[name].path.parent.glob("out.*"):
            path.unlink() if path.is_file() else None
        try:
            faults.append(one(name, found[name], wholes[name], number, seed))
        finally:
            found[name].path.write_bytes(wholes[name])
    return [fault for fault in faults if fault]


def in_processes(found: dict[str, Target], cases: int, seed: int, *, batch: int = 40) -> list[str]:
    """The faults of many cases in processes of bounded memory, another after each that dies or takes too long."""
    faults, names = [], list(found)
    wholes = {name: target.path.read_bytes() for name, target in found.items()}
    left = list(shares(cases, len(names)))
    while left:
        done, told = _batch(found, names, wholes, left[:batch], seed)
        faults += told
        left = left[done:]
    return faults


def _batch(
    found: dict[str, Target],
    names: Sequence[str],
    wholes: dict[str, bytes],
    cases: Sequence[tuple[int, int]],
    seed: int,
) -> tuple[int, list[str]]:
    """How many of the cases were done, and their faults."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.close(reads)
        _work(found, names, wholes, cases, seed, writes)
    os.close(writes)
    with os.fdopen(reads, encoding="utf-8") as lines:
        told = [json.loads(line) for line in lines if line.endswith("\n")]
    _, status = os.waitpid(child, 0)
    for name, whole in wholes.items():
        found[name].path.write_bytes(whole)
    faults = [each for each in told if each]
    if status and len(told) < len(cases):  # killed in the middle of a case
        kind, number = cases[len(told)]
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
        return len(told) + 1, [*faults, f"{names[kind]}, seed {seed}, case {number}: the process ended by {how}"]
    return len(told), faults


def _work(
    found: dict[str, Target],
    names: Sequence[str],
    wholes: dict[str, bytes],
    cases: Sequence[tuple[int, int]],
    seed: int,
    writes: int,
) -> None:
    status = 1
    try:
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, resource.RLIM_INFINITY))
        for kind, number in cases:
            signal.alarm(6 * LONGEST)  # a machine may be busy; ends the process, also in compiled code
            name = names[kind]
            for path in found[name].path.parent.glob("out.*"):
                path.unlink() if path.is_file() else None
            began = time.process_time()
            fault = one(name, found[name], wholes[name], number, seed)
            if fault.endswith(" s") and time.process_time() - began < LONGEST:
                fault = ""  # others were at work
            found[name].path.write_bytes(wholes[name])
            os.write(writes, (json.dumps(fault) + "\n").encode())
        status = 0
    finally:
        os._exit(status)


if __name__ == "__main__":  # python -m tests.fuzzed_commands FOLDER CASES SEED
    for fault in in_processes(targets(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])):
        print(fault, flush=True)
