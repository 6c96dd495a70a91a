"""numba's cache is a folder that only the user writes, and no file of the current folder configures numba."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from unbraid._utils.current_folder import is_private, numba_cache

SHOWN = "import numba; print(numba.config.CACHE_DIR, numba.config.DISABLE_JIT, numba.config.CHROME_TRACE)"
COMPILED = "numba.njit(lambda x: x)(1); print(numba.config.CACHE_DIR, numba.config.DISABLE_JIT)"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a user whose cache is empty, and who has not chosen a folder for numba."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name, **_: tmp_path / "cache" / name)
    return tmp_path


def test_the_cache_is_made_for_the_user_alone(home: Path) -> None:
    folder = Path(numba_cache())
    assert folder == home / "cache" / "unbraid" / "numba"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert numba_cache() == str(folder)


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
@pytest.mark.parametrize(("which", "mode"), [("numba", 0o770), ("numba", 0o755), ("unbraid", 0o777), (".", 0o777)])
def test_a_cache_that_others_can_write_is_not_used(home: Path, which: str, mode: int) -> None:
    folder = Path(numba_cache())
    next(each for each in (folder, *folder.parents) if each.name == (home.name if which == "." else which)).chmod(mode)
    other = Path(numba_cache())
    assert other != folder
    assert is_private(other)


@pytest.mark.skipif(os.name == "nt", reason="owners of POSIX")
@pytest.mark.usefixtures("home")
def test_a_cache_of_another_user_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(numba_cache())
    assert is_private(folder)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert not is_private(folder)


def test_a_cache_that_cannot_be_made_is_a_temporary_one(home: Path) -> None:
    (home / "cache").write_text("a file")
    assert is_private(Path(numba_cache()))


def test_a_folder_without_a_root_is_not_private(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    Path("~").mkdir(mode=0o700)
    assert not is_private(Path("~"))


@pytest.mark.lengthy
@pytest.mark.parametrize("first", ["unbraid", "numba"])
def test_numba_takes_nothing_from_the_current_folder(home: Path, first: str) -> None:
    """Neither when it is imported nor when it compiles; imported before this package it has, and no longer does."""
    (home / ".numba_config.yaml").write_text(f"cache_dir: {home}/theirs\ndisable_jit: 1\nchrome_trace: {home}/trace\n")
    code = f"import {first}, unbraid; {SHOWN}; {COMPILED}"
    done = subprocess.run([sys.executable, "-c", code], cwd=home, capture_output=True, text=True, check=True)
    own = home / "cache" / "unbraid" / "numba"
    assert done.stdout.splitlines() == [f"{own} 0 ", f"{own} 0"]
    assert not (home / "theirs").exists()
    assert first == "numba" or not (home / "trace").exists()


@pytest.mark.lengthy
def test_the_users_own_choice_stays(home: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(home / "chosen")}
    done = subprocess.run(
        [sys.executable, "-c", f"import unbraid; {SHOWN}"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"{home / 'chosen'} 0")


def test_the_module_is_run_without_the_current_folder(tmp_path: Path) -> None:
    """As far as it is the package that imports; Python itself looks there before, unless it is told -P."""
    for name in ("csv", "email", "queue", "typing", "zipfile"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w').close()")
    command = [sys.executable, "-m", "unbraid", "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("unbraid "), done.stderr
    assert not (tmp_path / "executed").exists()
