"""A real browser for tests, and what must not happen in it."""

import shutil
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
there = BROWSER is not None and find_spec("playwright") is not None
needed = pytest.mark.skipif(
    not there, reason="needs a browser and pip install 'musictx[dev]': apt-get install chromium"
)


@contextmanager
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def visiting(browser, *ours):
    """Gives what opens a page as another person; none may ask for an address that begins otherwise than `ours`, or meet
    an error of the page's."""
    wrong = []

    def requested(request):
        if not request.url.startswith((*ours, "data:", "blob:")):
            wrong.append(request.url)

    def open_page(height=900, width=1440, **how):
        page = browser.new_context(viewport={"width": width, "height": height}, **how).new_page()
        page.set_default_timeout(20_000)
        page.on("request", requested)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        return page

    yield open_page
    for context in browser.contexts:
        context.close()
    assert wrong == []
