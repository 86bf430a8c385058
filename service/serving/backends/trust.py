"""Whether a served model is trusted: its answers to known calls, and its last calls."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Any

from models.core.contract import KnownCalls, ModelError, Prepared, UpstreamError
from models.core.examples import alike, changed, distance
from service.core.concurrency.sharing import SingleFlight
from service.core.errors import ModelFault, NotReady
from service.serving.backends.upstream import CALL_FAULT_STATUSES, ServerFailed
from service.serving.batcher.batching import checked

RENEW_S = 60.0  # a server may be put to sleep and woken up between two checks
NO_NUMBER = "gives a known question a number that is not finite"
UNSTEADY = "gives one question about a known picture two different numbers"
OTHER_ANSWERS = (
    "gives known questions other numbers than before, as after a sleep that spoilt a cache; "
    "restart its server, or this service if the model was changed on purpose"
)
OTHERS_BESIDE = (
    "gives known calls at the same time other numbers than each alone; a result depends on its batch"
)
FAILURES_IN_A_ROW = 3  # failed answers, each of which may be its own call's fault
AGAIN_S, MOST_S = 5.0, 60.0  # the failed call is retried after it; each retry doubles it


class Trust:
    """
    The check of a model after each start: its known calls, the first of them twice.

    The others must have other numbers than the first, and each call the same number as before.  Where the
    known calls have a drift, two of them are also sent at the same time.

    Args:
        name: of the model in the settings.
        known: the calls, or none for no check.
        answer: returns the outcome of one of them.  Raises `UpstreamError`.
        clock: in seconds.

    Attributes:
        doubted: the next call waits for a check.
        fault: the check that failed, in words that follow the model's name; empty if all passed.
        unanswered: why the last check compared nothing, likewise; empty if it did.
    """

    def __init__(
        self,
        name: str,
        known: KnownCalls,
        answer: Callable[[Any], Awaitable[Any]],
        clock: Callable[[], float],
    ) -> None:
        self._name = name
        self._known, self._answer, self._clock = known, answer, clock
        self._before: list[Any] = []
        self._checking: SingleFlight[None] = SingleFlight()
        self._again = -inf
        self.doubted = True
        self.fault = self.unanswered = ""

    async def check(self) -> None:
        """
        Check the model if it is doubted.

        Raises:
            NotReady: a check failed, now or earlier.
            UpstreamError: the server does not answer.
        """
        if self.doubted:
            await self._checking.do("", self._check)
        if self.fault:
            raise NotReady(f"models.{self._name} is not served: it {self.fault}")

    async def renew(self) -> None:
        """Check also if the last check failed or is a minute old.  Raises as `check`."""
        if self.fault or self._clock() >= self._again:
            await self._checking.do("", self._check)
        await self.check()

    async def aclose(self) -> None:
        """Stop checking."""
        await self._checking.aclose()

    async def _check(self) -> None:
        self.unanswered = ""
        try:
            calls = self._known.calls
            outcomes = [await self._answer(call) for call in (*calls, *calls[:1])]
            beside = await self._beside() if outcomes else []
        except ServerFailed:
            raise
        except (UpstreamError, ModelError) as exc:
            # Its answer lacks a field, which is an error of every call that needs it.
            outcomes, self.unanswered = [], str(exc)
        self.fault = self._judged(outcomes, beside) if outcomes else ""
        self.doubted, self._again = False, self._clock() + RENEW_S

    async def _beside(self) -> Sequence[Any]:
        """Return the results of two calls that are sent at the same time; none without such a check."""
        if self._known.drift is None:
            return []
        return await asyncio.gather(*map(self._answer, self._known.calls[:2]))

    def _judged(self, outcomes: Sequence[Any], beside: Sequence[Any]) -> str:
        """Return the check that *outcomes*, or those of calls *beside* each other, fail; empty if none."""
        if any(isinstance(checked(self._name, each), ModelFault) for each in (*outcomes, *beside)):
            return NO_NUMBER
        first, *others, again = outcomes
        for other, opposite in zip(others, self._known.opposites, strict=True):
            # The first may lack a prefix cache.
            if any(alike(one, other, opposite.least) for one in (first, again)):
                return opposite.fault
        if changed(first, again):
            return UNSTEADY
        if any(distance(*pair) > (self._known.drift or 0.0) for pair in zip(outcomes, beside, strict=False)):
            return OTHERS_BESIDE
        self._before = self._before or [first, *others]
        return OTHER_ANSWERS if any(map(changed, self._before, outcomes)) else ""


class LastCalls:
    """
    Why a model failed its last calls, until one works again.

    A server that does not answer fails all calls, so one is enough.  The last failed call is retried,
    since callers that read the reason may send nothing more.

    Attributes:
        reason: in a few words that follow the model's name; empty if the last call worked.
    """

    def __init__(self) -> None:
        self.worked()

    def worked(self) -> None:
        """Record an answered call, and clear earlier failures."""
        self._failed = 0
        self._last: Prepared | None = None
        self._next, self._again_s = inf, AGAIN_S
        self.reason = ""

    def failed(self, call: Prepared, error: UpstreamError | ModelFault, now: float) -> None:
        """Note a call that failed."""
        self._failed += 1
        self._last = call
        of_the_server = isinstance(error, ServerFailed) and error.status not in CALL_FAULT_STATUSES
        if of_the_server or self._failed >= FAILURES_IN_A_ROW:
            self._next = self._next if self.reason else now
            calls = "call" if self._failed == 1 else f"{self._failed} calls"
            self.reason = f"failed its last {calls}: {error}"

    def take_due(self, now: float) -> Prepared | None:
        """Return the call to retry now, if one is due, and schedule its next retry."""
        if not self.reason or now < self._next:
            return None
        self._next, self._again_s = now + self._again_s, min(MOST_S, 2 * self._again_s)
        return self._last
