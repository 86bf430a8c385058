"""Pictures are shown as the models see them: as they are stored, or turned by their EXIF orientation."""

import io
from pathlib import Path

import PIL.Image
import pytest

from tests.playground.steps import RESULT, answer, enter, fill, pick, text
from tests.support.browser import Browser
from tests.support.turned import turned

TURN = "document.querySelector('.more').open = true; document.querySelector('#upright').click()"
MIDDLE = (
    "(({x, y, width, height}) => [x + width / 2, y + height / 2])"
    "(document.querySelector(%s).getBoundingClientRect())"
)
TILE, SHOWN = "#pictures img", ".result img"


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """Red on the left and blue on the right as it is stored; red above blue as a viewer shows it."""
    path = tmp_path / "photo.png"
    path.write_bytes(turned(size=(320, 160)))
    return path


def lies(browser: Browser, selector: str) -> bool:
    """Whether an image is shown with its colours side by side, and not one above the other."""
    browser.until(f"document.querySelector({selector!r})?.complete")
    browser.run(
        f"document.querySelector({selector!r}).scrollIntoView({{block: 'center', behavior: 'instant'}})"
    )
    x, y = map(round, browser.run(MIDDLE % repr(selector)))
    seen = PIL.Image.open(io.BytesIO(browser.picture())).convert("RGB")
    left, right, above, below = (
        "red" if red > blue else "blue"
        for red, _, blue in map(seen.getpixel, [(x - 12, y), (x + 12, y), (x, y - 12), (x, y + 12)])
    )
    assert (left == right) != (above == below)
    return left != right


def test_a_photo_is_shown_lying_as_it_is_stored_and_upright_once_that_is_asked_for(browser, service, photo):
    """What was scored stays as it was seen until the next score."""
    enter(browser, service)
    pick(browser, "vqascore")
    fill(browser, [photo], "a red square above a blue square")
    browser.click("#go")
    browser.until(RESULT)
    assert [True, True] == [lies(browser, TILE), lies(browser, SHOWN)]
    assert "EXIF orientation, 6" in text(browser, ".warnings")
    assert "image_rotated_by_exif" in [each["code"] for each in answer(browser)["warning_codes"]]

    browser.run(TURN)
    assert [False, True] == [lies(browser, TILE), lies(browser, SHOWN)]
    assert '"orient":"exif"' in browser.run("document.querySelector('#snippet').textContent")

    browser.click("#go")
    browser.until("!document.querySelector('.warnings').innerText.includes('EXIF')")
    assert [False, False] == [lies(browser, TILE), lies(browser, SHOWN)]
