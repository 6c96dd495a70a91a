"""`unbraid data`: what datasets there are, and everything that turns a file or a rule into images."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

from unbraid._utils.repr import printable
from unbraid.cli._commands import Commands
from unbraid.cli._options import Csv, Json, Latex, Markdown, pair
from unbraid.cli._progress import drawn_bar
from unbraid.cli.show import Files, check_output, say, show
from unbraid.storage.table_formats import Cell, Table

if TYPE_CHECKING:
    from unbraid.datasets import FactorDataset
    from unbraid.datasets.base import ReadingProgress

data_app = typer.Typer(
    cls=Commands,
    help="List, render, download and show datasets.",
    epilog="Start with: unbraid data show sprites --out sprites.png",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(help="A dataset of `unbraid data list`, or the path of your own.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="OPTION=VALUE", help="An option of the dataset (see info); may be repeated."),
]
NoVerify = Annotated[bool, typer.Option("--no-verify", help="Accept a file whose checksum or size differs.")]


@data_app.command("list")
def list_datasets(csv: Csv = None, latex: Latex = None, markdown: Markdown = None, json: Json = None) -> None:
    """List every dataset with its images, factors and state.

    Examples:

      unbraid data list

      unbraid data list --json datasets.json
    """
    to = Files(csv, latex, markdown, json)
    from unbraid.datasets import DATASETS, cache_root
    from unbraid.datasets.described import describe, state

    root, added = cache_root(), DATASETS.installed()
    drawn = [_row(name, row, state(name, root)) for name, row in DATASETS.items() if row.rendered]
    official = [_row(name, row, state(name, root)) for name, row in DATASETS.items() if not row.rendered]
    others = [_row(name, row, DATASETS.package_of(name)) for name, row in added.items()]
    heads = ["dataset", "images", "factors", "state"]
    shown: list[Table | str] = [
        Table(heads, drawn, "lrll", title="Drawn by this package", keys=2),
        Table(heads, official, "lrll", title="Official files", keys=2),
    ]
    if others:
        shown.append(Table([*heads[:3], "package"], others, "lrll", title="Of installed packages", keys=2))
    keys = (
        "title", "rendered", "n_images", "image_shape", "grid", "factors", "source", "licence", "package", "state",
    )  # fmt: skip
    content = {name: {key: describe(name, root)[key] for key in keys} for name in [*DATASETS, *added]} if json else None
    whole = Table(heads, [*drawn, *official, *others], "lrll")
    show([*shown, "unbraid data info NAME tells more of one."], to, content=content, rows=whole, paper=whole)


def _row(name: str, row: Any, state: str | None) -> list[Any]:
    names = row.space.names
    factors = ", ".join(names) if len(names) <= 8 else f"{len(names)} yes-or-no attributes"
    return [name, Cell(f"{len(row):,}", len(row)), factors, state]


@data_app.command("info")
def info(name: Name, csv: Csv = None, latex: Latex = None, markdown: Markdown = None, json: Json = None) -> None:
    """Show details of one dataset: factors, options, files, notes.

    Examples:

      unbraid data info dsprites

      unbraid data info my-images/ --json -
    """
    to = Files(csv, latex, markdown, json)
    from unbraid.datasets import DATASETS, StoredImages, cache_root, find, load
    from unbraid.datasets.described import describe, describe_content
    from unbraid.datasets.own import is_path

    if is_path(name, DATASETS):
        dataset = load(name)
        about = dict(dataset.about) if isinstance(dataset, StoredImages) else {}
        content = describe_content(dataset.space, len(dataset), dataset.image_shape)
        described = {"name": name, "rendered": bool(about.get("rendered")), **content, "about": about}
    else:
        find(name)
        described = describe(name, cache_root())
    factors = [[each["name"], each["kind"], each["size"], _values(each["values"])] for each in described["factors"]]
    table = Table(["factor", "kind", "levels", "values"], factors, "llrl")
    show(
        [*_described(described), *([table] if factors else []), *_options_of(described)],
        to,
        content=described,
        rows=table,
    )


@data_app.command("render")
def render(
    name: Name,
    out: Annotated[Path | None, typer.Option(help="Write images and factors to this new folder.")] = None,
    limit: Annotated[int | None, typer.Option(help="With --out: number of images, the first ones.")] = None,
    png: Annotated[bool, typer.Option("--png", help="With --out: .png files instead of images.npy.")] = False,
    file: Annotated[
        Path | None, typer.Option(help="Path of the official file, if it is not in `unbraid data path`.")
    ] = None,
    no_verify: NoVerify = False,
    sets: Sets = None,
) -> None:
    """Draw a dataset, or convert its official file.

    Images that take long to make are stored and open at once the next time. With --out, write a folder for other
    programs instead: images.npy (n, height, width, channels), or with --png images/000000.png and so on, and
    factors.csv with one row of levels per image. Every command that takes a dataset opens this folder by its path.

    Examples:

      unbraid data render airplanes

      unbraid data render sprites --out sprites/ --limit 1000 --png

      unbraid data render chairs3d --file ~/Downloads/rendered_chairs.tar --set preprocessing=resize
    """
    from unbraid.datasets import StoredImages
    from unbraid.datasets.export import export

    if out is None and (limit is not None or png):
        raise ValueError("--limit and --png go with --out: what is kept for later use is always whole")
    if out is not None and out.exists():
        raise ValueError(f"--out {out} exists already; name another folder, or delete it first")
    options = _options(name, sets, file, no_verify)
    if out is None and "cache" in _known(name):
        options.setdefault("cache", True)
    dataset = _opened(name, options)
    if out is not None:
        with _progress("writing") as report:
            n_images = export(dataset, out, limit=limit, pictures=png, about=_about(name, dataset), progress=report)
        say(f"wrote {n_images:,} images to {out}")
    elif isinstance(dataset, StoredImages):
        say(f"{name}: {len(dataset):,} images at {dataset.folder}")
    else:
        say(f"{name}: {len(dataset):,} images, drawn when they are asked for; nothing had to be stored")


@data_app.command("get")
def get(
    name: Annotated[str, typer.Argument(help="A dataset of `unbraid data list`.")],
    file: Annotated[str | None, typer.Option(help="One of its files (see info); default the first.")] = None,
    no_verify: NoVerify = False,
) -> None:
    """Download the official file of a dataset.

    Interrupted, the same command goes on where it stopped.

    Examples:

      unbraid data get dsprites

      unbraid data get dsprites --file dsprites_ndarray_co1sh3sc6or40x32y32_64x64.hdf5
    """
    from unbraid.datasets import find
    from unbraid.datasets.download import download, official_folder

    files = find(name).files
    if not files:
        raise ValueError(f"{name} is drawn by this package and needs no file: unbraid data render {name}")
    chosen = [one for one in files if file in {None, one.name}]
    if not chosen:
        raise ValueError(f"{name} has no file {file!r}; it has {', '.join(one.name for one in files)}")
    with _progress(chosen[0].name, download=True) as report:
        path = download(chosen[0], official_folder(), verify=not no_verify, progress=report)
    say(f"{path}\nnext: unbraid data render {name}")


@data_app.command("path")
def path() -> None:
    """Print the folder where datasets are stored.

    It is UNBRAID_DATA, or else the platform's cache folder. Official files are looked for there and in its folder
    "official".

    Examples:

      unbraid data path

      UNBRAID_DATA=/big/disk unbraid data path
    """
    from unbraid.datasets import cache_root

    say(str(cache_root()))


@data_app.command("show")
def contact_sheet(
    name: Name,
    out: Annotated[Path, typer.Option(help="Output .png file.")],
    columns: Annotated[int, typer.Option(help="Maximum number of images in a row.")] = 10,
    scale: Annotated[int, typer.Option(help="Pixels of the sheet per pixel of an image.")] = 2,
    sets: Sets = None,
) -> None:
    """Draw a contact sheet, one row per factor.

    In its row a factor goes through its levels while the others stay.

    Examples:

      unbraid data show sprites --out sprites.png

      unbraid data show my-images/ --out sheet.png --columns 6
    """
    check_output("--out", out, ".png")
    from unbraid.plots import plot_factors
    from unbraid.storage.files import atomic_write

    dataset = _opened(name, _options(name, sets, None, False))
    sheet = plot_factors(dataset, columns=columns, scale=scale, title=Path(name).name)
    with atomic_write(out) as temporary:
        sheet.savefig(temporary, format="png")
    say(f"wrote {out}")


def _opened(name: str, options: dict[str, Any]) -> "FactorDataset":
    from unbraid.datasets import ChecksumWarning, load

    with _progress("preparing") as report, warnings.catch_warnings():
        warnings.simplefilter("always", ChecksumWarning)
        return load(name, progress=report, **options)


def _about(name: str, dataset: "FactorDataset") -> dict[str, Any]:
    from unbraid.datasets import DATASETS, StoredImages

    about = dict(dataset.about) if isinstance(dataset, StoredImages) else {}
    return {"source": name, "rendered": name in DATASETS and DATASETS[name].rendered} | about


def _known(name: str) -> dict[str, Any]:
    from unbraid.datasets import DATASETS
    from unbraid.datasets.described import options_of

    return options_of(DATASETS[name].open) if name in DATASETS else {}


def _options(name: str, sets: list[str] | None, file: Path | None, no_verify: bool) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for text in sets or ():
        option, value = pair("--set", text, "OPTION=VALUE")
        options[option] = yaml.safe_load(value)
    if file is not None:
        options["file"] = file
    if no_verify:
        options["verify"] = False
    known = _known(name)
    for flag, option in (("--file", "file"), ("--no-verify", "verify")):
        if known and option in options and option not in known:
            raise ValueError(f"{flag}: {name} is drawn by this package and reads no file")
    return options


@contextmanager
def _progress(what: str, download: bool = False) -> "Iterator[ReadingProgress]":
    """A bar on stderr, gone when the work is done; silent where stderr is no terminal."""
    console = Console(stderr=True)
    counts = DownloadColumn() if download else TaskProgressColumn()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), counts, TimeRemainingColumn())
    with drawn_bar(console, *columns) as bar:
        task = bar.add_task(printable(what), total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total or None, visible=True)


def _described(described: dict[str, Any]) -> "Iterator[Table | str]":
    """What is known of a dataset, beside its factors."""
    yield f"{described['name']}  {described.get('title', '')}".rstrip()
    shape = " x ".join(map(str, described["image_shape"]))
    grid = "every combination of the factors once" if described["grid"] else "samples, no grid"
    grid = grid if described["factors"] else "no factors are known"
    facts = [
        ("images", f"{described['n_images']:,} of {shape} (height, width, channels); {grid}"),
        ("rendered", f"{str(described['rendered']).lower()}" + (" (drawn by this package)" * described["rendered"])),
        ("source", described.get("source")),
        ("licence", described.get("licence")),
        ("package", described.get("package")),
    ]
    facts += [(key, str(value)) for key, value in described.get("about", {}).items() if key not in {"rendered"}]
    if "state" in described:
        facts.append(("state", described["state"]))
    facts += [("stored", f"{one['folder']} ({_size(one['bytes'])})") for one in described.get("stored", ())]
    if described.get("file"):
        facts.append(("file at", described["file"]))
    for number, one in enumerate(described.get("files", ())):
        size = f", {one['bytes']:,} bytes" if one["bytes"] else ""
        get = f"unbraid data get {described['name']}" + (f" --file {one['name']}" if number else "")
        how = get if one["downloads"] else (one["how"] or "by hand")
        facts.append(
            ("file", f"{one['name']}{size}, {one['checksum'] or 'no checksum known'}\n{one['address']}\n{how}")
        )
    yield from (f"{key:<10}{value}".replace("\n", "\n" + " " * 10) for key, value in facts if value)


def _options_of(described: dict[str, Any]) -> "Iterator[Table | str]":
    """The options of a dataset, and notes."""
    known = described.get("options", {})
    rows = [[name, str(one["default"]), one["help"]] for name, one in known.items() if name not in ("file", "verify")]
    if rows:
        yield Table(["--set", "default", "what it does"], rows, "lll")
    yield from (f"- {note}" for note in described.get("notes", ()))


def _values(values: list[float | str] | None) -> str:
    if values is None:
        return ""
    texts = [value if isinstance(value, str) else f"{value:.3g}" for value in values]
    return ", ".join(texts if len(texts) <= 8 else [*texts[:3], "...", texts[-1]])


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.2f} GB" if n_bytes >= 1e8 else f"{n_bytes / 1e6:.1f} MB"
