"""The span of a batch, which is part of several traces."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from service.observability.tracing import Span
from service.serving.job import Job


@contextmanager
def batch_span(batch: Sequence[Job], model: str) -> Iterator[None]:
    """
    Record the batch while the context is open, if the trace of one of its calls is recorded.

    The span is in the trace of the first such call, with links to all; the calls keep its traceparent.  A
    trace of its own would be sampled independently of the requests' traces.
    """
    spans = recorded(batch)
    if not spans:
        yield
        return
    links = [span.traceparent for span in spans]
    with spans[0].child("batch", links, model=model, calls=len(batch)) as made:
        for call in batch:
            call.batch = made.traceparent
        yield


def add_batch_span(batch: Sequence[Job], model: str, device: str, began: float, ended: float) -> str:
    """Record a batch that ran in another process as `batch_span` does; return its traceparent, or ""."""
    spans = recorded(batch)
    if not spans:
        return ""
    links = [span.traceparent for span in spans]
    return spans[0].add("batch", began, ended, links, model=model, device=device, calls=len(batch))


def recorded(batch: Sequence[Job]) -> list[Span]:
    """Return the distinct spans of *batch* that are recorded."""
    return list(dict.fromkeys(call.span for call in batch if call.span.recording))
