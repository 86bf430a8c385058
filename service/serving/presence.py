"""The presence of a model: its calls begin, are rejected, or wait for it."""

import asyncio
from typing import Literal

from service.core.errors import NotReady

State = Literal["loaded", "offloaded", "unloaded", "leaving", "loading", "swapping"]

LOADED: State = "loaded"
BEGUN: tuple[State, ...] = ("loaded", "leaving")  # states in which calls that have begun are answered


class Presence:
    """
    Whether calls of a model may begin.

    Args:
        waits: calls for a model that is away wait until their deadline; otherwise they are rejected.

    Attributes:
        state: "loaded" while they may.
    """

    def __init__(self, name: str, *, waits: bool = False) -> None:
        self._name, self.waits = name, waits
        self.state: State = LOADED
        self._back = asyncio.Event()

    @property
    def reason(self) -> str:
        """Why calls are rejected; empty if they begin or wait."""
        begins = self.waits or self.state in (LOADED, "swapping")
        return "" if begins else f"has been taken away: {self.state}"

    @property
    def gone(self) -> bool:
        """True if not even calls that have begun are answered: they begin again when the model is back."""
        return self.state not in BEGUN

    def change(self, state: State) -> None:
        """Set the state, and let waiting calls begin if the model is back."""
        self.state = state
        if state == LOADED:
            self._back.set()
            self._back = asyncio.Event()

    async def wait(self) -> None:
        """Return when calls may begin.  Raises `NotReady` if they are rejected."""
        while self.state != LOADED:
            if self.reason:
                raise NotReady(f"models.{self._name} {self.reason}")
            await self._back.wait()
