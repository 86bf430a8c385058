"""Warnings of scores in formats without a field for them."""

import logging
from collections.abc import Iterable

from service.observability.notes import Code
from service.scoring.report import Warned

log = logging.getLogger("scoregate.dialects")


class Unheard:
    """
    A log of warnings, with each kind once.

    A Prometheus metric counts them.  Sentences may quote a prompt, so they are not logged.
    """

    def __init__(self) -> None:
        self._logged = set[Code]()

    def note(self, warnings: Iterable[Warned]) -> None:
        """Log warnings of kinds that were not logged before."""
        for code in sorted({warned.note.code for warned in warnings} - self._logged):
            self._logged.add(code)
            log.warning("scores of a dialect came with a warning; POST /score shows it", extra={"code": code})
