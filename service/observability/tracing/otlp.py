"""Spans that are recorded and sent to an OpenTelemetry collector, by OTLP over HTTP."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic, time_ns

import requests
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from service import __version__
from service.core.concurrency.threads import on_thread
from service.observability.tracing.span import Attribute, Span
from service.observability.tracing.tracer import Tracer

log = logging.getLogger("scoregate.tracing")

EXPORT_S = 5.0  # for one request to the collector, with its retries
FLUSH_S = 2.0  # for what is left when the service ends
# Names that OpenTelemetry's conventions have; all others get a prefix.
CONVENTIONS = {
    "error": "error.type",
    "method": "http.request.method",
    "route": "http.route",
    "status": "http.response.status_code",
}


class RecordedSpan(Span):
    """A span that is sent when it is over."""

    __slots__ = ("_span", "_tracer")
    recording = True

    def __init__(self, tracer: trace.Tracer, span: trace.Span) -> None:
        super().__init__(traceparent_of(span.get_span_context()))
        self._tracer, self._span = tracer, span

    @contextmanager
    def child(self, name: str, links: Sequence[str] = (), **attributes: Attribute) -> Iterator[Span]:
        """A part of it; an exception that leaves the context is its `error`."""
        part = self._begun(name, monotonic(), links, attributes)
        try:
            yield part
        except BaseException as exc:
            part.note(error=getattr(exc, "code", type(exc).__name__))
            raise
        finally:
            part.end()

    def add(
        self, name: str, began: float, ended: float, links: Sequence[str] = (), **attributes: Attribute
    ) -> None:
        """Add a part of it that is over."""
        self._begun(name, began, links, attributes)._span.end(nanoseconds(ended))

    def note(self, **attributes: Attribute) -> None:
        """Say more about it."""
        self._span.set_attributes(named(attributes))
        if "error" in attributes:
            self._span.set_status(trace.StatusCode.ERROR)

    def link(self, traceparent: str) -> None:
        """Name a related span, where it has a name: one that is not sampled may have none."""
        if traceparent:
            self._span.add_link(context_of(traceparent))

    def end(self) -> None:
        """It is over, and will be sent."""
        self._span.end()

    def _begun(
        self, name: str, began: float, links: Sequence[str], attributes: Mapping[str, Attribute]
    ) -> "RecordedSpan":
        span = self._tracer.start_span(
            name,
            trace.set_span_in_context(self._span, Context()),
            attributes=named(attributes),
            links=[trace.Link(context_of(link)) for link in links],
            start_time=nanoseconds(began),
        )
        return RecordedSpan(self._tracer, span)


class OtlpTracer(Tracer):
    """
    Sends traces to one collector.

    OpenTelemetry's own variables say which headers to send and which part of the traces, as
    `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_TRACES_SAMPLER`.

    Args:
        endpoint: the collector's address, without `/v1/traces`.
    """

    def __init__(self, endpoint: str) -> None:
        session = requests.Session()
        session.trust_env = False  # to the collector, and to no proxy
        address = f"{endpoint.rstrip('/')}/v1/traces"
        self._exporter: SpanExporter = OTLPSpanExporter(address, timeout=EXPORT_S, session=session)
        self._processor = BatchSpanProcessor(self._exporter)
        resource = Resource.create({"service.name": "scoregate", "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(self._processor)
        self._tracer = self._provider.get_tracer("scoregate", __version__)

    async def __aexit__(self, *exc: object) -> None:
        """Send what has not been sent yet, as far as the collector takes it in time."""
        try:
            async with asyncio.timeout(FLUSH_S):
                await on_thread(self._processor.force_flush)
        except TimeoutError:
            log.warning("the collector of traces did not answer in time: the last spans are lost")
            self._exporter.shutdown()
        await on_thread(self._provider.shutdown)

    def begin(self, name: str, traceparent: str, began: float) -> Span:
        """The first span of a request; one that records nothing where its trace is not sampled."""
        around = Context()
        if traceparent:
            around = trace.set_span_in_context(trace.NonRecordingSpan(context_of(traceparent)), around)
        span = self._tracer.start_span(
            name, around, kind=trace.SpanKind.SERVER, start_time=nanoseconds(began)
        )
        return RecordedSpan(self._tracer, span) if span.is_recording() else Span(traceparent)


def named(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """Attributes by the names that they have in a trace."""
    return {CONVENTIONS.get(name, f"scoregate.{name}"): value for name, value in attributes.items()}


def nanoseconds(at: float) -> int:
    """The time of day, in nanoseconds since 1970, at the time *at* of `time.monotonic`."""
    return time_ns() - int((monotonic() - at) * 1e9)


def traceparent_of(context: trace.SpanContext) -> str:
    """How a span is named to others."""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def context_of(traceparent: str) -> trace.SpanContext:
    """The span, perhaps of another process, that a valid *traceparent* names."""
    _, trace_id, span_id, flags = traceparent.split("-")
    return trace.SpanContext(int(trace_id, 16), int(span_id, 16), True, trace.TraceFlags(int(flags, 16)))
