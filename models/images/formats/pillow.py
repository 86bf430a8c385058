"""Decoding through Pillow."""

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress

import PIL.Image
import PIL.TiffImagePlugin

from models.images.formats.contract import Header, ImageError

# The size is checked on the header before; Pillow's own limit would only warn, and later.
PIL.Image.MAX_IMAGE_PIXELS = None

# Allocate a picture in one piece: from 32 MiB on, malloc returns it to the system.  Pillow's pieces of 16 MiB
# would remain in the heaps of the threads that decoded them, and exceed the memory budget.
PIL.Image.core.set_block_size(2**30)  # type: ignore[attr-defined]

# Warnings about broken palettes and the like: the picture is scored or rejected anyway.
warnings.filterwarnings("ignore", module=r"PIL\.")


def rgb(encoded: bytes, header: Header) -> PIL.Image.Image:
    """
    Decode to RGB like the reference: `convert("RGB")` of the first frame.

    Orientation and alpha are ignored, 16-bit values are clipped.

    Raises:
        ImageError: the picture is broken, or larger than its header.  Pillow's own error would hold a
            reference to the pixels.
    """
    pixels = converted(encoded, header)
    if pixels is None:
        raise ImageError(f"the {header.format} image is broken or truncated")
    return pixels


def converted(encoded: bytes, header: Header) -> PIL.Image.Image | None:
    """Decode to RGB; return None if that is not possible."""
    with (
        suppress(Exception),  # Pillow's plugins raise many kinds for a broken file
        PIL.Image.open(io.BytesIO(encoded), formats=[header.format]) as picture,
    ):
        if picture.width * picture.height > header.width * header.height:
            return None
        if isinstance(picture, PIL.TiffImagePlugin.TiffImageFile):
            picture.load_end = lambda: None  # type: ignore[method-assign]  # it would turn the picture
        picture.load()
        if picture.mode == "RGB":
            return detached(picture)
        picture.info.pop("transparency", None)  # ignored, and Pillow warns where it is a table
        return picture.convert("RGB")
    return None


def detached(picture: PIL.Image.Image) -> PIL.Image.Image:
    """
    Return the pixels without file and metadata.

    `Image.convert` to the picture's own mode copies all pixels: a tenth of the time of decoding.
    """
    return PIL.Image.Image()._new(picture.im)


def frames(encoded: bytes, format: str, numbers: Sequence[int]) -> Iterator[PIL.Image.Image]:
    """
    Yield some frames of an animation as RGB, without alpha.

    Raises `EOFError` if there are fewer.
    """
    with PIL.Image.open(io.BytesIO(encoded), formats=[format]) as picture:
        for number in numbers:
            picture.seek(number)
            yield picture.convert("RGB")
