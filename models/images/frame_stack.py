"""An animation or a video as its frames, each of which is an image."""

import hashlib
from collections.abc import Callable
from typing import Any

import PIL.Image

from models.images.formats.contract import Header, ImageError
from models.images.formats.decode import decode_film
from models.images.formats.orientation import turned
from models.images.formats.registry import read_film
from models.images.image import Image, lossless
from models.images.lazily import lazily


class FrameStack(Image):
    """
    A file of several frames, decoded as one strip: one frame below the other.

    All frames share the strip.  Its release also drops objects made from frames.
    """

    @lazily
    def header(self) -> Header:
        """Read the header of the animation; a still picture has no frames.  Raises `ImageError`."""
        return read_film(self.encoded).upright(self.orientation)

    def frame(self, number: int) -> "Frame":
        """Return one frame, from 0.  Raises `ImageError` if there are fewer."""
        if number >= self.header.frames:
            raise ImageError(f"the {self.header.format} file has only {self.header.frames} frames")
        return Frame(self, number)

    def _decoded(self) -> PIL.Image.Image:
        return decode_film(self.encoded, self.header.format)


class Frame(Image):
    """
    One frame of a film, which holds the pixels.

    Its digest is computed from the file and the number, before decoding.  Pickled, it becomes an image of its
    own.
    """

    def __init__(self, film: FrameStack, number: int) -> None:
        super().__init__(b"", hashlib.sha256(f"frame {number} of {film.digest}".encode()).hexdigest())
        self._film, self._number = film, number

    @property
    def file(self) -> Image:
        """The film."""
        return self._film

    @property
    def encoded(self) -> bytes:
        """The pixels as a PNG file."""
        return lossless(self.rgb)

    @lazily
    def header(self) -> Header:
        """Return the header of the film, with its canvas and memory."""
        return self._film.header

    @property
    def rgb(self) -> PIL.Image.Image:
        """The RGB pixels.  Raises `ImageError`."""
        rgb: PIL.Image.Image = self._film.once(self._number, self._cut)
        return rgb

    def once(self, key: Any, make: Callable[[PIL.Image.Image], Any]) -> Any:
        """Return the result of *make* on the pixels, cached in the film."""
        return self._film.once((self._number, key), lambda strip: make(self._cut(strip)))

    def _cut(self, strip: PIL.Image.Image) -> PIL.Image.Image:
        height = strip.height // self._film.header.frames
        frame = strip.crop((0, height * self._number, strip.width, height * (self._number + 1)))
        return turned(frame, self._film.orientation)
