"""The text of docs/datasets.md, from the table of datasets; `generate.py` writes it."""

from pathlib import Path

from unbraid.datasets import DATASETS, Dataset
from unbraid.datasets._state import options_of
from unbraid.factors import FactorSpace

INTRODUCTION = """# Datasets

Images whose factors are known. Generated from the table in `src/unbraid/datasets/_table.py` by `docs/generate.py`, and
the pictures by `docs/make_gallery.py`; do not edit by hand.

```python
from unbraid import datasets

sprites = datasets.load("sprites")  # drawn by this package: no download
images = sprites.images([0, 1, 2])  # uint8 (n, height, width, channels)
factors = sprites.space.factors([0, 1, 2])  # levels (n, n_factors), as every metric takes them
```

`datasets.load(name, shrink=2)` makes the images of any dataset half as high and wide, for models that train in a
quarter of the time. `without="shape == 1 and scale == 2"` leaves out the images that meet a condition, so that a model
never sees them; what then has one value in all images, such as `orientation` without `orientation > 0`, is no factor
any more. `unbraid train` takes both as `--data shrink=2` and `--data without="..."`.

`unbraid data list` shows what there is, `unbraid data info NAME` what it holds, and
`unbraid data show NAME --out sheet.png` draws a sheet like those below. What takes long to draw or to convert is stored
once, in the folder that `unbraid data path` prints (set `UNBRAID_DATA` to choose another), and is read through a memory
map afterwards.

A set drawn here is a substitute: quote results on it under its own name, never under that of the set it follows.

## Your own images

```python
datasets.from_folder("pictures/", "pictures/factors.csv")  # column "file" names the picture, the others are factors
datasets.from_array(images, {"shape": [...], "size": [...]})  # uint8 (n, height, width[, channels]), or an .npy file
datasets.load("my-images/")  # a folder with factors.csv and images.npy or pictures
```

Text is categorical, whole numbers are ordinal, other numbers continuous; `kinds={"angle": "cyclic"}` says otherwise.
Rows that are every combination of the levels once, in any order, become a grid.

## Official files

Point to the file you have (`datasets.load("shapes3d", file="3dshapes.h5")`, or on the command line
`unbraid data render shapes3d --file 3dshapes.h5`), or download it with `unbraid data get shapes3d`; nothing is ever
downloaded unasked. It is read once from end to end; its labels, where it has them, are compared with the grid; nothing
in it is unpickled.
"""


def datasets_page() -> str:
    """The whole page."""
    official = {name: row for name, row in DATASETS.items() if row.files}
    drawn = {name: row for name, row in DATASETS.items() if not row.files}
    table = ["| name | images | factors (levels) | file | licence |", "| --- | ---: | --- | --- | --- |"]
    for name, row in official.items():
        got = "`unbraid data get`" if row.files[0].downloads else "by hand"
        cells = f"`{name}`", f"{len(row):,}", factors_of(row), f"`{row.files[0].name}`, {got}", row.licence
        table.append(f"| {' | '.join(cells)} |")
    parts = [INTRODUCTION.rstrip(), "\n".join(table)]
    parts += ["\n".join(f"- `{name}`: {note}" for name, row in official.items() for note in row.notes)]
    parts += ["## Drawn by this package"]
    for name, row in drawn.items():
        parts.append(section(name, row))
    return "\n\n".join(parts) + "\n"


def section(name: str, row: Dataset) -> str:
    """One drawn set with its sheet."""
    height, width, channels = row.image_shape
    facts = [
        f"- {len(row):,} images of {height} x {width} x {channels}"
        + ("" if isinstance(row.space, FactorSpace) else ", samples rather than a grid"),
        f"- factors: {factors_of(row)}",
        f"- {row.source}",
    ]
    options = [option for option in options_of(row.open) if option not in {"cache", "device"}]
    if options:
        facts.append(f"- options: {', '.join(f'`{option}`' for option in options)}")
    facts += [f"- {note}" for note in row.notes]
    picture = Path("images") / "datasets" / f"{name}.png"
    return f"### `{name}`\n\n{row.title}.\n\n![Contact sheet of {name}]({picture.as_posix()})\n\n" + "\n".join(facts)


def factors_of(row: Dataset) -> str:
    """The factors with their levels, in order."""
    space = row.space
    if len(space.names) > 8:
        return f"{len(space.names)} attributes"
    return ", ".join(f"{name} {size}" if size else name for name, size in zip(space.names, space.sizes, strict=True))
