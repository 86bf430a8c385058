"""What a call carries of the request it belongs to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from time import monotonic
from typing import Literal

from service.core.lanes import BULK, INTERACTIVE
from service.observability.instruments import Instruments
from service.observability.tracing.span import NO_SPAN, Span

CacheStatus = Literal["hit", "miss", "coalesced"]
WORST_FIRST: tuple[CacheStatus, ...] = ("miss", "coalesced", "hit")


def free(pairs: int) -> None:
    """Charge nobody."""


@dataclass(slots=True)
class Context:
    """
    Deadline, lane and timings of one request.

    Attributes:
        request_id: echoed in the answer and the log.
        deadline: on the event loop's clock (`loop.time()`, seconds).
        lane: "interactive" or "bulk".
        span: its trace, or the part of it that this context is for.
        lookups: of one metric's cacheable calls, what came of each: "hit", "miss" or "coalesced".
        stage: of one metric, what it last waited for.
        slowest: per stage, the longest that any one item or call of this request spent, in seconds.
        charge: told, once a request is admitted, how many pairs of an item and a metric it asks for; raises
            `QuotaExceeded` or `LargerThanQuota` where its caller may not have them.
        caller: the name of the key that it came with; None without one.  Callers take turns.
    """

    request_id: str
    deadline: float
    lane: str
    instruments: Instruments
    span: Span = NO_SPAN
    lookups: list[str] = field(default_factory=list)
    stage: str = ""
    slowest: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("decode", "questions", "queue", "model"), 0.0)
    )
    began: float = field(default_factory=monotonic)
    charge: Callable[[int], None] = free
    caller: str | None = None
    _promotions: set[Callable[[], None]] = field(default_factory=set)

    def elapsed(self) -> float:
        """Seconds since the request began."""
        return monotonic() - self.began

    @property
    def traceparent(self) -> str:
        """What names its span to upstreams (W3C Trace Context); may be empty."""
        return self.span.traceparent

    def for_one_metric(self, span: Span) -> "Context":
        """The same request, with a span and look-ups of its own."""
        return replace(self, span=span, lookups=[], stage="")

    def for_shared_work(self, span: Span) -> "Context":
        """The request's names and lane for work that others may join: deadline and timings are its own."""
        return Context(self.request_id, inf, self.lane, self.instruments, span)

    def promote(self) -> None:
        """Make the work interactive, with all that it waits for now: somebody urgent has joined it."""
        if self.lane == BULK:
            self.lane = INTERACTIVE
            for promote in tuple(self._promotions):
                promote()

    @contextmanager
    def promoting(self, promote: Callable[[], None]) -> Iterator[None]:
        """Have *promote* called if the work is promoted while this is open."""
        self._promotions.add(promote)
        try:
            yield
        finally:
            self._promotions.discard(promote)

    def looked_up(self, cache: str, result: str) -> None:
        """Note what came of looking for one call's outcome."""
        self.lookups.append(result)
        self.instruments.cache_requests.labels(cache, result).inc()

    @property
    def found(self) -> CacheStatus | None:
        """A miss where any call was one, a hit where all were; None where nothing was looked up."""
        return next((way for way in WORST_FIRST if way in self.lookups), None)

    def spent(self, stage: str, seconds: float) -> None:
        """Note that some item or call of this request spent *seconds* in *stage*."""
        self.slowest[stage] = max(self.slowest[stage], seconds)
        self.instruments.stage_duration.labels(stage, self.lane).observe(seconds)

    def stages_ms(self) -> dict[str, float]:
        """The longest that any one item or call spent in each stage, in milliseconds."""
        return {stage: round(1000 * seconds, 2) for stage, seconds in self.slowest.items()}

    def timings_ms(self) -> dict[str, float]:
        """Stages and the total so far, in milliseconds."""
        total = self.elapsed()
        self.instruments.stage_duration.labels("total", self.lane).observe(total)
        return {**self.stages_ms(), "total": round(1000 * total, 2)}
