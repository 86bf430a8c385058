"""
Bytes of a request to images.

Limits come first: the header tells a picture's size, and one that is too large is refused before a
pixel is decoded.  Headers are read and pixels decoded in a few threads of their own, and the pixels
held by all requests together stay under a budget.
"""

import asyncio
import binascii
import hashlib
import io
import warnings
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from time import monotonic

import PIL.Image
import PIL.PngImagePlugin
import pybase64

from models.base import Image
from service.context import Context
from service.errors import ImageTooLarge, ImageUndecodable, NotBase64, UrlNotAllowed
from service.schemas import ImageData, ImagePart, ImageUrl
from service.serving.budget import Budget
from service.settings import BYTES_A_PIXEL, Images
from service.telemetry import INTERACTIVE

# What pictures come in; anything else Pillow could open is attack surface.
FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF")

# Our own limit is checked on the header; Pillow's would only warn, and later.
PIL.Image.MAX_IMAGE_PIXELS = None

# Compressed text in a PNG is unpacked when it is opened; Pillow would take 64 MB of it.
PIL.PngImagePlugin.MAX_TEXT_MEMORY = 8 * 2**20

# A broken EXIF block and the like: the picture is scored or refused, and nobody reads the warning.
warnings.filterwarnings("ignore", module=r"PIL\.")

LONGEST_HEAD = 256  # of a data: URI, with the padding

Source = str | ImageData | ImagePart | ImageUrl
Parts = Mapping[str, bytes]


class Inputs:
    """Opens images within the limits, each lane with its own of the *decoders*."""

    def __init__(self, limits: Images, decoders: Mapping[str, Executor]) -> None:
        self._limits, self._decoders = limits, decoders
        self._budget = Budget(limits.decoded_budget_mb * 2**20)

    @asynccontextmanager
    async def open(self, source: Source, parts: Parts, context: Context) -> AsyncIterator[Image]:
        """
        The image, held while the context is open, and decoded when a model first looks at it.

        Raises:
            BadImage: one of its kinds, for what is wrong with the text, the size or the header; broken
                pixels are found by who looks at them, and raise `ImageUndecodable` there.
        """

        def rgb() -> PIL.Image.Image:
            began = monotonic()
            decoded = decode(encoded)
            context.spent("decode", monotonic() - began)
            return decoded

        loop, decoder = asyncio.get_running_loop(), self._decoders[context.lane]
        encoded, digest, pixels = await loop.run_in_executor(decoder, self._told, source, parts)
        async with self._budget.hold(BYTES_A_PIXEL * pixels, context.lane == INTERACTIVE):
            yield Image(rgb, digest)

    def _told(self, source: Source, parts: Parts) -> tuple[bytes, str, int]:
        """The picture file, its sha256, and how many pixels its header declares."""
        encoded = self._encoded(source, parts)
        with recognise(encoded) as picture:
            width, height = picture.size
        if width * height > self._limits.max_pixels or max(width, height) > self._limits.max_side:
            raise ImageTooLarge(
                f"{width}x{height} pixels; at most {self._limits.max_pixels} in all"
                f" and {self._limits.max_side} on a side"
            )
        return encoded, hashlib.sha256(encoded).hexdigest(), width * height

    def _encoded(self, source: Source, parts: Parts) -> bytes:
        """The bytes of the picture file."""
        if isinstance(source, ImageUrl):
            raise UrlNotAllowed("this server fetches no images; send the bytes")
        if isinstance(source, ImagePart):
            encoded = parts[source.part]
        else:
            text = source if isinstance(source, str) else source.data
            if len(text) > self._limits.max_bytes * 4 // 3 + LONGEST_HEAD:
                raise ImageTooLarge(f"more than {self._limits.max_bytes} bytes")
            encoded = unbase64(text)
        if not encoded:
            raise ImageUndecodable("the image is empty")
        if len(encoded) > self._limits.max_bytes:
            raise ImageTooLarge(f"{len(encoded)} bytes; at most {self._limits.max_bytes}")
        return encoded


def unbase64(text: str) -> bytes:
    """The bytes of base64 or of a `data:` URI that holds some.  Raises `NotBase64`."""
    if text.startswith("data:"):
        head, comma, text = text.partition(",")
        if not comma or not head.endswith(";base64"):
            raise NotBase64("the data: URI does not hold base64")
    try:
        return pybase64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise NotBase64("the image is not base64") from exc


def recognise(encoded: bytes) -> PIL.Image.Image:
    """The picture with its header read and no pixel decoded.  Raises `ImageUndecodable`."""
    try:
        return PIL.Image.open(io.BytesIO(encoded), formats=FORMATS)
    except Exception as exc:  # Pillow's plugins raise whatever a broken header leads them to
        raise ImageUndecodable("the bytes are no image of a known format") from exc


def decode(encoded: bytes) -> PIL.Image.Image:
    """
    RGB pixels as the reference makes them: `convert("RGB")` of the first frame.

    EXIF orientation and alpha are ignored, 16-bit values are clipped.  Raises `ImageUndecodable`.
    """
    with recognise(encoded) as picture:
        try:
            picture.load()
            picture.info.pop("transparency", None)  # ignored, and Pillow warns where it is a table
            return picture.convert("RGB")
        except Exception as exc:  # as above; a truncated file among them
            raise ImageUndecodable(f"the {picture.format} image is broken or truncated") from exc
