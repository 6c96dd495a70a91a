"""A mirror and its store: nothing leaves the store unless it was discarded, and what is absent here comes back."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tests.processes import holder_elsewhere
from tests.studies.study_examples import SMALL, written
from unbraid import Representation, Study
from unbraid.cli import main
from unbraid.files import manifest, remote
from unbraid.files.manifest import RECORD, all_sent, begin_changes, may_have_changed
from unbraid.files.remote import LOCK, carried, discard, local_folder, publish
from unbraid.files.sync import FIXED, Mirror, pull, push
from unbraid.files.sync import discard as discard_in
from unbraid.ranking.ranking import NothingToRank
from unbraid.studies import store
from unbraid.studies.study_record import StudyProgress

URL = "memory://study"
TWO_RUNS = (
    SMALL.replace("beta: [1, 4]", "beta: 4").replace("  - {name: pca, latents: 3}\n", "").replace("dci_lasso", "sap")
)
RUN = ("config.json", "status.json", "weights.safetensors", "codes.safetensors", "curves.parquet", "scores.json")


@pytest.fixture(autouse=True)
def _empty() -> None:
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


def stored() -> dict[str, bytes]:
    """What the store holds, by name."""
    return {name.removeprefix("/study/"): file.getvalue() for name, file in MemoryFileSystem.store.items()}


def put(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def files_of(folder: Path) -> set[str]:
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in found if RECORD not in path.parts}


def later(path: Path, text: str) -> None:
    """Write, as seen a second after what was written last."""
    before = path.stat().st_mtime_ns
    path.write_text(text)
    os.utime(path, ns=(before + 10**9, before + 10**9))


def down(*_: object, **__: object) -> None:
    raise ConnectionError("the network is down")


def machines(folder: Path) -> tuple[Mirror, Mirror]:
    return Mirror(URL, folder / "one"), Mirror(URL, folder / "other")


def test_what_is_absent_here_is_brought_and_never_removed_there(tmp_path: Path) -> None:
    one, other = machines(tmp_path)
    put(one.folder, {f"runs/a/{name}": name for name in RUN} | {"study.yaml": "y", "failed/b.json": "{}"})
    push(one)
    pull(other)
    before = stored()
    for name in ("runs/a/weights.safetensors", "failed/b.json", "study.yaml"):
        (one.folder / name).unlink()
    push(one)
    assert stored() == before
    pull(other)
    assert (other.folder / "runs/a/weights.safetensors").exists()
    pull(one)
    shutil.rmtree(one.folder / "runs")
    push(one)
    pull(one)
    shutil.rmtree(one.folder)
    pull(one)
    assert stored() == before == {name: (one.folder / name).read_bytes() for name in before}


def test_what_is_gone_from_the_store_stays_here_and_goes_up_again(tmp_path: Path) -> None:
    """So that a store from which somebody took the weights gets them back from any machine that has them."""
    one, other = machines(tmp_path)
    put(one.folder, {f"runs/{run}/{name}": run + name for run in "ab" for name in RUN} | {"results.parquet": "r"})
    push(one)
    pull(other)
    before = stored()
    for name in ("runs/a/weights.safetensors", "runs/b/codes.safetensors", "results.parquet"):
        MemoryFileSystem.store.pop(f"/study/{name}")
    later(other.folder / "runs/b/codes.safetensors", "cut")  # and here it is damaged
    pull(other)
    push(other)
    assert stored() == {name: content for name, content in before.items() if name != "runs/b/codes.safetensors"}
    pull(one)
    push(one)
    assert stored() == before
    pull(other)
    assert (other.folder / "runs/b/codes.safetensors").read_bytes() == before["runs/b/codes.safetensors"]


def test_only_what_is_discarded_leaves_the_store(tmp_path: Path) -> None:
    one, other = machines(tmp_path)
    part = {"runs/a.part/checkpoint.safetensors": "1", "runs/a.part/deep/x": "2", "runs/a.partly/config.json": "{}"}
    put(one.folder, part | {"failed/a.json": "1", "failed/b.json": "2", "failed/a.json.txt": "3"})
    push(one)
    pull(other)
    discard_in(one, "runs/a.part", "failed/a.json", "failed/b.json", "failed/none.json")
    assert not (one.folder / "runs/a.part").exists()
    put(one.folder, {"failed/b.json": "it failed again"})
    pull(one)
    assert not (one.folder / "runs/a.part").exists(), "what was discarded does not come back"
    push(one)
    left = {"runs/a.partly/config.json", "failed/b.json", "failed/a.json.txt"}
    assert set(stored()) == left
    pull(other)
    assert files_of(other.folder) == left
    assert (other.folder / "failed/b.json").read_text() == "it failed again"


@pytest.mark.parametrize(
    "name", ["runs/a", "runs/a/weights.safetensors", "runs", "added/m", "failed", "study.yaml", "runs/../x", "../x", ""]
)
def test_what_is_never_discarded(name: str, tmp_path: Path) -> None:
    one, _ = machines(tmp_path)
    put(one.folder, {f"runs/a/{each}": each for each in RUN} | {"study.yaml": "y", "failed/a": "1", "added/m": "2"})
    (tmp_path / "x").write_text("outside")
    push(one)
    before = stored()
    with pytest.raises(ValueError, match=r"is never removed|leads out|no path below"):
        discard_in(one, name)
    push(one)
    assert stored() == before
    assert files_of(one.folder) == set(before)
    assert (tmp_path / "x").exists()


def test_a_failed_upload_keeps_what_was_discarded_in_mind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = machines(tmp_path)
    put(one.folder, {"failed/a.json": "1"})
    push(one)
    discard_in(one, "failed/a.json")
    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "rm", down)
        with pytest.raises(OSError, match="the network is down"):
            push(one)
    push(one)
    assert not stored()


def test_a_run_at_work_elsewhere_keeps_its_checkpoint(tmp_path: Path) -> None:
    """Two machines train the same run: the first to finish removes the checkpoint there, not the other's own."""
    one, other = machines(tmp_path)
    checkpoint = "runs/a.part/checkpoint.safetensors"
    put(one.folder, {checkpoint: "step 1"})
    push(one)
    pull(other)
    later(other.folder / checkpoint, "step 2")
    (one.folder / "runs/a.part").rename(one.folder / "runs/a")
    put(one.folder, {f"runs/a/{name}": f"one {name}" for name in RUN})
    discard_in(one, "runs/a.part")
    push(one)
    finished = {f"runs/a/{name}" for name in RUN}
    assert set(stored()) == finished, "nor does the checkpoint in the finished folder go up"
    pull(other, "runs/a.part")
    assert (other.folder / checkpoint).read_text() == "step 2"
    (other.folder / "runs/a.part").rename(other.folder / "runs/a")
    put(other.folder, {f"runs/a/{name}": f"other {name}" for name in RUN})
    discard_in(other, "runs/a.part")
    push(other)
    assert stored() == {
        name: f"{'other' if name.endswith('scores.json') else 'one'} {Path(name).name}".encode() for name in finished
    }
    assert {name: (other.folder / name).read_bytes() for name in finished} == stored()


def test_one_that_dies_on_its_way_up_is_completed_by_another(tmp_path: Path) -> None:
    one, other = machines(tmp_path)
    put(one.folder, {"runs/a/weights.safetensors": "one", "runs/a/status.json": "one"})  # config.json never came
    push(one)
    put(other.folder, {f"runs/a/{name}": "other" for name in RUN})
    pull(other)
    push(other)
    assert set(stored().values()) == {b"other"}


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("scores.json", False),
        ("scores.json", True),
        ("results.parquet", False),
        ("runs/b.part/checkpoint.safetensors", False),
        *((name, False) for name in sorted(FIXED)),
    ],
)
@pytest.mark.parametrize("sent", [True, False])
def test_a_change_counts_where_a_process_could_not_send_it(name: str, broken: bool, sent: bool, tmp_path: Path) -> None:
    one, _ = machines(tmp_path)
    path = name if "/" in name or name.startswith("results") else f"runs/a/{name}"
    put(one.folder, {f"runs/a/{each}": "before" for each in RUN} | {path: "before"})
    begin_changes(one.folder)
    push(one)
    if sent:
        all_sent(one.folder)
    later(one.folder / path, "[0]" if broken else '{"after": 0}')
    pull(one)
    push(one)
    counts = not sent and not broken and name not in FIXED
    assert stored()[path] == (one.folder / path).read_bytes() == (b'{"after": 0}' if counts else b"before")


def test_an_older_copy_is_no_change(tmp_path: Path) -> None:
    one, _ = machines(tmp_path)
    begin_changes(one.folder)
    put(one.folder, {"runs/a/config.json": "{}", "runs/a/scores.json": '{"new": 1}'})
    push(one)
    path = one.folder / "runs/a/scores.json"
    path.write_text('{"old": 1}')
    os.utime(path, ns=(10**18, 10**18))
    pull(one)
    assert path.read_text() == '{"new": 1}'


def test_changes_of_a_killed_process_are_sent_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNBRAID_DATA", str(tmp_path))
    folder = local_folder(URL, new=True)
    folder.mkdir(parents=True)
    put(folder, {"runs/a/config.json": "{}", "runs/a/scores.json": '{"n": 1}'})
    publish(folder)
    with monkeypatch.context() as patch:
        patch.setattr(remote, "push", down)
        with pytest.raises(ConnectionError), carried(Mirror(URL, folder), every=60):
            later(folder / "runs/a/scores.json", '{"n": 2}')
    assert stored()["runs/a/scores.json"] == b'{"n": 1}'
    publish(local_folder(URL))
    assert stored()["runs/a/scores.json"] == b'{"n": 2}'
    later(folder / "runs/a/scores.json", '{"n": 3}')
    assert (local_folder(URL) / "runs/a/scores.json").read_text() == '{"n": 2}'


def test_a_study_that_asks_about_itself_while_it_runs_stays_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNBRAID_DATA", str(tmp_path))
    found = []

    def asked(sent: StudyProgress) -> None:
        if sent.n_done == 1 and not found:
            folder = local_folder(URL)
            found.append([run.state for run in Study.load(URL).runs()])
            with pytest.raises(NothingToRank):
                Study.load(URL).rank()
            publish(folder)
            with pytest.raises(ValueError, match="this thread is at work on this study"):
                Study.load(URL).run(processes=0)
            found.append((holder_elsewhere(folder / LOCK), may_have_changed(folder)))

    Study.load(written(tmp_path, TWO_RUNS), out=URL).run(processes=0, progress=asked)
    assert found == [["finished", "waiting"], ("another process", True)]
    assert holder_elsewhere(local_folder(URL) / LOCK) == "free"


KEYS = [
    "../x", "runs/../../x", "runs/a/../../../x", "/x", "//x", "runs//x", "runs/./x", "C:/x", "C:x", "a\\b", "..\\x",
    "\\\\server\\share\\x", "runs/a\0b", "..",
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_leads_out_of_the_folder_is_refused(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = Mirror(URL, tmp_path / "a" / "b" / "mirror")
    about = {"size": 1, "created": 0}
    keys = {"/study/study.yaml": about, f"/study/{key}": about}
    monkeypatch.setattr(MemoryFileSystem, "find", lambda *_, **__: keys)
    monkeypatch.setattr(MemoryFileSystem, "get", lambda *_: pytest.fail("something was fetched"))
    with pytest.raises(OSError, match=f"^{URL}: "):
        pull(mirror)
    assert not list(tmp_path.iterdir())


def test_marks_of_folders_and_hidden_keys_are_passed_over(tmp_path: Path) -> None:
    one, other = machines(tmp_path)
    put(one.folder, {"study.yaml": "y"})
    push(one)
    for key in ("", "runs/", ".DS_Store", f"{RECORD}/files.json", "runs/.a.part/x"):
        MemoryFileSystem.store[f"/study/{key}"] = next(iter(MemoryFileSystem.store.values()))
    pull(other)
    assert [path.name for path in other.folder.glob("[!.]*")] == ["study.yaml"]


def test_an_object_is_no_study(tmp_path: Path) -> None:
    with MemoryFileSystem().open("/study", "w") as file:
        file.write("an object")
    with pytest.raises(OSError, match="'/study' is no"):
        pull(Mirror(URL, tmp_path / "mirror"))


def test_links_lead_neither_in_nor_out(tmp_path: Path) -> None:
    one, other = machines(tmp_path)
    put(one.folder, {"runs/a/config.json": "{}"})
    push(one)
    (tmp_path / "outside").mkdir()
    other.folder.mkdir()
    (other.folder / "runs").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="is a link that leads out of"):
        pull(other)
    assert not list((tmp_path / "outside").iterdir())
    (tmp_path / "secret").write_text("secret")
    (one.folder / "link").symlink_to(tmp_path / "secret")
    push(one)
    assert set(stored()) == {"runs/a/config.json"}


@pytest.mark.parametrize("entry", ["../../victim", "{folder}/victim"])
def test_a_record_that_names_files_elsewhere_is_none(entry: str, tmp_path: Path) -> None:
    one, _ = machines(tmp_path)
    put(one.folder, {"failed/a.json": "1"})
    push(one)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    about = ["1 0", victim.stat().st_size, victim.stat().st_mtime_ns]
    record = one.folder / RECORD / "failed" / "files.json"
    record.write_text(json.dumps({entry.format(folder=tmp_path): about}))
    pull(one)
    assert victim.exists()
    assert (one.folder / "failed/a.json").exists()


@dataclass(frozen=True)
class Finished:
    """A finished study of two runs, in the store and in a mirror; and how both were before it had its last scores."""

    cache: Path
    objects: dict[str, bytes]
    older: Path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    base = tmp_path_factory.mktemp("finished")
    MemoryFileSystem.store.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNBRAID_DATA", str(base / "cache"))
        Study.load(written(base, TWO_RUNS.replace(", sap", "")), out=URL).run(processes=0)
        shutil.copytree(base / "cache", base / "older")
        Study.load(written(base, TWO_RUNS), out=URL).run(processes=0)
    return Finished(base / "cache", stored(), base / "older")


def _each_file(mirror: Path, change: Callable[[Path], object]) -> None:
    for path in sorted(mirror.glob("runs/*/*.*")):
        change(path)


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[0 if path.suffix == ".json" else len(content) // 2] ^= 1
    path.write_bytes(content)


def _older(mirror: Path, finished: Finished, *, record: bool) -> None:
    (old,) = finished.older.glob("studies/*")
    for path in [path for path in old.rglob("*") if path.is_file() and (record or RECORD not in path.parts)]:
        shutil.copy2(path, mirror / path.relative_to(old))


DAMAGES: dict[str, Callable[[Path, Finished], object]] = {
    "none": lambda _, __: None,
    "weights deleted": lambda mirror, _: [path.unlink() for path in mirror.glob("runs/*/*.safetensors")],
    "all files of runs deleted": lambda mirror, _: _each_file(mirror, Path.unlink),
    "runs deleted": lambda mirror, _: shutil.rmtree(mirror / "runs"),
    "truncated": lambda mirror, _: _each_file(mirror, lambda path: path.write_bytes(path.read_bytes()[:-9])),
    "emptied": lambda mirror, _: _each_file(mirror, lambda path: path.write_bytes(b"")),
    "a bit flipped": lambda mirror, _: _each_file(mirror, _flip),
    "an old copy restored": lambda mirror, finished: _older(mirror, finished, record=True),
    "old files restored": lambda mirror, finished: _older(mirror, finished, record=False),
    "yaml and json truncated": lambda mirror, _: [(mirror / f"study.{e}").write_text("{") for e in ("json", "yaml")],
    "no record": lambda mirror, _: shutil.rmtree(mirror / RECORD),
    "a damaged record": lambda mirror, _: [path.write_text("[1") for path in mirror.glob(f"{RECORD}/**/*.json")],
    "a record without files": lambda mirror, _: [
        shutil.rmtree(path) if path.is_dir() else path.unlink() for path in mirror.iterdir() if path.name != RECORD
    ],
    "an empty mirror": lambda mirror, _: [shutil.rmtree(mirror), mirror.mkdir()],
    "no mirror": lambda mirror, _: shutil.rmtree(mirror),
}


@pytest.mark.parametrize("killed", [False, pytest.param(True, marks=pytest.mark.lengthy)])
@pytest.mark.parametrize("command", ["status", "run"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_mirror_harms_nothing_and_is_mended(
    damage: str, command: str, killed: bool, finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The objects are never fewer, those of finished runs stay the same to the byte, and the mirror gets them."""
    shutil.copytree(finished.cache, tmp_path / "cache")
    monkeypatch.setenv("UNBRAID_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr("unbraid.studies.executors.work.train_here", lambda *_, **__: pytest.fail("retrained"))
    files = MemoryFileSystem()
    for name, content in finished.objects.items():
        files.pipe_file(f"/study/{name}", content)
    (mirror,) = (tmp_path / "cache/studies").iterdir()
    remote.pull(Mirror(URL, mirror))  # objects have other tokens than those that were made
    if killed:  # the process before this one
        begin_changes(mirror)
    DAMAGES[damage](mirror, finished)
    study = Study.load(URL)
    if command == "run":
        study.run(processes=0)
    else:
        assert [run.state for run in study.runs()] == ["finished"] * 2
    after = stored()
    assert finished.objects.keys() <= after.keys()
    # What may change is not told from work that a killed process could not send; it is scored again where it has to.
    kept = {
        name for name in finished.objects if name.startswith("runs/") and not (killed and name.endswith("scores.json"))
    }
    assert {name: after[name] for name in kept} == {name: finished.objects[name] for name in kept}
    assert {name: (mirror / name).read_bytes() for name in kept} == {name: after[name] for name in kept}
    assert [run.state for run in study.runs()] == ["finished"] * 2


COMMANDS = [
    "study status {url}", "study run {yaml} --out {url} --processes 0", "study add {url} codes.npz --family mine",
    "rank {url} --similarity spearman", "export {url} --out a.csv", "study agreement {url}",
    "compare {url} --by seed", "study generalisation {url}", "report {url}", "figure boxes {url} --out a.png",
]  # fmt: skip


def _walked(finished: Finished, damage: str, command: str, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One command on a machine whose mirror is damaged, while another machine works on the same study."""
    MemoryFileSystem.store.clear()
    for name, content in finished.objects.items():
        MemoryFileSystem().pipe_file(f"/study/{name}", content)
    mirrors = []
    for name in ("other", "damaged"):  # the last one is where the command runs
        shutil.copytree(finished.cache, machine / name)
        monkeypatch.setenv("UNBRAID_DATA", str(machine / name))
        mirrors += (machine / name / "studies").iterdir()
        remote.pull(Mirror(URL, mirrors[-1]))
    runs = {name for name in finished.objects if name.startswith("runs/")}
    written(machine, TWO_RUNS)
    Representation.load(next((mirrors[0] / "runs").glob("*/codes.safetensors"))).save(machine / "codes.npz")
    DAMAGES[damage](mirrors[1], finished)
    monkeypatch.chdir(machine)
    monkeypatch.setattr(sys, "argv", ["unbraid", *command.format(url=URL, yaml="study.yaml").split()])
    with carried(Mirror(URL, mirrors[0]), every=60):
        left = 0
        try:
            main()
        except SystemExit as leaving:
            left = int(leaving.code or 0)
        none = "compare" in command or "generalisation" in command  # of two runs, without a section of the YAML
        assert left == (2 if none else 0), f"{damage}, {command}"
        during = stored()
        assert finished.objects.keys() <= during.keys(), f"{damage}, {command}: the store lost objects"
    after = stored()
    assert finished.objects.keys() <= after.keys(), f"{damage}, {command}: the store lost objects"
    for name in runs:
        content = finished.objects[name]
        assert after[name] == content, f"{damage}, {command}: {name} changed in the store"
        for mirror in mirrors:
            assert (mirror / name).read_bytes() == content, (
                f"{damage}, {command}: {name} in {mirror.parent.parent.name}"
            )
    remote.pull(Mirror(URL, mirrors[0]))
    assert files_of(mirrors[0]) >= after.keys(), f"{damage}, {command}: what is absent is not pulled"


def test_no_command_on_a_damaged_mirror_takes_a_finished_run_from_the_store(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three commands with one damage each; the whole table is `make check-slow`'s."""
    monkeypatch.setattr("unbraid.studies.executors.work.train_here", lambda *_, **__: pytest.fail("retrained"))
    for number, command in enumerate(COMMANDS[2:5]):
        _walked(finished, list(DAMAGES)[1 + number], command, tmp_path / str(number), monkeypatch)
    assert capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_the_table_of_damages_and_commands(
    command: str, finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbraid.studies.executors.work.train_here", lambda *_, **__: pytest.fail("retrained"))
    for damage in DAMAGES:
        _walked(finished, damage, command, tmp_path / damage, monkeypatch)


def test_a_forgotten_failure_leaves_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNBRAID_DATA", str(tmp_path))
    folder = local_folder(URL, new=True)
    folder.mkdir(parents=True)
    for name in ("a", "b"):
        store.write_failure(folder, store.Failure(name, "vae", "", 0, "it broke", 1))
    publish(folder)
    store.forget_failure(folder, "a")
    store.forget_failure(folder, "c")
    publish(folder)
    assert set(stored()) == {"failed/b.json"}


def test_outside_a_store_discarding_is_removing(tmp_path: Path) -> None:
    put(tmp_path, {"study/failed/a.json": "1", "study/study.yaml": "y"})
    discard(tmp_path / "study/failed/a.json")
    discard(tmp_path / "study/failed/a.json")
    assert files_of(tmp_path / "study") == {"study.yaml"}


@pytest.mark.parametrize(
    "content", ['["1", 3, 1e999]', '["1", -Infinity, 4]', '["1", NaN, 4]', "7", "[]", '["1", "x", 4]']
)
def test_a_damaged_record_of_what_was_agreed_is_as_none(tmp_path: Path, content: str) -> None:
    manifest.save(tmp_path, {"runs/a/config.json": ("1", 3, 4), "runs/b/config.json": ("1", 3, 4)}, ())
    (tmp_path / RECORD / "runs" / "a" / "files.json").write_text(f'{{"runs/a/config.json": {content}}}')
    assert manifest.load(tmp_path, ()) == {"runs/b/config.json": ("1", 3, 4)}
