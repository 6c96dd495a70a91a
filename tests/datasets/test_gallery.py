"""The documentation shows every drawn set."""

from pathlib import Path

import pytest
from PIL import Image

from unbraid.datasets import DATASETS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", [name for name, row in DATASETS.items() if not row.files])
def test_every_drawn_set_has_its_sheet(name: str) -> None:
    picture = f"images/datasets/{name}.png"
    assert f"({picture})" in (DOCS / "datasets.md").read_text(encoding="utf-8"), "run python evidence/generate.py"
    assert (DOCS / picture).stat().st_size < 150_000, "run python evidence/make_gallery.py"
    with Image.open(DOCS / picture) as sheet:
        assert sheet.height > 64 * len(DATASETS[name].space.names)
