"""The tracer that the settings configure."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from opentelemetry import trace

from service.core.settings import SettingsError


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
            from service.observability.tracing.otlp import exporting_tracer

            tracer = await stack.enter_async_context(exporting_tracer(otlp_endpoint))
        except ValueError as exc:
            line = f"telemetry.otlp_endpoint: OpenTelemetry rejects one of its variables, OTEL_*: {exc}"
            raise SettingsError(line) from exc
        yield tracer
