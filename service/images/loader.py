"""
Pictures as they were sent, opened when they are needed.

Limits come first: the header tells a picture's size, and one that is too large is refused before a
pixel is decoded.  Headers are read and pixels decoded in a few threads of their own, and the pixels
held by all requests together stay under a budget.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial

from models.images.frame_stack import FrameStack
from models.images.image import Image
from service.core.concurrency.budget import Budget, Portion
from service.core.concurrency.cpu_threads import FairThreads
from service.core.concurrency.shared import Shared
from service.core.concurrency.together import side_by_side
from service.core.errors import BadImage, ImageTooLarge, MemoryFull
from service.core.fields import Orient
from service.core.lanes import INTERACTIVE
from service.core.settings.sections import Images
from service.images.byte_budget import ByteBudget
from service.images.opening import again, check, opened
from service.images.sources import Base64, Encoded, Source, Url
from service.images.urls.fetcher import LARGEST_HELD, Fetcher
from service.serving.context import Context

SMALL = 128 * 2**10  # bytes, or characters of base64: read and named in less than 0.1 ms
COUNTED = 32  # pictures whose frames are counted at the same time


class ImageRef:
    """
    A picture of a request, opened once, however many items name it and however often they look at it.

    Pixels are decoded when a model first looks at them, and let go when nobody holds the picture.

    Args:
        kind: `FrameStack`, where an animation counts as its frames.
        orient: whether its pixels are turned as EXIF says; None where the settings decide.

    Attributes:
        image: the opened image, its header read, or why it cannot be had; None before.
        opening: held by whoever opens it, while others wait for what comes of that.
        fetched: what lies at its address, while somebody needs it.
        film: the same file as its frames, once they have been counted; None for a still picture.
        frames: how many there are of a film.
    """

    def __init__(self, source: Source, kind: type[Image] = Image, orient: Orient | None = None) -> None:
        self.source, self.kind, self.orient = source, kind, orient
        self.image: Image | BadImage | None = None
        self.opening = asyncio.Lock()
        self.fetched: Shared[Source] = Shared()
        self.film: ImageRef | None = None
        self.frames = 0
        self._shared: Shared[Image] = Shared()

    def held(self, pictures: "ImageLoader", context: Context) -> AbstractAsyncContextManager[Image]:
        """The image, while the context is open.  Raises `BadImage`, one of its kinds."""
        return self._shared.hold(lambda: pictures.open(self, context))


class ImageLoader:
    """
    Opens pictures within the limits.

    Args:
        decoders: threads of each lane.
        memory: that fetched pictures share with the bodies of requests.
    """

    def __init__(self, limits: Images, decoders: Mapping[str, FairThreads], memory: ByteBudget) -> None:
        self._limits, self._decoders = limits, decoders
        self._budget = Budget(limits.decoded_budget_mb * 2**20)
        self._fetcher = Fetcher(limits, memory) if limits.allow_urls else None
        self._fetching_together = asyncio.Lock()

    async def aclose(self) -> None:
        """Close the connections to hosts that pictures were fetched from."""
        if self._fetcher:
            await self._fetcher.aclose()

    @property
    def budget_held(self) -> int:
        """Bytes of decoded pixels that are accounted for now."""
        return self._budget.held

    @asynccontextmanager
    async def open(self, picture: ImageRef, context: Context) -> AsyncIterator[Image]:
        """
        The image of *picture*, its pixels accounted for while the context is open.

        Raises:
            BadImage: one of its kinds, for what is wrong with the text, the size or the header; broken
                pixels are found by who looks at them, and raise `ImageError` there.
        """
        async with self.read(picture, context) as image, self.accounted([image], context):
            yield image

    @asynccontextmanager
    async def read(self, picture: ImageRef, context: Context) -> AsyncIterator[Image]:
        """The image of *picture*, its header read, and its bytes at hand.  Raises as `open` does."""
        if isinstance(picture.image, BadImage):
            raise again(picture.image)
        async with self._source(picture, context.lane == INTERACTIVE) as source:
            async with picture.opening:
                if picture.image is None:
                    picture.image = await self._opened(source, picture, context.lane)
                    picture.source = opened_source(picture)
                image = picture.image
            if isinstance(image, BadImage):
                raise again(image)
            yield image

    async def read_together(
        self, places: Mapping[ImageRef, str], stack: AsyncExitStack, context: Context
    ) -> dict[ImageRef, Image]:
        """
        The images of several pictures, at hand while *stack* is open.  Raises as `open` does.

        One caller at a time fetches several: two who wait for what the other holds would wait for ever.

        Args:
            places: what an error calls each of them.
        """
        fetched = sum(isinstance(picture.source, Url) for picture in places)
        if fetched > LARGEST_HELD:
            raise ImageTooLarge(
                f"{fetched} pictures by URL that are looked at together; at most {LARGEST_HELD}"
            )
        images = {}
        async with self._fetching_together if fetched > 1 else nullcontext():
            for picture, place in places.items():
                try:
                    images[picture] = await stack.enter_async_context(self.read(picture, context))
                except BadImage as error:
                    raise (error.of_part(place) if place else again(error)) from None
        return images

    @asynccontextmanager
    async def accounted(self, images: Sequence[Image], context: Context) -> AsyncIterator[None]:
        """While this is open there is room for the pixels of all *images*, which go with it."""
        for image in images:
            check(image.header, self._limits, type(image))
        memory, most = sum(image.header.memory for image in images), self._limits.decoded_budget_mb * 2**20
        if memory > most:
            raise ImageTooLarge(
                f"{len(images)} pictures that are looked at together take {memory >> 20} MiB to decode; "
                f"at most {self._limits.decoded_budget_mb}"
            )
        portion = await self._budget.take(memory, context.lane == INTERACTIVE)
        try:
            yield
        finally:
            for image in images:
                if image.decode_s:
                    context.spent("decode", image.decode_s)
                    context.span.add("decode", image.decode_began, image.decode_began + image.decode_s)
                let_go(image, portion)

    async def count_frames(self, pictures: Collection[ImageRef], context: Context) -> bool:
        """
        Find out which of *pictures* move: they have a film then.  Nothing is decoded, nothing is raised.

        Returns:
            Whether any of them moves.
        """
        await side_by_side((self._count(picture, context) for picture in pictures), lambda: COUNTED)
        return any(picture.film for picture in pictures)

    async def _count(self, picture: ImageRef, context: Context) -> None:
        film = ImageRef(picture.source, FrameStack, picture.orient)
        try:
            async with asyncio.timeout_at(context.deadline), self.read(film, context) as image:
                film.frames = image.header.frames
        except (TimeoutError, MemoryFull):  # so it is for who scores it
            return
        except BadImage:  # which is told to who opens it
            film.frames = 1
        picture.source = film.source
        if film.frames:
            picture.film = film
        elif isinstance(film.image, FrameStack):  # it is at hand still, and need not be read again
            picture.image = Image.over(film.image)

    async def _opened(self, source: Source, picture: ImageRef, lane: str) -> Image | BadImage:
        asked = source, self._limits, picture.kind, picture.orient or self._limits.orient
        if source.size <= SMALL:  # the way to a thread and back takes longer
            return opened(*asked)
        return await self._decoders[lane].run(opened, *asked)

    def _source(self, picture: ImageRef, urgent: bool) -> AbstractAsyncContextManager[Source]:
        """Where the bytes of *picture* are while this is open, fetched once for all who need them."""
        if isinstance(picture.source, Url) and self._fetcher is not None:
            return picture.fetched.hold(partial(fetched, picture, picture.source.url, self._fetcher, urgent))
        return nullcontext(picture.source)


def let_go(image: Image, portion: Portion) -> None:
    """Give the share of *image* back; of one that is being decoded for nobody, once that has ended."""
    loop, give_back = asyncio.get_running_loop(), partial(portion.give_back, image.header.memory)

    def later() -> None:
        loop.call_soon_threadsafe(give_back)

    if image.release(later):
        give_back()


@asynccontextmanager
async def fetched(picture: ImageRef, url: str, fetcher: Fetcher, urgent: bool) -> AsyncIterator[Source]:
    """What lies at the *url* of *picture*, let go with the context.  Raises `BadImage`, and so for ever."""
    if isinstance(picture.image, BadImage):
        raise again(picture.image)
    try:
        async with fetcher.open(url, urgent) as encoded:
            yield Encoded(encoded)
    except BadImage as error:
        picture.image = again(error)
        raise
    finally:
        if isinstance(picture.image, Image):
            picture.image = None


def opened_source(picture: ImageRef) -> Source:
    """
    Where the bytes of *picture* are now: no longer in base64 text, which is let go, if it was opened.

    What is too large as a film may be opened as a still picture yet.
    """
    source, image = picture.source, picture.image
    if not isinstance(source, Base64) or not isinstance(image, Image):
        return source
    source.let_go()
    return Encoded(image.encoded)
