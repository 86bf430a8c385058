"""ICC profiles: which of them are of other colours than sRGB's."""

import PIL.ImageCms
import pytest

from models.images.formats.contract import Unseen
from models.images.formats.icc import is_other
from models.images.image import Image
from tests.support.pictures import picture, saved
from tests.support.profiles import DISPLAY_P3, SRGB, profile

OF_LCMS = PIL.ImageCms.ImageCmsProfile(PIL.ImageCms.createProfile("sRGB")).tobytes()
SAME = {
    "of Little CMS": OF_LCMS,
    "sRGB, version 2": profile("sRGB IEC61966-2.1", SRGB),
    "sRGB under another name": profile("c2", SRGB),
    "sRGB with tables, version 4": profile("sRGB_v4_ICC_preference.icc", v4=True),
    "grey": profile("sGrey", space=b"GRAY"),
}
OTHER = {
    "Display P3": profile("Display P3", DISPLAY_P3, v4=True),
    "Display P3 under a wrong name": profile("sRGB", DISPLAY_P3),
    "CMYK": profile("Coated FOGRA39", space=b"CMYK"),
    "cut": OF_LCMS[:140],
    "empty": b"\0",
    "many tags": OF_LCMS[:128] + b"\xff" * 4,
}
PICTURES = ("JPEG", "PNG", "WEBP", "TIFF", "AVIF")


@pytest.mark.parametrize("content", SAME.values(), ids=SAME)
def test_a_profile_with_the_primaries_or_else_the_name_of_srgb_is_srgbs(content):
    assert not is_other(content)


@pytest.mark.parametrize("content", OTHER.values(), ids=OTHER)
def test_any_other_profile_is_of_other_colours(content):
    """And so is one that cannot be read."""
    assert is_other(content)


@pytest.mark.parametrize("format", PICTURES)
def test_a_profile_is_found_in_each_format(format):
    """One of sRGB is nothing to warn about."""
    other, same = (saved(picture(), format, icc_profile=each) for each in (OTHER["Display P3"], OF_LCMS))

    assert Unseen(profile=True) == Image(other).unseen
    assert Unseen() == Image(same).unseen


@pytest.mark.parametrize("format", ["JPEG", "PNG"])
def test_a_profile_in_parts_or_compressed_is_read_to_its_tags(format):
    """A JPEG has a large one in segments of 64 kB; that of a PNG is inflated within a limit."""
    large = OTHER["Display P3"] + bytes(2**20)

    assert Unseen(profile=True) == Image(saved(picture(), format, icc_profile=large)).unseen
    assert Unseen() == Image(saved(picture(), format, icc_profile=OF_LCMS + bytes(2**20))).unseen


@pytest.mark.parametrize("frames", [1, 2])
def test_an_apng_whose_picture_is_none_of_its_frames_has_more_of_them(frames):
    """A viewer of animations shows the frame, which is not scored."""
    others = [picture().rotate(90 * turn) for turn in range(1, 1 + frames)]
    apart = saved(picture(), "PNG", save_all=True, append_images=others, default_image=True)
    within = saved(picture(), "PNG", save_all=True, append_images=others)

    assert Unseen(more_frames=True) == Image(apart).unseen == Image(within).unseen
    assert picture().tobytes() == Image(apart).rgb.tobytes()
