"""The page in a Chromium: it asks nobody for anything, and can be read on a phone, in the dark and by all."""

import json

import pytest

from scoregate.cli.main import main
from tests.conftest import png
from tests.support.axe import violations
from tests.support.browser import chromium

pytestmark = pytest.mark.integration

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
def page(tmp_path_factory):
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


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser, page, scheme):
    """Names, order of headings, tables, and contrast of at least 4.5 to 1."""
    browser.look(1280, 900, scheme=scheme)
    browser.open(page)

    assert [] == violations(browser)


def test_the_page_asks_for_nothing_and_complains_of_nothing(browser, page):
    """Whatever the prompts say; its title is still its own."""
    browser.look(1280, 900)
    browser.open(page)

    assert [page] == [each for each in browser.addresses() if not each.startswith("data:")]
    assert [] == browser.complaints()
    assert "Scores of rows.jsonl" == browser.run("document.title")


def test_all_sections_are_there_and_can_be_gone_to(browser, page):
    """Each link of the page has its place."""
    browser.open(page)

    assert SECTIONS == browser.run("[...document.querySelectorAll('section')].map(each => each.id)")
    assert [f"#{name}" for name in SECTIONS] == browser.run(
        "[...document.querySelectorAll('nav a')].map(each => each.getAttribute('href'))"
    )


def test_every_picture_is_loaded_and_has_its_boxes_over_it(browser, page):
    """A box of the detector lies where it was found: 7 of 16 pixels wide, from the second on."""
    browser.look(1280, 900)
    browser.open(page)
    [share, left] = browser.run(
        "(() => { const of = node => node.getBoundingClientRect();"
        " const rect = document.querySelector('.picture rect');"
        " const picture = of(rect.closest('.picture').querySelector('img'));"
        " return [of(rect).width / picture.width, (of(rect).x - picture.x) / picture.width]; })()"
    )

    assert browser.run("[...document.images].every(each => each.complete && each.naturalWidth > 0)")
    assert 7 / 16 == pytest.approx(share, abs=0.15)
    assert 2 / 16 == pytest.approx(left, abs=0.1)


def test_nothing_is_cut_off_on_a_phone(browser, page):
    """At 360 pixels nothing but a wide table has to be moved sideways, and that alone."""
    browser.look(360, 740, phone=True)
    browser.open(page)

    assert 360 == browser.run("document.documentElement.scrollWidth")
    assert 0 == browser.run(
        "[...document.querySelectorAll('.bars')].filter(each => each.scrollWidth"
        " > each.parentElement.clientWidth).length"
    )
