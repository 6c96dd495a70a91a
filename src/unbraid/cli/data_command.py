"""`unbraid data`: list, render, download and show datasets."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbraid.base.progress_bar import progress_bar
from unbraid.cli._commands import Commands
from unbraid.cli._options import Files, check_output, grouped, yaml_options
from unbraid.cli._progress import megabytes_progress
from unbraid.cli.show_command import say, show
from unbraid.files.table_formats import Table

if TYPE_CHECKING:
    from unbraid.datasets import FactorDataset

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
@grouped
def list_datasets(to: Files) -> None:
    """List every dataset with its images, factors and state.

    Examples:

      unbraid data list

      unbraid data list --json datasets.json
    """
    from unbraid.datasets import DATASETS, cache_root
    from unbraid.datasets.dataset_description import describe
    from unbraid.datasets.dataset_text import HEADS, dataset_tables

    root, tables = cache_root(), dataset_tables(cache_root())
    keys = (
        "title", "rendered", "n_images", "image_shape", "grid", "factors", "source", "licence", "package", "state",
    )  # fmt: skip
    names = [*DATASETS, *DATASETS.installed()] if to.json else []
    content = {name: {key: describe(name, root)[key] for key in keys} for name in names}
    whole = Table(HEADS, [row for table in tables for row in table.rows], "lrll")
    lines = [*tables, "unbraid data info NAME shows the details of one."]
    show(lines, to, content=content, rows=whole, paper=whole)


@data_app.command("info")
@grouped
def info(name: Name, *, to: Files) -> None:
    """Show details of one dataset: factors, options, files, notes.

    Examples:

      unbraid data info dsprites

      unbraid data info my-images/ --json -
    """
    from unbraid.datasets import DATASETS, StoredImages, cache_root, find, load
    from unbraid.datasets.dataset_description import describe, describe_content
    from unbraid.datasets.dataset_text import factor_table, options_and_notes, summary_of
    from unbraid.datasets.own_images import is_path

    if is_path(name, DATASETS):
        dataset = load(name)
        description = dict(dataset.description) if isinstance(dataset, StoredImages) else {}
        content = describe_content(dataset.space, len(dataset), dataset.image_shape)
        described = {"name": name, "rendered": bool(description.get("rendered")), **content, "about": description}
    else:
        find(name)
        described = describe(name, cache_root())
    factors = factor_table(described)
    parts = [*summary_of(described), *([factors] if factors.rows else []), *options_and_notes(described)]
    show(parts, to, content=described, rows=factors, paper=factors)


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
    factors.csv with one row of levels per image. Kinds and values of the factors are in meta.json, or with --png in
    factors.json. Every command that takes a dataset opens this folder by its path.

    Examples:

      unbraid data render airplanes

      unbraid data render sprites --out sprites/ --limit 1000 --png

      unbraid data render chairs3d --file ~/Downloads/rendered_chairs.tar --set preprocessing=resize
    """
    from unbraid.datasets import StoredImages
    from unbraid.datasets.dataset_export import export

    if out is None and (limit is not None or png):
        raise ValueError("--limit and --png need --out: a dataset that is stored for later use is always complete")
    if out is not None and out.exists():
        raise ValueError(f"--out {out} exists already; name another folder, or delete it first")
    options = _options(name, sets, file, no_verify)
    if out is None and "cache" in _known(name):
        options.setdefault("cache", True)
    dataset = _opened(name, options)
    if out is not None:
        with progress_bar("writing") as report:
            n_images = export(
                dataset, out, limit=limit, pictures=png, description=_description(name, dataset), progress=report
            )
        say(f"wrote {n_images:,} images to {out}")
    elif isinstance(dataset, StoredImages):
        say(f"{name}: {len(dataset):,} images at {dataset.folder}")
    else:
        say(f"{name}: {len(dataset):,} images, drawn on demand; nothing is stored")


@data_app.command("get")
def get(
    name: Annotated[str, typer.Argument(help="A dataset of `unbraid data list`.")],
    file: Annotated[str | None, typer.Option(help="One of its files (see info); default the first.")] = None,
    no_verify: NoVerify = False,
) -> None:
    """Download the official file of a dataset.

    If it is interrupted, the same command resumes it.

    Examples:

      unbraid data get dsprites

      unbraid data get dsprites --file dsprites_ndarray_co1sh3sc6or40x32y32_64x64.hdf5
    """
    from unbraid.datasets import cache_root, find
    from unbraid.datasets.dataset_description import missing_files
    from unbraid.datasets.download import download, official_folder

    files = find(name).files
    if not files:
        raise ValueError(f"{name} is drawn by this package and needs no file: unbraid data render {name}")
    chosen = [one for one in files if file in {None, one.name}]
    if not chosen:
        raise ValueError(f"{name} has no file {file!r}; it has {', '.join(one.name for one in files)}")
    present = (official_folder() / chosen[0].name).exists()
    with megabytes_progress(chosen[0].name) as report:
        path = download(chosen[0], official_folder(), verify=not no_verify, progress=report)
    option = chosen[0].option
    missing = [one for one in missing_files(name, cache_root()) if one != chosen[0] and not option]
    also = f"{name} needs {missing[0].name} as well, see unbraid data info {name}" if missing else ""
    say(str(path))
    if present:
        say("it was there already; delete it to get it again")
    say(f"next: {also or f'unbraid data render {name}' + (f' --set {option}' if option else '')}")


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

    In each row, one factor goes through its levels while the others stay fixed.

    Examples:

      unbraid data show sprites --out sprites.png

      unbraid data show my-images/ --out sheet.png --columns 6
    """
    check_output("--out", out, ".png")
    from unbraid.files.whole_files import atomic_write
    from unbraid.show import plot_factors

    dataset = _opened(name, _options(name, sets, None, False))
    sheet = plot_factors(dataset, columns=columns, scale=scale, title=Path(name).name)
    with atomic_write(out) as temporary:
        sheet.savefig(temporary, format="png")
    say(f"wrote {out}")


def _opened(name: str, options: dict[str, Any]) -> "FactorDataset":
    from unbraid.datasets import ChecksumWarning, load

    with progress_bar("preparing") as report, warnings.catch_warnings():
        warnings.simplefilter("always", ChecksumWarning)
        return load(name, progress=report, **options)


def _description(name: str, dataset: "FactorDataset") -> dict[str, Any]:
    from unbraid.datasets import DATASETS, StoredImages

    description = dict(dataset.description) if isinstance(dataset, StoredImages) else {}
    # The folder may be handed on, so that no place of this machine is named.
    source = name if name in DATASETS else Path(name).resolve().name
    return {"source": source, "rendered": name in DATASETS and DATASETS[name].rendered} | description


def _known(name: str) -> dict[str, Any]:
    from unbraid.datasets import DATASETS
    from unbraid.datasets.dataset_description import options_of

    return options_of(DATASETS[name].open) if name in DATASETS else {}


def _options(name: str, sets: list[str] | None, file: Path | None, no_verify: bool) -> dict[str, Any]:
    options = yaml_options("--set", sets)
    if file is not None:
        options["file"] = file
    if no_verify:
        options["verify"] = False
    known = _known(name)
    for flag, option in (("--file", "file"), ("--no-verify", "verify")):
        if known and option in options and option not in known:
            raise ValueError(f"{flag}: {name} is drawn by this package and reads no file")
    return options
