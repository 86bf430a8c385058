"""A call in a queue, as whoever started it holds it."""

from collections.abc import Callable

from service.core.concurrency.promise import Promise
from service.serving.batcher.batch import QueuedCall
from service.serving.contract import Result, StartedCall


class StartedQueuedCall(StartedCall):
    """
    A call that waits in a queue, or has left it to be answered.

    Args:
        promote: makes it interactive, wherever it is.
    """

    __slots__ = ("_call", "_promote")

    def __init__(self, call: QueuedCall, promote: Callable[[], None]) -> None:
        self._call, self._promote = call, promote

    @property
    def result(self) -> Promise[Result]:
        """Of the call in the queue."""
        return self._call.result

    @property
    def running(self) -> bool:
        """Whether it has left the queue to be answered."""
        return self._call.running

    def promote(self) -> None:
        """To the interactive lane, as far as that still changes anything."""
        self._promote()

    def extend(self, deadline: float) -> None:
        """It may leave the queue until *deadline*; what has left keeps its own."""
        self._call.deadline = deadline

    def cancel(self) -> None:
        """It leaves the queue unanswered, or its answer is thrown away."""
        self._call.result.cancel()
