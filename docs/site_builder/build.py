"""The documentation as plain pages: no network when it is built or looked at, no server."""

import json
import posixpath
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from site_builder import reference_pages
from site_builder.markdown import Page, code, code_colours, render
from site_builder.pictures import example_picture
from unbraid.datasets import DATASETS
from unbraid.families.table import FAMILIES
from unbraid.metrics import METRICS

ROOT = Path(__file__).parent.parent.parent
DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples"
TEMPLATES = Path(__file__).parent / "templates"

# Texts that have a place of their own in the menu; every other docs/*.md is a guide.
START = ("index", "quickstart", "which-metric", "why-numbers-differ")
REPLACED = ("metrics", "datasets", "families", "figures")  # the site has pages for each
EXTEND = ("extending",)
OUTSIDE = {"CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog", "benchmarks/README.md": "benchmarks"}

Source = Callable[[], str]


def build(out: Path) -> list[Path]:
    """Write the whole site into a folder, which is emptied first.

    Returns:
        The pages, the first one in front.
    """
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    texts, groups = sources()
    pages = {name: _render(name, source, texts) for name, source in texts.items()}
    shutil.copytree(DOCS / "images", out / "images")
    (out / "style.css").write_text(
        (TEMPLATES / "style.css").read_text(encoding="utf-8") + code_colours(), encoding="utf-8"
    )
    shutil.copy(TEMPLATES / "search.js", out / "search.js")
    (out / "search-index.js").write_text(f"const PAGES = {_index(pages)};\n", encoding="utf-8")
    template = _environment().get_template("page.html")
    for name, page in pages.items():
        path = out / f"{name}.html"
        path.parent.mkdir(exist_ok=True)
        menu = [
            {
                "title": title,
                "links": [(pages[each].title, _from(name, f"{each}.html"), each == name) for each in names],
                "open": name in names or any(name.startswith(f"{each}/") for each in names),
            }
            for title, names in groups.items()
        ]
        below = [(anchor, text) for level, anchor, text in page.headings if level == 2]
        path.write_text(
            template.render(
                page=page, menu=menu, below=below if len(below) > 2 else [], home=_from(name, "index.html"),
                root=_from(name, ""), wide=name in groups["Reference"],
            ),
            encoding="utf-8",
        )  # fmt: skip
    return [out / f"{name}.html" for name in pages]


def sources() -> tuple[dict[str, tuple[str, Source]], dict[str, list[str]]]:
    """Each page's place in the repository and its text, by its place on the site; and the menu."""
    files = {path.stem: path for path in sorted(DOCS.glob("*.md")) if path.stem not in REPLACED}
    guides = [name for name in files if name not in (*START, *EXTEND)]
    reproductions = {f"reproductions/{path.stem}": path for path in sorted((DOCS / "reproductions").glob("*.md"))}
    texts: dict[str, tuple[str, Source]] = {}
    for name in (*START, *guides, *EXTEND):
        texts[name] = f"docs/{name}.md", files[name].read_text
    for name, path in reproductions.items():
        texts[name] = f"docs/{name}.md", path.read_text
    for file, name in OUTSIDE.items():
        texts[name] = file, (ROOT / file).read_text
    texts["gallery"] = "docs/gallery.md", gallery_page
    for kind, table, index, page in (
        ("metrics", METRICS, reference_pages.metrics_index, reference_pages.metric_page),
        ("families", FAMILIES, reference_pages.families_index, reference_pages.family_page),
        ("datasets", DATASETS, reference_pages.datasets_index, reference_pages.dataset_page),
    ):
        texts[kind] = f"docs/{kind}.md", index
        for each in table:
            texts[f"{kind}/{each}"] = f"docs/{kind}/{each}.md", lambda page=page, each=each: page(each)
    texts["figures"] = "docs/figures.md", reference_pages.figures_page
    texts["commands"] = "docs/commands.md", reference_pages.commands_page
    menu = {
        "Start": [*START, "gallery"],
        "Guides": guides,
        "Reference": ["metrics", "families", "datasets", "figures", "commands"],
        "Reproductions": list(reproductions),
        "Take part": [*EXTEND, *OUTSIDE.values()],
    }
    return texts, {title: names for title, names in menu.items() if names}


def gallery_page() -> str:
    """Every script of examples/ with what it draws."""
    parts = [
        "# Gallery",
        "Scripts of a few lines, each of which runs in seconds: `python examples/NAME.py`. "
        "The pictures are what they drew when this site was built.",
    ]
    for script in sorted(EXAMPLES.glob("*.py")):
        source = script.read_text(encoding="utf-8")
        title, about, rest = split_script(source)
        picture = example_picture(script, title)
        parts += [f"## {title}", about, f"<figure>{picture}</figure>", str(code(rest, "python"))]
    return "\n\n".join(parts)


def split_script(source: str) -> tuple[str, str, str]:
    """Title, paragraph and code of a script, which starts with a docstring of both."""
    found = re.match(r'"""(.*?)\n\n(.*?)"""\n+(.*)', source, flags=re.DOTALL)
    if found is None:
        raise ValueError("a script of the gallery starts with a docstring: a title, an empty line, a paragraph")
    return found[1].rstrip("."), found[2].strip(), found[3]


def _render(name: str, source: tuple[str, Source], texts: Mapping[str, Any]) -> Page:
    place, text = source
    homes = {home: target for target, (home, _) in texts.items()}

    def link(target: str) -> str | None:
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return target
        path, _, anchor = target.partition("#")
        if path.endswith(".html"):  # written for the site
            return target
        full = posixpath.normpath(posixpath.join(posixpath.dirname(place), path))
        if full == "docs/metrics.md" and anchor in METRICS:
            return _from(name, f"metrics/{anchor}.html")
        if full == "docs/datasets.md" and anchor in DATASETS:
            return _from(name, f"datasets/{anchor}.html")
        if full in homes:
            return _from(name, f"{homes[full]}.html") + (f"#{anchor}" if anchor else "")
        if full.startswith("docs/images/"):
            return _from(name, full.removeprefix("docs/"))
        return None  # a file of the repository that the site does not show

    return render(text(), link)


def _from(page: str, target: str) -> str:
    """A path from one page to another place of the site."""
    return "../" * page.count("/") + target


def _index(pages: Mapping[str, Page]) -> str:
    entries = [
        {
            "title": page.title,
            "url": f"{name}.html",
            "headings": [[text, anchor] for level, anchor, text in page.headings if level > 1],
            "text": page.text[:6000],
        }
        for name, page in pages.items()
    ]
    return json.dumps(entries, ensure_ascii=False, separators=(",", ":"))


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["attribute"] = lambda text: Markup(escape(text))
    return environment
