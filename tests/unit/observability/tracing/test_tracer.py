"""Traces are off by default, and a collector that is away costs no answer."""

import sys

import pytest
from opentelemetry import trace

from service.core.settings import SettingsError
from service.core.settings.sections import OTEL_PACKAGES
from service.observability.tracing import NO_SPAN, Span, open_tracer
from service.wiring.load import load_settings

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
VARIABLE = "SCOREGATE_TELEMETRY__OTLP_ENDPOINT"


@pytest.mark.anyio
async def test_without_a_collector_a_span_is_its_own_part():
    """Nothing is made, timed or kept; the caller's trace is handed on."""
    async with open_tracer("") as tracer:
        span = Span.of_request(tracer, "POST /score", TRACE, 0.0)

    assert type(tracer) is trace.NoOpTracer
    assert (TRACE, False) == (span.traceparent, span.recording)
    with span.child("metric", metric="dsg") as part:
        assert part is span
    for done in (span.note(error="no"), span.link(TRACE), span.end()):
        assert done is None
    assert TRACE == span.add("queue", 0.0, 1.0)


@pytest.mark.anyio
async def test_a_request_without_a_collector_and_without_a_trace_makes_no_span():
    """All such requests have the same one, and its parts are no spans of OpenTelemetry either."""
    async with open_tracer("") as tracer:
        span = Span.of_request(tracer, "POST /score", "", 0.0)

    assert span is NO_SPAN
    assert "" == span.add("decode", 0.0, 1.0)


@pytest.mark.parametrize(
    "endpoint",
    ["collector:4318", "grpc://collector:4317", "http://", "http://collector:99999", "http://collector?x=1"],
)
def test_an_address_that_cannot_be_sent_to_is_refused(endpoint):
    """When the service starts, by the name of the setting."""
    with pytest.raises(SettingsError, match=f"{VARIABLE}: telemetry.otlp_endpoint"):
        load_settings(None, {VARIABLE: endpoint})


def test_missing_packages_are_named(monkeypatch):
    """With the extra that brings them."""
    monkeypatch.setitem(sys.modules, OTEL_PACKAGES[0], None)

    assert "" == load_settings(None, {}).telemetry.otlp_endpoint
    with pytest.raises(SettingsError, match=r"\[otel\]"):
        load_settings(None, {VARIABLE: "http://collector:4318"})
