"""What questions of a batch share: the features of their images, and the padding of a group."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

import torch

T = TypeVar("T")


class FeatureCache:
    """
    Features of images by their digest, up to *max_bytes*; the least recently used are evicted.

    So the vision tower runs once for all questions about an image.

    Thread-safe.  Two concurrent batches with a new image both compute it.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._rows: OrderedDict[str, torch.Tensor] = OrderedDict()
        self._lock = Lock()
        self.bytes = 0

    def of(
        self, images: Mapping[str, T], see: Callable[[Sequence[T]], Iterable[torch.Tensor]]
    ) -> dict[str, torch.Tensor]:
        """
        Return the features of each image; those not cached are computed by *see* in one pass.

        Args:
            images: pixels by digest.
            see: pixels of some images to the features of each.
        """
        with self._lock:
            found = {digest: self._rows[digest] for digest in images if digest in self._rows}
            for digest in found:
                self._rows.move_to_end(digest)
        fresh = [digest for digest in images if digest not in found]
        if fresh:
            rows = see([images[digest] for digest in fresh])
            found |= dict(zip(fresh, map(alone, rows), strict=True))
            with self._lock:
                self._keep({digest: found[digest] for digest in fresh})
        return found

    def forget(self) -> None:
        """Drop all rows."""
        with self._lock:
            self._rows.clear()
            self.bytes = 0

    def _keep(self, rows: Mapping[str, torch.Tensor]) -> None:
        for digest, row in rows.items():
            if row.nbytes <= self._max and digest not in self._rows:
                self._rows[digest] = row
                self.bytes += row.nbytes
        while self.bytes > self._max:
            self.bytes -= self._rows.popitem(last=False)[1].nbytes


def alone(row: torch.Tensor) -> torch.Tensor:
    """Return *row*, copied if it is a view: that would keep its whole batch in memory."""
    return row if row.untyped_storage().nbytes() == row.nbytes else row.clone()


# --- groups of questions that run together, each padded to its longest ---


MAX_PADDING_RATIO = 1.25  # tokens with padding for each token of a group


@dataclass(frozen=True, slots=True)
class Size:
    """The size of one question: tokens with its image, and the number and longest tokens of its answers."""

    length: int
    answers: int = 0
    longest: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of the question and all its answers, padded to the longest."""
        return self.length + self.answers * self.longest


def alike(sizes: Sequence[Size]) -> list[list[int]]:
    """
    Group the indices of questions of similar size.

    A group is padded to its longest question.  Without groups one long question would pad its whole
    batch: one of 24 took the memory of 80.
    """
    groups: list[list[int]] = []
    for number in sorted(range(len(sizes)), key=lambda number: -sizes[number].tokens):
        longer = [*groups[-1], number] if groups else []
        if longer and padded([sizes[one] for one in longer]) <= MAX_PADDING_RATIO:
            groups[-1] = longer
        else:
            groups.append([number])
    return groups


def padded(group: Sequence[Size]) -> float:
    """Return the ratio of a group's tokens with padding to those without."""
    widest = Size(
        max(size.length for size in group),
        max(size.answers for size in group),
        max(size.longest for size in group),
    )
    return len(group) * widest.tokens / sum(size.tokens for size in group)
