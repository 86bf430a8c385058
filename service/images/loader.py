"""
Images of a request, opened when they are needed.

Limits come first: the header gives the size of an image, so one that is too large is rejected before
decoding.  Headers are read and pixels decoded on threads of each lane.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial

from models.images.frame_stack import FrameStack
from models.images.image import Image, ImageError
from service.core.concurrency.budget import ByteBudget
from service.core.concurrency.cpu_threads import FairThreads
from service.core.concurrency.sharing import Shared
from service.core.concurrency.tasks import side_by_side
from service.core.errors import BadImage, ImageTooLarge, MemoryFull
from service.core.fields import Orient
from service.core.lanes import INTERACTIVE
from service.core.settings.sections import Images
from service.images.fetcher import LARGEST_HELD, Fetcher
from service.images.limits import PixelBudget, again, opened
from service.images.sources import Base64, Source, Url, is_video, size_of
from service.serving.context import Context

MAX_SMALL_BYTES = 128 * 2**10  # bytes, or characters of base64: read and hashed in less than 0.1 ms
FILES_COUNTED_AT_ONCE = 32  # files whose frames are counted at the same time
MAX_KNOWN_ALPHA = 10_000  # pictures with a channel of alpha whose opacity is remembered
ONE_FRAME = (0.0, 0.0)  # times of a film that cannot be opened


class ImageRef:
    """
    One image of a request, opened once even if several items, metrics and frames use it.

    Args:
        kind: `FrameStack` if an animation counts as its frames.
        orient: whether pixels are turned by EXIF; None for the settings' value.

    Attributes:
        image: the opened image or the error; None before opening, and after the bytes of a URL are dropped.
        opened: holds the bytes, see `ImageLoader.read`.
        decodable: holds memory for the pixels, see `ImageLoader.open`.
        video: the file begins like a video, or its URL ends like one.
        film: the same file as a frame stack; None for a still image, and before frames are counted.
        times: of a film, when each frame appears, in seconds, and when the last one ends.
        kept: numbers of the frames of a film that are decoded.
    """

    def __init__(self, source: Source, kind: type[Image] = Image, orient: Orient | None = None) -> None:
        self.source, self.kind, self.orient = source, kind, orient
        self.image: Image | BadImage | None = None
        self.opened: Shared[Image] = Shared()
        self.decodable: Shared[Image] = Shared()
        self.video = is_video(source)
        self.film: ImageRef | None = None
        self.times: Sequence[float] = ()
        self.kept: Sequence[int] = ()

    def keep(self, numbers: Collection[int]) -> None:
        """Decode only these frames of a film."""
        self.kept = sorted(numbers)
        if isinstance(self.image, FrameStack):
            self.image.keep(self.kept, self.image.header.most)

    def forget(self) -> None:
        """Drop an opened image; an error is kept."""
        if isinstance(self.image, Image):
            self.image = None


class ImageLoader:
    """
    Opens images within the limits.

    Args:
        decoders: threads of each lane.
        memory: shared by downloads and request bodies.
    """

    def __init__(self, limits: Images, decoders: Mapping[str, FairThreads], memory: ByteBudget) -> None:
        self._limits, self._decoders = limits, decoders
        self.pixels = PixelBudget(limits)
        self._fetcher = Fetcher(limits, memory) if limits.allow_urls else None
        self._downloading_several = asyncio.Lock()
        self._transparent: dict[tuple[str, tuple[int, ...]], bool] = {}  # by digest and frames

    async def aclose(self) -> None:
        """Close the connections for downloads."""
        if self._fetcher:
            await self._fetcher.aclose()

    def open(self, ref: ImageRef, context: Context) -> AbstractAsyncContextManager[Image]:
        """
        Return the image of *ref*, with memory reserved for its pixels while the context is open.

        All who have the same *ref* open share the pixels.  Raises as `read`.
        """
        return ref.decodable.hold(partial(self._open, ref, context))

    def read(self, ref: ImageRef, context: Context) -> AbstractAsyncContextManager[Image]:
        """
        Return the image of *ref*, its header read, and its bytes in memory while the context is open.

        Raises a subclass of `BadImage` for the text, the size or the header.  Broken pixels are found by
        decoding, which raises `ImageError`.
        """
        return ref.opened.hold(partial(self._read, ref, context))

    @asynccontextmanager
    async def _open(self, ref: ImageRef, context: Context) -> AsyncIterator[Image]:
        async with self.read(ref, context) as image, self.pixels.reserve([image], context):
            yield image

    @asynccontextmanager
    async def _read(self, ref: ImageRef, context: Context) -> AsyncIterator[Image]:
        if isinstance(ref.image, BadImage):
            raise again(ref.image)
        async with AsyncExitStack() as stack:
            source = ref.source
            if isinstance(source, Url) and self._fetcher:
                try:
                    fetched = self._fetcher.open(source.url, context.lane == INTERACTIVE)
                    source = await stack.enter_async_context(fetched)
                except BadImage as error:
                    ref.image = again(error)
                    raise
                stack.callback(ref.forget)
            if ref.image is None:
                arguments = source, self._limits, ref.kind, ref.orient or self._limits.orient, ref.kept
                if size_of(source) <= MAX_SMALL_BYTES:  # faster than the way to a thread and back
                    ref.image = opened(*arguments)
                else:
                    ref.image = await self._decoders[context.lane].run(opened, *arguments)
            image = ref.image
            if isinstance(image, BadImage):
                raise again(image)
            if isinstance(source, Base64):  # one that failed keeps it: a film may yet open as a still image
                source.text = ""  # for all who hold it
                ref.source = image.encoded
            yield image

    async def read_together(
        self,
        places: Mapping[ImageRef, str],
        stack: AsyncExitStack,
        context: Context,
        failed: dict[ImageRef, BadImage] | None = None,
    ) -> dict[ImageRef, Image]:
        """
        Return several images, with their bytes in memory while *stack* is open.  Raises as `read`.

        Only one caller at a time downloads several: two that each wait for memory that the other holds would
        deadlock.

        Args:
            places: of each image in the request, for errors.
            failed: gets the errors of images in place of raising the first.
        """
        fetched = sum(isinstance(ref.source, Url) for ref in places)
        if fetched > LARGEST_HELD:
            raise ImageTooLarge(f"{fetched} images by URL that are used together; at most {LARGEST_HELD}")
        images = {}
        async with self._downloading_several if fetched > 1 else nullcontext():
            for ref, place in places.items():
                try:
                    images[ref] = await stack.enter_async_context(self.read(ref, context))
                except BadImage as error:
                    if failed is None:
                        raise (error.of_part(place) if place else again(error)) from None
                    failed[ref] = again(error.of_part(place))
        return images

    async def look_at_alpha(self, images: Mapping[ImageRef, Image], context: Context) -> None:
        """
        Set `unseen.alpha` of each file that may have transparency to whether it has some.

        Its pixels are decoded for that, unless its opacity is known.

        Args:
            images: each file, its copy, or the grid that it is part of, with memory for the pixels.
        """
        for ref, image in images.items():
            if not (isinstance(ref.image, Image) and ref.image.unseen.alpha):
                continue
            key = image.digest, tuple(ref.kept)
            if key not in self._transparent:
                transparent = await self._decoders[context.lane].run(is_transparent, image)
                if transparent is None:
                    continue
                if len(self._transparent) >= MAX_KNOWN_ALPHA:
                    del self._transparent[next(iter(self._transparent))]
                self._transparent[key] = transparent
            ref.image.unseen = replace(ref.image.unseen, alpha=self._transparent[key])

    async def count_frames(self, refs: Collection[ImageRef], context: Context) -> bool:
        """
        Set the film of each of *refs* that is animated.  Nothing is decoded, and nothing is raised.

        Returns:
            True if any is animated.
        """
        await side_by_side((self._count(ref, context) for ref in refs), lambda: FILES_COUNTED_AT_ONCE)
        return any(ref.film for ref in refs)

    async def _count(self, ref: ImageRef, context: Context) -> None:
        film = ImageRef(ref.source, FrameStack, ref.orient)
        try:
            async with asyncio.timeout_at(context.deadline), self.read(film, context) as image:
                film.times = image.header.times
        except (TimeoutError, MemoryFull):  # scoring will raise it again
            return
        except BadImage:  # raised again when it is opened
            film.times = ONE_FRAME
        ref.source = film.source
        if film.times:
            ref.film = film
        elif isinstance(film.image, FrameStack):  # need not be read again
            ref.image = Image.over(film.image)


def is_transparent(image: Image) -> bool | None:
    """Return whether a pixel is not opaque; None if they cannot be decoded, which scoring raises again."""
    try:
        return image.is_transparent
    except ImageError:
        return None
