"""The span of a batch: one in the first of its traces, linked to all that it serves."""

import pytest

from models.core.contract import Prepared
from service.observability.tracing import NO_SPAN
from service.serving.batcher.pool import add_batch_span, batch_span, recorded
from service.serving.job import Job
from tests.support.devices import Words, device, outcomes_of, put
from tests.support.spans import Recorded

pytestmark = pytest.mark.anyio


def queued(span):
    return Job(Prepared(1, None), "bulk", 0.0, span=span)


def test_a_batch_is_recorded_once_for_all_that_it_serves():
    """Its calls have the name of its span, also those of a request without a trace."""
    one, other = Recorded("one"), Recorded("other")
    batch = [queued(span) for span in (NO_SPAN, one, other, one)]
    with batch_span(batch, "vqa"):
        assert ["one/batch"] * 4 == [call.batch_span for call in batch]

    assert [("batch", ["one", "other"], {"model": "vqa", "calls": 4})] == one.children
    assert [] == other.children


def test_a_batch_without_a_trace_has_no_span():
    """Nothing is said of it."""
    batch = [queued(NO_SPAN)]
    assert [] == recorded(batch)
    assert "" == add_batch_span(batch, "vqa", "cuda:1", 2.0, 3.5)


def test_a_batch_of_another_process_is_recorded_when_it_is_over():
    """In the first of its traces, linked to all, with its own times and its device."""
    one, other = Recorded("one"), Recorded("other")
    batch = [queued(span) for span in (NO_SPAN, one, other, one)]

    assert "one/batch" == add_batch_span(batch, "vqa", "cuda:1", 2.0, 3.5)
    attributes = {"model": "vqa", "device": "cuda:1", "calls": 4}
    assert [("batch", 2.0, 3.5, ["one", "other"], attributes)] == one.added
    assert [] == other.added


async def test_a_device_names_the_model_in_the_spans_of_its_batches():
    """By its configured name."""
    span = Recorded("one")
    served, hosted = device(Words())
    async with served:
        calls = put(served, hosted, "a", "b")
        calls[0].span = span
        await outcomes_of(calls)

    assert [("batch", ["one"], {"model": "m0", "calls": 2})] == span.children
    assert "one/batch" == (await calls[1].result).batch_span
