"""The interface of picture formats."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf, sqrt

# Pillow holds the decoded picture and its RGB form, at four bytes a pixel each.
BYTES_PER_PIXEL = 2 * 4

# Pillow holds RGB so for each frame of a film that is kept; one more is on its way here through a pipe.
BYTES_PER_FRAME_PIXEL = 4
BYTES_PER_PIXEL_ON_ITS_WAY = 8
MAX_FILM_FRAMES = 10_000

# Browsers show a frame with a shorter duration for a tenth of a second.
MIN_DURATION_S, DEFAULT_DURATION_S = 0.02, 0.1


class ImageError(Exception):
    """The bytes are not a picture of a known format, or a broken one."""


class DecoderKilled(ImageError):
    """The picture may be sound: the processes that decoded it were killed, so it may be decoded later."""


@dataclass(frozen=True, slots=True)
class Header:
    """
    The header of a picture file.

    Attributes:
        format: the format's name.
        width, height: pixels of the canvas, or of the first frame if that is larger.
        memory: bytes for decoding, the RGB form included.
        apart: the memory is not certain from the header, so a separate process decodes with that limit.
        times: of an animation or a video, when each frame appears, in seconds, and when the last one ends.
        kept: numbers of the frames that are decoded to RGB, ascending, all by default; part of `memory`.
        most: pixels of a kept frame, to which larger ones are scaled down; 0 for any size.
    """

    format: str
    width: int
    height: int
    memory: int
    apart: bool = False
    times: Sequence[float] = ()
    kept: Sequence[int] = ()
    most: int = 0

    @property
    def frames(self) -> int:
        """The number of frames of an animation or a video; 0 for a still picture."""
        return max(0, len(self.times) - 1)

    @property
    def frame_size(self) -> tuple[int, int]:
        """Width and height of a kept frame."""
        scale = sqrt(min(1.0, (self.most or inf) / (self.width * self.height)))
        return max(1, int(self.width * scale)), max(1, int(self.height * scale))

    def keeping(self, numbers: Sequence[int], most: int = 0) -> "Header":
        """Return the header of a film of which only the frames *numbers* are decoded to RGB, see `most`."""
        kept = replace(self, kept=numbers, most=most)
        return replace(kept, memory=self.memory + kept.kept_bytes - self.kept_bytes)

    @property
    def kept_bytes(self) -> int:
        """Memory of the kept frames."""
        width, height = self.frame_size
        return len(self.kept) * width * height * BYTES_PER_FRAME_PIXEL

    def upright(self, orientation: int) -> "Header":
        """Return the header without *orientation*: from 5 on, width and height are swapped."""
        return replace(self, width=self.height, height=self.width) if orientation >= 5 else self


@dataclass(frozen=True, slots=True)
class Unseen:
    """
    Content of a picture file that its pixels in 8-bit RGB, of the first frame as stored, do not show.

    Attributes:
        orientation: of EXIF, from 1 to 8; 1 for a picture that is stored upright.
        more_frames: the file holds more than one.
        alpha: it has a channel or a colour of transparency, and maybe no pixel that is not opaque.
        grey16: it is grey of more than 8 bits, whose values above 255 are clipped.
        profile: it has an ICC profile of other colours than those of sRGB.
    """

    orientation: int = 1
    more_frames: bool = False
    alpha: bool = False
    grey16: bool = False
    profile: bool = False


@dataclass(frozen=True, slots=True)
class Format:
    """
    One format.

    For a truncated or broken file its functions raise `ImageError`, `LookupError`, `ValueError` or
    `struct.error`.

    Attributes:
        name: Pillow's.
        signatures: a file begins with one of them.
        read: returns the header.
        plain: removes everything that does not change the pixels, such as texts, profiles and other frames.
        film: returns the header of an animation, or the result of `read` for a single frame; None if
            animations of this format are not supported.
        unseen: returns what the first frame does not show.
        begins: returns True for the first bytes of this format; None if its signatures suffice.
        about: what of the format is read, in a sentence for people; empty if there is nothing to say.
    """

    name: str
    signatures: tuple[bytes, ...]
    read: Callable[[bytes], Header]
    plain: Callable[[bytes], bytes] = bytes
    film: Callable[[bytes], Header] | None = None
    unseen: Callable[[bytes], Unseen] = lambda encoded: Unseen()
    begins: Callable[[bytes], bool] | None = None
    about: str = ""


def header(
    name: str, width: int, height: int, bytes_per_pixel: int = BYTES_PER_PIXEL, apart: bool = False
) -> Header:
    """Return the header of a picture with that memory per pixel.  Raises `ImageError` for 0 x 0."""
    if width < 1 or height < 1:
        raise ImageError(f"the {name} image has no pixels")
    return Header(name, width, height, width * height * bytes_per_pixel, apart)


def film_header(name: str, width: int, height: int, times: Sequence[float], bytes_per_pixel: int) -> Header:
    """
    Return the header of an animation.  Raises `ImageError` for 0 x 0, and for too many frames.

    Args:
        times: as in `Header`.
        bytes_per_pixel: memory for each pixel of the canvas, without the frames.
    """
    few_enough(name, len(times) - 1)
    still = header(name, width, height, bytes_per_pixel + BYTES_PER_PIXEL_ON_ITS_WAY, apart=True)
    return replace(still, times=times).keeping(range(len(times) - 1))


def few_enough(name: str, frames: int) -> None:
    """Raise `ImageError` for a file with more than `MAX_FILM_FRAMES` frames."""
    if frames > MAX_FILM_FRAMES:
        raise ImageError(f"the {name} file has more than {MAX_FILM_FRAMES} frames")


def times_of(durations: Iterable[float]) -> list[float]:
    """
    Return when each frame of an animation appears and when the last one ends, as browsers show it.

    Sums are rounded to the milliseconds of the formats: 0.1 + 0.2 is 0.3, as a request has it.
    """
    shown = (seconds if seconds >= MIN_DURATION_S else DEFAULT_DURATION_S for seconds in durations)
    return [round(time, 3) for time in accumulate(shown, initial=0.0)]


def joined(encoded: bytes, ranges: Sequence[tuple[int, int]]) -> bytes:
    """Join some ranges of a file."""
    view = memoryview(encoded)
    return b"".join(view[start:end] for start, end in ranges)
