"""The documentation as a reader meets it: nothing leads nowhere, nothing comes from elsewhere, every row has a page."""

import json
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from playwright.sync_api import Route

from tests.docs.conftest import ROOT
from tests.report.browser import launched
from unbraid.datasets import DATASETS
from unbraid.families.table import FAMILIES
from unbraid.figures import FIGURES
from unbraid.metrics import METRICS
from unbraid.references import CITED, REFERENCES

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
TAGS_OF_READERS = {"p", "li", "td", "th", "h1", "h2", "h3", "dd", "dt", "figcaption"}


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
        if tag == "link" or (tag in {"use", "image"} and own.get("href")):
            self.loads.append(str(own["href"]))
        self._code += tag in {"pre", "code", "script", "math"}

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in {"pre", "code", "script", "math"}

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.prose.append(data)


@cache
def read(page: Path) -> Links:
    parsed = Links()
    parsed.feed(page.read_text(encoding="utf-8"))
    return parsed


def pages(site: Path) -> Iterator[Path]:
    yield from sorted(site.rglob("*.html"))


def test_every_link_leads_to_a_page_and_a_place_in_it(site: Path) -> None:
    broken = []
    for page in pages(site):
        for link in read(page).links:
            if re.match(r"https?:", link):
                continue
            path, _, anchor = unquote(link).partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.is_file() or (anchor and anchor not in read(target).ids):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert not broken


def test_everything_that_is_loaded_lies_beside_the_pages(site: Path) -> None:
    for page in pages(site):
        for load in read(page).loads:
            assert load.startswith(("data:", "#")) or (page.parent / unquote(load)).resolve().is_file(), (
                page.name,
                load,
            )
    for text in (site / "style.css", site / "search.js"):
        assert not re.search(r"https?:|@import|url\(", text.read_text(encoding="utf-8"))


def test_no_page_shows_markup_that_was_not_understood(site: Path) -> None:
    for page in pages(site):
        prose = " ".join(read(page).prose)
        assert not re.search(r"\\[a-z]{2,}|\]\(|\*\*|&amp;|None\b.*None\b.*None\b", prose), page.name
        assert "<mi>\\" not in page.read_text(encoding="utf-8"), page.name  # LaTeX that MathML does not have


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind, table in (("metrics", METRICS), ("families", FAMILIES), ("datasets", DATASETS))
        for name in table
    ],
)
def test_every_row_has_its_page(site: Path, kind: str, name: str) -> None:
    text = (site / kind / f"{name}.html").read_text(encoding="utf-8")
    for key in CITED[name]:
        assert f"@{REFERENCES[key].kind}" in text.replace("</span>", "").replace('<span class="nc">', "")
        assert key in text
    if kind != "datasets":
        assert re.search(r'class="formula scroll".*?<svg role="img" aria-label="[^"]{10,}"', text, re.DOTALL)
    if kind == "metrics":
        assert 'class="bars"' in text
        assert "Arguments</h3>" in text
    if kind == "datasets" and DATASETS[name].rendered and not DATASETS[name].files:
        assert f"images/datasets/{name}.png" in text


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_every_script_of_the_gallery_ran_and_its_picture_is_shown(site: Path, script: Path) -> None:
    text = (site / "gallery.html").read_text(encoding="utf-8")
    title = script.read_text(encoding="utf-8").partition("\n")[0].strip('". ')
    section = re.search(
        rf"<h2[^>]*>{re.escape(title.replace(chr(39), '&#39;'))}</h2>(.*?)(<h2|</main>)",
        text.replace("&#x27;", "&#39;").replace("'", "&#39;"),
        re.DOTALL,
    )
    assert section, title
    picture = re.search(r"<svg.*?</svg>", section[1], re.DOTALL)
    assert picture
    assert len(re.findall("<path|<image|<use", picture[0])) > 5
    assert "<pre>" in section[1]


def test_there_is_a_gallery_and_every_figure_and_command_is_described(site: Path) -> None:
    assert len(SCRIPTS) >= 6
    figures, commands = (read(site / f"{name}.html").ids for name in ("figures", "commands"))
    assert set(FIGURES) <= figures
    assert {"unbraid-score", "unbraid-train", "unbraid-figure", "unbraid-cite", "unbraid-data-list"} <= commands


def test_every_guide_is_taken(site: Path) -> None:
    for path in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("reproductions/*.md")]:
        assert (site / path.relative_to(ROOT / "docs").with_suffix(".html")).is_file(), path


def test_the_search_knows_every_page(site: Path) -> None:
    text = (site / "search-index.js").read_text(encoding="utf-8")
    entries = json.loads(text.removeprefix("const PAGES = ").rstrip(";\n"))
    assert {entry["url"] for entry in entries} == {str(page.relative_to(site)) for page in pages(site)}
    for entry in entries:
        assert {anchor for _, anchor in entry["headings"]} <= read(site / entry["url"]).ids


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
            tab.on("console", lambda said: faults.append(said.text))
            for name in ("index", "which-metric", "gallery", "metrics/mig", "families/beta_vae", "figures", "commands"):
                tab.goto(f"{root}/{name}.html")
                assert tab.evaluate("document.documentElement.scrollWidth") <= width, name
            background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
            assert background == {"dark": "rgb(18, 21, 25)", "light": "rgb(255, 255, 255)"}[scheme]
        # The search, by keyboard, from a page in a folder.
        tab.goto(f"{root}/metrics/mig.html")
        tab.keyboard.press("/")
        tab.keyboard.type("modularity")
        assert "Modularity" in tab.locator("#found [role=option]").first.inner_text()
        tab.keyboard.press("Enter")
        tab.wait_for_url("**/metrics/modularity.html")
        tab.set_viewport_size({"width": 360, "height": 800})
        assert not tab.locator("#menu").is_visible()
        tab.get_by_role("button", name="Menu").click()
        assert tab.get_by_role("link", name="Gallery").is_visible()
    assert not faults
