"""Request bodies: their memory, their minimum pace, and their way to a checked wire type."""

import asyncio
import json
from codecs import BOM_UTF8
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Self, TypeVar, cast

import numpy as np
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import Request
from starlette.types import Message, Receive

from service.core.concurrency.budget import Budget, ByteBudget, Share
from service.core.concurrency.cpu_threads import FairThreads, on_thread
from service.core.concurrency.tasks import CallerGone
from service.core.errors import (
    Malformed,
    Overloaded,
    RequestTimeout,
    ScoregateError,
    TooLarge,
    UnsupportedMediaType,
)
from service.core.settings.sections import Server
from service.metrics.common.contract import MAX_IMAGES
from service.web.problems import invalid
from service.web.server.multipart import Form, content_of
from service.web.wire.translate import FormParts

B = TypeVar("B", bound=BaseModel)
T = TypeVar("T")
Raw = bytes | bytearray

MIN_BYTES_PER_S = 8 * 2**10
LARGE_BODY_BYTES = 2**20  # bytes of a body
BODY_STATE = "scoregate.body"  # where a request's state has its body
BROKEN_STATE = "scoregate.broken"  # where a request's state has the reason why its body cannot be read
ARRIVED_STATE = "scoregate.arrived"  # where it is True if the whole body came with the headers

# Bytes that are parsed on the event loop: at most 12 ms, for question sets that all differ.  A body may hold
# tens of megabytes of base64.
SMALL_BODY_BYTES = 64 * 2**10

# Values of one body: above what valid requests hold (128 prompts of 4,000 commas; 128 sets of 64 questions
# are a tenth of it), and below what takes more than some 50 MB once read.
MAX_VALUES = 600_000
SCAN_WINDOW_BYTES = 256 * 2**10  # bytes that are scanned in one step

FORM = "application/x-www-form-urlencoded"
CURL = ". For curl with JSON use --json, or add -H 'Content-Type: application/json'"  # its -d sends FORM


class Pace:
    """
    The minimum pace of a body: bytes that must arrive in each window of time.

    Args:
        window_s: seconds of a window.
        now: the start of the first window, in seconds.
    """

    def __init__(self, window_s: float, now: float) -> None:
        self._window_s, self._missing = window_s, MIN_BYTES_PER_S * window_s
        self.deadline, self._left_s = now + window_s, window_s

    def stop(self, now: float) -> None:
        """Let no time count until `go`."""
        self._left_s = self.deadline - now

    def go(self, now: float) -> None:
        """Continue the window after `stop`."""
        self.deadline = now + self._left_s

    def came(self, size: int, now: float) -> None:
        """Count *size* bytes that arrived; enough of them start the next window."""
        self._missing -= size
        if self._missing <= 0:
            self.deadline = now + self._window_s
            self._missing = MIN_BYTES_PER_S * self._window_s


class Bodies:
    """
    The bodies of all requests, whether they are still arriving or being processed.

    All of them share one budget, and bodies that do not fit are refused.  Unfinished bodies hold half of it
    at most.  Above that the one that began first is refused, so slow senders cannot fill the memory and
    keep others out.

    Args:
        parser: a thread for large ones.

    Attributes:
        memory: the budget.
        parsing: admits one body at a time to the parser.
        limit: bytes of one body.
        timeout_s: seconds without progress.
    """

    def __init__(self, limits: Server, memory: ByteBudget, parser: FairThreads) -> None:
        self.limit = limits.body_limit_mb * 2**20
        self.timeout_s = limits.body_timeout_s
        self.memory, self.parser, self.parsing = memory, parser, Budget(1)
        self._most = max(min(limits.unfinished_bodies_mb * 2**20, memory.total // 2), self.limit)
        self._coming: dict[Body, int] = {}  # the bytes of each, in the order in which they began
        self._held = 0

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
    """
    One body, message by message; it is held while the context is open.

    Args:
        state: the request's state, which gets the body under `BODY_STATE`, and may have `BROKEN_STATE`.
    """

    def __init__(self, bodies: Bodies, state: MutableMapping[str, Any]) -> None:
        self._bodies, self._share, self._state = bodies, Share(bodies.memory), state
        self._began = asyncio.get_running_loop().time()
        self._pace: Pace | None = None  # only a body that is still arriving has one
        self._refusal: ScoregateError | None = None
        self._waiting: asyncio.Timeout | None = None
        self._ended = False

    def __enter__(self) -> Self:
        self._state[BODY_STATE] = self
        return self

    def __exit__(self, *error: object) -> None:
        self._bodies.remove(self)
        self._share.shrink(self._share.size)
        del self._state[BODY_STATE]  # it would be part of a reference cycle

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
        if self._refusal:
            raise self._why()
        message = await (receive() if self._state.get(ARRIVED_STATE) else self._awaited(receive))
        if broken := self._state.get(BROKEN_STATE):
            raise Malformed(broken)
        size, self._ended = len(message.get("body", b"")), not message.get("more_body")
        if self._share.size + size > self._bodies.limit:
            raise TooLarge(f"the body is larger than {self._bodies.limit} bytes")
        self._share.grow(size)
        if self._ended:
            self._bodies.remove(self)
        elif self._pace:
            self._pace.came(size, asyncio.get_running_loop().time())
            self._bodies.add(self, size)
        return message

    async def _awaited(self, receive: Receive) -> Message:
        """Wait for the next message, until the deadline or `refuse`."""
        self._bodies.add(self, 0)
        self._pace = self._pace or Pace(self._bodies.timeout_s, self._began)
        try:
            async with asyncio.timeout_at(self._pace.deadline) as self._waiting:
                return await receive()
        except TimeoutError as exc:
            raise self._why() from exc
        finally:
            self._waiting = None

    async def parsed(self, parse: Callable[[Raw], T], body: Raw) -> T:
        """
        Call *parse* with the bytes, on a thread.

        Large bodies are parsed one at a time, by one thread: the result is held together with the body until
        the event loop continues, and each thread keeps some of the memory that it has used.
        """
        size, bodies = len(body), [body]
        del body  # the thread ends its work after the event loop continues, and must not hold the bytes
        if size > LARGE_BODY_BYTES:
            async with self._bodies.parsing.hold(1):
                return await self._bodies.parser.run(lambda: parse(bodies.pop()))
        return await on_thread(lambda: parse(bodies.pop()))

    def refuse(self, error: ScoregateError) -> None:
        """End the request with *error*, since its body is incomplete."""
        self._bodies.remove(self)
        self._refusal = error
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(-1)

    def _why(self) -> ScoregateError:
        """Return the reason for the end, and drop it: an error keeps its frames, and these the bytes."""
        refusal, self._refusal = self._refusal, None
        pace = f"less than {MIN_BYTES_PER_S} bytes per second within {self._bodies.timeout_s:g} s"
        return refusal or RequestTimeout(f"the body came too slowly: {pace}")


def read_body(request: Request, wire: type[B], limits: Server) -> Awaitable[tuple[B, FormParts]]:
    """Read and check the body, and return it with its file parts.  Raises as `read_as`."""
    return read_as(request, wire, limits, None)


async def read_as(
    request: Request, wire: type[B], limits: Server, convert: Callable[[B], T] | None
) -> tuple[T, FormParts]:
    """
    Read and check the body, and return what *convert* makes of it, with its file parts.

    Args:
        convert: called on the thread that parses a large body, so that it delays no other request; None to
            return the content itself.

    Raises:
        UnsupportedMediaType: declared as neither JSON nor multipart, or compressed.
        Malformed: not JSON, or broken multipart.
        TooLarge: more values than any valid request holds.
        CallerGone: the caller disconnected before the end of the body.
        Invalid: the JSON is not the wire type, and every wrong place is named; or *convert* raises it.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    parts: dict[str, bytes] = {}
    body: Raw
    if kind == "multipart/form-data":
        max_files = limits.max_items * MAX_IMAGES + 1  # the JSON may be a file part, too
        form = Form(request.headers["content-type"], max_files)
        await feed(request, form.feed)
        sent, parts = form.read()
        if sent is None:
            others = [name for name in parts if name not in form.images]
            content = content_of(form.fields(), form.images, others, wire)
            return checked(content, wire, convert), parts
        body = sent
    elif kind in ("", "application/json") or kind.endswith("+json"):
        body = await whole(request)
    else:
        raise UnsupportedMediaType(
            f"{kind[:80]}; {UnsupportedMediaType.detail}{CURL if kind == FORM else ''}"
        )
    if len(body) <= SMALL_BODY_BYTES:
        return parse(body, wire, convert), parts
    return await parsed(request, lambda raw: parse(raw, wire, convert), body), parts


async def feed(request: Request, take: Callable[[bytes], object]) -> None:
    """
    Call *take* with each part of the body as it arrives.

    Raises:
        UnsupportedMediaType: the body is compressed.
        CallerGone: the caller disconnected before its end.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType("the body has a Content-Encoding, and none is read here; send it as it is")
    more = True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise CallerGone
        take(message.get("body", b""))
        more = message.get("more_body", False)


async def whole(request: Request) -> bytearray:
    """Read the body.  Raises as `feed`.  Starlette's method would keep it as long as the request."""
    body = bytearray()
    await feed(request, body.extend)
    return body


async def parsed(request: Request, parse: Callable[[Raw], T], body: Raw) -> T:
    """Call *parse* with the body on a thread, see `Body.parsed`."""
    held: Body = request.scope["state"][BODY_STATE]
    return await held.parsed(parse, body)


def checked(content: Any, wire: type[B], convert: Callable[[B], T] | None) -> T:
    """Return *content* as the wire type, converted.  Raises `Invalid`."""
    try:
        body = wire.model_validate(content, context={})
    except ValidationError as exc:
        raise invalid(exc, content, wire) from exc
    return convert(body) if convert else cast(T, body)


def parse(body: Raw, wire: type[B], convert: Callable[[B], T] | None = None) -> T:
    """
    Parse the JSON of *body*, check it against the wire type, and convert it.

    pydantic's parser refuses NaN, deep nesting and lone surrogates, and does not copy refused content.  A
    body with a lone surrogate is parsed again by the standard library, so that validation can name the
    field.  A byte order mark, as Windows tools write it, is skipped.
    """
    if body.startswith(BOM_UTF8):
        body = body[len(BOM_UTF8) :]
    if len(body) > MAX_VALUES and holds_too_many(body):
        raise TooLarge(f"the JSON holds more than {MAX_VALUES} values")
    try:
        content = from_json(body, allow_inf_nan=False)
    except ValueError as exc:
        if not ("surrogate" in str(exc) or "hex escape" in str(exc)):
            raise Malformed(f"not JSON: {exc}") from exc
        try:
            content = json.loads(body.decode("utf-8", "surrogatepass"), parse_constant=refuse)
        except (ValueError, RecursionError):
            raise Malformed(f"not JSON: {exc}") from exc
    return checked(content, wire, convert)


def holds_too_many(body: Raw) -> bool:
    """Return True if JSON has more than `MAX_VALUES`; numpy takes a fifth of the time of `bytes.count`."""
    text, values = np.frombuffer(body, np.uint8), 0
    for start in range(0, len(text), SCAN_WINDOW_BYTES):
        window = text[start : start + SCAN_WINDOW_BYTES]
        values += sum(int(np.count_nonzero(window == mark)) for mark in b",[{")
        if values > MAX_VALUES:
            return True
    return False


def refuse(constant: str) -> Any:
    """Refuse NaN and the infinities, which are not JSON."""
    raise ValueError(constant)
