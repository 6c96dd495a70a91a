"""`unbraid study` as a user meets it."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from tests.studies.study_examples import SMALL, written
from unbraid.studies import execution as session
from unbraid.studies import store
from unbraid.studies.executors import EXECUTORS


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    local = EXECUTORS["local"]

    def alone(tasks, datasets, *, report=None, processes=0):  # noqa: ARG001
        return local(tasks, datasets, report=report, processes=0)

    monkeypatch.setattr("unbraid.studies.execution.EXECUTORS", {**EXECUTORS, "local": alone})


@pytest.fixture
def run(unbraid_cli, tmp_path: Path):
    def run(text: str, *options: str) -> tuple[int, str, str]:
        return unbraid_cli("study", "run", str(written(tmp_path, text)), "--out", str(tmp_path / "out"), *options)

    return run


def test_run_status_and_export(run, unbraid_cli, tmp_path: Path) -> None:
    code, printed, _ = run(SMALL)
    out = tmp_path / "out"
    assert code == 0
    assert f"6 finished: {out}" in printed
    code, printed, _ = unbraid_cli("study", "status", str(out))
    assert code == 0
    rows = [line.split() for line in printed.splitlines()]
    assert ["beta_vae", "beta=4", "2"] in [row[:3] for row in rows]
    assert ["pca", "2"] in [row[:2] for row in rows]
    assert ["all", "6", "0"] in [row[:3] for row in rows]
    code, printed, _ = unbraid_cli("study", "status", str(out), "--json", "-")
    assert [run["state"] for run in json.loads(printed)] == ["finished"] * 6
    for name in ("r.csv", "r.parquet"):
        assert unbraid_cli("export", str(out), "--out", str(tmp_path / name))[0] == 0
    kept = pd.read_parquet(out / "results.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "r.parquet"), kept)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "r.csv")[["run", "mig.score"]], kept[["run", "mig.score"]])
    merged = tmp_path / "all.csv"
    code, printed, _ = unbraid_cli("study", "merge", str(out), "--out", str(merged))
    assert (code, printed) == (0, f"wrote {merged}: 6 runs of 1 table\n")
    code, _, error = unbraid_cli("study", "merge", str(tmp_path / "r.csv"), str(out), "--out", str(merged))
    assert (code, error.count("\n")) == (2, 1)
    assert unbraid_cli("study", "merge", str(merged), str(merged), "--out", str(merged))[2].endswith("given twice\n")
    compared = [unbraid_cli("compare", str(each), "--json", "-") for each in (merged, out)]
    assert compared[0] == compared[1]
    assert compared[0][0] == 0
    code, _, error = unbraid_cli("export", str(out), "--out", str(tmp_path / "r.xlsx"))
    assert code == 2
    assert "the name must end in .csv or .parquet" in error


@pytest.mark.lengthy
def test_runs_that_failed_cost_their_rows_alone(run, unbraid_cli, tmp_path: Path) -> None:
    run(SMALL.replace("\nseeds", '\n  - {name: vae, network: "tests.studies.study_examples:refusing"}\nseeds'))
    out, failed = str(tmp_path / "out"), {path.stem for path in (tmp_path / "out" / "failed").iterdir()}
    for command in (
        ("report", out), ("figure", "boxes", out, "--out", str(tmp_path / "boxes.svg")),
        ("compare", out, "--json", "-"), ("rank", out, "--similarity", "spearman", "--json", "-"),
    ):  # fmt: skip
        code, printed, error = unbraid_cli(*command)
        lines = [line for line in error.splitlines() if line.startswith(f"unbraid: {out}")]
        assert (code, len(lines)) == (3, len(failed)), (command, error)
        assert {Path(line.split(": ")[1]).name for line in lines} == failed
        assert all("RuntimeError: the network will not" in line for line in lines)
        if "--json" in command:
            rows = json.loads(printed)["failed"]
            assert {Path(row["path"]).name for row in rows} == failed
            assert all(row["reason"].startswith("RuntimeError: the network will not") for row in rows)
    assert (tmp_path / "boxes.svg").is_file()


def test_codes_that_cannot_be_read_cost_their_run_alone(run, unbraid_cli, tmp_path: Path) -> None:
    run(SMALL.replace("beta: [1, 4]", "beta: 1"))
    damaged = next((tmp_path / "out" / "runs").glob("*/codes.safetensors"))
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    code, printed, error = unbraid_cli("rank", str(tmp_path / "out"), "--similarity", "spearman", "--json", "-")
    (failed,) = json.loads(printed)["failed"]
    assert (code, len(json.loads(printed)["runs"])) == (3, 3)
    assert failed["path"] == str(damaged.parent)
    assert f"unbraid: {damaged} is damaged" in error


def test_a_metric_that_fails_is_counted_with_its_reason(run, unbraid_cli, tmp_path: Path, monkeypatch) -> None:
    name = "tests.studies.study_examples:broken"
    line = f"metric {name} failed for 6 of 6 runs: ZeroDivisionError: nothing to divide by"
    out = tmp_path / "out"
    code, printed, _ = run(SMALL.replace("dci_lasso]", f"'{name}']"))
    assert code == 0
    hint = f"unbraid study status {out} tells why each failed; --retry failed tries these again"
    assert {f"6 finished: {out}", line, hint} <= set(printed.splitlines())
    assert line in unbraid_cli("study", "status", str(out))[1].splitlines()
    listed = json.loads(unbraid_cli("study", "status", str(out), "--json", "-")[1])
    assert {each["failed_metrics"][name] for each in listed} == {"ZeroDivisionError: nothing to divide by"}
    monkeypatch.setattr("tests.studies.study_examples.broken", lambda *_: 0.5)
    code, printed, _ = run(SMALL.replace("dci_lasso]", f"'{name}']"), "--retry", "failed")
    assert f"6 finished: {out}" in printed
    assert "failed" not in printed


def test_scoring_a_run_by_hand_leaves_the_table_of_its_study_alone(run, unbraid_cli, tmp_path: Path) -> None:
    gap = "zero_shot: {held_out: 'y > 5 and x > 5', n_rows: 64}"
    text = SMALL.replace("dci_lasso", "sap, zero_shot").replace("[1, 4]", "1").replace("seeds: 2", f"seeds: 1\n{gap}")
    assert run(text)[0] == 0
    out = tmp_path / "out"
    unbraid_cli("export", str(out), "--out", str(tmp_path / "before.csv"))
    frame = pd.read_csv(tmp_path / "before.csv")
    folder = out / "runs" / frame["run"][0]
    kept = (folder / "scores.json").read_bytes()
    for options in (
        ("--factors", "y", "--seed", "9", "--metrics", "mig,sap"),
        ("--metrics", "mig"),
        ("--metrics", "zero_shot", "--held-out", "y > 3"),
        ("--seed", "3", "--metrics", "sap,nk", "--json", str(tmp_path / "mine.json")),
    ):
        code, _, error = unbraid_cli("score", str(folder), *options)
        assert code == 0
        assert f"left {folder / 'scores.json'} as it is" in error
        assert (folder / "scores.json").read_bytes() == kept
    assert json.loads((tmp_path / "mine.json").read_text())["seed"] == 3
    code, _, error = unbraid_cli("score", str(folder), "--metrics", "mig,irs", "--factors", "y,x")
    assert f"wrote irs to {folder / 'scores.json'}" in error
    unbraid_cli("export", str(out), "--out", str(tmp_path / "after.csv"))
    names = [name for name in frame.columns if name != "computed_with"]  # it says of irs as well
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "after.csv")[names], frame[names], check_exact=True)


@pytest.mark.lengthy
def test_a_dry_run_says_what_it_takes_and_writes_nothing(run, tmp_path: Path) -> None:
    code, printed, _ = run(SMALL, "--dry-run")
    assert code == 0
    assert not (tmp_path / "out").exists()
    assert "6 of 6 runs to do, 36 steps" in printed
    assert "assumed: " in printed
    code, printed, _ = run(SMALL, "--dry-run", "--shard", "1/4")
    assert "2 of 2 runs to do, 12 steps" in printed
    code, printed, _ = run(SMALL, "--dry-run", "--shard", "7/7")
    assert (code, "0 of 0 runs to do, 0 steps" in printed) == (0, True)
    code, printed, error = run(SMALL, "--dry-run", "--shard", "zzz")
    assert (code, printed, error) == (2, "", "unbraid: shard 'zzz': write i/n with i from 1 to n, such as 2/8\n")
    assert run(SMALL)[0] == 0
    at_work = [path / ".scores.json.0123.part" for path in (tmp_path / "out" / "runs").iterdir()]
    for path in at_work:  # of a `study run` that is writing just now
        path.touch()
    code, printed, _ = run(SMALL.replace("seeds: 2", "seeds: 3"), "--dry-run")
    assert "3 of 9 runs to do, 18 steps" in printed
    assert all(path.exists() for path in at_work)
    assert run(SMALL)[0] == 0
    assert not any(path.exists() for path in at_work)


def test_a_dry_run_tells_what_is_only_scored_and_tries_again_what_failed(run, tmp_path: Path) -> None:
    one = SMALL.replace("seeds: 2", "seeds: 1")
    assert run(one)[0] == 0
    more = one.replace("metrics: [", "metrics: [sap, ")
    code, printed, _ = run(more, "--dry-run")
    assert (code, "3 of 3 runs to do, 0 steps" in printed, "disk      about 0 MB" in printed) == (0, True, True)
    failed = sorted((tmp_path / "out" / "runs").iterdir())[0]
    shutil.rmtree(failed)
    store.write_failure(tmp_path / "out", store.Failure(failed.name, "pca", "", 0, "memory", 1))
    assert "0 of 3 runs to do, 0 steps" in run(one, "--dry-run")[1]
    assert "1 of 3 runs to do, 6 steps" in run(one, "--dry-run", "--retry", "failed")[1]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seeds: 2", "seedz: 2", "study.yaml: seedz: unknown; did you mean 'seeds'?"),
        ("[mig, dci_lasso]", "[mig, dci_lass]", "unknown metric 'dci_lass'; did you mean 'dci_lasso'?"),
        ("network: dense", "network: 'tests.studies.study_examples:enormous'", "6 runs need about"),
        ("batch_size: 8", "batch_size: 100000000000", "beta_vae with latents=3, network=dense, beta=1 needs at least"),
        ("device: cpu", "device: tpu", "device 'tpu': one of auto, cpu, cuda, mps"),
        ("seeds: 2", "seeds: 2\nzero_shot: {held_out: 'z > 3'}", "names no factor 'z'"),
    ],
)
def test_bad_input_is_one_line_and_2_and_nothing_is_written(run, tmp_path: Path, old, new, said) -> None:
    text = SMALL.replace(old, new)
    assert text != SMALL
    code, printed, error = run(text)
    assert (code, printed) == (2, "")
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_of_another_version_or_of_something_else_is_left_alone(run, unbraid_cli, tmp_path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")
    code, _, error = run(SMALL)
    assert (code, error.count("\n")) == (2, 1)
    assert "holds something else than a study" in error
    assert [each.name for each in out.iterdir()] == ["thesis.tex"]
    (out / "thesis.tex").unlink()
    store.write_json(out / store.ABOUT, {"format": 99})
    for arguments in (["run", str(tmp_path / "study.yaml"), "--out"], ["status"]):
        (out / store.YAML).write_text(SMALL)
        code, _, error = unbraid_cli("study", *arguments, str(out))
        assert (code, error.count("\n")) == (2, 1)
        assert "a study of format 99; this version of unbraid reads 1" in error
    assert sorted(each.name for each in out.iterdir()) == ["study.json", "study.yaml"]


def test_interrupted_it_says_so_in_one_line_with_130(run, monkeypatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("unbraid.studies.execution.write_results", stop)
    assert run(SMALL) == (130, "", "unbraid: stopped; the same command continues\n")


def test_the_executor_of_the_file_is_taken_unless_the_command_names_another(run, monkeypatch) -> None:
    asked: list[tuple[object, ...]] = []

    def cluster(tasks, datasets, *, report=None, address="auto", gpus_per_run=None):
        asked.append((address, gpus_per_run))
        return EXECUTORS["local"](tasks, datasets, report=report, processes=0)

    monkeypatch.setitem(session.EXECUTORS, "ray", cluster)
    there = SMALL + "executor: {name: ray, address: '10.0.0.5:6379', gpus_per_run: 0.5}\n"
    assert run(there)[0] == 0
    assert run(there, "--address", "auto")[0] == 0
    assert asked == [("10.0.0.5:6379", 0.5), ("auto", 0.5)]
    assert run(there, "--executor", "local")[0] == 0
    assert len(asked) == 2
    for more in ((), ("--dry-run",)):
        code, _, error = run(there, "--processes", "2", *more)
        assert (code, error.count("\n")) == (2, 1)
        assert "executor 'ray' has no option 'processes'; it has address, gpus_per_run" in error
    more = SMALL.replace("seeds: 2", "seeds: 5\nexecutor: {name: local, processes: 1}")
    code, printed, _ = run(more, "--dry-run")
    assert code == 0
    assert "with 1 at a time" in printed
