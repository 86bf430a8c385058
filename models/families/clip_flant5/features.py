"""Features of the images seen last, kept on the device: all questions about an image share them."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

import torch

unbind_copy: Any = torch.unbind_copy  # which is typed as if it returned nothing


class FeatureCache:
    """
    Rows of features by the image's digest, as many as fit into *max_bytes*; the oldest used leave first.

    Thread-safe.  Two batches at once that show a new image both see it.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._rows: OrderedDict[str, torch.Tensor] = OrderedDict()
        self._lock = Lock()
        self.bytes = 0

    def of(
        self, images: Mapping[str, torch.Tensor], see: Callable[[torch.Tensor], torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """
        Features of each image; those not kept are made by *see* in one pass.

        Args:
            images: pixels (channels, size, size) by digest.
            see: pixels (n, channels, size, size) to features (n, patches, width).
        """
        with self._lock:
            found = {digest: self._rows[digest] for digest in images if digest in self._rows}
            for digest in found:
                self._rows.move_to_end(digest)
        fresh = [digest for digest in images if digest not in found]
        if fresh:
            seen = see(torch.stack([images[digest] for digest in fresh]))
            rows = unbind_copy(seen)  # a view, once kept, would hold its whole batch
            found |= dict(zip(fresh, rows, strict=True))
            with self._lock:
                self._keep({digest: found[digest] for digest in fresh})
        return found

    def _keep(self, rows: Mapping[str, torch.Tensor]) -> None:
        for digest, row in rows.items():
            if row.nbytes <= self._max and digest not in self._rows:
                self._rows[digest] = row
                self.bytes += row.nbytes
        while self.bytes > self._max:
            self.bytes -= self._rows.popitem(last=False)[1].nbytes
