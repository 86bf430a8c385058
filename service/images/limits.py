"""Limits of images: of each file as it is opened, and of the memory of all decoded pixels."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from models.images.formats.contract import Header
from models.images.formats.mp4 import MP4
from models.images.frame_stack import FrameStack
from models.images.image import Image, ImageError
from service.core.concurrency.budget import Budget, Portion
from service.core.errors import BadImage, ImageTooLarge, ImageUndecodable
from service.core.fields import Orient
from service.core.lanes import INTERACTIVE
from service.core.settings.sections import Images
from service.images.sources import Source, encoded_of
from service.serving.context import Context


def opened(
    source: Source, limits: Images, kind: type[Image], orient: Orient, kept: Sequence[int]
) -> Image | BadImage:
    """Return the image in *source* as *kind*, its header read, or the error; of a film, *kept* frames."""
    try:
        encoded = encoded_of(source, limits.max_bytes)
        if len(encoded) > limits.max_bytes:
            raise ImageTooLarge(f"{len(encoded)} bytes; at most {limits.max_bytes}")
        if not encoded:
            raise ImageUndecodable("the image is empty")
        image = kind(encoded)
        if image.header.format not in limits.formats:
            raise ImageUndecodable("the bytes are no image of a supported format")
        if isinstance(image, FrameStack):
            image.keep(kept, limits.max_frame_pixels)
        check(image.header, limits, kind)
        image.is_bound = True
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
    if header.times:
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


class PixelBudget:
    """
    A bound on the decoded pixels of all requests together.

    It owns the lifetime of pixels: images decode only while their memory is reserved, and their pixels are
    dropped before it is given back.  Both go on while calls of them are prepared, though the request may have
    ended: bulk calls are kept for a while.
    """

    def __init__(self, limits: Images) -> None:
        self._limits, self._max_bytes = limits, limits.decoded_budget_mb * 2**20
        self._budget = Budget(self._max_bytes)

    @property
    def held(self) -> int:
        """Bytes reserved now."""
        return self._budget.held

    @asynccontextmanager
    async def reserve(self, images: Sequence[Image], context: Context) -> AsyncIterator[None]:
        """
        Reserve memory for all *images* in one step; drop their pixels on exit.

        Raises `ImageTooLarge` or `ImageUndecodable` if they exceed the limits.
        """
        for image in images:
            check(image.header, self._limits, type(image))
        memory = sum(image.header.memory for image in images)
        if memory > self._max_bytes:
            raise ImageTooLarge(
                f"{len(images)} images that are used together take {memory >> 20} MiB to decode; "
                f"at most {self._limits.decoded_budget_mb}"
            )
        portion = await self._budget.take(memory, context.lane == INTERACTIVE)
        for image in images:
            image.reserve()
        try:
            yield
        finally:
            for image in images:
                release(image, portion, context)


def release(image: Image, portion: Portion, context: Context) -> None:
    """
    Drop the pixels of *image*, give its memory back, and record the time that decoding took.

    If the image is in use after the end of its request, the memory is given back when that ends.
    """
    loop, give_back = asyncio.get_running_loop(), partial(portion.give_back, image.header.memory)

    def later() -> None:
        loop.call_soon_threadsafe(give_back)

    time = image.release(later)
    if time is None:
        return
    give_back()
    if time.seconds:
        context.spent("decode", time.seconds)
        context.span.add("decode", time.began, time.began + time.seconds)
