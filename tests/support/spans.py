"""A span that keeps what is recorded under it."""

from contextlib import contextmanager

from service.observability.tracing.span import Span


class Recorded(Span):
    """
    Attributes:
        children: name, links and attributes of each part that was begun.
        added: name, begin, end, links and attributes of each part that was over.
    """

    __slots__ = ("added", "children")
    recording = True

    def __init__(self, traceparent):
        super().__init__(traceparent)
        self.children, self.added = [], []

    @contextmanager
    def child(self, name, links=(), **attributes):
        self.children.append((name, links, attributes))
        yield Span(f"{self.traceparent}/{name}")

    def add(self, name, began, ended, links=(), **attributes):
        self.added.append((name, began, ended, links, attributes))
