"""The EXIF orientation of a picture: read from the file, and undone where that is asked for."""

import io
import pickle

import numpy as np
import PIL.Image
import PIL.ImageOps
import pytest

from models.images.formats.contract import Unseen
from models.images.formats.registry import read_unseen
from models.images.frame_stack import FrameStack
from models.images.image import Image
from tests.support.bombs import chunk, segment, with_chunks, with_segments
from tests.support.films import film, many_frames
from tests.support.pictures import saved
from tests.support.turned import exif

FORMATS = ("JPEG", "PNG", "WEBP", "AVIF", "TIFF")  # those that have a place for it


def noise(size: tuple[int, int] = (45, 31)) -> PIL.Image.Image:
    """Every pixel different, so that no two orientations look the same."""
    return PIL.Image.fromarray(np.random.default_rng(3).integers(0, 256, (size[1], size[0], 3), np.uint8))


def as_pillow_turns(encoded: bytes) -> PIL.Image.Image:
    """What `ImageOps.exif_transpose` makes of the file."""
    with PIL.Image.open(io.BytesIO(encoded)) as picture:
        return PIL.ImageOps.exif_transpose(picture).convert("RGB")


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format", FORMATS)
def test_an_upright_picture_has_the_pixels_of_pillows_exif_transpose(format, orientation):
    """In each format and each orientation, and its size is told without a pixel."""
    encoded = saved(noise(), format, exif=exif(orientation))
    upright, expected = Image(encoded).upright(), as_pillow_turns(encoded)

    assert Unseen(orientation) == Image(encoded).unseen
    assert expected.size == upright.size
    assert 0 == upright.release(pytest.fail).seconds
    assert expected.tobytes() == upright.rgb.tobytes()
    assert Unseen() == upright.unseen


SIX = exif(6).tobytes().removeprefix(b"Exif\0\0")
BIG_ENDIAN = b"MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\x06" + bytes(6)

FILES = {
    "JPEG, big-endian": saved(noise(), "JPEG", exif=b"Exif\0\0" + BIG_ENDIAN),
    "PNG, behind the pixels": saved(noise(), "PNG")[:-12] + chunk(b"eXIf", SIX) + chunk(b"IEND", b""),
    "WEBP, with alpha": saved(noise().convert("RGBA"), "WEBP", exif=exif(6)),
    "TIFF, large": saved(noise(), "TIFF", exif=exif(6), big_tiff=True),
    "AVIF in tiles": saved(noise((300, 200)), "AVIF", exif=exif(6), tile_rows=1),
}


@pytest.mark.parametrize("encoded", FILES.values(), ids=FILES)
def test_the_orientation_is_found_wherever_a_file_of_its_format_has_it(encoded):
    """And so it is by Pillow."""
    assert 6 == Image(encoded).unseen.orientation
    assert as_pillow_turns(encoded).tobytes() == Image(encoded).upright().rgb.tobytes()


@pytest.mark.parametrize(
    "said",
    [b"", b"II", b"II*\0", exif(0).tobytes(), exif(9).tobytes(), SIX[:14], b"\xff" * 99],
)
@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
def test_exif_data_that_make_no_sense_turn_nothing(format, said):
    """The picture is scored as one without any."""
    encoded = with_exif(format, said)

    assert Unseen() == read_unseen(encoded)
    assert noise().size == Image(encoded).upright().rgb.size


def with_exif(format: str, said: bytes) -> bytes:
    """A picture with these bytes where its Exif data should be."""
    if format == "JPEG":
        exif_segment = segment(0xE1, b"Exif\0\0" + said)
        return with_segments(saved(noise(), "JPEG"), exif_segment, len(exif_segment))
    if format == "PNG":
        return with_chunks(saved(noise(), "PNG"), chunk(b"eXIf", said))
    return saved(noise(), "WEBP", exif=said)


def test_a_picture_without_orientation_is_upright_as_it_is():
    """So it keeps its digest, and every cache knows it."""
    image = Image(saved(noise(), "JPEG"))

    assert image is image.upright()


def test_the_digest_of_an_upright_picture_names_the_file_and_its_orientation():
    """No cache takes it for the picture as it is stored, nor for another orientation."""
    files = [saved(noise(), "PNG", exif=exif(orientation)) for orientation in (6, 8)]
    stored, upright = [Image(each) for each in files], [Image(each).upright() for each in files]

    assert 4 == len({image.digest for image in (*stored, *upright)})
    assert upright[0].digest == Image(files[0]).upright().digest


def test_an_upright_picture_stays_so_in_another_process_and_as_an_image_of_its_own():
    """Its file travels with the orientation."""
    upright = Image(saved(noise(), "JPEG", exif=exif(6))).upright()

    for same in (pickle.loads(pickle.dumps(upright)), Image.over(upright), upright.upright()):
        assert (upright.digest, upright.size) == (same.digest, same.size)
        assert upright.rgb.tobytes() == same.rgb.tobytes()
        assert Unseen() == same.unseen


def test_the_frames_of_an_upright_film_are_upright():
    """A WebP may say it of its whole animation."""
    stored = FrameStack(film("WEBP", size=(32, 16), exif=exif(6)))
    upright = stored.upright()

    assert ((32, 16), (16, 32)) == (stored.frame(1).rgb.size, upright.frame(1).rgb.size)
    assert upright.frame(1).size == upright.frame(1).once("size", lambda rgb: rgb.size)
    assert stored.frame(1).digest != upright.frame(1).digest


SEVERAL = {
    "GIF": film("GIF"),
    "GIF of small frames": many_frames(500),
    "PNG": film("PNG"),
    "WEBP": film("WEBP"),
    "AVIF": film("AVIF"),
    "TIFF": film("TIFF"),
}


@pytest.mark.parametrize("encoded", SEVERAL.values(), ids=SEVERAL)
def test_a_file_with_more_frames_than_the_first_is_known_by_its_container(encoded):
    """Animations, and a TIFF of several pages."""
    assert Unseen(more_frames=True) == Image(encoded).unseen


@pytest.mark.parametrize("format", ["JPEG", "PNG", "GIF", "WEBP", "AVIF", "TIFF", "BMP"])
def test_a_still_picture_has_no_more_frames(format):
    """Also where it is saved as an animation of one."""
    assert Unseen() == Image(saved(noise(), format)).unseen
    if format not in ("JPEG", "BMP"):
        assert Unseen() == Image(saved(noise(), format, save_all=True)).unseen
