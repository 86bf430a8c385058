"""Where the trace of each request begins."""

from typing import Self

from service.observability.tracing.span import Span


class Tracer:
    """The tracer of a service that sends no traces."""

    async def __aenter__(self) -> Self:
        """Start."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Send what has not been sent yet."""

    def begin(self, name: str, traceparent: str, began: float) -> Span:
        """
        The first span of a request, a part of the caller's trace where there is one.

        Args:
            traceparent: the caller's, valid or empty.
            began: by `time.monotonic`.
        """
        return Span(traceparent)
