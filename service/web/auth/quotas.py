"""Quotas of keys per minute."""

from collections.abc import Callable
from time import monotonic

from service.core.errors import LargerThanQuota, QuotaExceeded
from service.web.auth.keys import Key

MINUTE_S = 60.0
ROUNDING = 1e-6  # pairs; so a request after exactly `retry_after_s` is admitted


class Quotas:
    """
    A bucket for each key: it holds a minute's pairs of an item and a metric, and fills steadily.

    So after a pause a caller may use a whole minute's quota in one request.

    Args:
        clock: seconds, at any origin.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}  # pairs at a time, by the key's name

    def charge(self, key: Key, pairs: int) -> None:
        """
        Take *pairs* from the key's bucket.

        Raises:
            LargerThanQuota: the bucket never holds so many.
            QuotaExceeded: it holds fewer now; with the seconds until it holds enough.
        """
        if key.quota is None:
            return
        if pairs > key.quota:
            detail = (
                f"{pairs} pairs of an item and a metric; the key {key.name} may have {key.quota} a minute"
            )
            raise LargerThanQuota(detail)
        now, per_s = self._clock(), key.quota / MINUTE_S
        left, since = self._left.get(key.name, (float(key.quota), now))
        left = min(key.quota, left + (now - since) * per_s)
        if pairs > left + ROUNDING:
            wait_s = (pairs - left) / per_s
            allowed = f"the key {key.name} may have {key.quota} pairs of an item and a metric a minute"
            raise QuotaExceeded(f"{allowed}; it may have {pairs} in {wait_s:.1f} s", retry_after_s=wait_s)
        self._left[key.name] = left - pairs, now
