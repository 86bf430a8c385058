"""An image: the encoded bytes of a file, decoded when its pixels are first used."""

import hashlib
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from time import monotonic
from typing import Any, Generic, NamedTuple, Self, TypeVar

import PIL.Image

from models.images.formats.contract import DecoderKilled, Header, ImageError, Unseen
from models.images.formats.decode import decode
from models.images.formats.pillow import TRANSPARENT_KEY, turned
from models.images.formats.registry import read_header, read_unseen

__all__ = ["Image", "ImageError"]

T = TypeVar("T")


class lazily(Generic[T]):
    """
    `functools.cached_property` without its lock, which all objects of a class share in Python 3.11.

    The lock would block the event loop while a thread reads another picture.  Without it, two threads may
    compute the attribute simultaneously.
    """

    def __init__(self, find: Callable[[Any], T]) -> None:
        self._find = find

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, of: Any, kind: type | None = None) -> T:
        found: T = self._find(of)
        vars(of)[self._name] = found
        return found


class DecodeTime(NamedTuple):
    """When decoding began (`time.monotonic`), and how many seconds it took; 0 if nothing was decoded."""

    began: float = 0.0
    seconds: float = 0.0


class Image:
    """
    An image, shared by the threads that prepare its calls.

    A cached call needs only the digest, so pixels are decoded on first use.  Pickled or copied, an image
    consists of its encoded bytes and its digest.

    Args:
        encoded: the bytes of the image file.
        digest: identifies the content; the sha256 of *encoded* by default.
        orientation: of the pixels in the file, as in EXIF; they are turned upright.

    Attributes:
        is_bound: pixels are decoded only between `reserve` and `release`; set by a service.
        decode_time: of the pixels, until they are released; a frame's film has it.
    """

    def __init__(self, encoded: bytes, digest: str = "", orientation: int = 1) -> None:
        self._encoded, self.orientation = encoded, orientation
        self.digest = digest or hashlib.sha256(encoded).hexdigest()
        self._rgb: Any = None
        self._broken = ""  # the reason if decoding failed
        self.decode_time = DecodeTime()
        self._made: dict[Any, Any] = {}
        self.is_bound, self._reservations, self._uses = False, 0, 0
        self._later: Callable[[], None] | None = None  # a reservation ended during a use
        self._state, self._turn = Lock(), Lock()  # one guards these counts, one the thread that decodes

    @classmethod
    def of(cls, image: PIL.Image.Image, digest: str = "") -> "Image":
        """Return *image* as an image, lossless."""
        return cls(lossless(image), digest)

    @classmethod
    def over(cls, other: "Image") -> Self:
        """Return a new image of the same file as *other*, which shares no pixels with it."""
        own = cls(other.encoded, other.digest, other.orientation)
        own.header, own.unseen, own.is_bound = other.header, other.unseen, other.is_bound
        return own

    def upright(self) -> Self:
        """Return an image turned by the file's EXIF orientation; the image itself if that is 1."""
        orientation = self.unseen.orientation
        if orientation == 1:
            return self
        content = f"orientation {orientation} of {self.digest}"
        own = type(self)(self.encoded, hashlib.sha256(content.encode()).hexdigest(), orientation)
        own.header, own.is_bound = self.header.upright(orientation), self.is_bound
        return own

    def __reduce__(self) -> tuple[Any, ...]:
        return Image, (self.encoded, self.digest, self.orientation)

    def __repr__(self) -> str:
        return f"<Image {self.digest[:12]}>"

    @property
    def encoded(self) -> bytes:
        """The bytes of the file, in its own orientation."""
        return self._encoded

    @property
    def file(self) -> "Image":
        """The image that holds the pixels and is to be released: itself, or the stack of a frame."""
        return self

    @lazily
    def header(self) -> Header:
        """Format, size and memory, read from the file's header.  Raises `ImageError`."""
        header = read_header(self.encoded)
        return header if self.orientation == 1 else header.upright(self.orientation)

    @lazily
    def unseen(self) -> Unseen:
        """Content of the file that the pixels do not show."""
        unseen = read_unseen(self.encoded)
        return unseen if self.orientation == 1 else replace(unseen, orientation=1)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels, from the header.  Raises `ImageError`."""
        return self.header.width, self.header.height

    @property
    def rgb(self) -> PIL.Image.Image:
        """The RGB pixels, see `decode`.  Raises `ImageError`; a broken image is decoded only once."""
        with self.in_use(), self._turn:
            pixels: PIL.Image.Image = self._pixels()
            return pixels

    @property
    def is_transparent(self) -> bool:
        """True if a pixel is not opaque, of a film in any of the decoded frames.  Raises `ImageError`."""
        with self.in_use(), self._turn:
            pixels = self._pixels()
            each = pixels.values() if isinstance(pixels, dict) else [pixels]
            return any(one.info.get(TRANSPARENT_KEY, False) for one in each)

    def once(self, key: Any, make: Callable[[Any], Any]) -> Any:
        """Return `make(pixels)`, computed once per *key* and kept with the pixels."""
        with self.in_use(), self._turn:
            if key not in self._made:
                self._made[key] = make(self._pixels())
            return self._made[key]

    def reserve(self) -> None:
        """Allow decoding until `release`; the caller has reserved memory for the pixels."""
        with self._state:
            self._reservations += 1
            later, self._later = self._later, None
        if later:  # from now on the pixels are in the new memory
            later()

    def release(self, later: Callable[[], None]) -> DecodeTime | None:
        """
        End one reservation; with the last one, drop the pixels and everything computed from them.

        Returns:
            The time that decoding took.  None if the pixels are in use: the end of the use drops them, and
            calls *later*.
        """
        with self._state:
            self._reservations = max(0, self._reservations - 1)
            if self._reservations:
                return DecodeTime()
            if self._uses:
                self._later = later
                return None
            return self._drop()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the pixels while the context is open, even if their reservation is released meanwhile."""
        with self._state:
            self._uses += 1
        try:
            yield
        finally:
            later = None
            with self._state:
                self._uses -= 1
                if self._later and not self._uses:
                    self._drop()
                    later, self._later = self._later, None
            if later:
                later()

    def _pixels(self) -> Any:
        if self._broken:
            raise ImageError(self._broken)
        if self._rgb is None:
            if self.is_bound and not (self._reservations or self._later):
                raise RuntimeError("no memory is reserved for the pixels of this image")
            began = monotonic()
            try:
                self._rgb = self._decoded()
            except DecoderKilled:  # another try may succeed
                raise
            except ImageError as exc:
                self._broken = str(exc)
                raise
            finally:
                self.decode_time = DecodeTime(began, monotonic() - began)
        return self._rgb

    def _decoded(self) -> Any:
        """Return the RGB picture; a film returns the pictures of its frames by number."""
        decoded = decode(self.encoded, self.header)
        return decoded if self.orientation == 1 else turned(decoded, self.orientation)

    def _drop(self) -> DecodeTime:
        """Drop the pixels, and return the time that decoding took."""
        time, self.decode_time = self.decode_time, DecodeTime()
        self._rgb = None
        self._made.clear()
        return time


def lossless(image: PIL.Image.Image) -> bytes:
    """Return a PNG file of these pixels."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()
