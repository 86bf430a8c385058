"""Results that callers fetch later by an id: each caller has its own, within a number of bytes and a time."""

import asyncio
import json
import logging
import uuid
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from service.core.concurrency.budget import ByteBudget, Share
from service.core.concurrency.tasks import Tasks
from service.core.errors import NotFound, Overloaded, ScoregateError
from service.core.retry_after import Shortage, expected_wait_s

log = logging.getLogger("scoregate.outbox")

ResultParts = Mapping[str, Any]  # the values are plain

RESULT_KEPT_S = 900.0
MAX_RESULT_BYTES = 16 * 2**20  # bytes of finished results of a caller
MAX_RUNNING = 256  # a caller's; cosmos-rl has one for each batch of a rank


@dataclass(eq=False, slots=True)
class OutboxEntry:
    """
    A result.

    Attributes:
        parts: by name; None until the work is done.
        failed: whether the work raised an error, which was logged.
        size: characters of the parts as JSON.
        until: when it is dropped, in seconds of the event loop's clock; infinite while the work runs.
    """

    parts: ResultParts | None = None
    failed: bool = False
    size: int = 0
    until: float = inf


class Outbox:
    """
    The results of all callers.  Those that are too old, or exceed their caller's share, are dropped; those
    of other callers stay.

    Args:
        memory: the budget of all requests, which holds the inputs while the work runs.
        clock: seconds; by default the event loop's.
        max_bytes: of finished results of a caller.
    """

    def __init__(
        self,
        memory: ByteBudget,
        clock: Callable[[], float] | None = None,
        max_bytes: int = MAX_RESULT_BYTES,
    ) -> None:
        self._memory, self._clock, self._max_bytes = memory, clock, max_bytes
        self._entries: dict[str | None, OrderedDict[str, OutboxEntry]] = {}
        self._tasks = Tasks()

    def post(
        self, caller: str | None, work: Callable[[], Coroutine[Any, Any, ResultParts]], size: int = 0
    ) -> str:
        """
        Start *work*, and return the id of its result, which cannot be guessed.

        Args:
            size: bytes that the work holds.

        Raises:
            Overloaded: the caller has too much work running.
            MemoryFull: requests hold too many bytes together.
        """
        own, now = self._of(caller), self._now()
        for late in [name for name, entry in own.items() if entry.until <= now]:
            del own[late]
        if sum(entry.until == inf for entry in own.values()) >= MAX_RUNNING:
            raise Overloaded(
                f"{MAX_RUNNING} requests of this key run already",
                retry_after_s=expected_wait_s(Shortage.PLACES),
            )
        share = Share(self._memory)
        share.grow(size)
        identity, entry = str(uuid.uuid4()), OutboxEntry()
        own[identity] = entry
        self._tasks.start(self._run(caller, identity, work, share))
        return identity

    def get(self, caller: str | None, identity: str) -> ResultParts | None:
        """
        Return the parts of a result, None while its work runs.  It stays until its time is over.

        Raises:
            NotFound: the caller has no such result, or it was dropped.
            ScoregateError: the work failed.
        """
        entry = self._of(caller).get(identity)
        if entry is None or entry.until <= self._now():
            raise NotFound(
                f"there is no such result of this key; results are dropped after {RESULT_KEPT_S:.0f} s, when "
                f"those of the key take more than {self._max_bytes >> 20} MiB, and when the service ends"
            )
        if entry.failed:
            raise ScoregateError
        return entry.parts

    async def aclose(self) -> None:
        """Cancel what still runs."""
        await self._tasks.cancel()

    def _now(self) -> float:
        return self._clock() if self._clock else asyncio.get_running_loop().time()

    def _of(self, caller: str | None) -> OrderedDict[str, OutboxEntry]:
        """Return the results of a caller, finished ones in the order in which they are dropped."""
        return self._entries.setdefault(caller, OrderedDict())

    async def _run(
        self,
        caller: str | None,
        identity: str,
        work: Callable[[], Coroutine[Any, Any, ResultParts]],
        share: Share,
    ) -> None:
        entry = self._entries[caller][identity]
        with share:
            try:
                entry.parts = await work()
            except Exception as exc:
                log.error("work for later failed", exc_info=exc)
                entry.failed = True
        entry.size = len(json.dumps(entry.parts))
        entry.until = self._now() + RESULT_KEPT_S
        own = self._of(caller)
        own.move_to_end(identity)
        held = sum(each.size for each in own.values())
        for name in [name for name, each in own.items() if each.until < inf and name != identity]:
            if held <= self._max_bytes:
                break
            held -= own.pop(name).size
