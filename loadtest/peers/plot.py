"""A plot of the comparison."""

from collections.abc import Sequence
from math import inf
from pathlib import Path

from matplotlib.figure import Figure

from loadtest.peers.rounds import Result
from loadtest.peers.rows import Row
from loadtest.peers.table import EVERY, met


def plot(results: Sequence[Result], file: Path) -> None:
    """Write a PNG: a bar for each ratio, its rounds as dots; to the right of 1 the service is ahead."""
    shown = [result for result in results if is_ratio(result)][::-1]
    figure = Figure(figsize=(10, 1.5 + 0.32 * len(shown)), layout="tight")
    axes = figure.subplots()
    for place, result in enumerate(shown):
        axes.barh(place, ahead(result, result.ratio), color="tab:green" if met(result) else "tab:red")
        for ratio in filter(None, result.ratios):
            axes.plot(ahead(result, ratio), place, "k.", markersize=4)
    axes.set_yticks(range(len(shown)), [f"{EVERY[r.row].what}: {r.peer} {r.version}" for r in shown])
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set(xlabel="how many times ahead of the peer (green: the target is met)")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=90)


def is_ratio(result: Result) -> bool:
    """Return True if the ratio can be drawn: no count of pictures, and neither side is 0."""
    row = EVERY[result.row]
    return 0 < result.ratio < inf and not (isinstance(row, Row) and row.figure == "scored")


def ahead(result: Result, ratio: float) -> float:
    """Return the ratio, inverted for a p99, so that more is better."""
    row = EVERY[result.row]
    return 1 / ratio if isinstance(row, Row) and row.figure == "p99 ms" else ratio
