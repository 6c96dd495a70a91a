"""The whole site, built once for all tests."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "docs"))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from site_builder.build import build

    folder = tmp_path_factory.mktemp("docs") / "site"
    build(folder)
    return folder
