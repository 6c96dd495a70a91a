"""Studies in an object store: a server that speaks S3 over HTTP, and machines that come and go."""

import hashlib
import json
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import fsspec
import pytest
import s3fs
from safetensors import safe_open

from tests.studies.study_examples import SMALL, same_but_for_times, written
from unbraid import Study
from unbraid.cli import main
from unbraid.files import remote
from unbraid.files.remote import address, carried, local_folder, mirror_of
from unbraid.files.run_files import CHECKPOINT as FILE
from unbraid.files.sync import Mirror, discard, pull, push
from unbraid.studies.study_record import StudyProgress

QUICK = SMALL.replace("beta: [1, 4]", "beta: 4")


@pytest.fixture
def bucket(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new bucket, seen from a machine that has never heard of it."""
    assert s3
    s3fs.S3FileSystem.clear_instance_cache()  # with the credentials and the server of the test before
    monkeypatch.setenv("UNBRAID_DATA", str(tmp_path / "cache"))
    name = tmp_path.name.replace("_", "-")
    fsspec.filesystem("s3").mkdir(name)
    return f"s3://{name}"


def another_machine(folder: Path) -> None:
    shutil.rmtree(folder / "cache")


def stored(url: str) -> dict[str, str]:
    """What the store holds: a hash by name."""
    store, root = fsspec.url_to_fs(url)
    store.invalidate_cache()
    return {name.removeprefix(f"{root}/"): about["ETag"] for name, about in store.find(root, detail=True).items()}


@pytest.mark.lengthy
def test_a_study_in_a_bucket_is_the_one_in_a_folder(bucket: str, tmp_path: Path) -> None:
    yaml = written(tmp_path, QUICK)
    here, there = Study.load(yaml, out=tmp_path / "here"), Study.load(yaml, out=f"{bucket}/some/where/")
    here.run(processes=0)
    there.run(processes=0)
    assert same_but_for_times(here.results(), there.results())
    files = {path.relative_to(tmp_path / "here").as_posix() for path in (tmp_path / "here").rglob("[!.]*.*")}
    before = stored(f"{bucket}/some/where")
    assert set(before) == files
    another_machine(tmp_path)
    again = Study.load(f"{bucket}/some/where")
    assert same_but_for_times(here.results(), again.results())
    assert again.results()["seconds"].tolist() == there.results()["seconds"].tolist()
    more = QUICK.replace("seeds: 2", "seeds: 3")
    runs = Study.load(written(tmp_path, more), out=f"{bucket}/some/where").run(processes=0)
    after = stored(f"{bucket}/some/where")
    assert len({name.split("/")[1] for name in after if name.startswith("runs/")}) == len(runs) == 6
    kept = [name for name in before if name.startswith("runs/")]
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}, "finished runs are not redone"


@pytest.mark.lengthy
def test_what_was_interrupted_continues_on_another_machine(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbraid.training.loop.REPORT_SECONDS", 0.0)
    yaml = written(tmp_path, QUICK.replace("steps: 6", "steps: 60"))

    def stop(sent: StudyProgress) -> None:
        if any(step > 20 for step in sent.steps_taken.values()):
            signal.raise_signal(signal.SIGINT)

    here = Study.load(yaml, out=tmp_path / "here")
    here.run(processes=0)
    with pytest.raises(KeyboardInterrupt):
        Study.load(yaml, out=bucket).run(processes=0, progress=stop)
    another_machine(tmp_path)
    there = Study.load(yaml, out=bucket)
    (path,) = there.require_folder().glob(f"runs/*.part/{FILE}")
    with safe_open(path, "pt") as file:
        kept = json.loads(file.metadata()["progress"])["step"]
    assert kept > 20
    said: list[int] = []
    there.run(processes=0, progress=lambda sent: said.extend(sent.steps_taken.values()))
    assert said[0] == kept + 1
    assert same_but_for_times(here.results(), there.results())
    assert not [name for name in stored(bucket) if ".part/" in name]


@pytest.mark.lengthy
def test_what_is_lost_here_comes_back_from_the_store(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From two machines: weights deleted, then the whole mirror; nothing leaves the store, and nothing is retrained."""
    yaml = str(written(tmp_path, QUICK.replace("  - {name: pca, latents: 3}\n", "")))
    machines = [tmp_path / name for name in ("cache", "other")]

    def command(machine: Path, *words: str) -> str:
        monkeypatch.setenv("UNBRAID_DATA", str(machine))
        monkeypatch.setattr(sys, "argv", ["unbraid", "study", *words])
        main()
        return capsys.readouterr().out

    def run(machine: Path) -> None:
        assert "2 finished" in command(machine, "run", yaml, "--out", bucket, "--processes", "0")

    def status(machine: Path) -> None:
        said = json.loads(command(machine, "status", bucket, "--json", "-"))
        assert [each["state"] for each in said] == ["finished"] * 2

    def runs(folder: Path) -> dict[str, str]:
        files = [path for path in (folder / "studies").glob("*/runs/*/*") if path.is_file()]
        return {"/".join(path.parts[-3:]): hashlib.md5(path.read_bytes()).hexdigest() for path in files}

    run(machines[0])
    status(machines[1])
    before = stored(bucket)
    digests = {name: tag.strip('"') for name, tag in before.items() if name.startswith("runs/")}
    assert sum(name.endswith("weights.safetensors") for name in digests) == 2
    monkeypatch.setattr("unbraid.studies.executors.work.train_here", lambda *_, **__: pytest.fail("retrained"))
    for machine in machines:
        for damage in ("weights", "mirror"):
            for path in (machine / "studies").glob("*/runs/*/*.safetensors" if damage == "weights" else "*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            if damage == "mirror":
                status(machine)
            run(machine)
            for each in machines:
                status(each)
                assert runs(each) == digests, f"the mirror of {each.name}"
            after = stored(bucket)
            assert after.keys() == before.keys()
            assert {name: after[name] for name in digests} == {name: before[name] for name in digests}


@pytest.mark.lengthy
def test_a_damaged_object_is_replaced_by_the_whole_copy_of_any_machine(bucket: str, tmp_path: Path) -> None:
    """Cut to 100 bytes in the store: a machine that has the file keeps it and puts it right, others get it again."""
    runs = Study.load(written(tmp_path, QUICK), out=tmp_path / "study").run(processes=0)
    one, other = (Mirror(bucket, tmp_path / machine) for machine in ("one", "other"))
    (one.folder / "runs").mkdir(parents=True)
    shutil.copytree(runs[0].path, one.folder / "runs/a")
    push(one)
    pull(other)
    before = stored(bucket)
    assert len(before) == 6
    for name in before:
        whole, cut = (one.folder / name).read_bytes(), (one.folder / name).read_bytes()[:100]
        fsspec.filesystem("s3").pipe_file(f"{bucket}/{name}", cut)
        for _ in range(2):
            with pytest.warns(UserWarning, match=f"^{bucket}/{name} is damaged in the store; the undamaged copy here"):
                pull(other)
            assert (other.folder / name).read_bytes() == whole
        new = Mirror(bucket, tmp_path / f"without {Path(name).name}")
        pull(new)
        assert (new.folder / name).read_bytes() == cut
        push(new)
        push(other)
        assert stored(bucket) == before
        for machine in (one, other, new):
            pull(machine)
            assert (machine.folder / name).read_bytes() == whole


@pytest.mark.lengthy
def test_scores_damaged_in_the_store_and_in_all_mirrors_are_computed_again(bucket: str, tmp_path: Path) -> None:
    study = Study.load(written(tmp_path, QUICK), out=bucket)
    first, *_ = study.run(processes=0)
    table, name = study.results(), f"runs/{first.id}/scores.json"
    fsspec.filesystem("s3").pipe_file(f"{bucket}/{name}", b"{")
    another_machine(tmp_path)
    with pytest.warns(UserWarning, match="scores.json: not the scores of unbraid .* counts as missing"):
        assert [run.state for run in Study.load(bucket).runs()].count("waiting") == 1
    with pytest.warns(UserWarning, match="counts as missing"):
        Study.load(written(tmp_path, QUICK), out=bucket).run(processes=0)
    another_machine(tmp_path)
    assert same_but_for_times(Study.load(bucket).results(), table)


@pytest.mark.lengthy
def test_a_folder_on_its_way_up_is_not_taken_for_whole(bucket: str, tmp_path: Path) -> None:
    """config.json is the last file to arrive."""
    sent: list[str] = []
    one, other = Mirror(bucket, tmp_path / "one"), Mirror(bucket, tmp_path / "other")
    files = [f"runs/{run}/{name}" for run in "ac" for name in ("config.json", "status.json", "weights.safetensors")]
    for name in (*files, "runs/b.part/checkpoint.safetensors"):
        (one.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (one.folder / name).write_text(name)
    with pytest.MonkeyPatch.context() as patch:
        store = fsspec.filesystem("s3")
        put = store.put_file

        def fail_at_the_last(here: str, there: str, **options: Any) -> None:
            if there.endswith("config.json"):
                raise OSError("the network is down")
            sent.append(there)
            put(here, there, **options)

        patch.setattr(store, "put_file", fail_at_the_last)
        with pytest.raises(OSError, match=f"{bucket}: the network is down"):
            push(one)
    assert len(sent) == 5
    pull(other)
    assert [path.name for path in (other.folder / "runs").iterdir()] == ["b.part"]
    push(one)
    pull(other)
    assert (other.folder / "runs/a/weights.safetensors").read_text() == "runs/a/weights.safetensors"


def test_each_side_gets_what_the_other_changed(bucket: str, tmp_path: Path) -> None:
    one, other = Mirror(bucket, tmp_path / "one"), Mirror(bucket, tmp_path / "other")
    pull(one)
    assert not one.folder.exists(), "nothing there, nothing here"
    one.folder.mkdir()
    for name in "abc":
        (one.folder / name).write_text(name)
    push(one)
    pull(other)
    (one.folder / "a").unlink()  # not taken for removed
    (one.folder / "b").write_text("B1")
    (other.folder / "c").write_text("C1")
    (other.folder / ".lock").write_text("hidden files stay")
    push(one)
    push(other)
    pull(one)
    pull(other)
    for side in (one, other):
        found = {path.name: path.read_text() for path in side.folder.glob("[!.]*")}
        assert found == {"a": "a", "b": "B1", "c": "C1"}
    before = stored(bucket)
    push(one)
    assert stored(bucket) == before == {name: before[name] for name in "abc"}


def test_checkpoints_go_up_while_a_run_is_at_work(bucket: str, tmp_path: Path) -> None:
    mirror = Mirror(bucket, tmp_path / "scratch")
    with carried(mirror, "runs/a", "runs/a.part", every=0.05):
        (mirror.folder / "runs/a.part").mkdir(parents=True)
        (mirror.folder / "runs/a.part" / FILE).write_text("step 1")
        until = time.monotonic() + 20
        while not stored(bucket) and time.monotonic() < until:
            time.sleep(0.05)
        assert set(stored(bucket)) == {f"runs/a.part/{FILE}"}
        (mirror.folder / "runs/a.part").rename(mirror.folder / "runs/a")
        (mirror.folder / "runs/a/config.json").write_text("{}")
        discard(mirror, "runs/a.part")
    assert set(stored(bucket)) == {"runs/a/config.json"}


def test_an_open_study_is_left_alone_while_a_process_works_on_it(bucket: str, tmp_path: Path) -> None:
    folder = local_folder(bucket, new=True)
    assert mirror_of(folder) == Mirror(bucket, folder)
    assert mirror_of(tmp_path) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote, "_at_work", lambda _: True)
        patch.setattr(remote, "pull", lambda _: pytest.fail("the folder was touched"))
        assert local_folder(bucket, new=True) == folder


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("s3://bucket/prefix/", "s3://bucket/prefix"),
        (Path("s3://bucket/prefix"), "s3://bucket/prefix"),
        ("S3://bucket/Prefix", "s3://bucket/Prefix"),
        ("study/", None),
        ("sweep:1", None),
        ("C:/study", None),
        ("/data/s3:/x", None),
    ],
)
def test_addresses(path: str | Path, url: str | None) -> None:
    assert address(path) == url


def said_by(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line of a command that leaves with 2."""
    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.setattr(sys, "argv", ["unbraid", "study", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.lengthy
def test_the_commands_take_an_address(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Study.load(written(tmp_path, QUICK), out=bucket).run(processes=0)
    another_machine(tmp_path)

    def printed(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["unbraid", *arguments])
        main()
        return capsys.readouterr().out

    assert [run["state"] for run in json.loads(printed("study", "status", bucket, "--json", "-"))] == ["finished"] * 4
    printed("export", bucket, "--out", str(tmp_path / "table.csv"))
    assert len((tmp_path / "table.csv").read_text().splitlines()) == 5
    printed("rank", bucket, "--similarity", "spearman")
    assert [name for name in stored(bucket) if name.startswith("udr/")]
    printed("report", f"{bucket}")
    assert "report.html" in stored(bucket)
    assert said_by(["status", f"{bucket}/empty"], monkeypatch, capsys) == f"unbraid: {bucket}/empty: there is no study"
