"""What a detector found is drawn over the picture, and told in words."""

import json
from pathlib import Path

import PIL.Image
import pytest

from tests.playground.steps import RESULT, answer, enter, fill, pick, text, write
from tests.support.browser import Browser

SIZES = ((300, 200), (90, 240))  # one lies, one stands
ASKED = ["dog", "cat", "car", "boat", "bird"]  # some of which the fake detector finds
METADATA = {"tag": "colors", "include": [{"class": name, "count": 1, "color": "red"} for name in ASKED]}
DRAWN = """[...document.querySelectorAll('.result')].map(card => {
    const picture = card.querySelector('.boxed img').getBoundingClientRect();
    return [...card.querySelectorAll('.box')].map(node => {
        const box = node.getBoundingClientRect();
        const shares = [
            (box.left - picture.left) / picture.width, (box.top - picture.top) / picture.height,
            (box.right - picture.left) / picture.width, (box.bottom - picture.top) / picture.height,
        ];
        return {label: node.textContent, shares, aside: node.classList.contains('aside')};
    });
})"""
SEEN = "[...document.querySelectorAll('.box')].filter(box => box.checkVisibility()).length"

pytestmark = pytest.mark.integration


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{width}.png" for width, _ in SIZES]
    for path, size in zip(paths, SIZES, strict=True):
        PIL.Image.new("RGB", size, (200, size[0] % 256, 30)).save(path)
    return paths


def look(browser: Browser, service: str, pictures: list[Path]) -> None:
    """Have `geneval` look for red things in these pictures."""
    enter(browser, service)
    pick(browser, "geneval")
    fill(browser, pictures, "a dog and its friends, all painted red")
    write(browser, "#geneval", json.dumps(METADATA))
    browser.click("#go")
    browser.until(RESULT)


def test_boxes_lie_where_the_details_say_with_class_score_and_colour(browser, service, pictures):
    """In the pixels of each picture; what was asked for is drawn in any case, and differs by its line."""
    look(browser, service, pictures)
    results = answer(browser)["results"]
    cards = browser.run(DRAWN)

    assert [*SIZES] == [
        (each["details"]["geneval"]["width"], each["details"]["geneval"]["height"]) for each in results
    ]
    for result, card in zip(results, cards, strict=True):
        details = result["details"]["geneval"]
        size = (details["width"], details["height"]) * 2
        assert 20 == len(card)
        for drawn in card:
            number, *name, score = drawn["label"].split()
            box = details["boxes"][int(number) - 1]
            assert " ".join(filter(None, (box["color"], box["class"]))) == " ".join(name)
            assert f"{box['score']:.3f}" == score
            assert drawn["aside"] == (box["class"] not in ASKED)
            for share, side, corner in zip(drawn["shares"], size, box["box"], strict=True):
                assert corner == pytest.approx(share * side, abs=0.5)
        asked = [box for box in details["boxes"] if box["class"] in ASKED]
        assert len(asked) == sum(not drawn["aside"] for drawn in card)
        assert any(box["color"] for box in asked)
    assert [] == browser.complaints()


def test_a_switch_hides_the_boxes_of_all_pictures(browser, service, pictures):
    """And shows them again; the list of objects stays for everybody."""
    look(browser, service, pictures)

    assert 40 == browser.run(SEEN)
    browser.click("#boxes")
    assert 0 == browser.run(SEEN)
    objects = browser.run("document.querySelector('.objects').textContent")
    browser.press(" ")
    assert 40 == browser.run(SEEN)
    first = answer(browser)["results"][0]["details"]["geneval"]["boxes"][0]
    assert f"1 {first['class']} {first['score']:.3f} ({round(first['box'][0])}, " in objects


def test_the_verdict_is_said_with_its_reason(browser, service, pictures):
    """Word by word as the service gives it."""
    look(browser, service, pictures)

    said = browser.run("[...document.querySelectorAll('.verdict')].map(node => node.innerText)")
    for result, shown in zip(answer(browser)["results"], said, strict=True):
        details = result["details"]["geneval"]
        assert shown.startswith("Correct" if details["correct"] else "Not correct")
        assert all(line in shown for line in details["reason"].splitlines())


def test_metadata_can_be_typed_where_geneval_is_chosen(browser, service, pictures):
    """Only there; what is no JSON is said beside the field, and so is what the service has against it."""
    enter(browser, service)
    pick(browser, "vqascore")
    assert browser.run("document.querySelector('#geneval-field').hidden")
    pick(browser, "geneval")
    assert not browser.run("document.querySelector('#geneval-field').hidden")

    fill(browser, pictures, "a red dog")
    write(browser, "#geneval", "no JSON")
    browser.click("#go")
    assert "This is not a JSON object." == text(browser, "#geneval-error")
    write(browser, "#geneval", '{"tag": "nonsense"}')
    browser.click("#go")
    browser.until("document.querySelector('.problem')")
    assert text(browser, "#geneval-error").startswith("geneval.tag: ")
    assert "geneval" == browser.run("document.activeElement.id")
