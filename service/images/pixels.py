"""Memory for decoded pixels: reserved before decoding, freed together with the pixels."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from models.images.image import Image
from service.core.concurrency.budget import Budget, Portion
from service.core.errors import ImageTooLarge
from service.core.lanes import INTERACTIVE
from service.core.settings.sections import Images
from service.images.limits import check
from service.serving.context import Context


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
