"""The page of `scoregate versus` in a Chromium: pictures side by side, in order, by filter, by keyboard."""

import json
import re

import pytest
from playwright.sync_api import expect

from scoregate.cli.main import main
from tests.support.axe import violations_in_both_schemes
from tests.support.chromium import PHONE, complaints
from tests.support.pictures import png

PROMPTS = 25
EVIL = "</script><script>document.title = 'gone'</script><img src=http://localhost/x onerror=alert(1)>"
DRAWN = re.compile("^data:image/jpeg;base64,")
ARTICLE, HEADING = "#prompts article", "#prompts article h2"


def line(row, name, image, prompt):
    """A result of `batch`: A is better the larger the number of its row is; B passes no question."""
    vqascore = row / PROMPTS if name == "A" else 0.5
    questions = [
        {"text": "Is there a dog?", "score": float(name == "A")},
        {"text": "Is it red?", "score": 1.0},
    ]
    return {
        "row": row,
        "image": image,
        "prompt": prompt,
        "sha256": None,
        "scores": {"vqascore": vqascore, "dsg": 1 - vqascore},
        "errors": {},
        "models": {"vqa": "tiny@1"},
        "columns": {"skill": "colour" if row % 2 else "count"},
        "details": {"dsg": {"questions": questions}},
    }


@pytest.fixture(scope="module")
def side_by_side(tmp_path_factory):
    """The address of a page of two generators; each prompt is hostile."""
    folder = tmp_path_factory.mktemp("versus")
    (folder / "a.png").write_bytes(png("red"))
    for name in ("A", "B"):
        rows = [(number, f"a {EVIL} dog {number}") for number in range(1, PROMPTS + 1)]
        table = [{"image": "a.png", "prompt": prompt} for _, prompt in rows]
        lines = [line(number, name, "a.png", prompt) for number, prompt in rows]
        if name == "B":
            lines[2] |= {"scores": {"dsg": 0.5}, "errors": {"vqascore": {"code": "timeout", "detail": EVIL}}}
        manifest = {"manifest": 1, "dataset": {"path": f"{name}-rows.jsonl"}, "results": f"{name}.jsonl"}
        manifest |= {"metrics": ["vqascore", "dsg"], "options": {}, "runs": []}
        for file, content in ((f"{name}-rows.jsonl", table), (f"{name}.jsonl", lines)):
            (folder / file).write_text("".join(json.dumps(each) + "\n" for each in content), "utf-8")
        (folder / f"{name}.jsonl.manifest.json").write_text(json.dumps(manifest), "utf-8")
    files = [str(folder / f"{name}.jsonl") for name in ("A", "B")]
    assert 1 == main(["versus", *files, "--by", "skill", "--html", str(folder / "page.html")])
    return (folder / "page.html").as_uri()


def numbers(page):
    """The numbers that end the prompts on the page."""
    return [int(text.rpartition(" ")[2]) for text in page.locator(HEADING).all_inner_texts()]


def test_axe_finds_nothing(page, side_by_side):
    """Names of controls, order of headings, tables, and contrast of at least 4.5 to 1."""
    page.goto(side_by_side)

    assert [] == violations_in_both_schemes(page)


def test_the_page_asks_for_nothing_and_complains_of_nothing(page, side_by_side):
    """Whatever the prompts say; its own script is the only one that runs."""
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(side_by_side)

    expect(page).to_have_title("A and B side by side")
    assert [] == complaints(page)
    assert [side_by_side] == [url for url in asked if not url.startswith("data:")]


def test_prompts_stand_in_the_order_of_the_difference(page, side_by_side):
    """Those on which A is better first, or B, or the largest difference; by the metric that is chosen."""
    page.goto(side_by_side)
    assert [*range(25, 15, -1)] == numbers(page)

    page.get_by_label("Order").select_option("B better first")
    assert [1, 2, 4, 5, 6, 7, 8, 9, 10, 11] == numbers(page)
    page.get_by_label("Metric").select_option("dsg")
    assert [*range(25, 15, -1)] == numbers(page)


def test_a_prompt_without_a_score_is_last_and_says_why(page, side_by_side):
    """It is never dropped."""
    page.goto(side_by_side)
    page.keyboard.press("End")

    last = page.locator(ARTICLE).last
    assert 3 == numbers(page)[-1]
    expect(last).to_contain_text("vqascore: timeout")


def test_filters_show_the_prompts_that_fit(page, side_by_side):
    """By a value of the column `--by`, and by text."""
    page.goto(side_by_side)
    page.get_by_label("skill").select_option("count")
    assert [*range(24, 5, -2)] == numbers(page)
    expect(page.get_by_role("status")).to_have_text("12 of 25 prompts, page 1 of 2")

    page.get_by_label("Text").fill("dog 24")
    assert [24] == numbers(page)


def test_arrow_keys_turn_the_pages(page, side_by_side):
    """Not while one types; the buttons do the same."""
    page.goto(side_by_side)
    page.keyboard.press("ArrowRight")
    assert [*range(15, 5, -1)] == numbers(page)
    expect(page.locator("#prompts")).to_be_focused()
    page.keyboard.press("Home")
    page.get_by_role("button", name="Next").click()
    assert [*range(15, 5, -1)] == numbers(page)

    page.get_by_label("Text").focus()
    page.keyboard.press("ArrowLeft")
    assert [*range(15, 5, -1)] == numbers(page)


def test_pictures_are_drawn_when_they_are_seen(page, side_by_side):
    """Side by side; those further down have no address yet."""
    page.goto(side_by_side)
    first, last = (each.locator("img") for each in (page.locator(ARTICLE).first, page.locator(ARTICLE).last))
    for place in range(2):
        expect(first.nth(place)).to_have_attribute("src", DRAWN)
        expect(last.nth(place)).not_to_have_attribute("src", DRAWN)
    boxes = [first.nth(place).bounding_box() for place in range(2)]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] < boxes[1]["x"]

    last.first.scroll_into_view_if_needed()
    expect(last.first).to_have_attribute("src", DRAWN)
    expect(last.first).to_have_js_property("naturalWidth", 16)


def test_questions_that_one_passes_and_the_other_fails_are_listed(page, side_by_side):
    """A question that both pass is not."""
    page.goto(side_by_side)

    asked = page.locator(ARTICLE).first.locator("li")
    assert ["dsg: Is there a dog? A passes, B fails"] == asked.all_inner_texts()


@pytest.mark.parametrize("window", [PHONE], ids=["phone"])
def test_nothing_is_cut_off_on_a_phone(page, side_by_side):
    """At 360 pixels nothing but a wide table has to be moved sideways."""
    page.goto(side_by_side)

    assert 360 == page.evaluate("document.documentElement.scrollWidth")
