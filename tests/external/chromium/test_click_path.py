"""From a picture to a score in a real browser: by mouse, by keyboard, from the clipboard, dropped."""

import json
import re
import subprocess
import sys

import httpx
import pytest
from playwright.sync_api import expect

from tests.external.chromium.steps import drop, enter, fill, result, score, take_sample
from tests.support.chromium import complaints
from tests.support.fake_service import KEY
from tests.support.pictures import png
from tests.support.turned import turned

FOCUS = "document.activeElement"


def test_a_visitor_gets_a_score_with_two_clicks(page, service):
    """A sample, then Score: metrics with numbers, coloured words, questions, timings; nothing complains."""
    enter(page, service)
    take_sample(page, 1)
    score(page)

    for name in ("vqascore", "clipscore", "dsg"):
        expect(page.locator("#out")).to_contain_text(name)
    expect(page.locator(".score > .figure")).to_have_count(3)
    assert page.locator(".words .word").count() > 3
    expect(page.locator(".questions")).to_contain_text("Is there a red circle?")
    expect(page.locator(".timings")).to_contain_text("total")
    expect(page.locator("#said")).to_have_text(re.compile(r"^1 picture scored\. vqascore 0\."))
    assert [] == complaints(page)


def test_the_number_shown_is_the_number_answered(page, service, picture):
    """Asked again without the page, the service says the same."""
    enter(page, service)
    fill(page, [picture], "a red square")
    score(page)

    request = {"items": [{"prompt": "a red square", "image": {"part": "p"}}]}
    answer = httpx.post(
        f"{service}score",
        data={"request": json.dumps(request)},
        files={"p": ("p", picture.read_bytes())},
        trust_env=False,
    )
    number = answer.json()["results"][0]["scores"]["vqascore"]
    expect(page.locator(".score > .figure").first).to_have_text(f"{number:.3f}")


def test_the_keyboard_alone_is_enough(page, service):
    """Every stop can be seen, in the order of the page; Enter takes a sample, and Enter again scores it."""
    enter(page, service)
    stops = []
    while not stops or not stops[-1].startswith("a red circle left"):
        assert len(stops) < 12, stops
        page.keyboard.press("Tab")
        stops.append(page.evaluate(f"{FOCUS}.innerText || {FOCUS}.value || {FOCUS}.id"))
        around = f"[{FOCUS}, {FOCUS}.nextElementSibling, {FOCUS}.parentElement]"
        seen = "node => node && getComputedStyle(node).outlineStyle === 'solid'"
        assert page.evaluate(f"{around}.some({seen})"), stops[-1]
    page.keyboard.press("Enter")
    expect(page.locator("#go")).to_be_focused()
    page.keyboard.press("Enter")
    result(page).first.wait_for()

    assert ["Skip to the form", "API", "Key", "score", "files"] == stops[:5]
    expect(page.locator("#said")).to_contain_text("1 picture scored")


def test_control_and_enter_send_from_everywhere_in_the_form(page, service):
    """On a sample with that sample, from the button that it focuses, and from a field of *More*."""
    enter(page, service)
    page.locator("#samples button").first.press("Control+Enter")
    result(page).first.wait_for()
    expect(page.locator("#said")).to_contain_text("1 picture scored")

    for place in ("#go", "#options"):
        page.locator(".more").evaluate("more => more.open = true")
        page.locator("#out").evaluate("out => out.replaceChildren()")
        page.locator(place).press("Control+Enter")
        result(page).first.wait_for()
    assert [] == complaints(page)


@pytest.mark.parametrize("event", ["paste", "drop"])
def test_a_picture_can_be_pasted_and_dropped(page, service, event):
    """Anywhere on the page; it is scored as one that was chosen."""
    enter(page, service)
    drop(page, "body", "pasted.png", png(), event)
    page.locator("#prompt").fill("a red square")
    page.locator("#prompt").press("Control+Enter")
    result(page).first.wait_for()

    expect(page.locator(".result img")).to_have_attribute("alt", re.compile(r"pasted\.png"))
    assert [] == complaints(page)


def test_several_pictures_are_ranked(page, service):
    """The best first as the service says, with the metric that decided; one that was cut is not accepted."""
    enter(page, service)
    take_sample(page, 4)
    page.locator("#cascade").select_option("clipscore")
    score(page)

    rows = page.locator(".ranking li").all_inner_texts()
    figures = [*map(float, page.locator(".ranking li > .figure").all_inner_texts())]
    assert 3 == len(rows)
    assert figures[:2] == sorted(figures[:2], reverse=True)
    assert ["by vqascore", "by vqascore", "by clipscore"] == [re.search(r"by \w+", row)[0] for row in rows]
    assert ["not" in row for row in rows] == [False, False, True]
    expect(page.locator("#said")).to_contain_text("3 pictures ranked")
    assert [] == complaints(page)


def run_as_shown(page, language, folder):
    """Return what the code that the page shows prints, run beside the pictures."""
    page.locator("#code summary").click()
    page.locator("#code label", has_text=language).click()
    code = page.locator("#snippet").text_content()
    command = ["bash", "-c", code] if language == "curl" else [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("language", ["curl", "python"])
@pytest.mark.parametrize("mode", ["score", "rank"])
def test_the_code_to_copy_runs_as_it_stands(page, service, picture, mode, language):
    """Names and prompts with quotes are quoted, pictures turned; the numbers are those of the page."""
    picture.write_bytes(turned())
    enter(page, service)
    page.locator(".more summary").click()
    page.locator("#upright").check()
    page.locator("#ask .modes label", has_text=mode).click()
    fill(page, [picture], 'it\'s a "red" square')
    score(page)
    printed = run_as_shown(page, language, picture.parent)

    shown = float(page.locator(".figure").first.inner_text())
    assert any(shown == round(float(found), 3) for found in re.findall(r"\d\.\d+", printed)), printed


def test_the_python_code_of_a_ranking_has_an_argument_for_each_topic(page, service, picture):
    """What is accepted is one argument, and the cascade another; the code runs as it stands."""
    enter(page, service)
    page.locator("#ask .modes label", has_text="rank").click()
    page.locator(".more summary").click()
    fill(page, [picture], "a red square")
    page.locator("#top-k").fill("3")
    page.locator("#threshold").fill("0")
    page.locator("#cascade").select_option("clipscore")
    score(page)
    printed = run_as_shown(page, "python", picture.parent)

    assert "True vqascore" in printed
    code = page.locator("#snippet")
    expect(code).to_contain_text('accept=scoregate.Accept(top_k=3, threshold=0, on_error="block"),')
    expect(code).to_contain_text('cascade=scoregate.Cascade(metric="clipscore", keep=')


def test_a_key_is_asked_for_and_kept_in_the_tab_alone(page, locked):
    """The page opens without one; with it the metrics come.  No code and no lasting storage has it."""
    page.goto(locked)
    expect(page.locator("#key")).to_be_focused()
    page.keyboard.type(KEY)
    page.keyboard.press("Enter")
    page.locator("#metrics input").first.wait_for()
    take_sample(page, 1)

    assert KEY == page.evaluate("sessionStorage.getItem('scoregate.key')")
    assert [0, ""] == page.evaluate("[localStorage.length, document.cookie]")
    expect(page.locator("#snippet")).to_contain_text("$SCOREGATE_API_KEY")
    expect(page.locator("#snippet")).not_to_contain_text(KEY)


def test_the_page_about_the_api_shows_every_endpoint_and_schema(page, service):
    """With nothing from elsewhere."""
    page.goto(f"{service}playground/docs.html")
    page.locator("#schemas article").first.wait_for()
    document = httpx.get(f"{service}openapi.json", trust_env=False).json()

    titles = page.locator("article h3").all_text_contents()
    operations = [
        f"{method.upper()}{path}" for path, methods in document["paths"].items() for method in methods
    ]
    assert {*operations, *document["components"]["schemas"]} == {*titles}
    assert [] == complaints(page)
