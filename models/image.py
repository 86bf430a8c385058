"""A picture: its encoded bytes, which decode themselves when somebody first looks at the pixels."""

import hashlib
import io
import warnings
from collections.abc import Callable
from functools import cached_property
from threading import RLock
from time import monotonic
from typing import Any

import PIL.Image
import PIL.PngImagePlugin

# What pictures come in; anything else that Pillow could open is attack surface.
FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF")

# Who takes pictures in checks their size on the header; Pillow's own limit would only warn, and later.
PIL.Image.MAX_IMAGE_PIXELS = None

# Compressed text in a PNG is unpacked when it is opened; Pillow would take 64 MB of it.
PIL.PngImagePlugin.MAX_TEXT_MEMORY = 8 * 2**20

# A broken EXIF block and the like: the picture is scored or refused, and nobody reads the warning.
warnings.filterwarnings("ignore", module=r"PIL\.")


class ImageError(Exception):
    """The bytes are not a picture of a known format, or a broken one."""


class Image:
    """
    A picture, which the threads that prepare its calls share.

    A call that was answered before needs the digest alone, so pixels are decoded when a model first
    looks at them.  Pickled or copied, it is sent as its encoded bytes and its digest.

    Args:
        encoded: the bytes of the picture file.
        digest: names the content; the sha256 of *encoded* by default.

    Attributes:
        decode_s: seconds that decoding took; 0 while nobody has looked at the pixels.
    """

    def __init__(self, encoded: bytes, digest: str = "") -> None:
        self.encoded = encoded
        self.digest = digest or hashlib.sha256(encoded).hexdigest()
        self.decode_s = 0.0
        self._rgb: PIL.Image.Image | None = None
        self._made: dict[Any, Any] = {}
        self._lock = RLock()

    @classmethod
    def of(cls, picture: PIL.Image.Image, digest: str = "") -> "Image":
        """*picture* as an image, lossless."""
        buffer = io.BytesIO()
        picture.save(buffer, "PNG")
        return cls(buffer.getvalue(), digest)

    def __reduce__(self) -> tuple[Any, ...]:
        return Image, (self.encoded, self.digest)

    def __repr__(self) -> str:
        return f"<Image {self.digest[:12]}>"

    @cached_property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels, told from the header alone.  Raises `ImageError`."""
        return read_size(self.encoded)

    @property
    def rgb(self) -> PIL.Image.Image:
        """The RGB pixels, see `decode`.  Raises `ImageError`."""
        with self._lock:
            if self._rgb is None:
                began = monotonic()
                self._rgb = decode(self.encoded)
                self.decode_s = monotonic() - began
            return self._rgb

    def once(self, key: Any, make: Callable[[PIL.Image.Image], Any]) -> Any:
        """What *make* makes of the pixels, kept with the image under *key*: many calls share it."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make(self.rgb)
            return self._made[key]

    def release(self) -> None:
        """Let go of the pixels and of what was made of them; who looks again decodes again."""
        with self._lock:
            self._rgb = None
            self._made.clear()


def read_size(encoded: bytes) -> tuple[int, int]:
    """Width and height in pixels, told from the header alone.  Raises `ImageError`."""
    with recognise(encoded) as picture:
        return picture.size


def recognise(encoded: bytes) -> PIL.Image.Image:
    """The picture with its header read and no pixel decoded.  Raises `ImageError`."""
    try:
        return PIL.Image.open(io.BytesIO(encoded), formats=FORMATS)
    except Exception as exc:  # Pillow's plugins raise whatever a broken header leads them to
        raise ImageError("the bytes are no image of a known format") from exc


def decode(encoded: bytes) -> PIL.Image.Image:
    """
    RGB pixels as the reference makes them: `convert("RGB")` of the first frame.

    EXIF orientation and alpha are ignored, 16-bit values are clipped.  Raises `ImageError`.
    """
    with recognise(encoded) as picture:
        try:
            picture.load()
            picture.info.pop("transparency", None)  # ignored, and Pillow warns where it is a table
            return picture.convert("RGB")
        except Exception as exc:  # as above; a truncated file among them
            raise ImageError(f"the {picture.format} image is broken or truncated") from exc
