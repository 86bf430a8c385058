"""What people do on the page."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect


def enter(page: Page, address: str) -> None:
    """Open the page, and wait until it knows the metrics."""
    page.goto(address)
    page.locator("#metrics input").first.wait_for()


def fill(page: Page, pictures: Sequence[Path], prompt: str) -> None:
    """Choose pictures, and write a prompt."""
    page.locator("#files").set_input_files(pictures)
    expect(page.locator("#pictures li")).to_have_count(len(pictures))
    page.locator("#prompt").fill(prompt)


def pick(page: Page, *metrics: str) -> None:
    """Choose these metrics and no others."""
    for metric in page.locator("#metrics label").all():
        box = metric.locator("input")
        if box.is_checked() != (box.input_value() in metrics):
            metric.click()


def write(page: Page, selector: str, content: str) -> None:
    """Fill a field, which may be hidden in *More*."""
    page.locator(".more").evaluate("more => more.open = true")
    page.locator(selector).fill(content)


def unfold(page: Page) -> None:
    """Open all details."""
    page.locator("details").evaluate_all("all => all.forEach(details => details.open = true)")


def result(page: Page) -> Locator:
    """Return the cards of the scored pictures, or the order of the ranked ones."""
    return page.locator(".result, .ranking")


def score(page: Page) -> None:
    """Send the form, and wait for its result."""
    page.locator("#go").click()
    result(page).first.wait_for()


def refuse(page: Page) -> None:
    """Send the form, and wait for its refusal."""
    page.locator("#go").click()
    page.locator(".problem").wait_for()


def answer(page: Page) -> Any:
    """Return the JSON that the service sent, as the page shows it."""
    return json.loads(page.locator(".about pre").text_content() or "")


def take_sample(page: Page, number: int) -> None:
    """Press one of the samples, from 1."""
    page.locator("#samples li button").nth(number - 1).click()
    page.locator("#pictures li").first.wait_for()


def drop(page: Page, selector: str, name: str, picture: bytes, event: str = "drop") -> None:
    """Drop a picture on an element, or paste it there."""
    page.locator(selector).evaluate(
        """(target, [name, bytes, event]) => {
            const carried = new DataTransfer();
            carried.items.add(new File([new Uint8Array(bytes)], name, {type: "image/png"}));
            const told = {dataTransfer: carried, clipboardData: carried, bubbles: true, cancelable: true};
            const Kind = event === "drop" ? DragEvent : ClipboardEvent;
            target.dispatchEvent(new Kind(event, told));
        }""",
        [name, [*picture], event],
    )
