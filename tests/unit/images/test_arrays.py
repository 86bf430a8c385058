"""Pixels in `.npy` files: what NumPy writes is read, and nothing else."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from service.core.errors import Invalid
from service.images import arrays
from service.images.arrays import MAX_HEADER, bmp, frames_of, pixels_of

PIXELS = np.random.default_rng(0).integers(0, 256, (2, 5, 7, 3), np.uint8)


def saved(array, **more):
    """The file that `numpy.save` writes."""
    file = BytesIO()
    np.save(file, array, **more)
    return file.getvalue()


def with_header(text, pixels=b""):
    """A file of version 1 with another header."""
    head = text.encode()
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + pixels


@pytest.mark.parametrize("pixels", [PIXELS, np.asfortranarray(PIXELS), PIXELS[:1]])
def test_what_numpy_saves_is_read_without_a_copy(pixels):
    """In either order of its axes."""
    file = saved(pixels)
    read = pixels_of(memoryview(file))

    assert np.array_equal(pixels, read)
    assert not read.flags.owndata


def test_a_bmp_has_the_pixels():
    """For every width, as rows are padded."""
    for width in range(1, 9):
        pixels = PIXELS[0, :, :width]
        assert np.array_equal(pixels, np.asarray(Image.open(BytesIO(bmp(pixels)))))


def test_pictures_of_a_file_are_in_its_order():
    files = frames_of("image", memoryview(saved(PIXELS)), 2, 16)

    assert [1, 1] == [len(each) for each in files]
    assert all(
        np.array_equal(pixels, np.asarray(Image.open(BytesIO(file))))
        for pixels, [file] in zip(PIXELS, files, strict=True)
    )


def test_frames_of_a_video_are_spread_over_it():
    """At most so many as are asked for, each in the middle of its part."""
    video = np.zeros((1, 3, 32, 4, 4), np.uint8) + np.arange(32, dtype=np.uint8).reshape(1, 1, 32, 1, 1)
    [frames] = frames_of("video", memoryview(saved(video)), 1, 4)
    [every] = frames_of("video", memoryview(saved(video[:, :, :3])), 1, 4)

    shown = [int(np.asarray(Image.open(BytesIO(each)))[0, 0, 0]) for each in frames]
    assert [4, 12, 20, 28] == shown
    assert 3 == len(every)


def test_an_mp4_is_one_video():
    file = b"\0\0\0\x18ftypisom" + bytes(64)

    assert [[file]] == frames_of("video", memoryview(file), 1, 16)


class Harmful:
    """What would be called if a pickle were loaded."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was loaded",)


SHAPE = "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }\n"
REFUSED = {
    "a pickle": saved(np.array([Harmful()], dtype=object), allow_pickle=True),
    "floats": saved(PIXELS.astype(np.float16)),
    "a picture file": b"\x89PNG\r\n\x1a\n" + bytes(200),
    "nothing": b"",
    "too few bytes": saved(PIXELS)[:-1],
    "too many bytes": saved(PIXELS) + b"\0",
    "a shape beyond any memory": with_header(SHAPE % "(99999999999, 99999999999, 9999, 3)", bytes(9)),
    "negative sides": with_header(SHAPE % "(-1, -3)", bytes(3)),
    "sides that are no numbers": with_header(SHAPE % "(True, True, 3)", bytes(3)),
    "no pictures": saved(PIXELS[:0]),
    "a header that is too long": with_header((SHAPE % "(1, 1, 1, 3)").ljust(MAX_HEADER + 1), bytes(3)),
    "a deep header": with_header("-" * 900 + "1"),
    "a header of code": with_header("__import__('os').abort()"),
    "a header without a shape": with_header("{'descr': '|u1', 'fortran_order': False}"),
    "another version": b"\x93NUMPY\x09\x00" + bytes(64),
}


@pytest.mark.parametrize("name", REFUSED)
def test_another_file_is_refused_before_memory_is_taken(name):
    with pytest.raises(Invalid):
        pixels_of(memoryview(REFUSED[name]))


WRONG = {
    "latents": ("latent", PIXELS, "decoder"),
    "pictures as videos": ("video", PIXELS, r"send \(videos, 3, frames"),
    "a single picture": ("image", PIXELS[0], r"send \(pictures, height"),
    "another number of pictures": ("image", PIXELS[:1], "there are 1"),
    "another number of videos": (
        "video",
        PIXELS.transpose(3, 0, 1, 2)[None].repeat(3, 0)[:, :, :1],
        "there are 3",
    ),
    "channels first": ("image", PIXELS.transpose(0, 3, 1, 2), r"\(2, 3, 5, 7\)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_shape_is_refused_with_the_expected_one(name):
    kind, array, said = WRONG[name]
    with pytest.raises(Invalid, match=said):
        frames_of(kind, memoryview(saved(array)), 2, 16)


def test_an_mp4_is_no_batch():
    with pytest.raises(Invalid, match="there are 1"):
        frames_of("video", memoryview(b"\0\0\0\x18ftypisom" + bytes(64)), 2, 16)


def test_millions_of_tiny_pictures_are_refused_before_any_is_made(monkeypatch):
    """Each would take a hundred times its bytes."""
    monkeypatch.setattr(arrays, "bmp", lambda pixels: pytest.fail("a picture was made"))
    file = saved(np.zeros((100_000, 1, 1, 3), np.uint8))
    with pytest.raises(Invalid, match="there are 100000"):
        frames_of("image", memoryview(file), 4, 16)
