"""Traces are off by default, and a collector that is away costs no answer."""

import asyncio

import pytest

from demo.process import HOST, free_port
from service.observability.tracing import NO_SPAN, Span, open_tracer
from tests.support.leaps import leap_on
from tests.support.pictures import item

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
NOT_SAMPLED = TRACE[:-2] + "00"


@pytest.mark.anyio
async def test_a_trace_that_its_caller_does_not_sample_is_handed_on(collector):
    """Nothing is recorded, and servers get the caller's own header."""
    async with open_tracer(collector.url) as sending:
        span = Span.of_request(sending, "POST /score", NOT_SAMPLED, 0.0)
        assert (NOT_SAMPLED, False) == (span.traceparent, span.recording)

    assert [] == collector.spans


@pytest.mark.anyio
async def test_a_span_without_a_name_is_no_link(collector):
    """One whose trace is not recorded, and whose caller named none."""
    async with open_tracer(collector.url) as sending:
        span = Span.of_request(sending, "POST /score", "", 0.0)
        span.link(NO_SPAN.traceparent)
        span.link(TRACE)
        span.end()

    assert [(tuple(TRACE.split("-")[1:3]),)] == [each.links for each in collector.spans]


@pytest.mark.anyio
async def test_a_collector_that_refuses_is_not_asked_again_when_the_service_ends(serve, collector, caplog):
    """Usually it is, after a while. The last spans are lost, and one line of the log says so."""
    collector.status = 503
    async with serve(telemetry={"otlp_endpoint": collector.url}) as client:
        await client.post("/score", json={"items": [item()], "metrics": ["vqascore"]})
        late = asyncio.create_task(leap_on())
    late.cancel()

    assert len(collector.bodies) <= 1
    assert 1 == caplog.messages.count(
        "the collector of traces did not answer in time: the last spans are lost"
    )


@pytest.mark.anyio
async def test_a_collector_that_is_away_costs_no_answer(serve):
    """Requests are answered, and the service ends without waiting for it."""
    nowhere = f"http://{HOST}:{free_port(0)}"
    async with serve(telemetry={"otlp_endpoint": nowhere}) as client:
        answer = await client.post("/score", json={"items": [item()], "metrics": ["vqascore"]})
        late = asyncio.create_task(leap_on())
    late.cancel()

    assert 200 == answer.status_code
