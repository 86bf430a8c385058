"""A plot of a sweep: p99 of each lane over GPUs."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

from loadtest.simulate.sweep import Point


def plot(points: Sequence[Point], within_s: float, title: str, file: Path) -> None:
    """Write a PNG, with the target as a line; both axes are logarithmic."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    for lane in points[0].p99_s:
        p99 = [point.p99_s[lane] for point in points]
        axes.plot([point.gpus for point in points], p99, "o-", label=f"{lane}, p99")
    axes.axhline(within_s, color="red", linestyle="--", label="target")
    axes.set(xscale="log", yscale="log", xlabel="GPUs", ylabel="seconds", title=title)
    axes.grid(which="both", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=80)
    pyplot.close(figure)
