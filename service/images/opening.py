"""A picture file, opened within the limits, or why it cannot be."""

from models.images.formats.contract import Header
from models.images.frame_stack import FrameStack
from models.images.image import Image, ImageError
from service.core.errors import BadImage, ImageTooLarge, ImageUndecodable
from service.core.fields import Orient
from service.core.settings.sections import Images
from service.images.sources import Source


def opened(source: Source, limits: Images, kind: type[Image], orient: Orient) -> Image | BadImage:
    """The image of that *kind* that *source* holds, its header read, or why it cannot be had."""
    try:
        encoded = source.read(limits.max_bytes)
        if not encoded:
            raise ImageUndecodable("the image is empty")
        image = kind(encoded)
        if image.header.format not in limits.formats:
            raise ImageUndecodable("the bytes are no image of a format that is read here")
        check(image.header, limits, kind)
        upright = image.upright()  # reads what the file says of that, here and not on the event loop
        return upright if orient == "exif" else image
    except BadImage as error:
        return again(error)
    except ImageError as exc:
        return ImageUndecodable(str(exc))


def check(header: Header, limits: Images, kind: type[Image]) -> None:
    """Raises `ImageUndecodable` or `ImageTooLarge` where an image is not within the limits."""
    width, height = header.width, header.height
    size = f"{width}x{height} pixels"
    if header.frames:
        if not issubclass(kind, FrameStack):
            raise ImageUndecodable("a video; say what becomes of its frames with options.METRIC.frames")
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
    """The same error, which may be kept: one that was raised holds on to the picture it was raised for."""
    return type(error)(error.detail)
