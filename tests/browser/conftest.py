"""A real browser for the tests of pages: one Chromium for all tests of a module, and a new page for each test.

Playwright runs an event loop in the thread of the tests as long as it is open, which tests with loops of their own
do not bear: it ends with each module.
"""

import os
import shutil
from collections.abc import Iterator

import pytest
from browser_page import WatchedPage
from playwright.sync_api import Browser, sync_playwright

import prerequisites

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The browser. Its sandbox does not work as root."""
    if CHROMIUM is None:
        prerequisites.CHROMIUM.skip()
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield launched
        launched.close()


@pytest.fixture
def watched(browser: Browser) -> Iterator[WatchedPage]:
    """A page of 1280 by 900 pixels in light colours."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, color_scheme="light", reduced_motion="reduce"
    )
    yield WatchedPage(context.new_page())
    context.close()
