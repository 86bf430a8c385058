"""How fast a model is, learnt from its own batches."""

from math import inf

FADE = 0.9  # a batch counts that much less with each one after it


class Pace:
    """
    Seconds of a batch as a + b * cost: least squares over finished batches, older ones fading.

    Nothing is known before the first one: any cost fits, and nothing takes time.
    """

    def __init__(self) -> None:
        self._batches = self._cost = self._seconds = self._squares = self._products = 0.0
        self._elapsed = 0.0

    def note(self, cost: int, seconds: float, gap: float = 0.0) -> None:
        """Learn from a finished batch that began *gap* seconds after the one before, with work waiting."""
        self._elapsed = FADE * self._elapsed + seconds + gap
        terms = (1.0, cost, seconds, cost * cost, cost * seconds)
        sums = (self._batches, self._cost, self._seconds, self._squares, self._products)
        faded = (FADE * total + term for total, term in zip(sums, terms, strict=True))
        self._batches, self._cost, self._seconds, self._squares, self._products = faded

    @property
    def fixed(self) -> float:
        """a, seconds that any batch takes."""
        return max(0.0, (self._seconds - self.slope * self._cost) / self._batches) if self._batches else 0.0

    @property
    def slope(self) -> float:
        """b, seconds for each token; batches of one size tell no a, so that b has it all."""
        if not self._cost:
            return 0.0
        mean = self._cost / self._batches
        spread = self._squares / self._batches - mean * mean
        even = self._seconds / self._cost
        if spread < 1e-3 * mean * mean:
            return even
        together = self._products / self._batches - mean * self._seconds / self._batches
        return min(even, max(0.0, together / spread))

    @property
    def typical(self) -> float:
        """Seconds of a batch as they have been lately."""
        return self._elapsed / self._batches if self._batches else 0.0

    def within(self, seconds: float) -> float:
        """The largest cost of a batch that should end within *seconds*."""
        return max(0.0, seconds - self.fixed) / self.slope if self.slope else inf

    def drains(self, cost: float) -> float:
        """Seconds in which so much waiting work is done, in batches as they have been lately."""
        return cost * self._elapsed / self._cost if self._cost else 0.0
