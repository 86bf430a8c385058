"""Cut-outs of objects: cropped or not, and on which background."""

from dataclasses import replace

import numpy as np
import PIL.Image
import pytest

from models.core.outcomes import Detection, packed
from models.images.image import Image
from service.metrics.objects.detections import GREY, Cutout

RED = (255, 0, 0)
PICTURE = Image.of(PIL.Image.new("RGB", (8, 6), "red"))
MASK = np.array([[True, False], [False, False]])
DOG = Detection("dog", 0.5, (3.0, 2.0, 5.0, 4.0), packed(MASK))


def pixels(**options):
    return np.asarray(Cutout(PICTURE, DOG, **options).rgb)


def test_without_a_crop_the_whole_picture_is_grey_outside_the_mask():
    """The object stands at its place."""
    found = pixels(crop=False)

    assert (6, 8, 3) == found.shape
    assert RED == tuple(found[2, 3])
    assert 47 == (found == GREY).all(axis=-1).sum()
    assert (8, 6) == Cutout(PICTURE, DOG, crop=False).size


def test_the_background_is_a_colour_or_the_pictures_own():
    """Within the box."""
    assert (2, 2, 3) == pixels(background="#00f").shape
    assert 3 == (pixels(background="#00f") == (0, 0, 255)).all(axis=-1).sum()
    assert (pixels(background="original") == RED).all()
    assert (pixels(background="original", crop=False) == RED).all()


def test_other_cutouts_of_an_object_have_other_digests():
    """Those of the default stay, so cached vectors do; a colour has two spellings."""
    digests = [
        Cutout(PICTURE, DOG, crop=crop, background=background).digest
        for crop in (True, False)
        for background in ("#999", "#00f", "original")
    ]

    other = Cutout(Image.of(PIL.Image.new("RGB", (8, 6), "lime")), DOG, crop=False).digest

    assert len(digests) == len({*digests, other}) - 1
    assert Cutout(PICTURE, DOG).digest == digests[0] == Cutout(PICTURE, DOG, background="#999999").digest


def test_a_cutout_in_use_keeps_the_pixels_of_its_picture():
    """It is made of them when its call is prepared, which may be after the end of the request."""
    picture, given_back = Image.of(PIL.Image.new("RGB", (8, 6), "red")), []
    picture.is_bound = True
    picture.reserve()
    cutout = Cutout(picture, DOG)
    with cutout.in_use():
        picture.release(lambda: given_back.append(True))
        assert (2, 2) == cutout.rgb.size
        assert not given_back

    assert given_back


def test_the_size_of_a_cutout_is_known_before_it_is_made():
    """In pixels and in bytes, four for each pixel, by which images in memory are counted."""
    wide = replace(DOG, box=(3.0, 2.0, 6.0, 4.0), mask=packed(np.ones((2, 3), bool)))

    assert (3, 2, 24) == (*Cutout(PICTURE, wide).size, Cutout(PICTURE, wide).header.memory)
    assert 8 * 6 * 4 == Cutout(PICTURE, wide, crop=False).header.memory


def test_an_object_without_a_mask_cannot_be_cut_out():
    with pytest.raises(ValueError, match=r"^an object without a mask cannot be cut out$"):
        Cutout(PICTURE, replace(DOG, mask=None))
