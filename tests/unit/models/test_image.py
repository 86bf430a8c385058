"""Pictures: bytes that decode themselves, once, when somebody looks at the pixels."""

import copy
import hashlib
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import PIL.Image
import pytest

from models.images.grid import Grid
from models.images.image import DecodeTime, Image, ImageError
from tests.support.pictures import saved


def noise(width=31, height=17):
    pixels = np.random.default_rng(3).integers(0, 256, (height, width, 3), np.uint8)
    return PIL.Image.fromarray(pixels)


class CountedImage(Image):
    """An image that counts how often its pixels were decoded."""

    times = 0

    def _decoded(self):
        self.times += 1
        return super()._decoded()


def test_a_picture_in_memory_becomes_an_image_of_the_same_pixels():
    """Lossless; the digest is the one given, or that of the bytes."""
    image = Image.of(noise())

    assert noise().tobytes() == image.rgb.tobytes()
    assert hashlib.sha256(image.encoded).hexdigest() == image.digest
    assert "named" == Image.of(noise(), "named").digest


@pytest.mark.parametrize("again", [lambda image: pickle.loads(pickle.dumps(image)), copy.deepcopy])
def test_an_image_reaches_another_process_with_its_digest_and_pixels(again):
    """As the bytes it came in: what was decoded or made of them stays behind."""
    image = CountedImage(saved(noise(), "JPEG"), "named")
    image.once("size", lambda rgb: rgb.size)
    sent = again(image)

    assert ("named", image.encoded) == (sent.digest, sent.encoded)
    assert (1, DecodeTime()) == (image.times, sent.decode_time)
    assert image.rgb.tobytes() == sent.rgb.tobytes()


def test_the_header_alone_tells_the_size():
    """No pixel is decoded for it, nor for the digest."""
    image = CountedImage(saved(noise(31, 17), "WEBP"))

    assert ((31, 17), 64) == (image.size, len(image.digest))
    assert 0 == image.times
    assert 0 == image.release(pytest.fail).seconds


def test_pixels_are_decoded_once_whoever_looks():
    """Eight threads that prepare its calls; what they make of the pixels is made once too."""
    image, made = CountedImage.of(noise(200, 200)), []

    def make(rgb):
        made.append(rgb.size)
        return rgb.tobytes()

    with ThreadPoolExecutor(8) as threads:
        looks = [threads.submit(image.once, "bytes", make) for _ in range(8)]
        seen = {look.result() for look in looks}

    assert {noise(200, 200).tobytes()} == seen
    assert (1, 1) == (image.times, len(made))
    assert image.release(pytest.fail).seconds > 0


def test_a_released_image_decodes_again():
    """Its pixels and what was made of them take no memory in between."""
    image, made = CountedImage.of(noise()), []
    for _ in range(2):
        image.once("width", lambda rgb: made.append(rgb.width))
        assert image.release(pytest.fail)

    assert (2, 2) == (image.times, len(made))
    assert noise().tobytes() == image.rgb.tobytes()


def test_an_image_that_is_being_decoded_is_let_go_by_who_decodes_it():
    """The one who releases it does not wait, and is told when it is done."""
    inside, go, done = threading.Event(), threading.Event(), threading.Event()

    class SlowImage(Image):
        def _decoded(self):
            inside.set()
            assert go.wait(10)
            return super()._decoded()

    image = SlowImage.of(noise())
    with ThreadPoolExecutor(1) as thread:
        decoding = thread.submit(image.once, "width", lambda rgb: rgb.width)
        assert inside.wait(10)
        assert not image.release(done.set)
        assert not done.is_set()
        go.set()

        assert 31 == decoding.result(10)
        assert done.wait(10)
    assert (None, {}) == (image._rgb, image._made)


def test_a_bound_image_decodes_only_while_memory_is_reserved():
    """Before and after it is an error of the service, and nothing is decoded."""
    image = CountedImage.of(noise())
    image.is_bound = True
    with pytest.raises(RuntimeError, match="no memory"):
        _ = image.rgb
    image.reserve()
    image.rgb.load()
    assert image.release(pytest.fail)
    with pytest.raises(RuntimeError, match="no memory"):
        image.once("width", lambda rgb: rgb.width)

    assert 1 == image.times


def test_a_use_keeps_pixels_and_reservation_until_it_ends():
    """An image that is released meanwhile may still be decoded; then its memory is given back, once."""
    image, given_back = CountedImage.of(noise()), []
    image.is_bound = True
    image.reserve()
    with image.in_use():
        with image.in_use():
            assert image.release(lambda: given_back.append("memory")) is None
        image.rgb.load()
        assert [] == given_back
    with pytest.raises(RuntimeError, match="no memory"):
        _ = image.rgb

    assert ["memory"] == given_back
    assert 1 == image.times


def test_a_new_reservation_during_a_use_takes_the_place_of_the_ended_one():
    """The earlier memory is given back at once; pixels stay until the last reservation ends."""
    image, given_back = CountedImage.of(noise()), []
    image.is_bound = True
    image.reserve()
    with image.in_use():
        image.rgb.load()
        assert image.release(lambda: given_back.append("first")) is None
        image.reserve()
        assert ["first"] == given_back
    image.reserve()
    image.release(pytest.fail)
    image.rgb.load()
    assert 1 == image.times
    assert image.release(pytest.fail).seconds > 0


@pytest.mark.parametrize(
    "made",
    [lambda image: Image.over(image), lambda image: Grid([image], [""]), Image.upright],
    ids=["a copy", "a grid", "turned upright"],
)
def test_what_is_made_of_a_bound_image_is_bound(made):
    """And what is made of another one is not."""
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    image = Image(saved(noise(), "JPEG", exif=exif))
    assert not made(image).is_bound
    image.is_bound = True
    assert made(image).is_bound


BROKEN = {
    "no picture": b"<html>",
    "nothing": b"",
    "half of one": saved(noise(400, 300), "JPEG")[:5000],
    "half of another": saved(noise(400, 300), "PNG")[:5000],
    "a format nobody sends": saved(noise(), "PPM"),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_a_broken_picture_is_an_image_error(data):
    """Each time that somebody looks, though it is tried once, and in words that quote none of it."""
    image = CountedImage(data)
    for _ in range(2):
        with pytest.raises(ImageError, match=r"^the (bytes|JPEG|PNG)"):
            _ = image.rgb
    assert image.times <= 1  # not at all if the header is broken


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1", "I;16"])
def test_pixels_are_rgb_whatever_the_file_holds(mode):
    """As Pillow converts them."""
    picture = noise().convert("L" if mode == "I;16" else mode)
    if mode == "I;16":
        picture = PIL.Image.fromarray(np.asarray(picture).astype(np.uint16))

    assert "RGB" == Image(saved(picture, "PNG")).rgb.mode
