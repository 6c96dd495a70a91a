"""The command line as a user meets it: exit codes, one line of error, nothing half-written."""

import hashlib
import html
import inspect
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
import scipy.sparse
import typer

import unbraid.cli.app
from tests.processes import forked
from unbraid.data import Representation
from unbraid.metrics import BLOCKED, MEASURES, METRICS, PRESETS
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


def test_score_prints_notes_under_their_number_by_names(unbraid_cli, codes_file: Path) -> None:
    code, printed, _ = unbraid_cli("score", str(codes_file), "--kinds", "hue=cyclic", "--metrics", "sap,mig")
    assert code == 0
    lines = [line.rstrip() for line in printed.splitlines()]
    at = next(place for place, line in enumerate(lines) if line.startswith("sap"))
    assert lines[at + 1] == "    factor hue is cyclic: squared correlation, treated as linear, not circular"
    assert lines[at + 2].startswith("mig ")


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


def test_metrics_that_are_not_defined_for_one_reason_share_it(unbraid_cli, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    scipy.sparse.save_npz(tmp_path / "codes.npz", scipy.sparse.random(200, 600, 0.1, format="csr", random_state=0))
    (tmp_path / "labels.csv").write_text("a\n" + "\n".join(map(str, rng.integers(0, 2, 200).tolist())))
    given = ("score", str(tmp_path / "codes.npz"), "--labels", str(tmp_path / "labels.csv"), "--metrics")
    code, printed, _ = unbraid_cli(*given, "mig,irs,r2,amari")
    assert code == 0
    assert "not defined here: irs, r2, amari\n    needs all codes at once" in printed
    assert printed.count("needs all codes at once") == 1
    assert "irs                          -           not defined here: needs" in unbraid_cli(*given, "mig,irs")[1]


def test_score_prints_a_table_and_writes_the_json_of_the_contract(unbraid_cli, codes_file: Path) -> None:
    out = codes_file.with_name("scores.json")
    code, printed, _ = unbraid_cli(
        "score", str(codes_file), "--metrics", "mig,d_lsbd", "--seed", "7", "--json", str(out)
    )
    assert code == 0
    assert "mig" in printed
    assert "not defined here: needs at least one cyclic factor" in printed
    assert "    ceiling 1.000\n" in printed
    content, given = json.loads(out.read_text()), Representation.load(codes_file)
    assert content.keys() == {"unbraid", "seed", "input", "metrics", "skipped", "computed_with"}
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


def test_html_is_one_page_that_names_its_metrics(unbraid_cli, codes_file: Path) -> None:
    out = codes_file.with_name("scores.html")
    code, _, _ = unbraid_cli("score", str(codes_file), "--metrics", "mig", "--html", str(out))
    assert code == 0
    page = out.read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert METRICS["mig"].limitations.split(";")[0] in page


def test_factors_can_be_chosen_by_name(unbraid_cli, codes_file: Path) -> None:
    out = codes_file.with_name("scores.json")
    assert unbraid_cli("score", str(codes_file), "--metrics", "mig", "--factors", "hue", "--json", str(out))[0] == 0
    assert list(json.loads(out.read_text())["metrics"]["mig"]["per_factor"]) == ["hue"]


def test_the_page_says_how_to_repeat_exactly_this(unbraid_cli, codes_file: Path) -> None:
    out = codes_file.with_name("scores.html")
    condition = "hue > 3 and size == 0"
    given = ["score", str(codes_file), "--metrics", "mig,zero_shot", "--factors", "hue,size", "--held-out", condition]
    assert unbraid_cli(*given, "--html", str(out))[0] == 0
    page = html.unescape(out.read_text(encoding="utf-8"))
    assert f"--metrics mig,zero_shot --factors hue,size --held-out '{condition}'" in page
    assert ", columns=['hue', 'size'])" in page
    assert f"held_out={condition!r}" in page


def test_python_runs_the_command_as_a_module(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["unbraid", "--version"])
    run_module("unbraid", run_name="__main__")
    assert capsys.readouterr().out == f"unbraid {unbraid.__version__}\n"


def test_the_help_waits_for_no_library_that_computes() -> None:
    code = "import sys, unbraid.cli.app; print({'numpy', 'yaml', 'importlib.metadata', 'torch'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_the_example_is_at_hand(unbraid_cli) -> None:
    code, printed, _ = unbraid_cli("score", "--example", "--metrics", "mig")
    assert code == 0
    assert "10,000 samples, 10 codes" in printed


def test_metrics_lists_the_table(unbraid_cli) -> None:
    code, printed, _ = unbraid_cli("metrics")
    assert code == 0
    assert all(name in printed for name in [*MEASURES, *PRESETS])
    code, printed, _ = unbraid_cli("metrics", "--json", "-")
    assert json.loads(printed).keys() == MEASURES.keys()


def test_metrics_shows_one_with_the_arguments_that_its_name_can_hold(unbraid_cli) -> None:
    code, printed, _ = unbraid_cli("metrics", "sap")
    assert code == 0
    assert METRICS["sap"].limitations in printed
    rows = [line.split()[:2] for line in printed.splitlines()]
    parameters = inspect.signature(METRICS["sap"].function).parameters
    assert ["variant", parameters["variant"].default] in rows
    assert unbraid_cli("metrics", "sap(variant=gap)", "--csv", "-")[1].startswith("argument,default,what it does\nvar")
    for name in ("udr", *BLOCKED):
        assert list(json.loads(unbraid_cli("metrics", name, "--json", "-")[1])) == [name]
    assert unbraid_cli("metrics", "udr", "--csv", "-")[1] == "argument,default,what it does\n"
    assert json.loads(unbraid_cli("metrics", "symmetry", "--json", "-")[1]).keys() == set(PRESETS["symmetry"])
    assert unbraid_cli("metrics", "mgi(bins=3)") == (
        2, "", "unbraid: unknown metric 'mgi(bins=3)'; did you mean 'mig'?\n"
    )  # fmt: skip


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
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_are_none_of_the_files_that_are_written(tmp_path: Path, closed: str) -> None:
    code = "from unbraid.cli import main; main()"
    command = f"exec {sys.executable} -c '{code}' score --example --metrics mig --json scores.json {closed}"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "mig" in json.loads((tmp_path / "scores.json").read_text())["metrics"]


@pytest.mark.parametrize("command", [[], ["score"], ["metrics"], ["rank"], ["data"]])
def test_every_command_has_help(unbraid_cli, command: list[str]) -> None:
    code, printed, _ = unbraid_cli(*command, "--help")
    assert code == 0
    assert "unbraid" in printed


def test_examples_of_the_help_are_not_wrapped_and_summaries_not_cut(unbraid_cli) -> None:
    printed = unbraid_cli("score", "--help")[1].splitlines()
    whole = "unbraid score codes.npy --labels labels.csv --columns shape,hue --kinds shape=categorical --period hue=360"
    assert f"    {whole}" in printed
    printed = unbraid_cli("stress", "--help")[1].splitlines()
    place = printed.index("    def my_metric(codes, factors):")
    assert printed[place + 1].startswith("        return their_metric(")
    for group in ([], ["data"], ["study"]):
        assert "..." not in unbraid_cli(*group, "--help")[1].replace("[ARGS]...", "")


@pytest.mark.parametrize(("command", "heading", "option"), [
    ("score", "Labels", "--kinds"), ("compare", "A study", "--within"), ("rank", "How models are compared", "--alpha"),
])  # fmt: skip
def test_many_options_stand_under_headings_each_once(unbraid_cli, command: str, heading: str, option: str) -> None:
    _, told, printed = unbraid_cli(command, "--help")[1].partition("\nArguments:\n")
    assert told
    under: dict[str, list[str]] = {}
    for line in printed.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            under[line[:-1]] = []
        elif line.startswith("  -"):
            under[next(reversed(under))].append(line.split()[0].rstrip(","))
    assert option in under[heading]
    assert "--csv" in under["Output"]
    every = typer.main.get_command(unbraid.cli.app.app).commands[command].params  # pyright: ignore[reportAttributeAccessIssue]
    names = sorted(each.opts[0] for each in every if each.param_type_name == "option")
    assert sorted(name for own in under.values() for name in own) == sorted([*names, "-h"])


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
        ({"codes": CODES.T, "factors": GOOD}, "same number of rows; got (3, 10) and (10, 2)"),
        ({"codes": CODES, "factors": GOOD.T}, "Factors are (n_samples, n_factors): transpose?"),
        ({"codes": CODES[:1], "factors": GOOD[:1]}, "at least two rows"),
        ({"codes": CODES[:, :0], "factors": GOOD}, "codes has no columns"),
        ({"codes": CODES, "factors": GOOD[:, :0]}, "these codes have no factors"),
        ({"codes": CODES, "factors": np.ones((10, 2))}, "factor 0 is constant (always 1)"),
        ({"codes": CODES, "factors": np.arange(20).reshape(10, 2)}, "factor 0 has one sample per value"),
        ({"codes": CODES, "factors": GOOD, "factor_kinds": ["ordinal", "round"]}, "unknown kind 'round'"),
        ({"factors": GOOD}, "no array 'codes'"),
        ({}, "no array 'codes'; found nothing"),
        (
            {"codes": CODES, "factors": GOOD, "factor_levels": "x"},
            "factor_levels must be a list of lists of names in JS",
        ),
        ({"codes": CODES}, "these codes have no factors to score against"),
        ({"Codes": CODES, "factors": GOOD}, "no array 'codes'; did you mean 'Codes'?"),
        ({"codes": CODES.astype(str), "factors": GOOD}, "codes must be real numbers; got dtype <U"),
        ({"codes": CODES[:, 0], "factors": GOOD}, "codes must be (n_samples, n_codes)"),
        ({"codes": CODES[:2], "factors": np.arange(6).reshape(2, 3)}, "factors has more columns than rows, 3 factors"),
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score", "absent.npz"], "absent.npz: no such file"),
        (["score"], "give one or more FILEs of codes or runs, or --example"),
        (["score", "{codes}", "--example"], "give one or more FILEs of codes or runs, or --example"),
        (["score", "{codes}", "--metrics", "migg"], "unknown metric 'migg'; did you mean 'mig'?"),
        (["score", "{codes}", "--metrics", ","], "metrics is empty"),
        (["score", "{codes}", "--metrics", "d_lsbd"], "none of the metrics could be computed: d_lsbd: needs at least"),
        (["score", "{codes}", "--factors", "colour"], "no factor 'colour'; there are size, hue"),
        (["score", "{codes}", "--json", "absent/scores.json"], "the folder absent does not exist"),
        (["score", "{codes}", "--json", "scores.txt"], "the name must end in .json"),
        (["score", "{codes}", "--held-out", "colour > 1"], "names no factor 'colour'"),
        (["score", "{codes}", "--seed", "x"], "Invalid value for '--seed'"),
        (["score", "{codes}", "--confidence", "95"], "confidence must be a finite number, above 0 and below 1; got 95"),
        (["score", "{codes}", "--confidence", ".9", "--resamples", "0"], "resamples must be a whole number, 2 or more"),
        (["score", "{codes}", "--resamples", "9"], "--resamples is for intervals: give --confidence"),
        (["score", "{codes}", "--how-many", "0"], "--how-many must be a finite number, above 0; got 0"),
        (["score", "{codes}", "--sed", "1"], "No such option"),
        (["scor"], "no command 'scor'; did you mean 'score'?"),
        (["rank", "{codes}"], "give two or more files"),
        (["rank", "{codes}", "absent.npz"], "absent.npz: no such file"),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(unbraid_cli, codes_file: Path, arguments: list[str], message: str) -> None:
    code, printed, error = unbraid_cli(*(each.format(codes=codes_file) for each in arguments))
    assert (code, printed) == (2, "")
    assert message in error
    assert error.count("\n") == 1


def test_udr_ranks_files_and_refuses_other_samples(unbraid_cli, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    codes = rng.standard_normal((300, 4))
    factors = rng.integers(0, 3, (300, 2))
    turned = codes @ np.linalg.qr(rng.standard_normal((4, 4)))[0]
    for name, each in {"a": codes, "b": -codes[:, ::-1], "c": codes[:, [1, 0, 3, 2]], "turned": turned}.items():
        Representation(each, factors).save(tmp_path / f"{name}.npz")
    files = [str(tmp_path / f"{name}.npz") for name in ("turned", "a", "b", "c")]
    code, printed, error = unbraid_cli("rank", *files, "--json", str(tmp_path / "udr.json"))
    assert code == 0
    scores = json.loads((tmp_path / "udr.json").read_text())["scores"]
    assert min(scores, key=lambda path: scores[path]) == files[0]
    assert [line for line in printed.splitlines() if ".npz" in line][-2].strip().endswith("turned.npz"), "the last row"
    # The others are copies of each other, so that rounding decides between them.
    assert printed.splitlines()[-1].startswith(tuple(f"best model: {file} (" for file in files[1:]))
    assert "no posterior: all latents that vary count as informative" in error
    Representation(codes, 2 - factors).save(tmp_path / "other.npz")
    code, _, error = unbraid_cli("rank", files[0], str(tmp_path / "other.npz"))
    assert code == 2
    assert "other.npz: its rows are not the samples of" in error


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
    assert first.startswith(f"best model of a: {found.best} (")
    assert second == f"no best model of b: {found.why_none(['a'])}"
    assert "randomly rotated latents" in second
    assert all(line in page.read_text() for line in (first, second))
    assert page.read_text().count('<td class="num"><b>') == 1, "the best of a alone is bold"
    assert json.loads(kept.read_text())["best"] == found.best
    code, printed, _ = unbraid_cli("rank", *files[4:], "--untrained", files[0], "--untrained", files[1])
    assert printed.splitlines()[-1].startswith("no best model: no model scores above untrained ones among each other (")


def test_the_help_shows_the_commands_in_three_groups(unbraid_cli) -> None:
    code, printed, _ = unbraid_cli("--help")
    assert code == 0
    headings = [line for line in printed.splitlines() if line.endswith(":") and "(unbraid " in line]
    assert [heading.split()[0] for heading in headings] == ["Measure", "Train", "Select"]
    assert "\nCommands:" not in printed
    assert printed.count("\n  rank ") == 1


def test_the_former_name_of_rank_is_answered_with_it(unbraid_cli) -> None:
    code, _, error = unbraid_cli("udr", "one.npz", "other.npz")
    assert (code, error) == (2, "unbraid: no command 'udr'; did you mean 'rank'?\n")
