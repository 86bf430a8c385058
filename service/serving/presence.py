"""The presence of a model: its calls begin, are rejected, or wait for it."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from service.core.errors import NotReady

State = Literal["loaded", "offloaded", "unloaded", "leaving", "loading"]

LOADED: State = "loaded"
RETRY_S = 10.0  # after a load for which memory or the hub was missing


class Presence:
    """
    Whether calls of a model may begin.

    Requests that use the model when it begins to leave are finished first: all of their calls begin.  So is
    work that such a request shares with later ones.

    Args:
        waits: calls for a model that is away wait until their deadline; otherwise they are rejected.

    Attributes:
        state: "loaded" while they may.
    """

    def __init__(self, name: str, *, waits: bool = False) -> None:
        self._name, self.waits = name, waits
        self.state: State = LOADED
        self._back, self._ended = asyncio.Event(), asyncio.Event()
        self._requests: Counter[object] = Counter()
        self._last: set[object] = set()  # requests and shared work that are finished before the model goes

    @property
    def reason(self) -> str:
        """Why calls are rejected; empty if they begin or wait."""
        begins = self.waits or self.state == LOADED
        return "" if begins else f"has been taken away ({self.state})"

    def change(self, state: State) -> None:
        """Set the state, and let waiting calls begin if the model is back."""
        self.state = state
        self._last = set(self._requests) if state == "leaving" else set()
        if state == LOADED:
            self._wake()

    def _wake(self) -> None:
        """Let those who wait check again whether they may begin."""
        self._back.set()
        self._back = asyncio.Event()

    def share(self, request: object, work: object) -> None:
        """Finish *work*, which uses the model as a request does, before the model goes, if *request* is."""
        if request in self._last:
            self._last.add(work)
            self._wake()

    @contextmanager
    def used_by(self, request: object) -> Iterator[None]:
        """Count a part of *request*, or of shared work, while the context is open; parts may overlap."""
        self._requests[request] += 1
        try:
            yield
        finally:
            self._requests[request] -= 1
            if not self._requests[request]:
                del self._requests[request]
                self._last.discard(request)
                self._ended.set()
                self._ended.clear()

    async def unused(self) -> None:
        """Return when the requests that are finished first have ended."""
        while self._last:
            await self._ended.wait()

    async def wait(self, request: object = None) -> None:
        """Return when calls of *request* may begin.  Raises `NotReady` if they are rejected."""
        while self.state != LOADED and request not in self._last:
            if self.reason:
                raise NotReady(f"models.{self._name} {self.reason}")
            await self._back.wait()
