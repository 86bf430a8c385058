"""Pictures that metrics look at beside an item's image: references, and the picture before an edit."""

import json
import re
from pathlib import Path

import httpx
import pytest

from tests.conftest import png
from tests.playground.steps import PROBLEM, RESULT, enter, fill, pick, text, write
from tests.playground.test_click_path import run_as_shown
from tests.support.browser import Browser

PROMPT = "the same, in blue"
TEMPLATES = {"references": "anchored_style", "source": "editing"}

pytestmark = pytest.mark.integration


@pytest.fixture
def others(tmp_path: Path) -> list[Path]:
    """Four pictures, each of another colour."""
    paths = [tmp_path / f"other {number}.png" for number in range(4)]
    for number, path in enumerate(paths):
        path.write_bytes(png((10 * number, 90, 200)))
    return paths


def options(template: str) -> dict[str, dict[str, str]]:
    return {"judge": {"template": template}}


def tiles(browser: Browser, field: str) -> list[str]:
    """The descriptions of the pictures that a field shows."""
    found: list[str] = browser.run(
        f"[...document.querySelectorAll('[data-field={field}] .pictures img')].map(image => image.alt)"
    )
    return found


@pytest.mark.parametrize("field", ["references", "source"])
def test_a_judge_is_shown_the_pictures_that_are_chosen(browser, service, picture, others, field):
    """The service gives the same grade where it is sent them without the page."""
    sent = others[:2] if field == "references" else others[:1]
    enter(browser, service)
    pick(browser, "judge")
    fill(browser, [picture], PROMPT)
    write(browser, "#options", json.dumps(options(TEMPLATES[field])))
    browser.choose(f"#{field}", sent)
    browser.until(f"document.querySelectorAll('[data-field={field}] .pictures li').length === {len(sent)}")
    browser.click("#go")
    browser.until(RESULT)

    parts = [{"part": path.name} for path in sent]
    item = {"prompt": PROMPT, "image": {"part": "p"}, field: parts if field == "references" else parts[0]}
    request = {"items": [item], "metrics": ["judge"], "options": options(TEMPLATES[field])}
    files = {path.name: (path.name, path.read_bytes()) for path in sent} | {"p": ("p", picture.read_bytes())}
    reply = httpx.post(
        f"{service}score", data={"request": json.dumps(request)}, files=files, trust_env=False
    ).json()
    assert f"{reply['results'][0]['scores']['judge']:.3f}" == text(browser, ".score > .figure")
    assert [] == browser.complaints()


def test_there_are_at_most_three_references_and_one_source(browser, service, others):
    """A fourth is left out; another source takes the first one's place; each can be removed."""
    enter(browser, service)
    pick(browser, "judge")
    browser.choose("#references", others)
    browser.until("document.querySelectorAll('[data-field=references] .pictures li').length")
    assert "3 references added, 3 in all. 1 left out: there may be at most 3." == text(browser, "#said")
    browser.choose("#source", others[:1])
    browser.until("document.querySelectorAll('[data-field=source] .pictures li').length")
    browser.choose("#source", others[1:2])
    browser.until("document.querySelector('[data-field=source] img').alt.includes('other 1')")

    assert ["Source 1: other 1.png"] == tiles(browser, "source")
    browser.click("[data-field=references] .pictures li:nth-child(2) button")
    assert ["Reference 1: other 0.png", "Reference 2: other 2.png"] == tiles(browser, "references")
    assert [] == tiles(browser, "pictures")


def test_a_metric_that_does_not_look_at_them_is_not_sent_them(browser, service, picture, others):
    """Their fields are hidden then: the service would refuse the request."""
    enter(browser, service)
    pick(browser, "judge")
    browser.choose("#references", others[:1])
    browser.until("document.querySelectorAll('[data-field=references] .pictures li').length")
    pick(browser, "vqascore")
    fill(browser, [picture], PROMPT)
    browser.click("#go")
    browser.until(RESULT)

    assert browser.run("document.querySelector('[data-field=references]').hidden")
    assert "vqascore" in text(browser, ".score")


def test_references_that_the_template_does_not_look_at_are_refused_beside_them(
    browser, service, picture, others
):
    """Once, however many pictures have them."""
    enter(browser, service)
    pick(browser, "judge")
    fill(browser, [picture, others[3]], PROMPT)
    browser.choose("#references", others[:1])
    browser.until("document.querySelectorAll('[data-field=references] .pictures li').length")
    browser.click("#go")
    browser.until(PROBLEM)

    assert 1 == text(browser, "#references-error").count("does not look at it")
    assert 1 == browser.run("document.querySelectorAll('.problem li').length")
    assert "references" == browser.run("document.activeElement.id")


def test_a_picture_that_is_dropped_on_a_field_goes_there(browser, service):
    """Anywhere else, it is one to be scored."""
    enter(browser, service)
    pick(browser, "judge")
    browser.run(
        "(() => { const carried = new DataTransfer();"
        f" carried.items.add(new File([new Uint8Array({[*png()]})], 'dropped.png', {{type: 'image/png'}}));"
        " const told = {dataTransfer: carried, bubbles: true, cancelable: true};"
        " document.querySelector('#source').dispatchEvent(new DragEvent('drop', told)); })()"
    )

    assert ["Source 1: dropped.png"] == tiles(browser, "source")
    assert [] == tiles(browser, "pictures")


@pytest.mark.parametrize("language", ["curl", "python"])
def test_the_code_to_copy_has_them_and_the_metadata(browser, service, picture, others, language):
    """It runs as it stands, and prints the numbers of the page."""
    enter(browser, service)
    pick(browser, "judge", "geneval")
    fill(browser, [picture], PROMPT)
    browser.choose("#references", others[:2])
    browser.until("document.querySelectorAll('[data-field=references] .pictures li').length === 2")
    write(browser, "#options", json.dumps(options("anchored_entity")))
    write(browser, "#geneval", '{"tag": "single_object", "include": [{"class": "dog", "count": 1}]}')
    browser.run("document.querySelector('#code').open = true")
    browser.click("#go")
    browser.until(RESULT)
    printed = run_as_shown(browser, language, picture.parent)

    shown = browser.run("[...document.querySelectorAll('.score > .figure')].map(node => node.textContent)")
    numbers = {f"{float(found):.3f}" for found in re.findall(r"\d\.\d+", printed)}
    assert 2 == len(shown)
    assert {*shown} <= numbers, printed
