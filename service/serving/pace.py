"""How fast a model is, learnt from its own batches."""

from math import inf

FADE = 0.9  # a batch counts that much less with each one after it
LARGER = 2.5


class Pace:
    """
    Seconds of a batch as a + b * cost: least squares over finished batches, older ones fading.

    Batches of one size tell no a, so the last one that was told stays.  Nothing is known before the
    first batch: any cost fits, and nothing takes time.
    """

    def __init__(self) -> None:
        self._batches = self._cost = self._seconds = self._squares = self._products = 0.0
        self._elapsed = 0.0
        self._fixed: float | None = None

    def note(self, cost: int, seconds: float, gap: float = 0.0) -> None:
        """Learn from a finished batch that began *gap* seconds after the one before, with work waiting."""
        self._elapsed = FADE * self._elapsed + seconds + gap
        terms = (1.0, cost, seconds, cost * cost, cost * seconds)
        sums = (self._batches, self._cost, self._seconds, self._squares, self._products)
        faded = (FADE * total + term for total, term in zip(sums, terms, strict=True))
        self._batches, self._cost, self._seconds, self._squares, self._products = faded
        mean_cost, mean_seconds = self._cost / self._batches, self._seconds / self._batches
        spread = self._squares / self._batches - mean_cost**2
        if spread > 1e-3 * mean_cost**2:
            together = self._products / self._batches - mean_cost * mean_seconds
            self._fixed = mean_seconds - max(0.0, together / spread) * mean_cost

    @property
    def fixed(self) -> float:
        """a, seconds that any batch takes."""
        if self._fixed is None:
            return 0.0
        return min(max(0.0, self._fixed), self._seconds / self._batches)

    @property
    def slope(self) -> float:
        """b, seconds for each token."""
        return (self._seconds - self.fixed * self._batches) / self._cost if self._cost else 0.0

    @property
    def typical(self) -> float:
        """Seconds of a batch as they have been lately."""
        return self._elapsed / self._batches if self._batches else 0.0

    def within(self, seconds: float) -> float:
        """
        The largest cost of a batch that should end within *seconds*.

        Until an a is known, larger batches than those so far are tried as well: else a model that was
        only ever asked single calls would never be asked more at once.
        """
        if not self._batches:
            return inf
        fits = max(0.0, seconds - self.fixed) / self.slope if self.slope else inf
        if self._fixed is None and self._seconds <= seconds * self._batches:
            return max(fits, LARGER * self._cost / self._batches)
        return fits

    def drains(self, cost: float, largest: float) -> float:
        """Seconds in which so much waiting work is done, in batches of at most *largest*."""
        if not (cost and self._batches):
            return 0.0
        if self._fixed is None:
            return cost * self._elapsed / self._cost
        gap = (self._elapsed - self._seconds) / self._batches
        return max(1.0, cost / largest) * (self.fixed + gap) + self.slope * cost
