from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from playwright.sync_api import Browser

from tests.show.browser import shown
from unbraid import score
from unbraid.scoring.score_page import page
from unbraid.show.comparison_page import comparison_page


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<script>missing()</script>", "missing is not defined"),
        ("<script>fetch('https://example.org').catch(() => 0)</script>", "request: https://example.org"),
        ("<script>alert('ran')</script>", "dialog: ran"),
    ],
)
def test_errors_and_requests_fail_a_page(browser: Browser, tmp_path: Path, body: str, fault: str) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><title>t</title>{body}")
    with pytest.raises(AssertionError, match=fault), shown(browser, page) as tab:
        tab.wait_for_load_state("networkidle")


@pytest.mark.parametrize(("media", "width"), [("screen", 390), ("screen", 1200), ("print", 695)])
def test_long_names_and_small_numbers_stay_in_their_places(
    browser: Browser, tmp_path: Path, media: Literal["screen", "print"], width: int
) -> None:
    factors = np.stack([np.arange(64) % 4, np.arange(64) // 4 % 4], axis=1)
    codes = factors + 0.1 * np.random.default_rng(0).standard_normal(factors.shape)
    long = "N" * 100
    card = score(codes, factors, kinds=["cyclic", "ordinal"], names=["M" * 100, long], metrics=["mig", "dci_lasso"])
    small = replace(card.scored["mig"], result=replace(card["mig"], score=-1.24e-5))
    row = {"metric": "mig", "first": long, "second": "b", "better": long, "p": 0.01, "p_holm": 0.01}
    models = {
        "unbraid": "0", "confidence": 0.95, "paired": True, "notes": [], "footnote": "", "models": [long, "b"],
        "columns": [long, "b"], "differences": [{**row, "difference": 0.2, "low": 0.1, "high": 0.3}],
        "scores": [{"metric": "mig", "summary": "", "higher_is_better": True, "cells": [{"text": "1", "bold": False}]}],
    }  # fmt: skip
    texts = {"card": page(replace(card, scored={**card.scored, "mig": small})), "models": comparison_page(models)}
    for name, text in texts.items():
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
        with shown(browser, tmp_path / f"{name}.html", width=width) as tab:
            tab.emulate_media(media=media)
            tab.evaluate("dispatchEvent(new Event('beforeprint'))")
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, name
            spilling = """[...document.querySelectorAll('.plain th, .plain td, .answer div, .ub-beside, figcaption')]
                .filter((each) => each.checkVisibility() && each.scrollWidth > each.clientWidth + 1)
                .map((each) => each.textContent)"""
            assert tab.evaluate(spilling) == [], name
