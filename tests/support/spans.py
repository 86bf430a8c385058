"""A span that keeps what is recorded under it."""

from contextlib import contextmanager

from service.observability.tracing import NO_SPAN, Span


class Recorded(Span):
    """
    Attributes:
        children: name, links and attributes of each part that was begun.
        added: name, begin, end, links and attributes of each part that was over.
    """

    __slots__ = ("added", "children")

    def __init__(self, traceparent):
        super().__init__(NO_SPAN._tracer, NO_SPAN._span)
        self.traceparent, self.recording = traceparent, True
        self.children, self.added = [], []

    @contextmanager
    def child(self, name, links=(), **attributes):
        self.children.append((name, links, attributes))
        yield Recorded(f"{self.traceparent}/{name}")

    def add(self, name, began, ended, links=(), **attributes):
        self.added.append((name, began, ended, links, attributes))
        return f"{self.traceparent}/{name}"
