"""Draw the contact sheets of docs/datasets.md; a minute or two on one core.

python evidence/make_gallery.py [NAME ...]
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

from unbraid import datasets
from unbraid.datasets import DATASETS
from unbraid.show import plot_factors

FOLDER = Path(__file__).parents[1] / "docs" / "images" / "datasets"
# The first objects of a large set are those of a small one, and enough to look at.
FEWER: dict[str, dict[str, Any]] = {name: {"n_objects": 20} for name in ("airplanes", "turntable", "cars_rendered")}
LARGEST = 150_000  # bytes


def main(names: list[str]) -> None:
    """Draw these sheets, or those of all sets that need no file."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or [name for name, row in DATASETS.items() if row.rendered and not row.files]:
        with TemporaryDirectory() as root:
            dataset = datasets.load(name, root, **FEWER.get(name, {}))
            path = FOLDER / f"{name}.png"
            for columns in (10, 8, 6):
                plot_factors(dataset, columns=columns).savefig(path)
                Image.open(path).convert("RGB").save(path, optimize=True)
                size = path.stat().st_size
                if size <= LARGEST:
                    break
        print(f"{path.name}: {size:,} bytes")
        if size > LARGEST:
            sys.exit(f"{path.name} is larger than {LARGEST:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
