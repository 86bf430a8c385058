"""A plot of a sweep: p99 of each lane over GPUs."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from loadtest.simulate.sweep import Point


def plot(points: Sequence[Point], within_s: float, title: str, file: Path) -> None:
    """Write a PNG, with the target as a line; both axes are logarithmic."""
    figure = Figure(figsize=(8, 5), layout="tight")
    axes = figure.subplots()
    for lane in points[0].p99_s:
        p99 = [point.p99_s[lane] for point in points]
        axes.plot([point.gpus for point in points], p99, "o-", label=f"{lane}, p99")
    axes.axhline(within_s, color="red", linestyle="--", label="target")
    axes.set(xscale="log", yscale="log", xlabel="GPUs", ylabel="seconds", title=title)
    axes.grid(which="both", alpha=0.3)
    axes.legend()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=80)
