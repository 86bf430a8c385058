"""Debian's Chromium, built without windows: half the CPU time of the whole browser.  Playwright drives it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

WITHIN_MS = 120_000  # two busy cores
WINDOW = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"}
PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True}

expect.set_options(timeout=WITHIN_MS)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium; Playwright's own options turn off its sandbox (CI is root) and its network services."""
    program = shutil.which("chromium-headless-shell")
    assert program, "the tests start a real Chromium: run `make chromium` first"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--disable-gpu"], timeout=WITHIN_MS
        )
        with browser:
            yield browser


@contextmanager
def opened(browser: Browser, **window: Any) -> Iterator[Page]:
    """Open a page with storage of its own; fails if it asks another host than its own for anything."""
    with browser.new_context(**WINDOW | window) as context:
        context.set_default_timeout(WITHIN_MS)
        page, asked = context.new_page(), list[str]()
        page.on("request", lambda request: asked.append(request.url))
        yield page
        page.title()  # what the page has asked for before this call is known when it returns
        own = urlsplit(page.url).netloc
        others = [url for url in asked if not url.startswith("blob:") and urlsplit(url).netloc != own]
        assert not others, others


def complaints(page: Page) -> list[str]:
    """Return errors and warnings of the page and the browser, violations of its policy among them."""
    page.title()  # as above
    written = [message.text for message in page.console_messages() if message.type in ("error", "warning")]
    return written + [str(error) for error in page.page_errors()]


# Not of the session: while Playwright's synchronous API is up, no other event loop can run in its thread.
@pytest.fixture(scope="package")
def chrome() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def window() -> dict[str, Any]:
    """Options of the page's context that differ from `WINDOW`; tests parametrize it."""
    return {}


@pytest.fixture
def page(chrome: Browser, window: dict[str, Any]) -> Iterator[Page]:
    with opened(chrome, **window) as page:
        yield page
