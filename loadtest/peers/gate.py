"""The figures that decide the exit status, by `[peers]` of `loadtest/thresholds.toml`."""

from collections.abc import Iterator, Sequence
from statistics import median

from loadtest.peers.rounds import Result
from loadtest.peers.rows import Row
from loadtest.peers.table import EVERY
from loadtest.report import Figure


def figures(results: Sequence[Result]) -> Iterator[Figure]:
    """
    Yield the figures of each measured row.

    `ROW` is its worst ratio over the peers, `ROW-p50-PEER` and `ROW-p99-PEER` are its latencies over that
    peer's.  A peer that failed in every round has none.
    """
    for name, row in EVERY.items():
        ratios = {result.peer: result.ratio for result in results if result.row == name and result.ratios}
        if ratios:
            worst = max if isinstance(row, Row) and row.figure == "p99 ms" else min
            peer = worst(ratios, key=lambda peer: ratios[peer])
            yield Figure(name, ratios[peer], note=f"beside {peer}")
    for result in results:
        for share in ("p50", "p99"):
            if latencies := result.ratios_of(f"{share}_ms"):
                yield Figure(f"{result.row}-{share}-{result.peer}", median(latencies))
