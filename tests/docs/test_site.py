"""The documentation as a reader meets it: links lead somewhere, nothing is loaded, every name has a page."""

import json
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from urllib.parse import unquote

import pytest
from playwright.sync_api import Route

import unbraid
from tests.docs.conftest import ROOT
from tests.show.browser import launched
from unbraid.cli.cite_command import bibtex, papers_of
from unbraid.datasets import DATASETS
from unbraid.families import FAMILIES
from unbraid.figures import FIGURES
from unbraid.metrics import MEASURES, RECONSTRUCTED

# One worker builds the site, which takes a minute where nothing else is at work; the other goes on.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
CODE = {"pre", "code", "script", "math"}
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


class Links(HTMLParser):
    """Ids of a page, what it links to, what it loads, and the text that is not code."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.prose: list[str] = []
        self._code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = dict(attrs)
        self.ids |= {own["id"]} if own.get("id") else set()
        if tag == "a" and own.get("href"):
            self.links.append(str(own["href"]))
        for name in ("src", "data", "poster"):
            if own.get(name):
                self.loads.append(str(own[name]))
        if own.get("href") and (tag in {"use", "image"} or (tag == "link" and own.get("rel") in LOADED)):
            self.loads.append(str(own["href"]))
        self._code += tag in CODE

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in CODE

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.prose.append(data)


FOREIGN = r"(@import|url\()\s*['\"]?(https?:)?//"
LOADED = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch", "manifest"}


@cache
def read(page: Path) -> Links:
    parsed = Links()
    parsed.feed(page.read_text(encoding="utf-8"))
    return parsed


def pages(site: Path) -> Iterator[Path]:
    yield from sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def test_every_link_leads_to_a_page_and_a_place_in_it(site: Path) -> None:
    broken = []
    for page in pages(site):
        for link in read(page).links:
            if re.match(r"https?:", link):
                continue
            path, _, anchor = unquote(link).partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.is_file() or (anchor and target.suffix == ".html" and anchor not in read(target).ids):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert not broken


def test_everything_that_is_loaded_lies_beside_the_pages(site: Path) -> None:
    for page in pages(site):
        for load in read(page).loads:
            if not load.startswith(("data:", "#")):
                assert (page.parent / unquote(load.partition("?")[0])).is_file(), (page.name, load)
        styles = "".join(re.findall(r"<style.*?</style>", page.read_text(encoding="utf-8"), re.DOTALL))
        assert not re.search(FOREIGN, styles), page.name
    for style in (site / "_static").rglob("*.css"):
        assert not re.search(FOREIGN, style.read_text(encoding="utf-8")), style.name


def test_no_page_shows_markup_that_was_not_understood(site: Path) -> None:
    for page in pages(site):
        prose = " ".join(read(page).prose)
        found = re.search(r"\\[a-z]{2,}|\]\(|\*\*\w[^*]{0,80}\*\*|&amp;|``|:[a-z]+:`", prose)
        assert not found, (page.name, found)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind, table in (("metrics", MEASURES), ("families", FAMILIES), ("datasets", DATASETS))
        for name in table
    ],
)
def test_every_row_has_its_page(site: Path, kind: str, name: str) -> None:
    text = (site / kind / f"{name}.html").read_text(encoding="utf-8")
    for key in papers_of(name):
        assert bibtex(name).partition("{")[0] in re.sub(r"</?span[^>]*>", "", text)
        assert key in text
    if kind != "datasets":
        assert re.search(r'class="formula".*?<svg role="img" aria-label="[^"]{10,}"', text, re.DOTALL)
    if kind == "metrics":
        assert ('class="bars"' in text) == (name not in RECONSTRUCTED)
        assert f'id="unbraid.metrics.{name}"' in text
        assert "Parameters" in text
    if kind == "datasets" and DATASETS[name].rendered and not DATASETS[name].files:
        assert f"{name}.png" in text


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_every_script_of_the_gallery_ran_and_its_picture_is_shown(site: Path, script: Path) -> None:
    text = re.sub("&#(39|x27);|\N{RIGHT SINGLE QUOTATION MARK}", "'", (site / "gallery.html").read_text("utf-8"))
    title = script.read_text(encoding="utf-8").partition("\n")[0].strip('". ')
    section = re.search(rf"<h2>{re.escape(title)}<(.*?)(<h2|</article>)", text, re.DOTALL)
    assert section, title
    picture = re.search(r"<figure><svg .*?</svg>", section[1], re.DOTALL)
    assert picture
    assert len(re.findall("<path|<image|<use", picture[0])) > 5
    assert "<pre>" in section[1]
    assert script.name in section[1]


def test_there_is_a_gallery_and_every_figure_and_command_is_described(site: Path) -> None:
    assert len(SCRIPTS) >= 6
    figures, commands = (read(site / f"{name}.html").ids for name in ("figures", "commands"))
    assert set(FIGURES) <= figures
    assert {"unbraid-score", "unbraid-train", "unbraid-figure", "unbraid-cite", "unbraid-data-list"} <= commands


def test_every_guide_is_taken(site: Path) -> None:
    for path in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*/*.md")]:
        assert (site / path.relative_to(ROOT / "docs").with_suffix(".html")).is_file(), path


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_shown_executed(site: Path, path: Path) -> None:
    text = (site / "tutorials" / f"{path.stem}.html").read_text("utf-8")
    assert text.count('class="cell_output') >= 4
    assert "<img" in text


def entries(site: Path) -> set[str]:
    """Names that the reference describes, as its inventory lists them."""
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    return {name for kind in inventory.data if kind.startswith("py:") for name in inventory.data[kind]}


def described(name: str) -> object:
    """What a dotted name of the inventory stands for."""
    place, _, rest = name.rpartition(".")
    if not place:
        return import_module(name)
    owner = described(place)
    if hasattr(owner, rest):
        return getattr(owner, rest)
    try:
        return import_module(name)
    except ImportError:
        return getattr(import_module(place), rest)  # in a module that a function of the same name hides


def public() -> Iterator[tuple[str, object]]:
    packages = [name for _, name, is_package in walk_packages(unbraid.__path__, "unbraid.") if is_package]
    for name in [
        "unbraid",
        *packages,
        "unbraid.ranking.ranking",
        "unbraid.runs.run_traversals",
        "unbraid.studies.added",
    ]:
        if "._" not in name and name != "unbraid.cli":
            module = import_module(name)
            yield from ((f"{name}.{each}", getattr(module, each)) for each in getattr(module, "__all__", ()))


def test_the_reference_describes_every_public_name(site: Path) -> None:
    wanted = dict(public())
    names = entries(site)
    known = {id(described(name)) for name in names}
    assert not [name for name, value in wanted.items() if id(value) not in known]
    assert {"unbraid.ScoreCard.to_frame", "unbraid.Run.encode", "unbraid.Study.run"} <= names
    assert any(isinstance(value, ModuleType) for value in wanted.values())


def test_the_search_knows_code(site: Path) -> None:
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").rstrip(");\n"))
    for stem in ("score_encod", "to_fram", "modular", "factor"):
        assert stem in index["terms"], stem
    assert {"reference/unbraid.ScoreCard", "glossary", "tutorials/own-codes"} <= set(index["docnames"])


def test_pages_work_from_disk_at_any_width_in_either_scheme(site: Path) -> None:
    root = site.resolve().as_uri()
    faults: list[str] = []

    def judge(route: Route) -> None:
        if not route.request.url.startswith((root, "data:")):
            faults.append(route.request.url)
            route.abort()
        else:
            route.continue_()

    with launched() as browser:
        for width, scheme in ((360, "dark"), (1280, "light")):
            tab = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme).new_page()  # pyright: ignore[reportArgumentType]
            tab.route("**/*", judge)
            tab.on("pageerror", lambda error: faults.append(str(error)))
            tab.on("console", lambda said: faults.append(said.text) if said.type in {"error", "warning"} else None)
            for name in (
                "index", "which-metric", "gallery", "metrics/mig", "families/beta_vae", "figures", "commands",
                "tutorials/own-codes", "reference/unbraid.ScoreCard", "reproductions/lsbd-2022",
            ):  # fmt: skip
                tab.goto(f"{root}/{name}.html")
                assert tab.evaluate("document.documentElement.scrollWidth") <= width, name
            background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (background == "rgb(255, 255, 255)") == (scheme == "light")
        # The search, by keyboard, from a page in a folder, without a server.
        tab.goto(f"{root}/metrics/mig.html")
        for word, page in (
            ("modularity", "metrics/modularity"),
            ("to_frame", "unbraid.ScoreCard"),
            ("score_encoder", ""),
        ):
            tab.keyboard.press("Control+k")
            tab.keyboard.type(word)
            tab.keyboard.press("Enter")
            tab.wait_for_url("**/search.html?q=*")
            found = tab.locator(f"#search-results li a[href*='{page or word}']").first
            found.wait_for()
    assert not faults
