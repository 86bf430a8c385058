"""
Items as they were sent, and their pictures, opened when they are needed.

Limits come first: the header tells a picture's size, and one that is too large is refused before a
pixel is decoded.  Headers are read and pixels decoded in a few threads of their own, and the pixels
held by all requests together stay under a budget.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from models.image import Image, ImageError, read_size
from service.concurrency.budget import Budget
from service.concurrency.shared import Shared
from service.context import Context
from service.errors import BadImage, ImageTooLarge, ImageUndecodable
from service.lanes import INTERACTIVE
from service.settings.sections import BYTES_PER_PIXEL, Images
from service.sources import Source


@dataclass(frozen=True, slots=True)
class UnopenedItem:
    """
    A prompt with its pictures, as they were sent.

    Attributes:
        frames: the pictures that are judged against the prompt, one or several.
        id: the caller's name for it, echoed.
        place: where it stands in the request, as a JSON pointer, for errors.
    """

    prompt: str
    frames: Sequence["Picture"]
    id: str | None = None
    place: str = ""


class Picture:
    """
    A picture of a request, opened once, however many items name it and however often they look at it.

    Pixels are decoded when a model first looks at them, and let go when nobody holds the picture.

    Attributes:
        image: the opened image, its header read, or why it cannot be had; None before.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.image: Image | BadImage | None = None
        self._shared: Shared[Image] | None = None

    def held(self, pictures: "Pictures", context: Context) -> AbstractAsyncContextManager[Image]:
        """The image, while the context is open.  Raises `BadImage`, one of its kinds."""
        if self._shared is None:
            self._shared = Shared(lambda: pictures.open(self, context))
        return self._shared.hold()


class Pictures:
    """Opens pictures within the limits, each lane with its own of the *decoders*."""

    def __init__(self, limits: Images, decoders: Mapping[str, Executor]) -> None:
        self._limits, self._decoders = limits, decoders
        self._budget = Budget(limits.decoded_budget_mb * 2**20)

    @property
    def budget_held(self) -> int:
        """Bytes of decoded pixels that are accounted for now."""
        return self._budget.held

    @asynccontextmanager
    async def open(self, picture: Picture, context: Context) -> AsyncIterator[Image]:
        """
        The image of *picture*, its pixels accounted for while the context is open.

        Raises:
            BadImage: one of its kinds, for what is wrong with the text, the size or the header; broken
                pixels are found by who looks at them, and raise `ImageError` there.
        """
        if picture.image is None:
            loop, decoder = asyncio.get_running_loop(), self._decoders[context.lane]
            picture.image = await loop.run_in_executor(decoder, opened, picture.source, self._limits)
        image = picture.image
        if isinstance(image, BadImage):
            raise image
        width, height = image.size
        async with self._budget.hold(BYTES_PER_PIXEL * width * height, context.lane == INTERACTIVE):
            try:
                yield image
            finally:
                if image.decode_s:
                    context.spent("decode", image.decode_s)
                image.release()


def opened(source: Source, limits: Images) -> Image | BadImage:
    """The image that *source* holds, its header read, or why it cannot be had."""
    try:
        encoded = source.read(limits.max_bytes)
        if not encoded:
            raise ImageUndecodable("the image is empty")
        width, height = size = read_size(encoded)
        if width * height > limits.max_pixels or max(width, height) > limits.max_side:
            raise ImageTooLarge(
                f"{width}x{height} pixels; at most {limits.max_pixels} in all and {limits.max_side} on a side"
            )
        image = Image(encoded)
        image.size = size
        return image
    except BadImage as error:
        return error
    except ImageError as exc:
        return ImageUndecodable(str(exc))
