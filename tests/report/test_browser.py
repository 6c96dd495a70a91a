from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.report.browser import shown


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<script>missing()</script>", "missing is not defined"),
        ("<script>console.error('told')</script>", "told"),
        ("<script>fetch('https://example.org').catch(() => 0)</script>", "request: https://example.org"),
        ("<img src='beside.png'>", "request: file://.*beside.png"),
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
