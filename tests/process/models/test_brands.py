"""Files of boxes: the format of a general brand is that of its compatible ones."""

import pytest

from models.images.formats.contract import ImageError
from models.images.formats.registry import recognise
from models.images.image import Image
from tests.support.pictures import picture, saved
from tests.unit.client.data.test_names import BRANDS, box

HEIC = "the image is HEIC, which is not read: convert it to JPEG or PNG"
SAID = {"heic": HEIC, "": "the bytes are no image of a known format"}


@pytest.mark.parametrize(("brands", "kind"), BRANDS.items())
def test_service_and_client_agree_on_the_format_of_brands(brands, kind):
    """HEIC is named in its error, also where its own brand is a general one."""
    if kind == "avif":
        assert "AVIF" == recognise(box(*brands)).name
    else:
        with pytest.raises(ImageError, match=f"^{SAID[kind]}$"):
            recognise(box(*brands))


def test_an_avif_under_a_general_brand_is_decoded():
    """Its own brand is among the compatible ones."""
    file = saved(picture(), "AVIF")

    assert b"ftypavif" == file[4:12]
    assert Image(file).rgb.tobytes() == Image(file[:8] + b"mif1" + file[12:]).rgb.tobytes()
