"""An animation or a video as its frames, each of which is an image."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import itemgetter
from typing import Any

import PIL.Image

from models.images.formats.contract import Header, ImageError
from models.images.formats.decode import decode_film
from models.images.formats.pillow import turned
from models.images.formats.registry import read_film
from models.images.image import Image, lazily, lossless


class FrameStack(Image):
    """
    A file of several frames, decoded in one pass.

    `release` drops all frames, and the objects made from them.
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

    def keep(self, numbers: Sequence[int], most: int = 0) -> None:
        """Decode only the frames *numbers* from now on, ascending, each scaled down to *most* pixels."""
        self.header = self.header.keeping(numbers, most)

    def _decoded(self) -> dict[int, PIL.Image.Image]:
        decoded = decode_film(self.encoded, self.header)
        frames = zip(self.header.kept, decoded, strict=True)
        return {number: turned(frame, self.orientation) for number, frame in frames}


class Frame(Image):
    """
    One frame of a film; the film holds the pixels.

    The digest is computed from the film's digest and the number, before decoding.  A pickled frame becomes an
    independent image.
    """

    def __init__(self, film: FrameStack, number: int) -> None:
        header = film.header
        scaled = "" if header.frame_size == (header.width, header.height) else f" of {header.most} pixels"
        content = f"frame {number} of {film.digest}{scaled}"
        super().__init__(b"", hashlib.sha256(content.encode()).hexdigest())
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
        """Return the header of the film, with its memory and the size of its frames."""
        width, height = self._film.header.frame_size
        return replace(self._film.header, width=width, height=height)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the pixels of the film, see `Image.in_use`."""
        with self._film.in_use():
            yield

    @property
    def rgb(self) -> PIL.Image.Image:
        """The RGB pixels.  Raises `ImageError`."""
        rgb: PIL.Image.Image = self._film.once(self._number, itemgetter(self._number))
        return rgb

    def once(self, key: Any, make: Callable[[PIL.Image.Image], Any]) -> Any:
        """Return the result of *make* on the pixels, cached in the film."""
        return self._film.once((self._number, key), lambda frames: make(frames[self._number]))
