"""Export of spans to an OpenTelemetry collector, by OTLP over HTTP."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import requests
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from service import __version__
from service.core.concurrency.cpu_threads import on_thread

log = logging.getLogger("scoregate.tracing")

EXPORT_S = 5.0  # one request to the collector may take so long, with its retries
FLUSH_S = 2.0  # sending the last spans may take so long when the service ends


@asynccontextmanager
async def exporting_tracer(endpoint: str) -> AsyncIterator[trace.Tracer]:
    """
    Open a tracer whose spans are sent to one collector; on exit, send the remaining ones within `FLUSH_S`.

    OpenTelemetry's own variables set headers and sampling, such as `OTEL_EXPORTER_OTLP_HEADERS` and
    `OTEL_TRACES_SAMPLER`.

    Args:
        endpoint: the collector's address, without `/v1/traces`.
    """
    session = requests.Session()
    session.trust_env = False  # spans go to the collector, and to no proxy
    address = f"{endpoint.rstrip('/')}/v1/traces"
    exporter: SpanExporter = OTLPSpanExporter(address, timeout=EXPORT_S, session=session)
    processor = BatchSpanProcessor(exporter)
    resource = Resource.create({"service.name": "scoregate", "service.version": __version__})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(processor)
    try:
        yield provider.get_tracer("scoregate", __version__)
    finally:
        try:
            async with asyncio.timeout(FLUSH_S):
                await on_thread(processor.force_flush)
        except TimeoutError:
            log.warning("the collector of traces did not answer in time: the last spans are lost")
            exporter.shutdown()
        await on_thread(provider.shutdown)
