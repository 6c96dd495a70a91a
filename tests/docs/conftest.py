"""The whole site, built once for all tests."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "evidence"))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site; a warning of Sphinx is an error."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # of all workers: whoever comes first builds
    with (folder / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "site").is_dir():
            command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
            command += ["--doctree-dir", str(folder / "doctrees"), str(ROOT / "docs"), str(folder / "site.part")]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            (folder / "site.part").rename(folder / "site")
    return folder / "site"
