"""What a detector found is drawn over the picture, and told in words."""

import json
from pathlib import Path

import PIL.Image
import pytest
from playwright.sync_api import Page, expect

from tests.external.chromium.steps import answer, enter, fill, pick, refuse, score, write
from tests.support.chromium import complaints

SIZES = ((300, 200), (90, 240))  # one lies, one stands
ASKED = ["dog", "cat", "car", "boat", "bird"]  # some of which the fake detector finds
METADATA = {"tag": "colors", "include": [{"class": name, "count": 1, "color": "red"} for name in ASKED]}
DRAWN = """cards => cards.map(card => {
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


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{width}.png" for width, _ in SIZES]
    for path, size in zip(paths, SIZES, strict=True):
        PIL.Image.new("RGB", size, (200, size[0] % 256, 30)).save(path)
    return paths


def look(page: Page, service: str, pictures: list[Path]) -> None:
    """Have `geneval` look for red things in these pictures."""
    enter(page, service)
    pick(page, "geneval")
    fill(page, pictures, "a dog and its friends, all painted red")
    write(page, "#geneval", json.dumps(METADATA))
    score(page)


def test_boxes_lie_where_the_details_say_with_class_score_and_colour(page, service, pictures):
    """In the pixels of each picture; what was asked for is drawn in any case, and differs by its line."""
    look(page, service, pictures)
    results = answer(page)["results"]
    cards = page.locator(".result").evaluate_all(DRAWN)

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
    assert [] == complaints(page)


def test_a_switch_hides_the_boxes_of_all_pictures(page, service, pictures):
    """And shows them again; the list of objects stays for everybody."""
    look(page, service, pictures)
    boxes = page.locator(".box")

    expect(boxes.filter(visible=True)).to_have_count(40)
    page.locator("#boxes").click()
    expect(boxes.filter(visible=True)).to_have_count(0)
    first = answer(page)["results"][0]["details"]["geneval"]["boxes"][0]
    named = f"1 {first['class']} {first['score']:.3f} ({round(first['box'][0])}, "
    expect(page.locator(".objects").first).to_contain_text(named)
    page.keyboard.press("Space")
    expect(boxes.filter(visible=True)).to_have_count(40)


def test_the_verdict_is_said_with_its_reason(page, service, pictures):
    """Word by word as the service gives it."""
    look(page, service, pictures)

    said = page.locator(".verdict").all_inner_texts()
    for result, shown in zip(answer(page)["results"], said, strict=True):
        details = result["details"]["geneval"]
        assert shown.startswith("Correct" if details["correct"] else "Not correct")
        assert all(line in shown for line in details["reason"].splitlines())


def test_metadata_can_be_typed_where_geneval_is_chosen(page, service, pictures):
    """Only there; what is no JSON is said beside the field, and so is what the service has against it."""
    enter(page, service)
    pick(page, "vqascore")
    expect(page.locator("#geneval-field")).to_be_hidden()
    pick(page, "geneval")
    expect(page.locator("#geneval-field")).to_be_visible()

    fill(page, pictures, "a red dog")
    write(page, "#geneval", "no JSON")
    page.locator("#go").click()
    expect(page.locator("#geneval-error")).to_have_text("This is not a JSON object.")
    write(page, "#geneval", '{"tag": "nonsense"}')
    refuse(page)
    assert page.locator("#geneval-error").inner_text().startswith("geneval.tag: ")
    expect(page.locator("#geneval")).to_be_focused()
