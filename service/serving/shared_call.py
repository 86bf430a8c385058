"""One call under way, for all who ask it at the same time."""

import asyncio
from collections.abc import Sequence
from time import monotonic

from models.core.calls import Call
from models.core.contract import ModelInfo
from service.core.concurrency.promise import Promise
from service.core.lanes import BULK, INTERACTIVE
from service.serving.contract import Result, StartedCall


class SharedCall:
    """
    A call that belongs to none of its callers: when the first one leaves, it goes on for the others.

    Attributes:
        key, model: what it is kept under, and the model that the key names: no other one may answer it.
        lane, deadline: the most urgent and the latest of its callers'.
        callers: how many wait for it.
        result: becomes what all of them get.
        answered: when it did, by `time.monotonic`.
        started: the backend's side of it; None while it is being prepared.
        group: the calls that are prepared together with it, itself among them.
        preparing: the task that does that and starts them.
    """

    answered: float
    group: Sequence["SharedCall"]
    preparing: asyncio.Task[None]

    def __init__(self, key: bytes, call: Call, model: ModelInfo, lane: str, deadline: float) -> None:
        self.key, self.call, self.model = key, call, model
        self.lane, self.deadline = lane, deadline
        self.callers = 0
        self.result: Promise[Result] = Promise()
        self.started: StartedCall | None = None

    def answer(self, result: Result) -> None:
        """Give everyone the result, unless the call was given up."""
        if not self.result.done():
            self.answered = monotonic()
            self.result.set_result(result)

    def promote(self) -> None:
        """Somebody urgent waits for it."""
        if self.lane == BULK:
            self.lane = INTERACTIVE
            if self.started is not None:
                self.started.promote()

    def extend(self, deadline: float) -> None:
        """Somebody waits for it until *deadline*."""
        self.deadline = max(self.deadline, deadline)
        if self.started is not None:
            self.started.extend(self.deadline)

    def give_up(self) -> None:
        """Stop the work, since nobody waits for it.  A group's preparation stops with its last call."""
        self.result.cancel()
        if self.started is not None:
            self.started.cancel()
        elif all(sibling.result.done() for sibling in self.group):
            self.preparing.cancel()


def stage(calls: Sequence[SharedCall]) -> str:
    """How far a group has come: "decode", "queue" or "model"."""
    started = [call.started for call in calls if call.started is not None]
    if any(call.running for call in started):
        return "model"
    return "queue" if started else "decode"
