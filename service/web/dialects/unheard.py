"""Warnings of scores that go out in formats without a place for them."""

import logging
from collections.abc import Iterable

from service.observability.notes import Code, Warned

log = logging.getLogger("scoregate.dialects")


class Unheard:
    """
    Logs each kind of warning once.

    How many there are is in the instruments.  Sentences may quote a prompt, so none is logged.
    """

    def __init__(self) -> None:
        self._logged = set[Code]()

    def note(self, warnings: Iterable[Warned]) -> None:
        """Log those of a kind that was not logged before."""
        for code in sorted({warned.note.code for warned in warnings} - self._logged):
            self._logged.add(code)
            log.warning("scores of a dialect came with a warning; POST /score tells it", extra={"code": code})
