"""A part of a request's trace, as everything sees it that takes time; what is here records nothing."""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

Attribute = str | int | float

# W3C Trace Context, section 3.2: no version ff, and no ids of zeros.
TRACEPARENT = re.compile("(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class Span:
    """
    A span that is not recorded: it hands on the caller's trace, and does nothing else.

    Attributes:
        traceparent: what names it to servers and to links (W3C Trace Context); empty where there is no trace.
        recording: whether anything becomes of it.
    """

    __slots__ = ("traceparent",)
    recording = False

    def __init__(self, traceparent: str = "") -> None:
        self.traceparent = traceparent

    def child(
        self, name: str, links: Sequence[str] = (), **attributes: Attribute
    ) -> AbstractContextManager["Span"]:
        """A part of it that lasts as long as the context; *links* are the traceparents of related spans."""
        return nullcontext(self)

    def add(
        self, name: str, began: float, ended: float, links: Sequence[str] = (), **attributes: Attribute
    ) -> None:
        """Add a part of it that is over; times are those of `time.monotonic`."""

    def note(self, **attributes: Attribute) -> None:
        """Say more about it.  `error` names what became of it instead of a result."""

    def link(self, traceparent: str) -> None:
        """Name a related span."""

    def end(self) -> None:
        """It is over."""


NO_SPAN = Span()


def traceparent(given: str) -> str:
    """A caller's header, or nothing where it is not valid."""
    return given if TRACEPARENT.fullmatch(given) else ""
