"""What people do on the page."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.browser import Browser

RESULT = "document.querySelector('.result, .ranking')"
PROBLEM = "document.querySelector('.problem')"


def enter(browser: Browser, address: str) -> None:
    """Open the page, and wait until it knows the metrics."""
    browser.open(address)
    browser.until("document.querySelectorAll('#metrics input').length")


def fill(browser: Browser, pictures: Sequence[Path], prompt: str) -> None:
    """Choose pictures, and write a prompt."""
    browser.choose("#files", pictures)
    browser.until(f"document.querySelectorAll('#pictures li').length === {len(pictures)}")
    browser.click("#prompt")
    browser.type(prompt)


def pick(browser: Browser, *metrics: str) -> None:
    """Choose these metrics and no others."""
    browser.run(
        f"document.querySelectorAll('#metrics input').forEach(box =>"
        f" {list(metrics)}.includes(box.value) === box.checked || box.click())"
    )


def write(browser: Browser, selector: str, content: str) -> None:
    """Put text into a field, which may be hidden in *More*."""
    browser.run(f"document.querySelector('.more').open = true; document.querySelector({selector!r}).select()")
    browser.type(content)


def answer(browser: Browser) -> Any:
    """The JSON that the service sent, as the page shows it."""
    return json.loads(browser.run("document.querySelector('.about pre').textContent"))


def take_sample(browser: Browser, number: int) -> None:
    """Press one of the samples, from 1."""
    browser.click(f"#samples li:nth-child({number}) button")
    browser.until("document.querySelectorAll('#pictures li').length")


def text(browser: Browser, selector: str) -> str:
    """What stands in an element, as it is seen; empty where there is none."""
    found: str = browser.run(f"document.querySelector({selector!r})?.innerText ?? ''")
    return found
