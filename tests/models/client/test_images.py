"""Pictures in every form that callers have them in."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

from models.images.formats.decode import decode
from models.images.formats.registry import read_header
from scoregate.errors import BadImageError, UrlNotAllowedError
from scoregate.images import Frames, bmp, encoded, smaller, stride
from scoregate.items import Files, Item
from tests.support.pictures import png, saved

PIXELS = np.random.default_rng(0).integers(0, 255, (5, 7, 3), np.uint8)
GREY = PIXELS[..., 0]
ALPHA = np.dstack([PIXELS, GREY])
FLOATS = PIXELS.astype(np.float32) / 255


def seen(image):
    """The pixels that the service decodes."""
    return np.asarray(decode(encoded(image)))


FORMS = {
    "PIL": PIL.Image.fromarray(PIXELS),
    "array": PIXELS,
    "channels first": PIXELS.transpose(2, 0, 1),
    "with a fourth channel": ALPHA,
    "a view": np.repeat(PIXELS, 2, axis=0)[::2],
    "float32": FLOATS,
    "float64, channels first": (PIXELS / 255).transpose(2, 0, 1),
    "tensor": torch.from_numpy(PIXELS),
    "tensor, channels first": torch.from_numpy(PIXELS).permute(2, 0, 1),
    "float tensor": torch.from_numpy(FLOATS).permute(2, 0, 1),
    "tensor with a gradient": torch.from_numpy(FLOATS).permute(2, 0, 1).requires_grad_(),
}


@pytest.mark.parametrize("image", FORMS.values(), ids=FORMS)
def test_the_service_sees_the_very_pixels(image):
    """Nothing is lost on the way, whichever form they come in."""
    assert np.array_equal(PIXELS, seen(image))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_as_near_as_it_can_be(dtype):
    """bfloat16 has eight bits of precision: off by one at most."""
    assert np.abs(PIXELS.astype(int) - seen(torch.from_numpy(FLOATS).to(dtype))).max() <= 1


def test_a_value_between_two_is_the_nearest():
    """As diffusers makes pictures of decoded latents; cutting off would darken each of them."""
    between = np.clip(PIXELS + np.random.default_rng(1).uniform(-0.4, 0.4, PIXELS.shape), 0, 255) / 255

    assert np.array_equal(PIXELS, seen(between))


@pytest.mark.parametrize("image", [GREY, GREY[..., None], GREY[None], torch.from_numpy(GREY)[None]])
def test_a_grey_picture_is_grey(image):
    """One channel, wherever its axis is, or without one."""
    assert np.array_equal(np.dstack([GREY] * 3), seen(image))


def test_where_both_ends_could_be_channels_the_library_decides():
    """Arrays have them last, tensors first."""
    pixels = np.random.default_rng(0).integers(0, 255, (3, 4, 3), np.uint8)

    assert np.array_equal(pixels, seen(pixels))
    assert np.array_equal(pixels.transpose(1, 2, 0), seen(torch.from_numpy(pixels)))


MODES = ["1", "L", "LA", "P", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "LAB", "I", "F", "I;16"]


@pytest.mark.parametrize("mode", MODES)
def test_any_mode_of_pillow_is_what_it_converts_to(mode):
    """As the service does with a file in that mode."""
    source = PIL.Image.fromarray(GREY if mode == "I;16" else PIXELS)
    image = source.convert("I;16") if mode == "I;16" else source.convert("RGB").convert(mode)

    assert np.array_equal(np.asarray(image.convert("RGB")), seen(image))


@pytest.mark.parametrize("width", range(1, 9))
def test_rows_of_any_width_fit(width):
    """A BMP pads its rows to multiples of four bytes."""
    pixels = np.random.default_rng(width).integers(0, 255, (3, width, 3), np.uint8)

    assert (width, 3) == (read_header(encoded(pixels)).width, read_header(encoded(pixels)).height)
    assert np.array_equal(pixels, seen(pixels))
    assert encoded(pixels) == encoded(PIL.Image.fromarray(pixels))


def test_files_are_sent_as_they_are(tmp_path):
    """Bytes, a path in either form, and an open file."""
    file, path = png(), tmp_path / "p.png"
    path.write_bytes(file)

    with path.open("rb") as opened:
        assert {file} == {encoded(each) for each in (file, bytearray(file), path, str(path), opened)}
    assert file == encoded(io.BytesIO(file))


BAD = {
    "values below 0": (FLOATS * 2 - 1, "values from -1 to 0.9373; floating point must be from 0 to 1"),
    "values above 1": (FLOATS * 255, "floating point must be from 0 to 1"),
    "NaN": (np.where(FLOATS > 0.5, np.nan, FLOATS), "nan"),
    "int64": (PIXELS.astype(np.int64), "values of int64"),
    "a tensor of int32": (torch.from_numpy(PIXELS).int(), "values of int32"),
    "two channels": (PIXELS[..., :2], r"shape \(5, 7, 2\)"),
    "a batch": (np.stack([PIXELS[None]] * 2), "a batch of 2 videos"),
    "a row": (PIXELS[0, 0], r"shape \(3,\)"),
    "no pixels": (PIXELS[:0], r"shape \(0, 7, 3\)"),
    "an empty PIL image": (PIL.Image.new("RGB", (0, 3)), "no pixels: 0 x 3"),
    "a cut file of PIL": (PIL.Image.open(io.BytesIO(saved(PIL.Image.fromarray(PIXELS), "PNG")[:60])), "PIL"),
    "no bytes": (b"", "no bytes"),
    "a path that is not there": ("nowhere.png", "cannot read 'nowhere.png': No such file"),
    "a folder": (Path("/"), "Is a directory"),
    "base64": ("aGk=" * 1000, "File name too long"),
    "a text file": (io.StringIO("hi"), "binary mode"),
    "a number": (5, "a int is no picture"),
    "None": (None, "a NoneType is no picture"),
}


@pytest.mark.parametrize(("image", "words"), BAD.values(), ids=BAD)
def test_what_is_no_picture_is_an_error_that_names_the_item(image, words):
    """And says what is wrong with it."""
    with pytest.raises(BadImageError, match=f"^/items/3/image: .*{words}") as raised:
        Files().item(Item(prompt="a square", image=image), "/items/3")

    [fault] = raised.value.errors
    assert ("/items/3/image", "bad_image") == (fault["pointer"], fault["code"])


def test_a_frame_that_is_no_picture_is_named():
    """By its place in the list."""
    with pytest.raises(BadImageError, match=r"^/items/0/image/1: "):
        Files().item(Item(prompt="a square", image=Frames([png(), None])), "/items/0")


def test_a_url_is_sent_only_if_asked():
    """Else it is neither fetched nor taken for a path."""
    url = "HTTPS://example.org/a.png"

    assert {"url": url} == Files(allow_urls=True).add(url, "")
    with pytest.raises(UrlNotAllowedError, match="allow_urls"):
        Files().add(url, "")


def test_a_picture_that_two_items_name_is_sent_once():
    """The same object, or the same path; equal ones that are two objects are two."""
    files = Files()
    places = [files.add(image, "") for image in (PIXELS, PIXELS, PIXELS.copy(), [PIXELS])]

    assert places[0] == places[1] == places[3][0] != places[2]
    assert 2 == len(files.parts)
    assert sum(map(len, files.parts.values())) == files.size


def test_no_library_of_pictures_is_imported():
    """Who passes no such object needs none of them."""
    code = "import scoregate, sys; print([n for n in ('PIL', 'numpy', 'torch') if n in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == found.stdout.strip()


def test_a_thinned_picture_keeps_its_corner_and_its_shape():
    """Every third pixel of every third row; the lowest row comes first in a BMP."""
    pixels = np.random.default_rng(0).integers(0, 255, (300, 480, 3), np.uint8)
    thin = np.asarray(decode(smaller(encoded(pixels), 160)))

    assert (100, 160, 3) == thin.shape
    assert np.array_equal(pixels[::-1][::3, ::3][::-1], thin)


def test_a_bmp_that_is_not_ours_is_left_alone():
    """Its layout may be another."""
    palette = saved(PIL.Image.fromarray(PIXELS).convert("P"), "BMP")
    small = bmp(7, 5, bytes(stride(7) * 5))

    assert palette == smaller(palette, 3)
    assert small == smaller(small)
