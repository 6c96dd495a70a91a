"""A command takes neither modules nor settings of the current folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

MINE = "cache_dir: {0}/theirs\ndisable_jit: 1\nchrome_trace: {0}/trace\n"
COMPILED = "import numba; numba.njit(lambda x: x)(1); print(numba.config.DISABLE_JIT)"


def python(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("start", "disabled"),
    [("from unbraid.base.current_folder import ignore_settings; ignore_settings()", "0"), ("import unbraid", "1")],
)
def test_the_command_hides_settings_of_numba_and_the_library_does_not(
    tmp_path: Path, start: str, disabled: str
) -> None:
    (tmp_path / ".numba_config.yaml").write_text(MINE.format(tmp_path))
    done = python(tmp_path, "-c", f"{start}; {COMPILED}")
    assert done.stdout.split() == [disabled], done.stderr
    assert (tmp_path / "trace").exists() == (disabled == "1")


def test_the_module_is_run_without_the_current_folder(tmp_path: Path) -> None:
    """As far as it is the package that imports; Python itself looks there before, unless it is told -P."""
    for name in ("csv", "email", "queue", "typing", "zipfile"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w').close()")
    done = python(tmp_path, "-m", "unbraid", "--version")
    assert done.stdout.startswith("unbraid "), done.stderr
    assert not (tmp_path / "executed").exists()


def test_a_user_without_a_home_compiles_in_a_temporary_folder(tmp_path: Path) -> None:
    code = (
        "import os, unbraid.base.current_folder as here\n"
        "os.access = lambda *_: False\n"
        "here.ignore_settings()\n"
        "print(os.environ['NUMBA_CACHE_DIR'])"
    )
    done = python(tmp_path, "-c", code, NUMBA_CACHE_DIR="")
    assert "unbraid-numba-" in done.stdout, done.stderr
    assert not Path(done.stdout.strip()).exists()
