"""`POST /score?stream=1`: a line of JSON for each item when it is scored, and one for the whole request."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import orjson
from fastapi import Response
from starlette.types import Receive, Scope, Send

from service.core.concurrency.tasks import CallerGone, while_connected
from service.core.errors import ScoregateError
from service.observability.notes import Note
from service.scoring.engine import Finished
from service.scoring.report import ItemReport, Report
from service.web.problems import entry
from service.web.wire.responses import Line, ScoreEnd

SLACK_S = 5.0  # after the deadline: errors of many late items take a moment to read
MEDIA_TYPE = "application/x-ndjson"
HEADERS = [
    (b"content-type", MEDIA_TYPE.encode()),
    (b"x-accel-buffering", b"no"),  # nginx would keep lines until the response ends
]


class ScoreStream(Response):
    """
    Scores a request, and sends each item's result as a line when it is there.

    An error before the first line is that of the whole request, with its status.  Later it is in the last
    line, which has no `done`.

    Args:
        score: scores the request, and calls its argument with each item.
        line: builds the line of an item, with the warnings about all items.
        deadline: of the request, on the event loop's clock.  While items are scored they wait for the caller,
            and hold their places in lanes: one who does not read until `SLACK_S` after it is left.
        end: builds the last line.
    """

    def __init__(
        self,
        score: Callable[[Finished], Awaitable[Report]],
        line: Callable[[int, ItemReport, Sequence[Note]], Line],
        end: Callable[[Report], ScoreEnd],
        deadline: float,
    ) -> None:
        super().__init__()
        self._score, self._line, self._end, self._deadline = score, line, end, deadline
        self._sent = set[int]()
        self._turn = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response.  Raises `CallerGone`, and what scoring raises before the first line."""
        await while_connected(receive, self._send_lines(send))

    async def _send_lines(self, send: Send) -> None:
        async def finished(index: int, item: ItemReport, notes: Sequence[Note]) -> None:
            try:
                async with asyncio.timeout_at(self._deadline + SLACK_S):
                    await self._write(send, self._line(index, item, notes), index)
            except TimeoutError:
                raise CallerGone from None

        end: dict[str, Any]
        try:
            report = await self._score(finished)
            for index, item in enumerate(report.items):
                if index not in self._sent:  # it needed no work
                    await finished(index, item, report.notes)
            end = {**self._end(report)}
        except ScoregateError as error:
            if not self._sent:
                raise
            end = {"error": entry(error)}
        await self._write(send, end)

    async def _write(self, send: Send, content: Any, index: int | None = None) -> None:
        """Send a line when the caller has read those before it; one without *index* is the last."""
        line = orjson.dumps(
            content, default=str, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
        )
        async with self._turn:
            if not self._sent:
                await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            self._sent.add(-1 if index is None else index)
            await send({"type": "http.response.body", "body": line, "more_body": index is not None})
