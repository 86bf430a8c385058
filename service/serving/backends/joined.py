"""Calls that one request to a server answers together."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from models.core.contract import Post, Prepared, RemoteModel, UpstreamError
from service.core.concurrency.tasks import Tasks
from service.serving.backends.last_calls import OF_THE_CALL

COLLECT_S = 0.005  # an answer takes tenths of a second


@dataclass(eq=False, slots=True)
class Joint:
    """Calls that are collected for one request."""

    calls: list[Prepared] = field(default_factory=list)
    work: "asyncio.Task[Sequence[Any]] | None" = None


class Joined:
    """
    Sends calls that the model answers together as one request: those that start within `COLLECT_S` seconds.

    A request goes on if some of its callers leave.  If the server rejects its content, each half is sent by
    itself, until the calls at fault are alone.

    Args:
        sleep: waits for further calls (tests).
    """

    def __init__(
        self,
        model: RemoteModel,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._model, self._most, self._sleep = model, model.most_together, sleep
        self._open: dict[str, Joint] = {}
        self._sending = Tasks()

    async def aclose(self) -> None:
        """Cancel the requests that are sent."""
        await self._sending.cancel()

    async def answer(self, call: Prepared, post: Post) -> Any:
        """Return the outcome of *call*; the first call's *post* sends the request.  Raises what it raises."""
        key = self._model.together(call)
        if not key:
            return await self._model.answer(call, post)
        joint = self._open.get(key)
        if joint is None:
            joint = self._open[key] = Joint()
            joint.work = self._sending.start(self._send(key, joint, post))
            joint.work.add_done_callback(retrieved)
        place = len(joint.calls)
        joint.calls.append(call)
        if len(joint.calls) >= self._most:
            del self._open[key]  # the next call begins another one
        assert joint.work is not None
        outcome = (await asyncio.shield(joint.work))[place]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def _send(self, key: str, joint: Joint, post: Post) -> Sequence[Any]:
        """Collect calls, and send them."""
        if self._most > 1:
            await self._sleep(COLLECT_S)
        if self._open.get(key) is joint:
            del self._open[key]
        return await self._answers(joint.calls, post)

    async def _answers(self, calls: Sequence[Prepared], post: Post) -> Sequence[Any]:
        """Return the outcome of each call, or its error."""
        try:
            return await self._model.answer_all(calls, post)
        except UpstreamError as error:
            if len(calls) == 1 or error.status not in OF_THE_CALL:
                return [error] * len(calls)
        half = len(calls) // 2
        halves = await asyncio.gather(*(self._answers(each, post) for each in (calls[:half], calls[half:])))
        return [*chain.from_iterable(halves)]


def retrieved(task: "asyncio.Task[Any]") -> None:
    """Retrieve the exception of a request whose callers have all left."""
    if not task.cancelled():
        task.exception()
