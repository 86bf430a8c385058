"""The frames of an animation that are kept, each on the canvas of its header."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import PIL.Image

from models.images.formats.contract import Header, ImageError
from models.images.formats.mp4 import MP4
from models.images.formats.pillow import frames

Frames = Callable[[bytes, str, Sequence[int]], Iterator[PIL.Image.Image]]


def decoder(format: str) -> Frames:
    """Return the decoder for frames of a format.  Raises `ImportError` if it is not installed."""
    if format == MP4.name:
        from models.images.formats.video import video_frames  # large, and an extra

        return video_frames
    return frames


def kept_frames(encoded: bytes, header: Header, frames: Frames) -> Iterator[PIL.Image.Image]:
    """
    Yield the frames that *header* keeps, in order; each may be smaller than the canvas.

    Raises:
        ImageError: the file is broken, or has fewer or larger frames than its header.
    """
    size, found = (header.width, header.height), 0
    with suppress(Exception):  # decoders raise many kinds for a broken file
        for frame in frames(encoded, header.format, header.kept):
            if frame.width > header.width or frame.height > header.height:
                break
            yield frame if frame.size == size else on_canvas(frame, size)
            found += 1
    if found < len(header.kept):
        raise ImageError(f"the {header.format} file is broken before frame {header.kept[found]} ends")


def on_canvas(frame: PIL.Image.Image, size: tuple[int, int]) -> PIL.Image.Image:
    """Return a smaller frame in the upper left corner of a black canvas."""
    canvas = PIL.Image.new("RGB", size)
    canvas.paste(frame)
    return canvas
