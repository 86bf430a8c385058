"""Bodies: how many bytes of them are held, how slow each may be, and where it is parsed."""

import asyncio
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, TypeVar

from starlette.types import Message, Receive

from service.core.concurrency.budget import Budget
from service.core.concurrency.cpu_threads import FairThreads
from service.core.concurrency.threads import on_thread
from service.core.errors import Malformed, Overloaded, RequestTimeout, ScoregateError, TooLarge
from service.core.settings.sections import Server
from service.images.byte_budget import ByteBudget, Share

T = TypeVar("T")
Raw = bytes | bytearray

LEAST_BYTES_PER_S = 8 * 2**10
LARGE = 2**20  # bytes of a body
BODY = "scoregate.body"  # where a request's state has its body
BROKEN = "scoregate.broken"  # where a request's state says why the rest of its body cannot be read


class Pace:
    """
    How slow a body may be: in each window of time so many bytes come, or its end does.

    Args:
        window_s: seconds of a window.
        now: the time at which the first one begins, in seconds.
    """

    def __init__(self, window_s: float, now: float) -> None:
        self._window_s = window_s
        self._begin(now)

    def _begin(self, now: float) -> None:
        self.deadline = now + self._window_s
        self._missing = LEAST_BYTES_PER_S * self._window_s

    def came(self, size: int, now: float) -> None:
        """Note that *size* bytes have come; enough of them begin the next window."""
        self._missing -= size
        if self._missing <= 0:
            self._begin(now)


class Bodies:
    """
    The bodies of all requests: those whose end has not come, and those that are being answered.

    All of them share one budget, and what does not fit is refused.  The unfinished ones hold half of it at
    most.  Above that the one that began first is refused: whoever fills the memory slowly gives way to those
    who come.

    Args:
        memory: the budget.
        parser: a thread for large ones.

    Attributes:
        parsing: whose turn it is to have one parsed.
        limit: bytes of one body.
        timeout_s: how long it may make no progress.
    """

    def __init__(self, limits: Server, memory: ByteBudget, parser: FairThreads) -> None:
        self.limit = limits.body_limit_mb * 2**20
        self.timeout_s = limits.body_timeout_s
        self._memory, self.parser, self.parsing = memory, parser, Budget(1)
        self._most = max(min(limits.unfinished_bodies_mb * 2**20, memory.total // 2), self.limit)
        self._coming: dict[Body, int] = {}  # the bytes of each, in the order in which they began
        self._held = 0

    @contextmanager
    def coming(self, state: MutableMapping[str, Any]) -> Iterator["Body"]:
        """
        The body of one request, held until that is answered.

        Args:
            state: the request's, which has the body under `BODY`, and may say that it is broken.
        """
        with self._memory.share() as share:
            state[BODY] = body = Body(self, share, state)
            try:
                yield body
            finally:
                self.remove(body)
                del state[BODY]  # or both would keep each other

    def add(self, body: "Body", size: int) -> None:
        """Count *size* bytes more of a body; another one may be refused for them."""
        self._coming[body] = self._coming.get(body, 0) + size
        self._held += size
        while self._held > self._most:
            next(iter(self._coming)).refuse(
                Overloaded("unfinished bodies take too much memory, and this one began first")
            )

    def remove(self, body: "Body") -> None:
        """Count a body no more: it has ended, or its request has."""
        self._held -= self._coming.pop(body, 0)

    def refuse_all(self, error: ScoregateError) -> None:
        """End every request whose body is still coming."""
        for body in tuple(self._coming):
            body.refuse(error)


class Body:
    """One body, message by message."""

    def __init__(self, bodies: Bodies, share: Share, state: MutableMapping[str, Any]) -> None:
        self._bodies, self._share, self._state = bodies, share, state
        self._pace = Pace(bodies.timeout_s, asyncio.get_running_loop().time())
        self._refusal: ScoregateError | None = None
        self._waiting: asyncio.Timeout | None = None
        self._ended = False

    async def receive(self, receive: Receive) -> Message:
        """
        The next message of ASGI's *receive*.

        Raises:
            RequestTimeout: it does not come, or the body is too slow.
            TooLarge: the body is over the limit, whatever length was declared.
            MemoryFull: all requests together hold too much already.
            Malformed: the body is broken.
            ScoregateError: what `refuse` was told.
        """
        if self._ended:  # what comes now is the caller's leaving, which has no deadline
            return await receive()
        message = await self._next(receive)
        if broken := self._state.get(BROKEN):
            raise Malformed(broken)
        self._came(len(message.get("body", b"")), ended=not message.get("more_body"))
        return message

    async def parsed(self, parse: Callable[[Raw], T], body: Raw) -> T:
        """
        What *parse* makes of its bytes, on a thread.

        Large ones are parsed one at a time, by one thread: what is made of a body is held beside it until the
        loop goes on with it, and each thread keeps some of the memory that it has used.
        """
        if len(body) > LARGE:
            async with self._bodies.parsing.hold(1):
                return await self._bodies.parser.run(parse, body)
        return await on_thread(parse, body)

    def refuse(self, error: ScoregateError) -> None:
        """End the request with *error*, since its body has not come."""
        self._bodies.remove(self)
        self._refusal = error
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(-1)

    async def _next(self, receive: Receive) -> Message:
        if self._refusal:
            raise self._why()
        self._bodies.add(self, 0)
        try:
            async with asyncio.timeout_at(self._pace.deadline) as self._waiting:
                return await receive()
        except TimeoutError as exc:
            raise self._why() from exc
        finally:
            self._waiting = None

    def _why(self) -> ScoregateError:
        """Why no more comes.  It is not kept, or the error would keep its frames, and they the bytes."""
        refusal, self._refusal = self._refusal, None
        return refusal or RequestTimeout(self._too_slow())

    def _came(self, size: int, *, ended: bool) -> None:
        self._ended = ended
        if self._share.size + size > self._bodies.limit:
            raise TooLarge(f"the body is larger than {self._bodies.limit} bytes")
        self._share.grow(size)
        if ended:
            self._bodies.remove(self)
        else:
            self._pace.came(size, asyncio.get_running_loop().time())
            self._bodies.add(self, size)

    def _too_slow(self) -> str:
        pace = f"{LEAST_BYTES_PER_S} bytes per second"
        return f"the body came too slowly: less than {pace} within {self._bodies.timeout_s:g} s"
