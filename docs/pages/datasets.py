"""A page for each dataset, and docs/datasets.md, from the table of datasets."""

from pages.texts import ROOT, citation, escaped, facts, table
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


def overview() -> str:
    """The text of docs/datasets.md."""
    official = {name: row for name, row in DATASETS.items() if row.files}
    drawn = {name: row for name, row in DATASETS.items() if not row.files}
    rows = (
        (f"[`{name}`](#{name})", f"{len(row):,}", factors_of(row), f"`{row.files[0].name}`, {_got(row)}", row.licence)
        for name, row in official.items()
    )
    parts = [
        INTRODUCTION.rstrip(),
        table("name | images | factors (levels) | file | licence", "lrlll", rows),
        "\n".join(f"- `{name}`: {note}" for name, row in official.items() for note in row.notes),
        "## Drawn by this package",
    ]
    for name, row in drawn.items():
        parts += [
            f"### [`{name}`](#{name})",
            f"{row.title}: {size_of(row)}; {factors_of(row)}.",
            f"![Contact sheet of {name}: one row per factor](images/datasets/{name}.png)",
        ]
    return "\n\n".join(parts) + "\n"


def page(name: str) -> str:
    """The page of one dataset."""
    row = DATASETS[name]
    known = {"Images": size_of(row), "Source": escaped(row.source), "Licence": escaped(row.licence)}
    if row.files:
        known |= {"File": ", ".join(f"`{file.name}`" for file in row.files), "Get it": _got(row, name)}
    options = [option for option in options_of(row.open) if option not in {"cache", "device"}]
    if options:
        known["Options"] = ", ".join(f"`{option}`" for option in options)
    parts = [f"# {name}", f"{{.lead}}\n{escaped(row.title)}."]
    picture = f"images/datasets/{name}.png"
    if (ROOT / "docs" / picture).is_file():
        parts.append(f"![Contact sheet of {name}: one row per factor](../{picture})")
    elif row.files:
        parts.append("No picture: these images are not ours to show.")
    space = row.space
    levels = (
        (f"`{factor}`", kind, str(size or ""))
        for factor, kind, size in zip(space.names, space.kinds, space.sizes, strict=True)
    )
    option = f', file="{row.files[0].name}"' if row.files else ""
    parts += [
        facts(known),
        "## Factors",
        table("factor | kind | levels", "llr", levels),
        "## Load it",
        f'```python\nfrom unbraid import datasets\n\nimages = datasets.load("{name}"{option})\n```',
        f"```sh\nunbraid data show {name} --out sheet.png\n```",
    ]
    if row.notes:
        parts += ["## Before you quote a number on it", "\n".join(f"- {escaped(note)}" for note in row.notes)]
    return "\n\n".join([*parts, citation(name)])


def size_of(row: Dataset) -> str:
    """How many images of which shape."""
    height, width, channels = row.image_shape
    grid = "" if isinstance(row.space, FactorSpace) else ", samples rather than a grid"
    return f"{len(row):,} images of {height} x {width} x {channels}{grid}"


def factors_of(row: Dataset) -> str:
    """The factors with their levels, in order."""
    space = row.space
    if len(space.names) > 8:
        return f"{len(space.names)} attributes"
    return ", ".join(f"{name} {size}" if size else name for name, size in zip(space.names, space.sizes, strict=True))


def _got(row: Dataset, name: str = "") -> str:
    return f"`unbraid data get{' ' * bool(name)}{name}`" if row.files[0].downloads else "by hand"
