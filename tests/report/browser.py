"""Open a page in headless Chromium, with no network, and fail on whatever a reader's console would show."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
NOISE = {"error", "warning"}  # kinds of console messages
INLINE = ("data", "blob")  # schemes of what a page holds itself


@contextmanager
def launched() -> Iterator[Browser]:
    """Chromium; the test is skipped where none is installed."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"none of {', '.join(NAMES)} is installed; `make browser` installs one where it may")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()


@contextmanager
def shown(
    browser: Browser, page: Path | str, *, width: int = 1200, height: int = 900, dark: bool = False, host: str = ""
) -> Iterator[Page]:
    """A tab with the page in it.

    Args:
        browser: what `launched` gives; the fixture `browser` of this folder.
        page: a file, or an address.
        width, height: of the window, in pixels.
        dark: the colours that the reader's system prefers.
        host: the one host, with its port, that may be asked, such as "127.0.0.1:8000"; none by default.

    Raises:
        AssertionError: on leaving, where the page asked for anything else, or the console had an error or warning.
    """
    address = page.resolve().as_uri() if isinstance(page, Path) else page
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", accept_downloads=False
    )
    faults: list[str] = []

    def judge(route: Route) -> None:
        parts = urlsplit(route.request.url)
        # A page asks for itself once; all else it must hold.
        if parts.scheme in INLINE or route.request.url.partition("#")[0] == address or (host and parts.netloc == host):
            route.continue_()
        else:
            faults.append(f"request: {route.request.url[:200]}")
            route.abort()

    context.route("**/*", judge)
    tab = context.new_page()
    tab.on("pageerror", lambda error: faults.append(f"error: {error}"))
    tab.on("console", lambda said: faults.append(f"{said.type}: {said.text}") if said.type in NOISE else None)
    tab.on(
        "response", lambda reply: faults.append(f"{reply.status}: {reply.url[:200]}") if reply.status >= 400 else None
    )
    tab.goto(address)
    try:
        yield tab
    finally:
        context.close()
    assert not faults, faults
