"""What a group of calls took, as spans of whoever asked."""

from collections import defaultdict
from collections.abc import Sequence

from service.observability.tracing.span import Span
from service.serving.shared_call import SharedCall


def add_spans(span: Span, model: str, calls: Sequence[SharedCall], asked: float) -> None:
    """
    Add to *span* how long *calls* waited and ran: one pair of spans for each batch that they were in.

    A call that somebody else began shows from when it was *asked* for here, by `time.monotonic`.
    """
    batches: dict[str | bytes, list[SharedCall]] = defaultdict(list)
    for call in calls:
        if call.result.result().ran_s:  # a batch took it
            batches[call.result.result().batch or call.key].append(call)
    for batch, served in batches.items():
        results = [call.result.result() for call in served]
        ended = max(call.answered for call in served)
        began = ended - max(result.ran_s for result in results)
        queued = began - max(result.waited_s for result in results)
        span.add("queue", max(asked, queued), max(asked, began), model=model, calls=len(served))
        links = [batch] if isinstance(batch, str) else []
        span.add("model", max(asked, began), ended, links, model=model, calls=len(served))
