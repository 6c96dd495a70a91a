"""Datasets as tables and lines to be read."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from unbraid.datasets import DATASETS
from unbraid.datasets.dataset_description import state
from unbraid.datasets.image_store import size_in_words
from unbraid.files.table_formats import Cell, Table

HEADS = ("dataset", "images", "factors", "state")


def dataset_tables(root: Path) -> list[Table]:
    """Datasets that this package draws, official ones, and those of installed packages if there are any."""
    drawn = [_row(name, row, state(name, root)) for name, row in DATASETS.items() if row.rendered]
    official = [_row(name, row, state(name, root)) for name, row in DATASETS.items() if not row.rendered]
    installed = [_row(name, row, DATASETS.package_of(name)) for name, row in DATASETS.installed().items()]
    tables = [
        Table(HEADS, drawn, "lrll", title="Drawn by this package", keys=2),
        Table(HEADS, official, "lrll", title="Official files", keys=2),
        Table((*HEADS[:3], "package"), installed, "lrll", title="Of installed packages", keys=2),
    ]
    return [table for table in tables if table.rows]


def _row(name: str, row: Any, state: str | None) -> list[Any]:
    names = row.space.names
    factors = ", ".join(names) if len(names) <= 8 else f"{len(names)} factors"
    return [name, Cell(f"{len(row):,}", len(row)), factors, state]


def summary_of(described: Mapping[str, Any]) -> Iterator[str]:
    """What is known of a dataset, beside its factors and options."""
    yield f"{described['name']}  {described.get('title', '')}".rstrip()
    grid = "every combination of the factors once" if described["grid"] else "samples, no grid"
    grid = grid if described["factors"] else "no factors are known"
    facts = [
        _content(described["n_images"], described["image_shape"], grid),
        ("rendered", f"{str(described['rendered']).lower()}" + (" (drawn by this package)" * described["rendered"])),
        ("source", described.get("source")),
        ("licence", described.get("licence")),
        ("package", described.get("package")),
    ]
    facts += [(key, str(value)) for key, value in described.get("about", {}).items() if key not in {"rendered"}]
    if "state" in described:
        facts.append(("state", described["state"]))
    facts += [("stored", f"{one['folder']} ({size_in_words(one['bytes'])})") for one in described.get("stored", ())]
    if described.get("file"):
        facts.append(("file at", described["file"]))
    for number, one in enumerate(described.get("files", ())):
        size = f", {one['bytes']:,} bytes" if one["bytes"] else ""
        get = f"unbraid data get {described['name']}" + (f" --file {one['name']}" if number else "")
        how = get if one["downloads"] else (one["how"] or "by hand")
        how += f"  (for --set {one['option']})" if one["option"] else ""
        facts.append(
            ("file", f"{one['name']}{size}, {one['checksum'] or 'no checksum known'}\n{one['address']}\n{how}")
        )
    for key, value in facts:
        if value:
            first, *more_lines = value.split("\n")
            yield f"{key:<10}{first}"
            yield from (" " * 10 + line for line in more_lines)


def _content(n_images: int, shape: Sequence[int], grid: str) -> tuple[str, str]:
    if len(shape) != 3:
        return "table", f"{n_images:,} rows of {' x '.join(map(str, shape))} numbers; {grid}"
    if 0 in shape:
        return "labels", f"{n_images:,} rows without images; {grid}"
    return "images", f"{n_images:,} of {' x '.join(map(str, shape))} (height, width, channels); {grid}"


def options_and_notes(described: Mapping[str, Any]) -> Iterator[Table | str]:
    """The options of a dataset, and notes."""
    known = described.get("options", {})
    rows = [[name, str(one["default"]), one["help"]] for name, one in known.items() if name not in ("file", "verify")]
    if rows:
        yield Table(["--set", "default", "what it does"], rows, "lll")
    yield from (f"- {note}" for note in described.get("notes", ()))


def factor_table(described: Mapping[str, Any]) -> Table:
    """A row for each factor."""
    rows = [
        [factor["name"], factor["kind"], factor["size"], _values(factor["values"])] for factor in described["factors"]
    ]
    return Table(["factor", "kind", "levels", "values"], rows, "llrl")


def _values(values: list[float | str] | None) -> str:
    if values is None:
        return ""
    texts = [value if isinstance(value, str) else f"{value:.3g}" for value in values]
    return ", ".join(texts if len(texts) <= 8 else [*texts[:3], "...", texts[-1]])
