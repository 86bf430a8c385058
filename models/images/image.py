"""A picture: its encoded bytes, which decode themselves when somebody first looks at the pixels."""

import hashlib
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from time import monotonic
from typing import Any, Self

import PIL.Image

from models.images.formats.contract import Header, ImageError, Unseen
from models.images.formats.decode import decode
from models.images.formats.orientation import turned
from models.images.formats.registry import read_header, read_unseen
from models.images.lazily import lazily

__all__ = ["Image", "ImageError"]


class Image:
    """
    A picture, which the threads that prepare its calls share.

    A call that was answered before needs the digest alone, so pixels are decoded when a model first
    looks at them.  Pickled or copied, it is sent as its encoded bytes and its digest.

    Args:
        encoded: the bytes of the picture file.
        digest: names the content; the sha256 of *encoded* by default.
        orientation: in which the file holds the pixels, as EXIF counts it; they are turned upright.

    Attributes:
        decode_s: seconds that decoding took; 0 while nobody has looked at the pixels.
        decode_began: when that began, by `time.monotonic`.
    """

    def __init__(self, encoded: bytes, digest: str = "", orientation: int = 1) -> None:
        self._encoded, self.orientation = encoded, orientation
        self.digest = digest or hashlib.sha256(encoded).hexdigest()
        self.decode_s = self.decode_began = 0.0
        self._rgb: PIL.Image.Image | None = None
        self._broken = ""  # why the pixels cannot be had, once somebody has looked
        self._made: dict[Any, Any] = {}
        self._leaving: Callable[[], None] | None = None
        self._lock = Lock()

    @classmethod
    def of(cls, picture: PIL.Image.Image, digest: str = "") -> "Image":
        """*picture* as an image, lossless."""
        return cls(lossless(picture), digest)

    @classmethod
    def over(cls, other: "Image") -> Self:
        """The file of *other* as an image of its own, whose pixels nobody else holds."""
        own = cls(other.encoded, other.digest, other.orientation)
        own.header, own.unseen = other.header, other.unseen
        return own

    def upright(self) -> Self:
        """The picture turned as its EXIF orientation says, as another image; itself where that is 1."""
        orientation = self.unseen.orientation
        if orientation == 1:
            return self
        content = f"orientation {orientation} of {self.digest}"
        own = type(self)(self.encoded, hashlib.sha256(content.encode()).hexdigest(), orientation)
        own.header = self.header.upright(orientation)
        return own

    def __reduce__(self) -> tuple[Any, ...]:
        return Image, (self.encoded, self.digest, self.orientation)

    def __repr__(self) -> str:
        return f"<Image {self.digest[:12]}>"

    @property
    def encoded(self) -> bytes:
        """The bytes of the picture file, in which nothing is turned."""
        return self._encoded

    @property
    def file(self) -> "Image":
        """The image that keeps the pixels, to be released: itself, or the film that it is a frame of."""
        return self

    @lazily
    def header(self) -> Header:
        """What the file says of itself.  Raises `ImageError`."""
        return read_header(self.encoded).upright(self.orientation)

    @lazily
    def unseen(self) -> Unseen:
        """What of the file the pixels do not show."""
        unseen = read_unseen(self.encoded)
        return unseen if self.orientation == 1 else replace(unseen, orientation=1)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels, told from the header alone.  Raises `ImageError`."""
        return self.header.width, self.header.height

    @property
    def rgb(self) -> PIL.Image.Image:
        """The RGB pixels, see `decode`.  Raises `ImageError`; a broken picture is not decoded again."""
        with self._looking():
            return self._pixels()

    def once(self, key: Any, make: Callable[[PIL.Image.Image], Any]) -> Any:
        """What *make* makes of the pixels, kept with the image under *key*: many calls share it."""
        with self._looking():
            if key not in self._made:
                self._made[key] = make(self._pixels())
            return self._made[key]

    def release(self, later: Callable[[], None]) -> bool:
        """
        Let go of the pixels and of what was made of them; who looks again decodes again.

        Returns:
            Whether that is done.  A thread that is still looking does it when it ends, and calls *later*;
            nobody waits for it here.
        """
        self._leaving = later
        return self._let_go() is not None

    def _pixels(self) -> PIL.Image.Image:
        if self._broken:
            raise ImageError(self._broken)
        if self._rgb is None:
            self.decode_began = monotonic()
            try:
                self._rgb = self._decoded()
            except ImageError as exc:
                self._broken = str(exc)
                raise
            finally:
                self.decode_s = monotonic() - self.decode_began
        return self._rgb

    def _decoded(self) -> PIL.Image.Image:
        return turned(decode(self.encoded), self.orientation)

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """One thread at a time; the last one lets go of what was to be released meanwhile."""
        try:
            with self._lock:
                yield
        finally:
            if self._leaving and (later := self._let_go()):
                later()

    def _let_go(self) -> Callable[[], None] | None:
        """What is to be called now that the pixels are gone; None where a thread is looking at them."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            later, self._leaving = self._leaving, None
            self._rgb = None
            self._made.clear()
            return later
        finally:
            self._lock.release()


def lossless(picture: PIL.Image.Image) -> bytes:
    """A file of these pixels."""
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()
