"""Open a page in headless Chromium, with no network, and fail on whatever a reader's console would show."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Dialog,
    Error,
    Page,
    Response,
    Route,
    sync_playwright,
)

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


# A tab of its own costs six times what a page costs in one that is there.
_IDLE: WeakKeyDictionary[Browser, list[Page]] = WeakKeyDictionary()


@contextmanager
def shown(
    browser: Browser, page: Path | str, *, width: int = 1200, height: int = 900, dark: bool = False, host: str = ""
) -> Iterator[Page]:
    """A tab with the page in it; when the block ends well the next page is shown in the same.

    Args:
        browser: what `launched` gives; the fixture `browser` of this folder.
        page: a file, or an address.
        width, height: of the window, in pixels.
        dark: the colours that the reader's system prefers.
        host: the one host, with its port, that may be asked, such as "127.0.0.1:8000"; none by default.

    Raises:
        AssertionError: on leaving, where the page asked for anything else, opened a dialog or another tab, or the
            console had an error or warning.
    """
    address = page.resolve().as_uri() if isinstance(page, Path) else page
    idle = _IDLE.setdefault(browser, [])
    tab = idle.pop() if idle else browser.new_context(accept_downloads=False).new_page()
    faults: list[str] = []

    def judge(route: Route) -> None:
        parts = urlsplit(route.request.url)
        # A page asks for itself once; all else it must hold.
        if parts.scheme in INLINE or route.request.url.partition("#")[0] == address or (host and parts.netloc == host):
            route.continue_()
        else:
            faults.append(f"request: {route.request.url[:200]}")
            route.abort()

    def dismiss(dialog: Dialog) -> None:
        faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def said(message: ConsoleMessage) -> None:
        if message.type in NOISE:
            faults.append(f"{message.type}: {message.text}")

    def failed(error: Error) -> None:
        faults.append(f"error: {error}")

    def answered(reply: Response) -> None:
        if reply.status >= 400:
            faults.append(f"{reply.status}: {reply.url[:200]}")

    tab.set_default_timeout(30_000)  # milliseconds; what Playwright begins with
    tab.set_viewport_size({"width": width, "height": height})
    tab.emulate_media(media="screen", color_scheme="dark" if dark else "light")
    tab.route("**/*", judge)
    tab.on("dialog", dismiss)
    tab.on("console", said)
    tab.on("pageerror", failed)
    tab.on("response", answered)
    try:
        tab.goto(address)
        yield tab
        for other in tab.context.pages:
            if other != tab:
                faults.append(f"tab: {other.url[:200]}")
                other.close()
        tab.evaluate("try { localStorage.clear() } catch {}")  # an address may have no place for it
        if host or faults:
            tab.goto("about:blank")  # a page that is served asks again and again
    except BaseException:
        tab.context.close()
        raise
    for event, heard in (("dialog", dismiss), ("console", said), ("pageerror", failed), ("response", answered)):
        tab.remove_listener(event, heard)
    tab.unroute("**/*", judge)
    idle.append(tab)
    assert not faults, faults
