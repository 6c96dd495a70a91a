"""One browser for the tests of pages."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.report.browser import launched


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser
