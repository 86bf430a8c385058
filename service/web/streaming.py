"""`POST /score?stream=1`: a line of JSON for each item when it is scored, and one for the whole request."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

import orjson
from fastapi import Response
from starlette.types import Receive, Scope, Send

from service.core.concurrency.budget import ByteBudget, Share
from service.core.concurrency.tasks import CallerGone, Tasks, while_connected
from service.core.errors import ScoregateError
from service.observability.notes import Note
from service.scoring.engine import Finished
from service.scoring.report import ItemReport, Report
from service.serving.context import Context
from service.web.problems import entry
from service.web.wire.responses import Line, ScoreEnd

SLACK_S = 5.0  # errors of many late items take a moment to read after the deadline
LINES_MEDIA_TYPE = "application/x-ndjson"
HEADERS = [
    (b"content-type", LINES_MEDIA_TYPE.encode()),
    (b"x-accel-buffering", b"no"),  # nginx would keep lines until the response ends
]


class Backlog:
    """
    Lines that a task sends in order, so that scoring does not wait for the caller who reads them.

    Lines that wait are held in memory; what is left at exit is dropped.

    Args:
        send: the ASGI channel of the response, which starts with the first line.
        memory: the budget of all requests.
    """

    def __init__(self, send: Send, memory: ByteBudget) -> None:
        self._send, self._share, self._sending = send, Share(memory), Tasks()
        self._lines: asyncio.Queue[tuple[bytes, bool]] = asyncio.Queue()
        self._sent: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._sending.cancel()
        self._share.shrink(self._share.size)

    def put(self, content: Any) -> None:
        """Add a line.  Raises `MemoryFull` if requests hold too many bytes together."""
        line = line_of(content)
        self._share.grow(len(line))
        self._add(line, more=True)

    async def end(self, content: Any) -> None:
        """Add the last line, whatever it takes, and return when the caller's system has taken all of them."""
        await self._add(line_of(content), more=False)

    def _add(self, line: bytes, *, more: bool) -> "asyncio.Task[None]":
        self._lines.put_nowait((line, more))
        self._sent = self._sent or self._sending.start(self._send_all())
        return self._sent

    async def _send_all(self) -> None:
        """Send the lines, each when the caller has read those before it."""
        await self._send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        more = True
        while more:
            line, more = await self._lines.get()
            await self._send({"type": "http.response.body", "body": line, "more_body": more})
            if more:
                self._share.shrink(len(line))


def line_of(content: Any) -> bytes:
    """Return a line of JSON."""
    return orjson.dumps(content, default=str, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)


class ScoreStream(Response):
    """
    Scores a request, and sends each item's result as a line when it is there.

    An error before the first line is that of the whole request, with its status.  Later it is in the last
    line, which has no `done`.

    Args:
        score: scores the request, and calls its argument with each item.
        line: builds the line of an item, with the warnings about all items.
        end: builds the last line.
        context: of the request.  A caller who has not read all lines `SLACK_S` after its deadline is left.
        memory: the budget of all requests.
    """

    def __init__(
        self,
        score: Callable[[Finished], Awaitable[Report]],
        line: Callable[[int, ItemReport, Sequence[Note]], Line],
        end: Callable[[Report], ScoreEnd],
        context: Context,
        memory: ByteBudget,
    ) -> None:
        super().__init__()
        self._score, self._line, self._end = score, line, end
        self._context, self._memory = context, memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response.  Raises `CallerGone`, and what scoring raises before the first line."""
        await while_connected(receive, self._send_lines(send))

    async def _send_lines(self, send: Send) -> None:
        async with Backlog(send, self._memory) as backlog:
            end = await self._scored(backlog)
            try:
                async with asyncio.timeout_at(self._context.deadline + SLACK_S):
                    await backlog.end(end)
            except TimeoutError:
                raise CallerGone from None

    async def _scored(self, backlog: Backlog) -> Any:
        """Add the line of each item, and return the last one.  Count rejections: they have no response."""
        lines, instruments = set[int](), self._context.instruments

        def finished(index: int, item: ItemReport, notes: Sequence[Note]) -> None:
            backlog.put(self._line(index, item, notes))
            lines.add(index)

        try:
            report = await self._score(finished)
            for index, item in enumerate(report.items):
                if index not in lines:  # it needed no work
                    finished(index, item, report.notes)
        except ScoregateError as error:
            if not lines:
                raise
            instruments.count_rejection(error)
            return {"error": entry(error)}
        if failure := report.failure():
            instruments.count_rejection(failure)
        return self._end(report)
