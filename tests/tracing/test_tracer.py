"""Traces are off by default, and a collector that is away costs no answer."""

import subprocess
import sys

import pytest

from demo.process import HOST, free_port
from service.settings import SettingsError, sections
from service.settings.load import load_settings
from service.tracing import otlp
from service.tracing.opening import tracer
from service.tracing.span import Span
from service.tracing.tracer import Tracer
from tests.conftest import item

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
NOT_SAMPLED = TRACE[:-2] + "00"
VARIABLE = "SCOREGATE_TELEMETRY__OTLP_ENDPOINT"


def test_without_a_collector_a_span_is_its_own_part():
    """Nothing is made, timed or kept; the caller's trace is handed on."""
    span = tracer("").begin("POST /score", TRACE, 0.0)

    assert type(tracer("")) is Tracer
    assert (TRACE, False) == (span.traceparent, span.recording)
    with span.child("metric", metric="dsg") as part:
        assert part is span
    for done in (span.note(error="no"), span.add("queue", 0.0, 1.0), span.link(TRACE), span.end()):
        assert done is None
    assert ("traceparent",) == Span.__slots__


def test_without_a_collector_opentelemetry_is_not_imported():
    """Neither its SDK nor its exporter, by whatever the service imports to serve."""
    code = (
        "import sys; from service import command, launch, tracing\n"
        "from service.tracing.opening import tracer; tracer('')\n"
        "print(sorted(name for name in sys.modules if name.startswith('opentelemetry.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "opentelemetry.sdk" not in done.stdout
    assert "opentelemetry.exporter" not in done.stdout


@pytest.mark.anyio
async def test_a_trace_that_its_caller_does_not_sample_is_handed_on(collector):
    """Nothing is recorded, and servers get the caller's own header."""
    async with tracer(collector.url) as sending:
        span = sending.begin("POST /score", NOT_SAMPLED, 0.0)
        assert (NOT_SAMPLED, False) == (span.traceparent, span.recording)

    assert [] == collector.spans


@pytest.mark.anyio
async def test_a_span_without_a_name_is_no_link(collector):
    """One whose trace is not recorded, and whose caller named none."""
    async with tracer(collector.url) as sending:
        span = sending.begin("POST /score", "", 0.0)
        span.link(Span().traceparent)
        span.link(TRACE)
        span.end()

    assert [(tuple(TRACE.split("-")[1:3]),)] == [each.links for each in collector.spans]


@pytest.mark.anyio
async def test_a_collector_that_refuses_is_not_asked_again_when_the_service_ends(
    serve, collector, monkeypatch, caplog
):
    """Usually it is, after a while. The last spans are lost, and one line of the log says so."""
    monkeypatch.setattr(otlp, "FLUSH_S", 0.01)
    collector.status = 503
    async with serve(telemetry={"otlp_endpoint": collector.url}) as client:
        await client.post("/score", json={"items": [item()], "metrics": ["vqascore"]})

    assert len(collector.bodies) <= 1
    assert 1 == caplog.messages.count(
        "the collector of traces did not answer in time: the last spans are lost"
    )


@pytest.mark.anyio
async def test_a_collector_that_is_away_costs_no_answer(serve, monkeypatch):
    """Requests are answered, and the service ends without waiting for it."""
    monkeypatch.setattr(otlp, "FLUSH_S", 0.01)
    nowhere = f"http://{HOST}:{free_port(0)}"
    async with serve(telemetry={"otlp_endpoint": nowhere}) as client:
        answer = await client.post("/score", json={"items": [item()], "metrics": ["vqascore"]})

    assert 200 == answer.status_code


@pytest.mark.parametrize("endpoint", ["collector:4318", "grpc://collector:4317", "http://"])
def test_an_address_that_cannot_be_sent_to_is_refused(endpoint):
    """When the service starts, by the name of the setting."""
    with pytest.raises(SettingsError, match=f"{VARIABLE}: telemetry.otlp_endpoint"):
        load_settings(None, {VARIABLE: endpoint})


def test_missing_packages_are_named(monkeypatch):
    """With the extra that brings them."""
    monkeypatch.setattr(sections, "lacks_packages", lambda: True)

    assert "" == load_settings(None, {}).telemetry.otlp_endpoint
    with pytest.raises(SettingsError, match=r"\[otel\]"):
        load_settings(None, {VARIABLE: "http://collector:4318"})
