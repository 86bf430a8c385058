"""The page in a Chromium: it asks nobody for anything, and can be read on a phone, in the dark and by all."""

import json

import pytest
from playwright.sync_api import expect

from scoregate.cli.main import main
from tests.support.axe import violations_in_both_schemes
from tests.support.chromium import PHONE, complaints
from tests.support.pictures import png

SECTIONS = ["means", "skills", "ordering", "agreement", "worst", "cost"]
EVIL = "<script>document.title = 'gone'</script>\"><img src=http://localhost/x onerror=alert(1)> " + "x" * 200
DETAILS = {
    "geneval": {
        "tag": "counting",
        "reason": "expected dog>=2, found 1",
        "width": 16,
        "height": 16,
        "boxes": [{"class": "dog", "score": 0.9, "box": [2, 3, 9, 12], "color": "red"}],
    },
    "dsg": {"questions": [{"id": 1, "text": "Is there a dog?", "answer": "no", "score": 0.0}]},
}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The address of a page with all that a page can have; the prompt of each row is hostile."""
    folder = tmp_path_factory.mktemp("report")
    rows, lines = [], []
    for number in range(1, 41):
        (folder / "a.png").write_bytes(png("red"))
        prompt = f"{EVIL} {number // 2}"
        maker = f"a generator with a long name, {number % 2}"
        rows.append({"image": "a.png", "prompt": prompt, "maker": maker, "stars": number * 7 % 5})
        scores = {"geneval": float(number % 3 > 0), "dsg": number * 3 % 10 / 10}
        error = {"geneval": {"code": "no_task", "detail": EVIL}}
        lines.append(
            {
                "row": number,
                "image": "a.png",
                "prompt": prompt,
                "sha256": None,
                "scores": scores if number > 3 else {"dsg": 0.5},
                "errors": {} if number > 3 else error,
                "models": {"detector": "tiny@1"},
                "details": DETAILS,
            }
        )
    for name, content in (("rows.jsonl", rows), ("scores.jsonl", lines)):
        (folder / name).write_text("".join(json.dumps(each) + "\n" for each in content), "utf-8")
    named = ("--human", "stars", "--model", "maker", "--skill", "maker", "--alpha", "0.05")
    files = [str(folder / name) for name in ("rows.jsonl", "page.html", "scores.jsonl")]
    data, out, results = files
    assert 1 == main(["report", data, "-o", out, "--results", results, "--offline", *named])
    return (folder / "page.html").as_uri()


def test_axe_finds_nothing(page, report):
    """Names, order of headings, tables, and contrast of at least 4.5 to 1."""
    page.goto(report)

    assert [] == violations_in_both_schemes(page)


def test_the_page_asks_for_nothing_and_complains_of_nothing(page, report):
    """Whatever the prompts say; its title is still its own."""
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report)

    expect(page).to_have_title("Scores of rows.jsonl")
    assert [] == complaints(page)
    assert [report] == asked


def test_all_sections_are_there_and_can_be_gone_to(page, report):
    """Each link of the page has its place."""
    page.goto(report)

    links = page.locator("nav a").all()
    assert SECTIONS == [section.get_attribute("id") for section in page.locator("section").all()]
    assert [f"#{name}" for name in SECTIONS] == [link.get_attribute("href") for link in links]


def test_every_picture_is_loaded_and_has_its_boxes_over_it(page, report):
    """A box of the detector lies where it was found: 7 of 16 pixels wide, from the second on."""
    page.goto(report)
    framed = page.locator(".picture", has=page.locator("rect")).first
    box, picture = framed.locator("rect").first.bounding_box(), framed.locator("img").bounding_box()

    assert page.evaluate("[...document.images].every(each => each.complete && each.naturalWidth > 0)")
    assert 7 / 16 == pytest.approx(box["width"] / picture["width"], abs=0.15)
    assert 2 / 16 == pytest.approx((box["x"] - picture["x"]) / picture["width"], abs=0.1)


@pytest.mark.parametrize("window", [PHONE], ids=["phone"])
def test_nothing_is_cut_off_on_a_phone(page, report):
    """At 360 pixels nothing but a wide table has to be moved sideways, and that alone."""
    page.goto(report)

    assert 360 == page.evaluate("document.documentElement.scrollWidth")
    assert 0 == page.evaluate(
        "[...document.querySelectorAll('.bars')].filter(each => each.scrollWidth"
        " > each.parentElement.clientWidth).length"
    )
