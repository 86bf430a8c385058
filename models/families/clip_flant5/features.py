"""A cache of image features on the device, shared by all questions about an image."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

import torch

unbind_copy: Any = torch.unbind_copy  # wrongly typed: no return value


class FeatureCache:
    """
    Rows of features by the image's digest, up to *max_bytes*; the least recently used are evicted.

    Thread-safe.  Two concurrent batches with a new image both compute it.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._rows: OrderedDict[str, torch.Tensor] = OrderedDict()
        self._lock = Lock()
        self.bytes = 0

    def of(
        self, images: Mapping[str, torch.Tensor], see: Callable[[Sequence[torch.Tensor]], torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """
        Return the features of each image; those not cached are computed by *see* in one pass.

        Args:
            images: pixels (channels, size, size) by digest.
            see: pixels of n images to features (n, patches, width).
        """
        with self._lock:
            found = {digest: self._rows[digest] for digest in images if digest in self._rows}
            for digest in found:
                self._rows.move_to_end(digest)
        fresh = [digest for digest in images if digest not in found]
        if fresh:
            seen = see([images[digest] for digest in fresh])
            rows = unbind_copy(seen)  # a view would keep its whole batch in memory
            found |= dict(zip(fresh, rows, strict=True))
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
