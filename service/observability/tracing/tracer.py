"""The tracer that the settings configure."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from opentelemetry import trace


@asynccontextmanager
async def open_tracer(otlp_endpoint: str) -> AsyncIterator[trace.Tracer]:
    """Open a tracer that sends to the collector at *otlp_endpoint*; one without effect if that is empty."""
    if not otlp_endpoint:
        yield trace.NoOpTracer()
        return
    from service.observability.tracing.otlp import exporting_tracer

    async with exporting_tracer(otlp_endpoint) as tracer:
        yield tracer
