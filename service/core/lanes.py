"""
Lanes: the priority classes of calls, and the rules by which bulk calls wait (see ADR 0007).

`interactive` is for callers who wait, such as an online filter; `bulk` is for trainers and offline
runs.  Interactive calls go first, and bulk calls have a share of each device.  `take_batch` in
`service.serving.batcher.batching` applies these rules to the calls of a model, and `Scheduler.next` to the
models of a device.
"""

from dataclasses import dataclass

INTERACTIVE, BULK = LANES = ("interactive", "bulk")

RECENT_S = 1.0  # on a CPU, bulk calls leave a core free for so long after an interactive call
MAX_FILLED_RATIO = (
    1.5  # maximum time of a batch that bulk calls fill up, relative to its interactive calls alone
)


@dataclass(frozen=True, slots=True)
class Shares:
    """
    How lanes share a batch while calls of both wait.

    For each token of interactive calls, bulk calls earn bulk/interactive tokens, and more the longer the
    first of them has waited (twice as much after *ageing_s*), at most one.  A bulk call that has been earned
    goes first.
    """

    interactive: float = 9.0
    bulk: float = 1.0
    ageing_s: float = 10.0

    def earned(self, waited_s: float) -> float:
        """Return the tokens that bulk calls earn with each interactive one."""
        return min(1.0, self.bulk / self.interactive * (1 + waited_s / self.ageing_s))


def max_filled(urgent: float, fixed: float) -> float:
    """
    Return the tokens up to which bulk calls that are not earned fill a batch of interactive ones.

    Args:
        urgent: tokens of the interactive calls.
        fixed: tokens that take as long to compute as the fixed part of a batch's time.
    """
    return MAX_FILLED_RATIO * urgent + (MAX_FILLED_RATIO - 1) * fixed
