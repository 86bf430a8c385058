"""Pictures that metrics look at beside an item's image: references, and the picture before an edit."""

import json
import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.external.chromium.steps import drop, enter, fill, pick, refuse, score, write
from tests.external.chromium.test_click_path import run_as_shown
from tests.support.chromium import complaints
from tests.support.pictures import png

PROMPT = "the same, in blue"
TEMPLATES = {"references": "anchored_style", "source": "editing"}


@pytest.fixture
def others(tmp_path: Path) -> list[Path]:
    """Four pictures, each of another colour."""
    paths = [tmp_path / f"other {number}.png" for number in range(4)]
    for number, path in enumerate(paths):
        path.write_bytes(png((10 * number, 90, 200)))
    return paths


def options(template: str) -> dict[str, dict[str, str]]:
    return {"judge": {"rubric": template}}


def choose(page: Page, field: str, pictures: list[Path], shown: int) -> None:
    """Choose pictures for a field, and wait until it shows that many."""
    page.locator(f"#{field}").set_input_files(pictures)
    expect(page.locator(f"[data-field={field}] .pictures li")).to_have_count(shown)


def tiles(page: Page, field: str) -> list[str | None]:
    """Return the descriptions of the pictures that a field shows."""
    return [image.get_attribute("alt") for image in page.locator(f"[data-field={field}] .pictures img").all()]


@pytest.mark.parametrize("field", ["references", "source"])
def test_a_judge_is_shown_the_pictures_that_are_chosen(page, service, picture, others, field):
    """The service gives the same grade where it is sent them without the page."""
    sent = others[:2] if field == "references" else others[:1]
    enter(page, service)
    pick(page, "judge")
    fill(page, [picture], PROMPT)
    write(page, "#options", json.dumps(options(TEMPLATES[field])))
    choose(page, field, sent, len(sent))
    score(page)

    parts = [{"part": path.name} for path in sent]
    item = {"prompt": PROMPT, "image": {"part": "p"}, field: parts if field == "references" else parts[0]}
    request = {"items": [item], "metrics": ["judge"], "options": options(TEMPLATES[field])}
    files = {path.name: (path.name, path.read_bytes()) for path in sent} | {"p": ("p", picture.read_bytes())}
    reply = httpx.post(
        f"{service}score", data={"request": json.dumps(request)}, files=files, trust_env=False
    ).json()
    expect(page.locator(".score > .figure")).to_have_text(f"{reply['results'][0]['scores']['judge']:.3f}")
    assert [] == complaints(page)


def test_there_are_at_most_three_references_and_one_source(page, service, others):
    """A fourth is left out; another source takes the first one's place; each can be removed."""
    enter(page, service)
    pick(page, "judge")
    choose(page, "references", others, 3)
    expect(page.locator("#said")).to_have_text(
        "3 references added, 3 in all. 1 left out: there may be at most 3."
    )
    choose(page, "source", others[:1], 1)
    page.locator("#source").set_input_files(others[1])
    expect(page.locator("[data-field=source] .pictures img")).to_have_attribute(
        "alt", "Source 1: other 1.png"
    )

    page.locator("[data-field=references] .pictures li button").nth(1).click()
    assert ["Reference 1: other 0.png", "Reference 2: other 2.png"] == tiles(page, "references")
    assert [] == tiles(page, "pictures")


def test_a_metric_that_does_not_look_at_them_is_not_sent_them(page, service, picture, others):
    """Their fields are hidden then: the service would refuse the request."""
    enter(page, service)
    pick(page, "judge")
    choose(page, "references", others[:1], 1)
    pick(page, "vqascore")
    fill(page, [picture], PROMPT)
    score(page)

    expect(page.locator("[data-field=references]")).to_be_hidden()
    expect(page.locator(".score")).to_contain_text("vqascore")


def test_references_that_the_template_does_not_look_at_are_refused_beside_them(
    page, service, picture, others
):
    """Once, however many pictures have them."""
    enter(page, service)
    pick(page, "judge")
    fill(page, [picture, others[3]], PROMPT)
    choose(page, "references", others[:1], 1)
    refuse(page)

    assert 1 == page.locator("#references-error").inner_text().count("does not use it")
    expect(page.locator(".problem li")).to_have_count(1)
    expect(page.locator("#references")).to_be_focused()


def test_a_picture_that_is_dropped_on_a_field_goes_there(page, service):
    """Anywhere else, it is one to be scored."""
    enter(page, service)
    pick(page, "judge")
    drop(page, "#source", "dropped.png", png())

    assert ["Source 1: dropped.png"] == tiles(page, "source")
    assert [] == tiles(page, "pictures")


@pytest.mark.parametrize("language", ["curl", "python"])
def test_the_code_to_copy_has_them_and_the_metadata(page, service, picture, others, language):
    """It runs as it stands, and prints the numbers of the page."""
    enter(page, service)
    pick(page, "judge", "geneval")
    fill(page, [picture], PROMPT)
    choose(page, "references", others[:2], 2)
    write(page, "#options", json.dumps(options("anchored_entity")))
    write(page, "#geneval", '{"tag": "single_object", "include": [{"class": "dog", "count": 1}]}')
    score(page)
    printed = run_as_shown(page, language, picture.parent)

    shown = page.locator(".score > .figure").all_text_contents()
    numbers = {f"{float(found):.3f}" for found in re.findall(r"\d\.\d+", printed)}
    assert 2 == len(shown)
    assert {*shown} <= numbers, printed
