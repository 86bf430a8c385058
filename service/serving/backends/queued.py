"""A call in a queue, as whoever started it holds it."""

import asyncio

from service.serving.backends.contract import Result, StartedCall
from service.serving.batcher.batch import QueuedCall
from service.serving.batcher.queue import Queue


class StartedQueuedCall(StartedCall):
    """A call that waits in a queue, or has left it to be answered."""

    __slots__ = ("_call", "_queue")

    def __init__(self, call: QueuedCall, queue: Queue) -> None:
        self._call, self._queue = call, queue

    @property
    def result(self) -> "asyncio.Future[Result]":
        """Of the call in the queue."""
        return self._call.result

    @property
    def running(self) -> bool:
        """Whether it has left the queue to be answered."""
        return self._call.running

    def promote(self) -> None:
        """To the interactive lane; where it has left the queue, for the instruments only."""
        self._queue.promote(self._call)

    def extend(self, deadline: float) -> None:
        """It may leave the queue until *deadline*."""
        self._call.deadline = deadline

    def cancel(self) -> None:
        """It leaves the queue unanswered, or its answer is thrown away."""
        self._call.result.cancel()
