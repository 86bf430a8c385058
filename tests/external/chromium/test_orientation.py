"""Pictures are shown as the models see them: as they are stored, or turned by their EXIF orientation."""

import io
from pathlib import Path

import PIL.Image
import pytest
from playwright.sync_api import Page, expect

from tests.external.chromium.steps import answer, enter, fill, pick, score
from tests.support.turned import turned

TILE, SHOWN = "#pictures img", ".result img"


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """Red on the left and blue on the right as it is stored; red above blue as a viewer shows it."""
    path = tmp_path / "photo.png"
    path.write_bytes(turned(size=(320, 160)))
    return path


def lies(page: Page, selector: str) -> bool:
    """Return whether an image is shown with its colours side by side, and not one above the other."""
    image = page.locator(selector)
    expect(image).to_have_js_property("complete", True)
    seen = PIL.Image.open(io.BytesIO(image.screenshot())).convert("RGB")
    x, y = seen.width // 2, seen.height // 2
    left, right, above, below = (
        "red" if red > blue else "blue"
        for red, _, blue in map(seen.getpixel, [(x - 12, y), (x + 12, y), (x, y - 12), (x, y + 12)])
    )
    assert (left == right) != (above == below)
    return left != right


def test_a_photo_is_shown_lying_as_it_is_stored_and_upright_once_that_is_asked_for(page, service, photo):
    """What was scored stays as it was seen until the next score."""
    enter(page, service)
    pick(page, "vqascore")
    fill(page, [photo], "a red square above a blue square")
    score(page)
    assert [True, True] == [lies(page, TILE), lies(page, SHOWN)]
    expect(page.locator(".warnings")).to_contain_text("EXIF orientation, 6")
    assert "image_rotated_by_exif" in [each["code"] for each in answer(page)["warning_codes"]]

    page.locator(".more summary").click()
    page.locator("#upright").check()
    assert [False, True] == [lies(page, TILE), lies(page, SHOWN)]
    expect(page.locator("#snippet")).to_contain_text('"orient":"exif"')

    page.locator("#go").click()
    expect(page.locator(".warnings")).not_to_contain_text("EXIF")
    assert [False, False] == [lies(page, TILE), lies(page, SHOWN)]


def test_a_warning_is_one_line_with_its_pictures_from_1_and_its_metrics(page, service, photo):
    """The service counts items from 0, and warns for each metric."""
    enter(page, service)
    pick(page, "vqascore", "clipscore")
    other = photo.with_name("other.png")
    other.write_bytes(photo.read_bytes())
    fill(page, [photo, other], "a red square above a blue square")
    score(page)

    assert 2 <= sum("EXIF" in text for text in answer(page)["warnings"])
    lines = [line for line in page.locator(".warnings li").all_inner_texts() if "EXIF" in line]
    assert 1 == len(lines)
    assert lines[0].startswith(("Pictures 1, 2: ", "Pictures 1, 2, vqascore, clipscore: "))
