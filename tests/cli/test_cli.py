"""The command line as a user meets it: exit codes, one line of error, nothing half-written."""

import hashlib
import json
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from runpy import run_module
from typing import Any

import numpy as np
import pytest

import unbraid.cli.app
from tests.processes import forked
from unbraid.data import Representation
from unbraid.metrics import METRICS
from unbraid.metrics._shared.metric_arguments import full_name


@pytest.fixture
def codes_file(tmp_path: Path) -> Path:
    factors = np.tile(np.stack(np.unravel_index(np.arange(24), (4, 6)), 1), (10, 1))
    Representation(factors.astype(float)[:, ::-1], factors, names=("size", "hue")).save(tmp_path / "codes.npz")
    return tmp_path / "codes.npz"


def digest(matrix: np.ndarray) -> str:
    """As the documentation has it, value by value."""
    values = b"".join(struct.pack("<d", value) for row in matrix.tolist() for value in row)
    return hashlib.sha256(f"({matrix.shape[0]}, {matrix.shape[1]})".encode() + values).hexdigest()


def failing(codes: np.ndarray, factors: np.ndarray) -> float:  # noqa: ARG001
    raise RuntimeError("no such\nluck")


def test_a_metric_that_fails_is_one_line_and_an_exit_code_where_that_is_asked_for(unbraid_cli, codes_file) -> None:
    given = ["score", str(codes_file), "--metrics", "mig,tests.cli.test_cli:failing"]
    code, printed, error = unbraid_cli(*given)
    assert (code, error) == (0, "")
    assert [line.split()[0] for line in printed.splitlines() if "RuntimeError" in line] == [given[-1].split(",")[1]]
    assert "failed: RuntimeError: no such luck" in printed
    out = codes_file.with_name("scores.json")
    code, printed, error = unbraid_cli(*given, "--strict", "--json", str(out))
    assert (code, error) == (3, f"wrote {out}\n")
    assert json.loads(out.read_text())["failed"].keys() == {"tests.cli.test_cli:failing"}
    other = shutil.copy(codes_file, codes_file.with_name("other.npz"))
    code, printed, _ = unbraid_cli(*given, str(other), "--strict")
    assert code == 3
    assert f"{codes_file}: tests.cli.test_cli:failing failed: RuntimeError: no such luck" in printed
    assert unbraid_cli(*given[:3], "mig", "--strict")[0] == 0


def test_score_prints_a_table_and_writes_the_json_of_the_contract(unbraid_cli, codes_file: Path) -> None:
    out = codes_file.with_name("scores.json")
    code, printed, _ = unbraid_cli(
        "score", str(codes_file), "--metrics", "mig,d_lsbd", "--details", "--seed", "7", "--json", str(out)
    )
    assert code == 0
    assert "mig" in printed
    assert "not defined here: needs at least one cyclic factor" in printed
    assert "    ceiling 1.000\n" in printed
    content, given = json.loads(out.read_text()), Representation.load(codes_file)
    assert content.keys() == {"unbraid", "seed", "input", "metrics", "skipped", "computed_with", "diagnosis"}
    assert content["computed_with"] == {name: {"version": METRICS[name].version} for name in ("mig", "d_lsbd")}
    assert content["seed"] == 7
    assert content["unbraid"] == unbraid.__version__
    assert content["input"] == {
        "path": str(codes_file),
        "n_samples": 240,
        "n_codes": 2,
        "sha256": {name: digest(getattr(given, name)) for name in ("codes", "factors")},
        "factors": [{"name": "size", "kind": "ordinal", "size": 4}, {"name": "hue", "kind": "ordinal", "size": 6}],
        "notes": [
            "kinds guessed: size ordinal, hue ordinal (an angle? period={'hue': 6}, --period hue=6); pass kinds= "
            "(--kinds) to change"
        ],
    }
    mig = content["metrics"]["mig"]
    assert mig.keys() >= {"headline", "higher_is_better", "version", "seconds", "values", "per_factor", "notes"}
    assert mig["values"]["score"] == pytest.approx(1.0)
    assert mig["per_factor"] == pytest.approx({"size": 1.0, "hue": 1.0})
    assert content["skipped"] == {"d_lsbd": "needs at least one cyclic factor"}


def test_python_runs_the_command_as_a_module(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["unbraid", "--version"])
    run_module("unbraid", run_name="__main__")
    assert capsys.readouterr().out == f"unbraid {unbraid.__version__}\n"


@pytest.mark.parametrize("name", METRICS)
def test_the_example_of_arguments_is_another_setting_of_the_metric(name: str, unbraid_cli: Any) -> None:
    code, printed, _ = unbraid_cli("metrics", name)
    assert code == 0
    examples = re.findall(r'--metrics "(.*)"', printed)
    assert len(examples) == (name != "independence_score"), "which alone has no arguments"
    assert all(full_name(each).startswith(f"{name}(") for each in examples)


def test_an_interrupt_while_the_command_starts_is_one_line() -> None:
    code = """
import sys

class Interrupts:
    def find_spec(self, name, *_):
        if name == "unbraid.cli.score_command":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts())
from unbraid.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "unbraid: interrupted; no file was left half-written\n")


@pytest.mark.lengthy
def test_closed_streams_are_none_of_the_files_that_are_written(tmp_path: Path) -> None:
    code = "from unbraid.cli import main; main()"
    command = f"exec {sys.executable} -c '{code}' score --example --metrics mig --json scores.json <&- >&- 2>&-"
    assert subprocess.run(command, shell=True, cwd=tmp_path).returncode == 0
    assert "mig" in json.loads((tmp_path / "scores.json").read_text())["metrics"]


@pytest.mark.lengthy
@pytest.mark.parametrize("closed", [0, 1, 2])
def test_one_closed_stream_is_none_of_the_files_that_are_written(tmp_path: Path, closed: int) -> None:
    script = (
        "import os, sys, unbraid.cli\n"
        f"os.close({closed})\n"
        f"sys.{('stdin', 'stdout', 'stderr')[closed]} = None\n"  # as Python begins with it closed
        f"sys.argv = ['unbraid', 'score', '--example', '--metrics', 'mig', '--json', {str(tmp_path / 'x.json')!r}]\n"
        "unbraid.cli.main()\n"
    )
    with forked(script) as process:
        _, error = process.communicate()
    assert process.returncode == 0, error
    assert "Traceback" not in error
    assert "mig" in json.loads((tmp_path / "x.json").read_text())["metrics"]


def save(folder: Path, **arrays: object) -> str:
    np.savez(folder / "bad.npz", **arrays)  # pyright: ignore[reportArgumentType]
    return str(folder / "bad.npz")


GOOD = np.arange(20).reshape(10, 2) % 7
CODES = np.random.default_rng(0).standard_normal((10, 3))
NAN = CODES.copy()
NAN[4, 1] = np.nan


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"codes": NAN, "factors": GOOD}, "codes must be finite; row 4, column 1 is nan"),
        ({"codes": CODES, "factors": GOOD.T}, "Factors are (n_samples, n_factors): transpose?"),
        ({"codes": CODES[:1], "factors": GOOD[:1]}, "at least 2 rows"),
        ({}, "no array 'codes'; found nothing"),
        ({"codes": np.array([{}, {}], dtype=object), "factors": GOOD}, "pickled objects, which are never loaded"),
    ],
)
def test_bad_content_is_one_line_and_exit_2(
    unbraid_cli, tmp_path: Path, arrays: dict[str, object], message: str
) -> None:
    path = save(tmp_path, **arrays)
    out = tmp_path / "scores.json"
    code, printed, error = unbraid_cli("score", path, "--json", str(out), "--metrics", "mig")
    assert (code, printed) == (2, "")
    assert message in error
    assert path in error
    assert error.startswith("unbraid: ")
    assert error.count("\n") == 1
    assert [each.name for each in tmp_path.iterdir()] == ["bad.npz"]


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("asked", "code", "line"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "stopped by SIGTERM")],
)
def test_a_signal_ends_a_command_in_one_line_without_a_file(
    tmp_path: Path, asked: signal.Signals, code: int, line: str
) -> None:
    script = (
        "import sys, time, unbraid.cli as app, unbraid.metrics as t, unbraid.scoring.score as s, dataclasses\n"
        "def slow(codes, factors):\n    print('at work', flush=True)\n    time.sleep(60)\n"
        "s._known = lambda name: dataclasses.replace(t.METRICS['mig'], function=slow)\n"
        f"sys.argv = ['unbraid', 'score', '--example', '--metrics', 'mig', '--json', {str(tmp_path / 'x.json')!r}]\n"
        "app.main()\n"
    )
    with forked(script) as process:
        assert process.stdout.readline() == "at work\n"
        time.sleep(0.2)
        process.send_signal(asked)
        _, error = process.communicate()
    assert process.returncode == code
    assert error == f"unbraid: {line}; no file was left half-written\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.lengthy
def test_the_command_its_json_and_its_page_name_the_same_best_of_each_group(unbraid_cli, tmp_path: Path) -> None:
    """Group a agrees; group b is the same space seen from other sides, so that none of it is best."""
    rng = np.random.default_rng(0)
    codes = rng.standard_normal((300, 3))
    for number in range(4):
        np.save(tmp_path / f"a-{number}.npy", codes + 0.2 * rng.standard_normal(codes.shape))
        turned = codes @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
        np.save(tmp_path / f"b-{number}.npy", turned + 0.1 * rng.standard_normal(codes.shape))
    files = sorted(map(str, tmp_path.glob("*.npy")))
    page, kept = tmp_path / "page.html", tmp_path / "udr.json"
    code, printed, error = unbraid_cli("rank", *files, "--by", "name", "--html", str(page), "--json", str(kept))
    assert code == 0, error
    first, second = printed.splitlines()[-2:]
    found = unbraid.rank(files, groups=["a"] * 4 + ["b"] * 4)
    assert found.best is not None
    rows = [line.split() for line in printed.splitlines()]
    assert [row[-1] for row in rows if row and row[0].isdigit()] == [found.runs[model] for model in found.best_first]
    assert first.startswith(f"best model of a: {found.best} (")
    assert second == f"no best model of b: {found.why_none(['a'])}"
    assert "randomly rotated latents" in second
    assert all(line in page.read_text() for line in (first, second))
    assert page.read_text().count('<td class="num"><b>') == 1, "the best of a alone is bold"
    assert json.loads(kept.read_text())["best"] == found.best
    code, printed, _ = unbraid_cli("rank", *files[4:], "--untrained", files[0], "--untrained", files[1])
    assert printed.splitlines()[-1].startswith("no best model: no model scores above untrained ones among each other (")
