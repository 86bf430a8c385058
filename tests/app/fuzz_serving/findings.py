"""What a run finds: sentences, each with what is needed to see it again."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

GONE_S = 10.0  # until nothing waits any more; the traffic of a run takes a second


class Findings(list[str]):
    """
    The findings of one run.

    Attributes:
        dice: all chance of the run, by its seed.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed, self.dice = seed, Random(seed)

    def expect(self, true: object, *what: Any) -> None:
        """Note *what* unless it is *true*."""
        if not true:
            self.append(f"seed {self.seed}: {' '.join(map(str, what))}")

    async def comes(self, true: Callable[[], object], what: Callable[[], Any]) -> None:
        """Note what *what* returns unless *true* returns a true value soon."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GONE_S):
                while not true():
                    await asyncio.sleep(0.001)
        self.expect(true(), what())
