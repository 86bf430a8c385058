"""The context of a request: its deadline, lane, timings and trace."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from time import monotonic
from typing import Literal

from models.core.contract import ModelInfo
from service.core.errors import ModelChanged
from service.core.lanes import BULK, INTERACTIVE
from service.observability.instruments import STAGES, Instruments
from service.observability.tracing import NO_SPAN, Span
from service.serving.admission import Place

CacheStatus = Literal["hit", "miss", "coalesced"]
WORST_FIRST: tuple[CacheStatus, ...] = ("miss", "coalesced", "hit")


def free(pairs: int) -> None:
    """Charge no quota."""


def ignore(name: str) -> None:
    """Release no reservation."""


@dataclass(eq=False, slots=True)
class RequestRecord:
    """
    What a request used, and its timings: the part of a context that its copies share.

    Attributes:
        models: each model that the request has used, by configured name, as it was at the first use.
        refused: the keys of calls whose written answers were refused.
        slowest: per stage, the maximum time of an item or call of this request, in seconds.
        stages: these in milliseconds, as they are in the response; empty before.
        began: when it came, by `time.monotonic`.
    """

    models: dict[str, ModelInfo] = field(default_factory=dict)
    refused: set[bytes] = field(default_factory=set)
    slowest: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    stages: Mapping[str, float] = field(default_factory=dict)
    began: float = field(default_factory=monotonic)


@dataclass(slots=True)
class CallRecord:
    """
    What the calls of one metric came to.

    Attributes:
        lookups: the cache status of each cacheable call: "hit", "miss" or "coalesced".
        unknown: the shares of unknown tokens in the calls, those above 0.
        stage: the stage for which the metric last waited.
    """

    lookups: list[str] = field(default_factory=list)
    unknown: list[float] = field(default_factory=list)
    stage: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """
    The API key that pays for a request.

    Attributes:
        name: of the key; None without one.  Callers take turns.
        charge: called with the number of (item, metric) pairs when the request is admitted; raises
            `QuotaExceeded` or `LargerThanQuota`.  A negative number gives back those that were not computed.
    """

    name: str | None = None
    charge: Callable[[int], None] = free


@dataclass(slots=True)
class Context:
    """
    Deadline, lane and trace of one request, or of a part of it.

    Attributes:
        request_id: returned in the response, and logged.
        deadline: on the event loop's clock (`loop.time()`, seconds).
        lane: "interactive" or "bulk".
        span: its trace, or a part of it.
        account: who pays.
        place: where it waits for a full lane; None if the lane refuses it.
        since: when its last stage ended, by `time.monotonic`: what follows is preparation.
        queued: called with the name of a model when its queue counts the calls of one frame, which are being
            prepared.
        calls: of one metric.
        request: the same object in all copies; of shared work, its own.
    """

    request_id: str
    deadline: float
    lane: str
    instruments: Instruments
    span: Span = NO_SPAN
    account: Account = Account()
    place: Place | None = None
    since: float = field(default_factory=monotonic)
    queued: Callable[[str], None] = ignore
    calls: CallRecord = field(default_factory=CallRecord)
    request: RequestRecord = field(default_factory=RequestRecord)
    _promotions: set[Callable[[], None]] = field(default_factory=set)

    def elapsed(self) -> float:
        """Return the seconds since the request began."""
        return monotonic() - self.request.began

    @property
    def traceparent(self) -> str:
        """The traceparent of its span (W3C Trace Context); may be empty."""
        return self.span.traceparent

    def for_one_frame(self) -> "Context":
        """
        Return a copy whose preparation begins now: frames of a large request begin one after the other.

        That of the first ones began with the admission of the request.
        """
        return replace(self, since=monotonic() if self.request.slowest["prepare"] else self.since)

    def for_one_metric(self, span: Span) -> "Context":
        """Return a copy with a span and a record of calls of its own."""
        return replace(self, span=span, calls=CallRecord())

    def charging(self, charge: Callable[[int], None]) -> "Context":
        """Return a copy that charges by *charge*."""
        return replace(self, account=replace(self.account, charge=charge))

    def for_shared_work(self, span: Span) -> "Context":
        """Return a context for work that other requests may join: same lane, but no deadline or timings."""
        return Context(self.request_id, inf, self.lane, self.instruments, span)

    def use(self, name: str, model: ModelInfo) -> None:
        """Note the use of a model.  Raises `ModelChanged` if the request used another by that name."""
        first = self.request.models.setdefault(name, model)
        if first is not model and first.identity != model.identity:
            raise ModelChanged(
                f"models.{name} changed during the request, from {first.label} to {model.label}"
            )

    def promote(self) -> None:
        """Make the work interactive, with all calls that it waits for now."""
        if self.lane == BULK:
            self.lane = INTERACTIVE
            for promote in tuple(self._promotions):
                promote()

    @contextmanager
    def promoting(self, promote: Callable[[], None]) -> Iterator[None]:
        """Call *promote* if the work is promoted while the context is open."""
        self._promotions.add(promote)
        try:
            yield
        finally:
            self._promotions.discard(promote)

    def looked_up(self, cache: str, result: str) -> None:
        """Count the result of one cache look-up."""
        self.calls.lookups.append(result)
        self.instruments.cache_requests.labels(cache, result).inc()

    @property
    def found(self) -> CacheStatus | None:
        """The worst cache status of the calls; None if nothing was looked up."""
        return next((way for way in WORST_FIRST if way in self.calls.lookups), None)

    def spent(self, stage: str, seconds: float) -> None:
        """Record that an item or call of this request spent *seconds* in *stage*."""
        self.since = monotonic()
        slowest = self.request.slowest
        slowest[stage] = max(slowest[stage], seconds)
        self.instruments.stage_duration.labels(stage, self.lane).observe(seconds)

    def stages_ms(self) -> dict[str, float]:
        """Return the maximum time of an item or call in each stage, in milliseconds."""
        return {stage: round(1000 * seconds, 2) for stage, seconds in self.request.slowest.items()}

    def timings_ms(self) -> dict[str, float]:
        """Record and return the total time, with that of each stage, in milliseconds."""
        total = self.elapsed()
        self.instruments.stage_duration.labels("total", self.lane).observe(total)
        self.request.stages = self.stages_ms()
        return {**self.request.stages, "total": round(1000 * total, 2)}
