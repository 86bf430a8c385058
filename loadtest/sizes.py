"""The sizes of measurements."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """
    Number and length of measurements.

    Attributes:
        rounds: of each comparison; the figure is their median.
        share: of the samples in a round: 1 gives the p99 its thousand.
        scale: of the workloads' bursts: 1 is their real size.
        threads: thread counts to try for the demo models.
    """

    rounds: int
    share: float
    scale: float
    threads: tuple[str, ...] = ("1", "2")


SIZES = {
    "short": Size(rounds=5, share=1.0, scale=0.25),
    "full": Size(rounds=9, share=4.0, scale=1.0),
    "bench": Size(rounds=3, share=0.25, scale=0.0625, threads=("1",)),  # as steady as a busy machine allows
}
