"""How long a batch takes by what is in it, learnt from the model's own batches."""

from math import inf

FADE = 0.9  # a batch counts that much less with each one after it
SPREAD = 0.05  # variance of costs, over their mean squared, below which noise would tell the fixed part
FORGET = 1.001  # the best pace is taken to be that much slower with each batch that was not as fast
LARGER = 2.5  # how many times the usual cost is tried while the fixed part is not known


class CostModel:
    """
    Seconds of a batch as fixed_s + per_token_s * cost, by least squares over finished batches; older ones
    fade.

    Batches of one size say nothing of the fixed part, so the last one that was measured stays.  Nothing
    is known before the first batch: any cost fits, and nothing takes time.

    Attributes:
        best_per_token_s: seconds of a token in the batch that made the most of its time, a slow memory.
    """

    def __init__(self) -> None:
        # Faded sums over finished batches.
        self._batches = self._cost = self._seconds = self._squares = self._products = 0.0
        self._elapsed = 0.0  # the same of seconds with the gaps between batches
        self._fixed_s: float | None = None
        self.best_per_token_s = inf

    def observe(self, cost: int, seconds: float, gap_s: float = 0.0) -> None:
        """
        Learn from a finished batch.

        Args:
            cost: its tokens.
            gap_s: for how long the device stood idle before it while work waited.
        """
        self._elapsed = FADE * self._elapsed + seconds + gap_s
        if seconds and cost:
            self.best_per_token_s = min(seconds / cost, self.best_per_token_s * FORGET)
        terms = (1.0, cost, seconds, cost * cost, cost * seconds)
        sums = (self._batches, self._cost, self._seconds, self._squares, self._products)
        faded = (FADE * total + term for total, term in zip(sums, terms, strict=True))
        self._batches, self._cost, self._seconds, self._squares, self._products = faded
        mean_cost, mean_seconds = self._cost / self._batches, self._seconds / self._batches
        variance = self._squares / self._batches - mean_cost**2
        if variance > SPREAD * mean_cost**2:
            covariance = self._products / self._batches - mean_cost * mean_seconds
            self._fixed_s = mean_seconds - max(0.0, covariance / variance) * mean_cost

    @property
    def knows_sizes(self) -> bool:
        """Whether batches of different sizes have been measured, so that it can tell a large one's time."""
        return self._fixed_s is not None

    @property
    def fixed_s(self) -> float:
        """Seconds that any batch takes."""
        if self._fixed_s is None:
            return 0.0
        return min(max(0.0, self._fixed_s), self._seconds / self._batches)

    @property
    def per_token_s(self) -> float:
        """Seconds that each token adds."""
        variable_s = max(0.0, self._seconds - self.fixed_s * self._batches)  # rounding may go below
        return variable_s / self._cost if self._cost else 0.0

    @property
    def fixed_cost(self) -> float:
        """Tokens that take as long as the fixed part; inf where tokens take no time."""
        return self.fixed_s / self.per_token_s if self.per_token_s else inf

    @property
    def typical_s(self) -> float:
        """Seconds of a batch, with the gap before it, as they have been lately."""
        return self._elapsed / self._batches if self._batches else 0.0

    @property
    def typical_cost(self) -> float:
        """Tokens of a batch, as they have been lately."""
        return self._cost / self._batches if self._batches else 0.0

    def run_s(self, cost: float) -> float:
        """Seconds that a batch of *cost* tokens should take."""
        return self.fixed_s + self.per_token_s * cost

    def largest_within(self, seconds: float) -> float:
        """
        The largest cost of a batch that should end within *seconds*.

        Until a fixed part is known, larger batches than those so far are tried as well: else a model
        that was only ever asked single calls would never be asked more at once.
        """
        if not self._batches:
            return inf
        fits = max(0.0, seconds - self.fixed_s) / self.per_token_s if self.per_token_s else inf
        if self._fixed_s is None and self._seconds <= seconds * self._batches:
            return max(fits, LARGER * self._cost / self._batches)
        return fits

    def drain_s(self, cost: float, largest: float) -> float:
        """Seconds in which so much waiting work is done, in batches of at most *largest* tokens."""
        if not (cost and self._batches):
            return 0.0
        if self._fixed_s is None:
            return cost * self._elapsed / self._cost
        gap_s = (self._elapsed - self._seconds) / self._batches
        return max(1.0, cost / largest) * (self.fixed_s + gap_s) + self.per_token_s * cost
