"""The OCR reward with the real models."""

import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont
import pytest

from models.families.ocr import RapidOcrSettings
from models.families.ocr.model import from_settings
from tests.app.metrics.test_ocr import scored
from tests.support.paths import GOLDEN
from tests.support.pictures import b64, saved

pytestmark = pytest.mark.anyio

PICTURES = GOLDEN / "tifa_pictures"


@pytest.fixture(scope="module")
def reader():
    """The real models."""
    return from_settings(RapidOcrSettings(family="rapidocr", role="ocr"))


def drawn(name, text, ink="white"):
    """A released sample picture with a text in its upper part."""
    picture = PIL.Image.open(PICTURES / name).convert("RGB")
    font = PIL.ImageFont.load_default(48)
    PIL.ImageDraw.Draw(picture).text((60, 40), text, fill=ink, font=font, stroke_width=2, stroke_fill="black")
    return b64(saved(picture, "PNG"))


async def test_the_released_sample_pictures_show_what_is_written_on_them(serve, fakes, reader):
    """TIFA's three samples, which show no text that can be read: 0, and 1 when it is drawn on them."""
    fakes["ocr"] = reader
    names = sorted(path.name for path in PICTURES.glob("*.jpg"))
    assert 3 == len(names)
    async with serve() as client:
        for name in names:
            plain = b64((PICTURES / name).read_bytes())
            without = await scored(client, image=plain)
            right = await scored(client, image=drawn(name, "Hello World"))

            assert (0.0, "") == (without["scores"]["ocr"], without["details"]["ocr"]["read"])
            assert 1.0 == right["scores"]["ocr"]
        wrong = await scored(client, image=drawn(names[0], "Hello Moon"))
        assert 0.5 <= wrong["scores"]["ocr"] < 0.9
