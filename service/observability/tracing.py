"""Tracing by OpenTelemetry's API: the tracer of the settings, and the spans of a request."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from time import monotonic, time_ns

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from service.core.settings import SettingsError

Attribute = str | int | float

W3C = TraceContextTextMapPropagator()
# Names from OpenTelemetry's conventions; all others get a prefix.
CONVENTIONS = {
    "error": "error.type",
    "method": "http.request.method",
    "route": "http.route",
    "status": "http.response.status_code",
}


@asynccontextmanager
async def open_tracer(otlp_endpoint: str) -> AsyncIterator[trace.Tracer]:
    """
    Open a tracer that sends to the collector at *otlp_endpoint*; one without effect if that is empty.

    Raises:
        SettingsError: OpenTelemetry rejects the value of one of its own variables.
    """
    if not otlp_endpoint:
        yield trace.NoOpTracer()
        return
    async with AsyncExitStack() as stack:
        try:  # some variables are read by the import
            from service.observability.otlp import exporting_tracer

            tracer = await stack.enter_async_context(exporting_tracer(otlp_endpoint))
        except ValueError as exc:
            line = f"telemetry.otlp_endpoint: OpenTelemetry rejects one of its variables, OTEL_*: {exc}"
            raise SettingsError(line) from exc
        yield tracer


class Span:
    """
    A span, and the tracer that starts its children.

    Attributes:
        traceparent: its W3C Trace Context header, for links and other servers; empty without a trace.
        recording: False without a collector, and if the trace is not sampled.
    """

    __slots__ = ("_span", "_tracer", "recording", "traceparent")

    def __init__(self, tracer: trace.Tracer, span: trace.Span) -> None:
        self._tracer, self._span, self.recording = tracer, span, span.is_recording()
        context = span.get_span_context()
        self.traceparent = (
            f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
            if context.is_valid
            else ""
        )

    @classmethod
    def of_request(cls, tracer: trace.Tracer, name: str, traceparent: str, began: float) -> "Span":
        """
        Start the first span of a request, as a child of the caller's span if *traceparent* is valid.

        Args:
            began: by `time.monotonic`.
        """
        if not traceparent and isinstance(tracer, trace.NoOpTracer):
            return NO_SPAN
        caller = W3C.extract({"traceparent": traceparent}, Context())
        span = tracer.start_span(name, caller, trace.SpanKind.SERVER, start_time=nanoseconds(began))
        return cls(tracer, span if span.is_recording() else trace.get_current_span(caller))

    def child(
        self, name: str, links: Sequence[str] = (), **attributes: Attribute
    ) -> AbstractContextManager["Span"]:
        """
        Record the context as a child; an exception raised in it becomes the child's `error`.

        Args:
            links: the traceparents of related spans.
        """
        return self._recorded(name, links, attributes) if self.recording else nullcontext(self)

    @contextmanager
    def _recorded(
        self, name: str, links: Sequence[str], attributes: Mapping[str, Attribute]
    ) -> Iterator["Span"]:
        part = self._start(name, monotonic(), links, attributes)
        try:
            yield part
        except BaseException as exc:
            part.note(error=getattr(exc, "code", type(exc).__name__))
            raise
        finally:
            part.end()

    def add(
        self, name: str, began: float, ended: float, links: Sequence[str] = (), **attributes: Attribute
    ) -> str:
        """Add a child that has ended, and return its traceparent; times are those of `time.monotonic`."""
        if not self.recording:
            return self.traceparent
        part = self._start(name, began, links, attributes)
        part._span.end(nanoseconds(ended))
        return part.traceparent

    def note(self, **attributes: Attribute) -> None:
        """Set attributes; `error`, a code, also marks the span as failed."""
        if not self.recording:
            return
        self._span.set_attributes(named(attributes))
        if "error" in attributes:
            self._span.set_status(trace.StatusCode.ERROR)

    def link(self, traceparent: str) -> None:
        """Link a related span; an empty *traceparent*, of a trace that is not recorded, is ignored."""
        if traceparent:
            self._span.add_link(context_of(traceparent))

    def end(self) -> None:
        """End the span, which sends it."""
        self._span.end()

    def _start(
        self, name: str, began: float, links: Sequence[str], attributes: Mapping[str, Attribute]
    ) -> "Span":
        span = self._tracer.start_span(
            name,
            trace.set_span_in_context(self._span, Context()),
            attributes=named(attributes),
            links=[trace.Link(context_of(link)) for link in links],
            start_time=nanoseconds(began),
        )
        return Span(self._tracer, span)


NO_SPAN = Span(trace.NoOpTracer(), trace.INVALID_SPAN)


def named(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """Return attributes by their names in a trace."""
    return {CONVENTIONS.get(name, f"scoregate.{name}"): value for name, value in attributes.items()}


def nanoseconds(at: float) -> int:
    """Return the Unix time in nanoseconds of the time *at* by `time.monotonic`."""
    return time_ns() - int((monotonic() - at) * 1e9)


def context_of(traceparent: str) -> trace.SpanContext:
    """Return the span, possibly of another process, that a valid *traceparent* names."""
    return trace.get_current_span(W3C.extract({"traceparent": traceparent})).get_span_context()
