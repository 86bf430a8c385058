"""Pixels through Pillow."""

import io
import warnings
from collections.abc import Iterator
from contextlib import suppress
from itertools import count

import PIL.Image
import PIL.TiffImagePlugin

from models.images.formats.contract import Header, ImageError

# Who takes pictures in checks their size on the header; Pillow's own limit would only warn, and later.
PIL.Image.MAX_IMAGE_PIXELS = None

# A picture in one piece: from 32 MiB on it comes from the system and goes back there.  In Pillow's pieces of
# 16 MiB, large ones stay in the heaps of the threads that decoded them, and take the budget several times.
PIL.Image.core.set_block_size(2**30)  # type: ignore[attr-defined]

# A broken palette and the like: the picture is scored or refused, and nobody reads the warning.
warnings.filterwarnings("ignore", module=r"PIL\.")


def rgb(encoded: bytes, header: Header) -> PIL.Image.Image:
    """
    RGB pixels as the reference makes them: `convert("RGB")` of the first frame.

    Orientation and alpha are ignored, 16-bit values are clipped.

    Raises:
        ImageError: the picture is broken, or larger than its header says.  The error holds on to nothing of
            the picture; Pillow's own would keep the pixels for as long as somebody keeps the error.
    """
    pixels = converted(encoded, header)
    if pixels is None:
        raise ImageError(f"the {header.format} image is broken or truncated")
    return pixels


def converted(encoded: bytes, header: Header) -> PIL.Image.Image | None:
    """RGB pixels; None where they cannot be had."""
    with (
        suppress(Exception),  # Pillow's plugins raise whatever a broken file leads them to
        PIL.Image.open(io.BytesIO(encoded), formats=[header.format]) as picture,
    ):
        if picture.width * picture.height > header.width * header.height:
            return None
        if isinstance(picture, PIL.TiffImagePlugin.TiffImageFile):
            picture.load_end = lambda: None  # type: ignore[method-assign]  # it would turn the picture
        picture.load()
        picture.info.pop("transparency", None)  # ignored, and Pillow warns where it is a table
        return picture.convert("RGB")
    return None


def frames(encoded: bytes, format: str) -> Iterator[PIL.Image.Image]:
    """
    RGB pixels of each frame of an animation, as a viewer shows it, but for alpha, which is ignored.

    Behind the last frame it raises `EOFError`.
    """
    with PIL.Image.open(io.BytesIO(encoded), formats=[format]) as picture:
        for number in count():
            picture.seek(number)
            yield picture.convert("RGB")
