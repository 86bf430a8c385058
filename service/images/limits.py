"""Limits of an image file: bytes, format, pixels and memory, checked as it is opened."""

from models.images.formats.contract import Header
from models.images.frame_stack import FrameStack
from models.images.image import Image, ImageError
from service.core.errors import BadImage, ImageTooLarge, ImageUndecodable
from service.core.fields import Orient
from service.core.settings.sections import Images
from service.images.sources import Source


def opened(source: Source, limits: Images, kind: type[Image], orient: Orient) -> Image | BadImage:
    """Return the image in *source* as *kind*, its header read, or the error."""
    try:
        encoded = source.read(limits.max_bytes)
        if not encoded:
            raise ImageUndecodable("the image is empty")
        image = kind(encoded)
        if image.header.format not in limits.formats:
            raise ImageUndecodable("the bytes are no image of a supported format")
        check(image.header, limits, kind)
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
            raise ImageUndecodable("a video; choose how its frames are scored with options.METRIC.frames")
        size = f"{header.frames} frames of {size}"
    pixels = width * height * max(1, header.frames)
    if pixels > limits.max_pixels or max(width, height) > limits.max_side:
        raise ImageTooLarge(f"{size}; at most {limits.max_pixels} in all and {limits.max_side} on a side")
    if header.memory > limits.decoded_budget_mb * 2**20:
        raise ImageTooLarge(
            f"{size} of {header.format} take {header.memory >> 20} MiB to decode; "
            f"at most {limits.decoded_budget_mb}"
        )


def again(error: BadImage) -> BadImage:
    """Return a copy of *error* without traceback, which may be stored without keeping its image alive."""
    return type(error)(error.detail)
