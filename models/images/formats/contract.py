"""What is known of a picture before anything is decoded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

# While Pillow holds both the picture as it came and its RGB form, at four bytes a pixel each.
BYTES_PER_PIXEL = 2 * 4

# Of each frame of an animation, here and in the process that decodes it: RGB twice, and on its way between.
BYTES_PER_FRAME_PIXEL = 16
MAX_FILM = 1_000  # frames in a file


class ImageError(Exception):
    """The bytes are not a picture of a known format, or a broken one."""


@dataclass(frozen=True, slots=True)
class Header:
    """
    What a picture file says of itself.

    Attributes:
        format: the format's name.
        width, height: pixels of the canvas, or of the first frame where that reaches beyond it.
        memory: bytes that the pixels take while they are decoded, the RGB form included.
        apart: whether the decoder goes by more than the header.  Then it runs in a process of its own,
            which gets the memory that the header asks for and no more.
        frames: of an animation or a video, all of them on a canvas of that size; 0 for a still picture.
    """

    format: str
    width: int
    height: int
    memory: int
    apart: bool = False
    frames: int = 0

    def upright(self, orientation: int) -> "Header":
        """That of the picture without its *orientation*: from 5 on, width and height change places."""
        return replace(self, width=self.height, height=self.width) if orientation >= 5 else self


@dataclass(frozen=True, slots=True)
class Unseen:
    """
    What a viewer shows of a picture file, and its first frame as it is stored does not.

    Attributes:
        orientation: as EXIF counts them, from 1 to 8; 1 for a picture that is stored upright.
        more_frames: whether the file holds more than one.
    """

    orientation: int = 1
    more_frames: bool = False


@dataclass(frozen=True, slots=True)
class Format:
    """
    One format.

    What its functions raise where a file breaks off or is nonsense: `ImageError`, `LookupError`, `ValueError`
    or `struct.error`.

    Attributes:
        name: Pillow's.
        begins: whether a file is of this format, told from its first bytes.
        read: its header.
        plain: the file without what does not decide its pixels, such as texts, profiles and other frames.
        film: its header as an animation, or that of `read` where there is one frame; None where animations
            of this format are not read.
        unseen: what of the file its first frame does not show.
    """

    name: str
    begins: Callable[[bytes], bool]
    read: Callable[[bytes], Header]
    plain: Callable[[bytes], bytes] = bytes
    film: Callable[[bytes], Header] | None = None
    unseen: Callable[[bytes], Unseen] = lambda encoded: Unseen()


def starts(*magic: bytes) -> Callable[[bytes], bool]:
    """To tell a file by what it starts with."""
    return lambda encoded: encoded.startswith(magic)


def header(
    name: str, width: int, height: int, bytes_per_pixel: int = BYTES_PER_PIXEL, apart: bool = False
) -> Header:
    """The header of a picture whose decoder takes so much for each pixel.  Raises `ImageError` for 0 x 0."""
    if width < 1 or height < 1:
        raise ImageError(f"the {name} image has no pixels")
    return Header(name, width, height, width * height * bytes_per_pixel, apart)


def film_header(name: str, width: int, height: int, frames: int, bytes_per_pixel: int) -> Header:
    """
    The header of an animation.  Raises `ImageError` for 0 x 0, and for more frames than any clip has.

    Args:
        bytes_per_pixel: what the decoder takes for each pixel of the canvas, beside the frames.
    """
    if frames > MAX_FILM:
        raise ImageError(f"the {name} file has more than {MAX_FILM} frames")
    still = header(name, width, height, bytes_per_pixel, apart=True)
    memory = still.memory + width * height * frames * BYTES_PER_FRAME_PIXEL
    return replace(still, memory=memory, frames=frames)


def joined(encoded: bytes, ranges: Sequence[tuple[int, int]]) -> bytes:
    """Some ranges of a file, one behind the other."""
    view = memoryview(encoded)
    return b"".join(view[start:end] for start, end in ranges)
