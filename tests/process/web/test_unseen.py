"""What pixels of RGB do not show: one table for files, and for the same pictures opened by Pillow."""

import io

import numpy as np
import PIL.Image
import pytest
import torch

from models.images.image import Image
from scoregate.images import encoded
from tests.app.web.test_warnings import answered
from tests.support.pictures import b64, item, picture, saved
from tests.support.profiles import DISPLAY_P3, SRGB, profile
from tests.support.turned import exif

pytestmark = pytest.mark.anyio

TURNED, ALPHA, GREY, PROFILE = "image_rotated_by_exif", "alpha_ignored", "grey16_clipped", "profile_ignored"
P3 = profile("Display P3", DISPLAY_P3, v4=True)
CLEAR = picture("RGBA")
CLEAR.putpixel((0, 0), (9, 9, 9, 254))
GREY16 = PIL.Image.fromarray(np.arange(0, 6000, 5, np.uint16).reshape(30, 40))
PALETTE = picture().quantize(8)
XMP = b'<x:xmpmeta><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'

CASES = {
    "nothing": (saved(picture(), "PNG"), []),
    **{
        f"turned, {format}": (saved(picture(), format, exif=exif(6)), [TURNED])
        for format in ("JPEG", "PNG", "WEBP")
    },
    "turned, AVIF": (saved(picture(), "AVIF", exif=exif(8)), [TURNED]),
    "upright by Exif": (saved(picture(), "JPEG", exif=exif(1)), []),
    "turned by no orientation": (saved(picture(), "JPEG", exif=exif(9)), []),
    "broken Exif data": (saved(picture(), "PNG", exif=b"II*\0"), []),
    "turned by XMP": (saved(picture(), "JPEG", xmp=XMP), []),
    **{f"alpha, {format}": (saved(CLEAR, format), [ALPHA]) for format in ("PNG", "TIFF")},
    "alpha, WEBP": (saved(CLEAR, "WEBP", lossless=True), [ALPHA]),
    "alpha, grey": (saved(CLEAR.convert("LA"), "PNG"), [ALPHA]),
    "alpha, a colour of a palette": (saved(PALETTE, "PNG", transparency=0), [ALPHA]),
    "alpha, colours of a palette": (saved(PALETTE, "PNG", transparency=b"\xff\x80"), [ALPHA]),
    "alpha, GIF": (saved(PALETTE, "GIF", transparency=0), [ALPHA]),
    "alpha, a colour of RGB": (saved(picture(), "PNG", transparency=picture().getpixel((3, 3))), [ALPHA]),
    **{
        f"opaque, {format}": (saved(picture("RGBA"), format), [])
        for format in ("PNG", "TIFF", "WEBP", "AVIF")
    },
    "opaque, grey": (saved(picture("LA"), "PNG"), []),
    "opaque, a colour that no pixel has": (saved(PALETTE, "PNG", transparency=200), []),
    "opaque, a palette": (saved(PALETTE, "PNG", transparency=b"\xff" * 8), []),
    "deep": (saved(GREY16, "PNG"), [GREY]),
    "deep, TIFF": (saved(GREY16, "TIFF"), [GREY]),
    "deep, floating point": (saved(picture("F"), "TIFF"), [GREY]),
    **{
        f"P3, {format}": (saved(picture(), format, icc_profile=P3), [PROFILE])
        for format in ("JPEG", "PNG", "WEBP")
    },
    "P3, TIFF": (saved(picture(), "TIFF", icc_profile=P3), [PROFILE]),
    "P3, AVIF": (saved(picture(), "AVIF", icc_profile=P3), [PROFILE]),
    "CMYK": (saved(picture("CMYK"), "JPEG", icc_profile=profile("FOGRA39", space=b"CMYK")), [PROFILE]),
    "sRGB": (saved(picture(), "PNG", icc_profile=profile("c2", SRGB)), []),
    "all": (saved(CLEAR, "PNG", icc_profile=P3, exif=exif(5)), [TURNED, ALPHA, PROFILE]),
}
FORMATS = {"formats": ["JPEG", "PNG", "WEBP", "GIF", "BMP", "AVIF", "TIFF"]}


def opened(file: bytes) -> PIL.Image.Image:
    """As a caller opens it."""
    return PIL.Image.open(io.BytesIO(file))


@pytest.mark.parametrize(("file", "codes"), CASES.values(), ids=CASES)
async def test_a_file_and_its_pil_image_have_the_same_warnings(serve, file, codes):
    """Orientation, transparency, depth and profile go along with the pixels."""
    pictures = [file, encoded(opened(file))]
    async with serve(images=FORMATS) as client:
        answer = await answered(client, {"items": [item(image=b64(each)) for each in pictures]})

    found = [(each["item"], each["code"]) for each in answer.get("warning_codes", [])]
    assert [(number, code) for number in (0, 1) for code in codes] == found


@pytest.mark.parametrize(("file", "codes"), CASES.values(), ids=CASES)
def test_a_file_and_its_pil_image_have_the_same_pixels_stored_and_upright(file, codes):
    """So `orient` does to one what it does to the other."""
    of_file, of_pil = Image(file), Image(encoded(opened(file)))

    assert of_file.rgb.tobytes() == of_pil.rgb.tobytes()
    assert of_file.upright().rgb.tobytes() == of_pil.upright().rgb.tobytes()
    assert (of_file.rgb.tobytes() != of_file.upright().rgb.tobytes()) == (TURNED in codes)


def test_a_tiff_is_upright_in_pil():
    """Pillow turns it when it decodes it, so nothing is left to turn."""
    file = saved(picture(), "TIFF", exif=exif(6))

    of_pil = Image(encoded(opened(file)))
    assert 1 == of_pil.unseen.orientation
    assert Image(file).upright().rgb.tobytes() == of_pil.rgb.tobytes()


PIXELS = np.asarray(CLEAR)
ARRAYS = {
    "array": (PIXELS, [ALPHA]),
    "floats": ((PIXELS / 255).astype(np.float32), [ALPHA]),
    "tensor": (torch.from_numpy(PIXELS.copy()).permute(2, 0, 1), [ALPHA]),
    "opaque array": (np.asarray(picture("RGBA")), []),
    "array of RGB": (np.asarray(picture()), []),
}


@pytest.mark.parametrize(("pixels", "codes"), ARRAYS.values(), ids=ARRAYS)
async def test_an_array_has_the_warning_of_a_file_with_its_pixels(serve, pixels, codes):
    """The fourth channel is warned about where it is not opaque."""
    async with serve(images=FORMATS) as client:
        answer = await answered(client, {"items": [item(image=b64(encoded(pixels)))]})

    assert codes == [each["code"] for each in answer.get("warning_codes", [])]
    assert picture().tobytes()[3:] == Image(encoded(pixels)).rgb.tobytes()[3:]


@pytest.mark.parametrize("frames", ["mean", "grid"])
async def test_of_frames_references_and_cached_scores_only_the_transparent_are_warned_about(serve, frames):
    """The second request decodes nothing for scores, and its warnings are the same."""
    clear, opaque = b64(saved(CLEAR, "PNG")), b64(saved(picture("RGBA"), "PNG"))
    items = [item(image=each) for each in ([opaque, clear], [opaque, opaque], opaque, clear)]
    body = {"items": items, "options": {"vqascore": {"frames": frames}}}
    async with serve(images=FORMATS) as client:
        answers = [await answered(client, body) for _ in range(2)]

    for answer in answers:
        assert [0, 3] == [each["item"] for each in answer["warning_codes"]]
        assert {ALPHA} == {each["code"] for each in answer["warning_codes"]}


async def test_frames_of_an_animation_are_warned_about_where_one_of_them_is_transparent(serve):
    """A GIF may have a transparent colour only for what a frame leaves as it was."""
    moving = [picture().rotate(angle) for angle in (0, 90)]
    clear = [CLEAR, CLEAR.rotate(90)]
    files = [
        saved(first, "WEBP", save_all=True, append_images=[second], lossless=True)
        for first, second in ([each.convert("RGBA") for each in moving], clear)
    ]
    body = {"items": [item(image=b64(each)) for each in files], "options": {"vqascore": {"frames": "mean"}}}
    async with serve(images=FORMATS) as client:
        answer = await answered(client, body)

    assert [(1, ALPHA)] == [(each["item"], each["code"]) for each in answer["warning_codes"]]
