"""From a picture to a score in a real browser: by mouse, by keyboard, from the clipboard, dropped."""

import json
import re
import subprocess
import sys

import httpx
import pytest

from tests.conftest import png
from tests.playground.conftest import KEY
from tests.playground.steps import RESULT, enter, fill, take_sample, text
from tests.support.turned import turned

FOCUS = "document.activeElement"

pytestmark = pytest.mark.integration


def test_a_visitor_gets_a_score_with_two_clicks(browser, service):
    """A sample, then Score: metrics with numbers, coloured words, questions, timings; nothing complains."""
    enter(browser, service)
    take_sample(browser, 1)
    browser.click("#go")
    browser.until(RESULT)

    shown = text(browser, "#out")
    assert all(name in shown for name in ("vqascore", "clipscore", "dsg"))
    assert 3 == browser.run("document.querySelectorAll('.score > .figure').length")
    assert browser.run("document.querySelectorAll('.words .word').length") > 3
    assert "Is there a red circle?" in text(browser, ".questions")
    assert "total" in text(browser, ".timings")
    assert text(browser, "#said").startswith("1 picture scored. vqascore 0.")
    assert [] == browser.complaints()


def test_the_number_shown_is_the_number_answered(browser, service, picture):
    """Asked again without the page, the service says the same."""
    enter(browser, service)
    fill(browser, [picture], "a red square")
    browser.click("#go")
    browser.until(RESULT)

    request = {"items": [{"prompt": "a red square", "image": {"part": "p"}}]}
    answer = httpx.post(
        f"{service}score",
        data={"request": json.dumps(request)},
        files={"p": ("p", picture.read_bytes())},
        trust_env=False,
    )
    score = answer.json()["results"][0]["scores"]["vqascore"]
    assert f"{score:.3f}" == text(browser, ".score > .figure")


def test_the_keyboard_alone_is_enough(browser, service):
    """Every stop can be seen, in the order of the page; Enter takes a sample, and Enter again scores it."""
    enter(browser, service)
    stops = []
    while not stops or not stops[-1].startswith("a red circle left"):
        assert len(stops) < 12, stops
        browser.press("Tab")
        stops.append(browser.run(f"{FOCUS}.innerText || {FOCUS}.value || {FOCUS}.id"))
        around = f"[{FOCUS}, {FOCUS}.nextElementSibling, {FOCUS}.parentElement]"
        seen = "node => node && getComputedStyle(node).outlineStyle === 'solid'"
        assert browser.run(f"{around}.some({seen})"), stops[-1]
    browser.press("Enter")
    browser.until("document.activeElement.id === 'go'")
    browser.press("Enter")
    browser.until(RESULT)

    assert ["Skip to the form", "API", "Key", "score", "files"] == stops[:5]
    assert "1 picture scored" in text(browser, "#said")


@pytest.mark.parametrize(
    ("event", "carrier"), [("ClipboardEvent('paste'", "clipboardData"), ("DragEvent('drop'", "dataTransfer")]
)
def test_a_picture_can_be_pasted_and_dropped(browser, service, event, carrier):
    """Anywhere on the page; it is scored as one that was chosen."""
    enter(browser, service)
    browser.run(
        "(() => { const carried = new DataTransfer();"
        f" carried.items.add(new File([new Uint8Array({[*png()]})], 'pasted.png', {{type: 'image/png'}}));"
        f" const told = {{{carrier}: carried, bubbles: true, cancelable: true}};"
        f" document.body.dispatchEvent(new {event}, told)); }})()"
    )
    browser.click("#prompt")
    browser.type("a red square")
    browser.press("Enter", ctrl=True)
    browser.until(RESULT)

    assert "pasted.png" in browser.run("document.querySelector('.result img').alt")
    assert [] == browser.complaints()


def test_several_pictures_are_ranked(browser, service):
    """The best first as the service says, with the metric that decided; one that was cut is not accepted."""
    enter(browser, service)
    take_sample(browser, 4)
    browser.run("document.querySelector('#cascade').value = 'clipscore'")
    browser.run("document.querySelector('#ask').dispatchEvent(new Event('input'))")
    browser.click("#go")
    browser.until(RESULT)

    rows = browser.run("[...document.querySelectorAll('.ranking li')].map(row => row.innerText)")
    figures = [float(re.search(r"(\d\.\d+)$", row)[1]) for row in rows]
    assert 3 == len(rows)
    assert figures[:2] == sorted(figures[:2], reverse=True)
    assert ["by vqascore", "by vqascore", "by clipscore"] == [re.search(r"by \w+", row)[0] for row in rows]
    assert ["not" in row for row in rows] == [False, False, True]
    assert "3 pictures ranked" in text(browser, "#said")
    assert [] == browser.complaints()


def run_as_shown(browser, language, folder):
    """What the code that the page shows prints, run beside the pictures."""
    browser.run(f"document.querySelector('[name=language][value={language}]').click()")
    code = browser.run("document.querySelector('#snippet').textContent")
    command = ["bash", "-c", code] if language == "curl" else [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("language", ["curl", "python"])
@pytest.mark.parametrize("mode", ["score", "rank"])
def test_the_code_to_copy_runs_as_it_stands(browser, service, picture, mode, language):
    """Names and prompts with quotes are quoted, pictures turned; the numbers are those of the page."""
    picture.write_bytes(turned())
    enter(browser, service)
    browser.run("document.querySelector('#upright').click()")
    browser.run(f"document.querySelector('[name=mode][value={mode}]').click()")
    fill(browser, [picture], 'it\'s a "red" square')
    browser.run("document.querySelector('#code').open = true")
    browser.click("#go")
    browser.until(RESULT)
    printed = run_as_shown(browser, language, picture.parent)

    shown = float(text(browser, ".figure"))
    assert any(shown == round(float(found), 3) for found in re.findall(r"\d\.\d+", printed)), printed


def test_a_key_is_asked_for_and_kept_in_the_tab_alone(browser, locked):
    """The page opens without one; with it the metrics come.  No code and no lasting storage has it."""
    browser.open(locked)
    browser.until("document.activeElement.id === 'key'")
    browser.type(KEY)
    browser.press("Enter")
    browser.until("document.querySelectorAll('#metrics input').length")
    take_sample(browser, 1)

    assert KEY == browser.run("sessionStorage.getItem('scoregate.key')")
    assert [0, ""] == browser.run("[localStorage.length, document.cookie]")
    assert "$SCOREGATE_API_KEY" in browser.run("document.querySelector('#snippet').textContent")
    assert KEY not in browser.run("document.querySelector('#snippet').textContent")


def test_the_page_about_the_api_shows_every_endpoint_and_schema(browser, service):
    """With nothing from elsewhere."""
    browser.open(f"{service}playground/docs.html")
    browser.until("document.querySelectorAll('#schemas article').length")
    document = httpx.get(f"{service}openapi.json", trust_env=False).json()

    titles = browser.run("[...document.querySelectorAll('article h3')].map(title => title.textContent)")
    operations = [
        f"{method.upper()}{path}" for path, methods in document["paths"].items() for method in methods
    ]
    assert {*operations, *document["components"]["schemas"]} == {*titles}
    assert [] == browser.complaints()
