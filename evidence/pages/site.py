"""What stands where on the site: pages made from the code, and the order of all."""

from collections.abc import Iterator, Mapping
from typing import Any

from pages import commands, datasets, families, gallery, metrics, reference, results
from pages.texts import OUTSIDE, ROOT, relinked
from unbraid.datasets import DATASETS
from unbraid.families import FAMILIES
from unbraid.metrics import MEASURES

DOCS = ROOT / "docs"
ROWS = {
    "metrics": (MEASURES, metrics.page),
    "families": (FAMILIES, families.page),
    "datasets": (DATASETS, datasets.page),
}
FOLDERS = (*ROWS, "reference")  # that hold nothing but what is made here

# What stands below each page in the menu.
TREES: Mapping[str, list[str]] = {
    "index": ["quickstart", "tutorials/index", "guides", "reference", "gallery", "reproductions/index", "Take part <extending>"],
    "tutorials/index": ["own-codes", "own-images", "which-model"],
    "guides": [
        "diagnosis", "scoring", "which-metric", "how-sure", "is-this-number-right", "audit", "fit", "training",
        "studies", "scaling-out", "generalisation", "ranking", "paper", "sharing", "libraries", "how-we-know",
    ],
    "reference": ["glossary", "metrics", "families", "datasets", "figures", "reported", "commands", "reference/index"],
    "reference/index": [f"{name.removeprefix('unbraid.')} <{name}>" for name in reference.modules()],
    "reproductions/index": [
        "rules", "behaviour", "beta-tcvae-2018", "dci-2018", "lsbd-2022", "snc-nk-2023", "udr-2020",
    ],
    "extending": list(OUTSIDE.values()),
    **{folder: [f"{folder}/{name}" for name in table] for folder, (table, _) in ROWS.items()},
}  # fmt: skip

ADDED = {
    "figures": lambda: f"\n{gallery.figures()}",
    "reference": lambda: (
        "| [Reported and measured](reported.md) | numbers of papers beside those measured |\n"
        "| [Commands](commands.md) | the help of every command |\n"
        "| [Classes and functions](reference/index.md) | every public name |"
    ),
}


def made() -> Iterator[tuple[str, str]]:
    """Place and text of every page that is made from the code."""
    for folder, (table, page) in ROWS.items():
        for name in table:
            yield f"{folder}/{name}", page(name)
    yield from reference.pages()
    yield "commands", commands.page()
    yield "gallery", gallery.gallery()
    yield "reported", results.page()
    for file, place in OUTSIDE.items():
        yield place, _relinked((ROOT / file).read_text(encoding="utf-8"), file)


def write(_app: Any) -> None:
    """Write these pages into docs/, where git ignores them; Sphinx reads again only what changed."""
    written = set()
    for place, text in made():
        path = DOCS / f"{place}.md"
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        written.add(path)
    for folder in FOLDERS:
        for path in set((DOCS / folder).glob("*.md")) - written:
            path.unlink()


def complete(_app: Any, name: str, source: list[str]) -> None:
    """Add to a text what is on the site alone: the menu below it, the figures; and lead its links to pages."""
    if name not in OUTSIDE.values():
        source[0] = _relinked(source[0], f"docs/{name}.md")
    if name in ADDED:
        source[0] = f"{source[0].rstrip()}\n{ADDED[name]()}\n"
    if name in TREES and source[0].lstrip()[:1] != "{":
        source[0] += "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(TREES[name]) + "\n```\n"


def _relinked(text: str, place: str) -> str:
    return relinked(text, place, {folder: table for folder, (table, _) in ROWS.items()})


def setup(app: Any) -> dict[str, bool]:
    """Make the pages before Sphinx looks for them."""
    app.connect("builder-inited", write)
    app.connect("source-read", complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
