from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser

from tests.show.browser import shown
from tests.show.example_study import ExampleStudy, example_results
from unbraid import score
from unbraid.scoring.score_page import page
from unbraid.show.comparison_page import comparison_page
from unbraid.studies.study_page import study_page


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<script>missing()</script>", "missing is not defined"),
        ("<script>console.error('told')</script>", "told"),
        ("<script>fetch('https://example.org').catch(() => 0)</script>", "request: https://example.org"),
        ("<img src='beside.png'>", "request: file://.*beside.png"),
        ("<script>alert('ran')</script>", "dialog: ran"),
        ("<script>open('about:blank')</script>", "tab: about:blank"),
    ],
)
def test_errors_and_requests_fail_a_page(browser: Browser, tmp_path: Path, body: str, fault: str) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><title>t</title>{body}")
    with pytest.raises(AssertionError, match=fault), shown(browser, page) as tab:
        tab.wait_for_load_state("networkidle")


def test_a_quiet_page_passes(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><title>quiet</title><img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>")
    with shown(browser, page, width=360, dark=True) as tab:
        assert tab.title() == "quiet"
        assert tab.evaluate("innerWidth") == 360
        assert tab.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    study = ExampleStudy(example_results(40), folder)
    factors = np.stack([np.repeat(np.arange(8), 40), np.tile(np.arange(5), 64)], axis=1)
    codes = pd.DataFrame(factors + 0.1 * np.random.default_rng(0).standard_normal(factors.shape), columns=["V1", "MT"])
    card = score(codes, factors, metrics=["mig", "snc", "dci_lasso"])
    texts = {"study": study_page(study, study.results()), "card": page(card.contents())}  # pyright: ignore[reportArgumentType]
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.mark.parametrize("name", ["study", "card"])
def test_paper_shows_all_of_a_page_from_its_first_page_on(browser: Browser, pages: dict[str, Path], name: str) -> None:
    a4 = round((210 - 2 * 13) / 25.4 * 96), round((297 - 2 * 14) / 25.4 * 96)
    with shown(browser, pages[name], width=a4[0], height=a4[1], dark=True) as tab:
        tab.emulate_media(media="print")
        tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert tab.evaluate("document.documentElement.scrollWidth") <= a4[0]
        cut = """[...document.querySelectorAll('.scroll')].filter((each) => each.checkVisibility()
            && each.scrollWidth > each.clientWidth + 1).map((each) => each.getAttribute('aria-label'))"""
        assert tab.evaluate(cut) == []
        assert tab.evaluate("document.querySelectorAll('details:not([open])').length") == 0
        first = tab.locator("#ranking-body tr, .ub-scores tbody tr").first.bounding_box()
        assert first is not None
        assert first["y"] < a4[1] / 2  # the first table begins on page 1 ...
        assert (
            tab.evaluate("getComputedStyle(document.querySelector('section')).breakInside") == "auto"
        )  # ... and goes on
        assert tab.evaluate("getComputedStyle(document.querySelector('td, li')).printColorAdjust") == "exact"
        assert tab.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
        tab.evaluate("dispatchEvent(new Event('afterprint'))")
        assert tab.evaluate("document.querySelectorAll('details:not([open])').length") > 0


@pytest.mark.parametrize(("media", "width"), [("screen", 390), ("screen", 1200), ("print", 695)])
def test_long_names_and_small_numbers_stay_in_their_places(
    browser: Browser, tmp_path: Path, media: Literal["screen", "print"], width: int
) -> None:
    factors = np.stack([np.arange(64) % 4, np.arange(64) // 4 % 4], axis=1)
    codes = factors + 0.1 * np.random.default_rng(0).standard_normal(factors.shape)
    long = "N" * 100
    card = score(codes, factors, kinds=["cyclic", "ordinal"], names=["M" * 100, long], metrics=["mig", "dci_lasso"])
    contents = card.contents()
    scored = {**contents["scored"], "mig": {**contents["scored"]["mig"], "headline": -1.24e-5}}
    row = {"metric": "mig", "first": long, "second": "b", "better": long, "p": 0.01, "p_holm": 0.01}
    models = {
        "unbraid": "0", "confidence": 0.95, "paired": True, "notes": [], "footnote": "", "models": [long, "b"],
        "columns": [long, "b"], "differences": [{**row, "difference": 0.2, "low": 0.1, "high": 0.3}],
        "scores": [{"metric": "mig", "summary": "", "higher_is_better": True, "cells": [{"text": "1", "bold": False}]}],
    }  # fmt: skip
    texts = {"card": page({**contents, "scored": scored}), "models": comparison_page(models)}
    for name, text in texts.items():
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
        with shown(browser, tmp_path / f"{name}.html", width=width) as tab:
            tab.emulate_media(media=media)
            tab.evaluate("dispatchEvent(new Event('beforeprint'))")
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, name
            spilling = """[...document.querySelectorAll('.plain th, .plain td, .glance b, figcaption')].filter((each) =>
                each.checkVisibility() && each.scrollWidth > each.clientWidth + 1).map((each) => each.textContent)"""
            assert tab.evaluate(spilling) == [], name
