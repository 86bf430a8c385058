"""Attempts of the client without the pauses between them."""

from collections.abc import Callable
from typing import Any

import httpx2 as httpx

from scoregate.transport import HttpTransport


class Unpaused(HttpTransport):
    """
    A transport whose pauses take no time, and set its clock forward.

    Args:
        answer: the service; without one, requests are sent over HTTP.
        pauses: gets the seconds of each pause.
    """

    def __init__(
        self, answer: Callable[[httpx.Request], Any] | None, pauses: list[float] | None = None
    ) -> None:
        super().__init__((), "", 64, None if answer is None else httpx.MockTransport(answer))
        self.pauses = [] if pauses is None else pauses

    def time(self) -> float:
        return super().time() + sum(self.pauses)

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
