"""
Images of a request: what they are given as, and their files, opened within the limits when they are needed.

Limits come first: the header gives the size of an image, so one that is too large is rejected before
decoding.  Headers are read and pixels decoded on threads of each lane.
"""

import asyncio
import binascii
import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar
from urllib.parse import urlsplit

import pybase64

from models.images.formats.contract import Header
from models.images.formats.mp4 import MP4, is_mp4
from models.images.frame_stack import FrameStack
from models.images.image import Image, ImageError
from service.core.concurrency.budget import Budget, ByteBudget, Portion
from service.core.concurrency.cpu_threads import FairThreads
from service.core.errors import (
    BadImage,
    ImageTooLarge,
    ImageUndecodable,
    NotBase64,
    UrlNotAllowed,
)
from service.core.fields import Orient
from service.core.lanes import INTERACTIVE
from service.core.settings.sections import Images
from service.images.fetcher import LARGEST_HELD, Fetcher, PublicNetwork
from service.serving.context import Context

MAX_SMALL_BYTES = 128 * 2**10  # bytes, or characters of base64: read and hashed in less than 0.1 ms
MAX_KNOWN_ALPHA = 10_000  # pictures with a channel of alpha whose opacity is remembered
MAX_HEAD = 256  # characters of a data: URI before its data, including padding
MAX_HINT = 4096  # characters of a text that gets a hint
HEAD_CHARACTERS = 16  # characters of base64: the twelve bytes that name the brand of an MP4
VIDEO_PATH = re.compile(r"\.(mp4|m4v)$", re.IGNORECASE)
URL = re.compile(r"https?://", re.IGNORECASE)
PATH = re.compile(r"^(file:|/|~/|\.{1,2}/|[A-Za-z]:\\)|\.\w{3,4}$")

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Base64:
    """An image file as base64, or as a `data:` URI of base64; the text is dropped after decoding."""

    text: str


@dataclass(frozen=True, slots=True)
class Url:
    """The address of an image."""

    url: str


Source = bytes | Base64 | Url
"""An image file itself, or what stands for it."""


@dataclass(eq=False, slots=True)
class Shared(Generic[T]):
    """A context that is entered for its first holder and exited after its last one."""

    _entering: asyncio.Lock = field(default_factory=asyncio.Lock)
    _holders: int = 0  # including those that wait for it to be entered
    _entered: tuple[AbstractAsyncContextManager[T], T] | None = None

    @asynccontextmanager
    async def hold(self, enter: Callable[[], AbstractAsyncContextManager[T]]) -> AsyncIterator[T]:
        """
        Hold the context, and yield its value.  Raises what entering the context raises.

        Args:
            enter: makes the context for the first holder.  It is not stored, so that it may refer to the
                owner of this object without a reference cycle.
        """
        self._holders += 1
        try:
            async with self._entering:
                if self._entered is None:
                    context = enter()
                    self._entered = context, await context.__aenter__()
            yield self._entered[1]
        finally:
            self._holders -= 1
            if not self._holders and self._entered is not None:
                (context, _), self._entered = self._entered, None
                await context.__aexit__(None, None, None)


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
        network: see `Fetcher`.
    """

    def __init__(
        self,
        limits: Images,
        decoders: Mapping[str, FairThreads],
        memory: ByteBudget,
        network: PublicNetwork | None = None,
    ) -> None:
        self._limits, self._decoders = limits, decoders
        self.pixels = PixelBudget(limits)
        self._fetcher = Fetcher(limits, memory, network) if limits.allow_urls else None
        self._downloading_several = asyncio.Lock()
        self._transparent: dict[tuple[str, tuple[int, ...]], bool] = {}  # keys are digests and frames

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
                if size_of(source) <= MAX_SMALL_BYTES:  # a thread and back would take longer
                    ref.image = opened(*arguments)
                else:
                    ref.image = await self._decoders[context.lane].run(opened, *arguments)
            image = ref.image
            if isinstance(image, BadImage):
                raise again(image)
            if isinstance(source, Base64):  # one that failed keeps it: a film may yet open as a still image
                source.text = ""  # the text is freed for all who hold the source
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


def is_transparent(image: Image) -> bool | None:
    """Return whether a pixel is not opaque; None if they cannot be decoded, which scoring raises again."""
    try:
        return image.is_transparent
    except ImageError:
        return None


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


def size_of(source: Source) -> int:
    """Return the bytes of a file, or the characters of a text; 0 for an address that has not been fetched."""
    match source:
        case Base64(text):
            return len(text)
        case Url():
            return 0
    return len(source)


def encoded_of(source: Source, max_bytes: int) -> bytes:
    """
    Return the bytes of an image file.

    Raises:
        NotBase64: a text is none.
        ImageTooLarge: a text is too long for *max_bytes*; files themselves have any size.
        UrlNotAllowed: it would have to be downloaded; if downloads are enabled, the loader has done so.
    """
    match source:
        case Base64(text):
            if len(text) > max_bytes * 4 // 3 + MAX_HEAD:
                raise ImageTooLarge(f"more than {max_bytes} bytes")
            return unbase64(text)
        case Url():
            raise UrlNotAllowed("this server does not download images; send the bytes")
    return source


def is_video(source: Source) -> bool:
    """Return True for an MP4 by its first bytes, or by the path of its URL."""
    match source:
        case Url():
            return VIDEO_PATH.search(urlsplit(source.url).path) is not None
        case Base64():
            start = source.text.find(",", 0, MAX_HEAD) + 1 if source.text.startswith("data:") else 0
            with suppress(binascii.Error, ValueError):
                return is_mp4(binascii.a2b_base64(source.text[start : start + HEAD_CHARACTERS]))
            return False
    return is_mp4(source)


def unbase64(text: str) -> bytes:
    """Return the bytes of base64 or of a `data:` URI of base64.  Raises `NotBase64`."""
    if text.startswith("data:"):
        head, comma, text = text.partition(",")
        if not comma or not head.endswith(";base64"):
            raise NotBase64("the data: URI does not hold base64")
    try:
        return pybase64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise NotBase64(f"the image is not base64{hint(text)}") from exc


def hint(text: str) -> str:
    """Return a hint if *text* is probably a URL, a path or a prompt; else an empty string."""
    if len(text) > MAX_HINT:
        return ""
    if URL.match(text):
        return """: this looks like a URL; give it as {"url": "…"}"""
    if PATH.search(text):
        return ": this looks like a file's path; send the file's bytes"
    if " " in text.strip():
        return ": this looks like words; the prompt has a field of its own"
    return ""
