"""The span of a batch, which serves many traces."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from service.observability.tracing.span import Span
from service.serving.batcher.batch import QueuedCall


def batch_span(batch: Sequence[QueuedCall], model: str) -> AbstractContextManager[None]:
    """Record the batch as long as the context lasts, where a trace of one of its calls is recorded."""
    spans = tuple(dict.fromkeys(call.span for call in batch if call.span.recording))
    return recorded(spans, batch, model) if spans else nullcontext()


@contextmanager
def recorded(spans: Sequence[Span], batch: Sequence[QueuedCall], model: str) -> Iterator[None]:
    """
    One span in the trace of the first, with links to all that it serves; the calls keep its name.

    It has no trace of its own, since whether that is sampled would not depend on the requests' traces.
    """
    links = [span.traceparent for span in spans]
    with spans[0].child("batch", links, model=model, calls=len(batch)) as made:
        for call in batch:
            call.batch = made.traceparent
        yield
