"""Limits of an image file: bytes, format, pixels and memory, checked as it is opened."""

from collections.abc import Sequence

from models.images.formats.contract import Header
from models.images.formats.mp4 import MP4
from models.images.frame_stack import FrameStack
from models.images.image import Image, ImageError
from service.core.errors import BadImage, ImageTooLarge, ImageUndecodable
from service.core.fields import Orient
from service.core.settings.sections import Images
from service.images.sources import Source


def opened(
    source: Source, limits: Images, kind: type[Image], orient: Orient, kept: Sequence[int]
) -> Image | BadImage:
    """Return the image in *source* as *kind*, its header read, or the error; of a film, *kept* frames."""
    try:
        encoded = source.read(limits.max_bytes)
        if not encoded:
            raise ImageUndecodable("the image is empty")
        image = kind(encoded)
        if image.header.format not in limits.formats:
            raise ImageUndecodable("the bytes are no image of a supported format")
        if isinstance(image, FrameStack):
            image.keep(kept)
        check(image.header, limits, kind)
        image.bound()
        upright = image.upright()  # reads the EXIF orientation here, not on the event loop
        return upright if orient == "exif" else image
    except BadImage as error:
        return again(error)
    except ImageError as exc:
        return ImageUndecodable(str(exc))


def check(header: Header, limits: Images, kind: type[Image]) -> None:
    """Raise `ImageUndecodable` or `ImageTooLarge` if an image exceeds the limits."""
    width, height = header.width, header.height
    size = f"{width}x{height} pixels"
    if header.frames:
        if not issubclass(kind, FrameStack):
            raise ImageUndecodable("a video in place of a still picture; fps or start makes it one of frames")
        size = f"{len(header.kept)} frames of {size}"
        passed = limits.max_video_pixels if header.format == MP4.name else limits.max_pixels
        most = passed // (width * height)
        if header.kept and header.kept[-1] >= most:
            raise ImageTooLarge(
                f"frame {header.kept[-1]} of {width}x{height} pixels is decoded with all before it; "
                f"at most {most} frames of that size; set an end"
            )
    if width * height > limits.max_pixels or max(width, height) > limits.max_side:
        raise ImageTooLarge(f"{size}; at most {limits.max_pixels} in all and {limits.max_side} on a side")
    if header.memory > limits.decoded_budget_mb * 2**20:
        raise ImageTooLarge(
            f"{size} of {header.format} take {header.memory >> 20} MiB to decode; "
            f"at most {limits.decoded_budget_mb}"
        )


def again(error: BadImage) -> BadImage:
    """Return a copy of *error* without traceback, which may be stored without keeping its image alive."""
    return type(error)(error.detail)
