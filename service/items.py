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
from dataclasses import dataclass, field
from functools import partial

from models.formats.contract import Header
from models.formats.registry import read_header
from models.image import Image, ImageError
from service.concurrency.budget import Budget
from service.concurrency.shared import Shared
from service.context import Context
from service.errors import BadImage, ImageTooLarge, ImageUndecodable
from service.lanes import INTERACTIVE
from service.metrics.contract import MetricOptions
from service.settings.sections import Images
from service.sources import Encoded, Source, Url
from service.urls.fetcher import Fetcher


@dataclass(frozen=True, slots=True)
class UnopenedItem:
    """
    A prompt with its pictures, as they were sent.

    Attributes:
        frames: the pictures that are judged against the prompt, one or several.
        options: by metric; a metric that is left out has its defaults.
        id: the caller's name for it, echoed.
        place: where it stands in the request, as a JSON pointer, for errors.
    """

    prompt: str
    frames: Sequence["Picture"]
    options: Mapping[str, MetricOptions] = field(default_factory=dict)
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
        self._shared: Shared[Image] = Shared()

    def held(self, pictures: "Pictures", context: Context) -> AbstractAsyncContextManager[Image]:
        """The image, while the context is open.  Raises `BadImage`, one of its kinds."""
        return self._shared.hold(lambda: pictures.open(self, context))


class Pictures:
    """Opens pictures within the limits, each lane with its own of the *decoders*."""

    def __init__(self, limits: Images, decoders: Mapping[str, Executor]) -> None:
        self._limits, self._decoders = limits, decoders
        self._budget = Budget(limits.decoded_budget_mb * 2**20)
        self._fetcher = Fetcher(limits) if limits.allow_urls else None

    async def aclose(self) -> None:
        """Close the connections to hosts that pictures were fetched from."""
        if self._fetcher:
            await self._fetcher.aclose()

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
        if isinstance(picture.image, BadImage):
            raise again(picture.image)
        urgent = context.lane == INTERACTIVE
        async with self._at_hand(picture, urgent) as source:
            if picture.image is None:
                loop, decoder = asyncio.get_running_loop(), self._decoders[context.lane]
                picture.image = await loop.run_in_executor(decoder, opened, source, self._limits)
            image = picture.image
            if isinstance(image, BadImage):
                raise again(image)
            await self._budget.take(image.header.memory, urgent)
            try:
                yield image
            finally:
                if image.decode_s:
                    context.spent("decode", image.decode_s)
                self._let_go(image)

    def _let_go(self, image: Image) -> None:
        """Give its share back; of a picture that is being decoded for nobody, once that has ended."""
        loop, give_back = asyncio.get_running_loop(), partial(self._budget.give_back, image.header.memory)

        def later() -> None:
            loop.call_soon_threadsafe(give_back)

        if image.release(later):
            give_back()

    @asynccontextmanager
    async def _at_hand(self, picture: Picture, urgent: bool) -> AsyncIterator[Source]:
        """The picture's source, fetched if it has to be; what was fetched is let go with the context."""
        if not isinstance(picture.source, Url) or self._fetcher is None:
            yield picture.source
            return
        try:
            async with self._fetcher.open(picture.source.url, urgent) as encoded:
                yield Encoded(encoded)
        except BadImage as error:
            picture.image = again(error)
            raise
        finally:
            if isinstance(picture.image, Image):
                picture.image = None


def opened(source: Source, limits: Images) -> Image | BadImage:
    """The image that *source* holds, its header read, or why it cannot be had."""
    try:
        encoded = source.read(limits.max_bytes)
        if not encoded:
            raise ImageUndecodable("the image is empty")
        header = read_header(encoded)
        check(header, limits)
        image = Image(encoded)
        image.header = header
        return image
    except BadImage as error:
        return again(error)
    except ImageError as exc:
        return ImageUndecodable(str(exc))


def check(header: Header, limits: Images) -> None:
    """Raises `ImageUndecodable` or `ImageTooLarge` where an image is not within the limits."""
    if header.format not in limits.formats:
        raise ImageUndecodable("the bytes are no image of a format that is read here")
    width, height = header.width, header.height
    if width * height > limits.max_pixels or max(width, height) > limits.max_side:
        raise ImageTooLarge(
            f"{width}x{height} pixels; at most {limits.max_pixels} in all and {limits.max_side} on a side"
        )
    if header.memory > limits.decoded_budget_mb * 2**20:
        raise ImageTooLarge(
            f"{width}x{height} pixels of {header.format} take {header.memory >> 20} MiB to decode; "
            f"at most {limits.decoded_budget_mb}"
        )


def again(error: BadImage) -> BadImage:
    """The same error, which may be kept: one that was raised holds on to the picture it was raised for."""
    return type(error)(error.detail)
