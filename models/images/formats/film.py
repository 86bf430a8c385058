"""All frames of an animation as one picture: a strip, one frame below the other."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import PIL.Image

from models.images.formats.contract import Header, ImageError
from models.images.formats.mp4 import MP4
from models.images.formats.pillow import frames

Frames = Callable[[bytes, str], Iterator[PIL.Image.Image]]


def decoder(format: str) -> Frames:
    """Return the decoder for frames of a format.  Raises `ImportError` if it is not installed."""
    if format == MP4.name:
        from models.images.formats.video import video_frames  # large, and an extra

        return video_frames
    return frames


def strip(encoded: bytes, header: Header, frames: Frames) -> PIL.Image.Image:
    """
    Join the frames of a file, one below the other; each may be smaller than the canvas.

    Raises:
        ImageError: the file is broken, or has fewer or larger frames than its header.
    """
    found, canvas = 0, PIL.Image.new("RGB", (header.width, header.height * header.frames))
    with suppress(Exception):  # decoders raise many kinds for a broken file
        for found, frame in enumerate(frames(encoded, header.format), 1):
            if frame.width > header.width or frame.height > header.height:
                break
            canvas.paste(frame, (0, header.height * (found - 1)))
            if found == header.frames:
                return canvas
    raise ImageError(f"the {header.format} file is broken after frame {found}")
