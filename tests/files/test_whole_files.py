"""Names that come from outside: each stays below its folder, or is refused."""

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import started
from unbraid.files.whole_files import DiskFull, atomic_folder, atomic_write, below, on_disk, with_home, write_text


@pytest.mark.parametrize("name", ["a", "a/b.png", "a b/c", "./a/b", "a//b", "ä.png", "a..b/c...", "12:30.png", "a/"])
def test_a_name_below_a_folder(name: str, tmp_path: Path) -> None:
    assert below(tmp_path, name) == tmp_path / name
    assert below(tmp_path, name).is_relative_to(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "./", "..", "../x", "a/../../x", "a/..", "a/../b", "/etc/passwd", "//etc/passwd", ".hidden", "a/.b/c",
        "C:/x", "C:x", "c:", "a\\b", "..\\x", "\\x", "\\\\server\\share\\x", "//server/share/x", "\\\\?\\C:\\x",
        "a\0b", "\0", "a/./b", "a/.",
    ],
)  # fmt: skip
def test_what_is_no_name_below_a_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"below|hidden or leads out"):
        below(tmp_path, name)


@pytest.mark.parametrize(
    ("target", "stays"),
    [
        ("inside/x", True),
        ("inside", True),
        ("not/there", True),
        ("../outside/x", False),
        ("../outside", False),
        ("inside/../../outside", False),
        (".hidden/x", False),
        ("link", False),  # to itself
    ],
)
def test_a_link_stays_below_its_folder_or_is_refused(target: str, stays: bool, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for place in ("folder/inside", "folder/.hidden", "outside"):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / place / "x").write_text("x")
    (folder / "link").symlink_to(target)
    for name in ("link", "link/x"):
        if stays:
            assert below(folder, name) == folder / name
        else:
            with pytest.raises(ValueError, match=f"{name!r} is a link that leads out of"):
                below(folder, name)
    assert below(folder, "inside/x").read_text() == "x", "others are as they were"


def test_a_folder_may_be_reached_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x").write_text("x")
    (tmp_path / "real" / "again").symlink_to(tmp_path / "real" / "x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert below(tmp_path / "link", "again").read_text() == "x"


def test_a_checkpoint_is_put_on_the_disk_when_it_is_written_and_not_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the two it may be all that there is of a training."""
    for name in ("a", "b", "checkpoint"):
        (tmp_path / name).touch()
    put: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda file: put.append(Path(os.readlink(f"/proc/self/fd/{file}")).name))
    on_disk(tmp_path, written="checkpoint")
    assert put == ["a", "b", tmp_path.name]


def test_a_file_has_the_mode_that_the_user_gives_his_files_and_no_other_thread_sees_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.delattr(os, "umask")  # it is one for all threads: even to read it is to change it
            with atomic_write(tmp_path / "a") as temporary:
                temporary.write_text("a")
        assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


def test_a_file_that_cannot_be_made_is_named_as_it_was_asked_for(tmp_path: Path) -> None:
    """Its temporary name is the longer one, and nobody's concern."""
    path = tmp_path / f"{'a' * 250}.csv"
    with pytest.raises(OSError) as caught, atomic_write(path):
        pass
    assert caught.value.filename == str(path)
    assert not [*tmp_path.iterdir()]


WRITE = """
import os, signal, sys
from pathlib import Path
from unbraid.files.whole_files import atomic_folder
with atomic_folder(Path(sys.argv[1])) as temporary:
    (temporary / "a").write_text("a")
    print("ready", flush=True)
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL, and no folder is held there")
def test_what_a_killed_process_left_of_a_folder_is_removed_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    path = tmp_path / "out"
    for kept in (".out.part", ".out.backup.part", ".other.01234567.part"):
        (tmp_path / kept).mkdir()
        (tmp_path / kept / "mine").touch()
    others = set(tmp_path.iterdir())
    (tmp_path / ".out.01234567.part").mkdir()  # of somebody who is about to hold it
    with started("-c", WRITE, str(path), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        (running,) = {*tmp_path.iterdir()} - others - {tmp_path / ".out.01234567.part"}
        with atomic_folder(path) as temporary:
            (temporary / "b").write_text("b")
            assert (running / "a").read_text() == "a"
        process.communicate("go\n", timeout=60)
    assert (path / "b").read_text() == "b"
    assert {*tmp_path.iterdir()} == {*others, path, running, tmp_path / ".out.01234567.part"}
    (path / "b").unlink()  # an empty folder may be written anew
    os.utime(tmp_path / ".out.01234567.part", (0, 0))
    with atomic_folder(path) as temporary:
        (temporary / "c").write_text("c")
    assert {*tmp_path.iterdir()} == {*others, path}


def test_a_folder_for_which_there_is_no_room_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # of no path, as where Pillow writes

    def fill() -> None:
        with atomic_folder(tmp_path / "out") as temporary:
            (temporary / "a").touch()
            raise full

    with pytest.raises(DiskFull, match=re.escape(f"{tmp_path / 'out'}: the disk is full")):
        fill()
    path = tmp_path / ("a" * 250)
    with pytest.raises(OSError) as caught, atomic_folder(path):
        pass
    assert caught.value.filename == str(path)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (errno.ENOSPC, "no space left on device; it takes 5 bytes"),
        (errno.EFBIG, "file too large; it takes 5 bytes"),
        (errno.EIO, None),
    ],
)
def test_a_write_that_fails_names_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, line: str | None
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))  # of no path, as writes are

    monkeypatch.setattr(Path, "write_text", fail)
    path = tmp_path / "a.csv"
    with pytest.raises(OSError) as caught:
        write_text(path, "words")
    if line is None:
        assert (caught.value.errno, caught.value.filename) == (number, str(path))
    else:
        assert str(caught.value) == f"{path}: {line}"
    assert not [*tmp_path.iterdir()]


def test_a_home_is_found_and_the_home_of_nobody_stays_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))  # of Windows
    assert with_home("~/images") == tmp_path / "images"
    assert with_home("~no such user/images") == Path("~no such user/images")
