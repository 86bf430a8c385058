"""Bodies of requests: their memory, their minimum pace, and the threads that parse them."""

import asyncio
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, TypeVar

from starlette.types import Message, Receive

from service.core.concurrency.budget import Budget, ByteBudget, Share
from service.core.concurrency.cpu_threads import FairThreads
from service.core.concurrency.threads import on_thread
from service.core.errors import Malformed, Overloaded, RequestTimeout, ScoregateError, TooLarge
from service.core.settings.sections import Server

T = TypeVar("T")
Raw = bytes | bytearray

LEAST_BYTES_PER_S = 8 * 2**10
LARGE = 2**20  # bytes of a body
BODY = "scoregate.body"  # where a request's state has its body
BROKEN = "scoregate.broken"  # where a request's state has the reason why its body cannot be read


class Pace:
    """
    The minimum pace of a body: bytes that must arrive in each window of time.

    Args:
        window_s: seconds of a window.
        now: the start of the first window, in seconds.
    """

    def __init__(self, window_s: float, now: float) -> None:
        self._window_s = window_s
        self._begin(now)

    def _begin(self, now: float) -> None:
        self.deadline = now + self._window_s
        self._missing = LEAST_BYTES_PER_S * self._window_s

    def came(self, size: int, now: float) -> None:
        """Count *size* bytes that arrived; enough of them start the next window."""
        self._missing -= size
        if self._missing <= 0:
            self._begin(now)


class Bodies:
    """
    The bodies of all requests, whether they are still arriving or being processed.

    All of them share one budget, and bodies that do not fit are refused.  Unfinished bodies hold half of it
    at most.  Above that the one that began first is refused, so slow senders cannot fill the memory and
    keep others out.

    Args:
        memory: the budget.
        parser: a thread for large ones.

    Attributes:
        parsing: admits one body at a time to the parser.
        limit: bytes of one body.
        timeout_s: seconds without progress.
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
        Hold the body of one request while the context is open.

        Args:
            state: the request's state, which gets the body under `BODY`, and may have `BROKEN`.
        """
        with self._memory.share() as share:
            state[BODY] = body = Body(self, share, state)
            try:
                yield body
            finally:
                self.remove(body)
                del state[BODY]  # to avoid a reference cycle

    def add(self, body: "Body", size: int) -> None:
        """Count *size* more bytes of a body; the oldest body may be refused for them."""
        self._coming[body] = self._coming.get(body, 0) + size
        self._held += size
        while self._held > self._most:
            next(iter(self._coming)).refuse(
                Overloaded("unfinished bodies take too much memory, and this one began first")
            )

    def remove(self, body: "Body") -> None:
        """Stop counting a body, since it or its request has ended."""
        self._held -= self._coming.pop(body, 0)

    def refuse_all(self, error: ScoregateError) -> None:
        """End every request whose body is incomplete."""
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
        Return the next message of ASGI's *receive*.

        Raises:
            RequestTimeout: the body is too slow.
            TooLarge: the body is over the limit, whatever length was declared.
            MemoryFull: all requests together hold too much already.
            Malformed: the body is broken.
            ScoregateError: the error given to `refuse`.
        """
        if self._ended:  # the next message is the disconnect, which has no deadline
            return await receive()
        message = await self._next(receive)
        if broken := self._state.get(BROKEN):
            raise Malformed(broken)
        self._came(len(message.get("body", b"")), ended=not message.get("more_body"))
        return message

    async def parsed(self, parse: Callable[[Raw], T], body: Raw) -> T:
        """
        Call *parse* with the bytes, on a thread.

        Large bodies are parsed one at a time, by one thread: the result is held together with the body until
        the event loop continues, and each thread keeps some of the memory that it has used.
        """
        if len(body) > LARGE:
            async with self._bodies.parsing.hold(1):
                return await self._bodies.parser.run(parse, body)
        return await on_thread(parse, body)

    def refuse(self, error: ScoregateError) -> None:
        """End the request with *error*, since its body is incomplete."""
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
        """Return the reason for the end, and drop it: an error keeps its frames, and these the bytes."""
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
