"""Preparation of calls for sending to a replica."""

from dataclasses import replace
from typing import Any

from models.core.calls import Call
from models.core.contract import Prepared
from models.images.image import Image


class Sending:
    """
    Prepares the calls of one group, which share the data of equal images.

    Args:
        cost: usual tokens of a call.
    """

    def __init__(self, cost: int) -> None:
        self._cost = cost
        self._plain: dict[str, Image] = {}

    def prepare(self, call: Call) -> Prepared:
        """Return a call with its images as files and digests.  Raises `ImageError`."""
        if not hasattr(call, "image"):
            return Prepared(self._cost, call)
        sent: dict[str, Any] = {"image": self._of(call.image)}
        if before := getattr(call, "before", ()):
            sent["before"] = tuple(self._of(each) if isinstance(each, Image) else each for each in before)
        return Prepared(self._cost, replace(call, **sent))  # type: ignore[type-var]

    def _of(self, image: Image) -> Image:
        if image.digest not in self._plain:
            plain = image if type(image) is Image else Image(image.encoded, image.digest)
            self._plain[image.digest] = plain
        return self._plain[image.digest]
