"""A plot of rank, separation and mean score by number of errors."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from loadtest.quality.meta import Estimate, Scored

Figures = Mapping[str, Mapping[str, Estimate]]  # by metric, by the name of the measure


def plot(figures: Figures, graphs: Mapping[str, Sequence[Sequence[Scored]]], file: Path) -> None:
    """Write a PNG: intervals above, the mean scores over the number of errors below."""
    measures = list(next(iter(figures.values())))
    columns = max(len(measures), 1)
    figure = Figure(figsize=(5 * columns, 7), layout="tight")
    above, below = figure.subplots(2, columns, squeeze=False)
    for measure, axes in zip(measures, above, strict=True):
        for place, estimates in enumerate(figures.values()):
            found = estimates[measure]
            axes.plot([found.low, found.high], [place, place], color="grey")
            axes.plot(found.value, place, "o")
        axes.set(title=f"{measure}, 95 % interval", yticks=range(len(figures)), yticklabels=list(figures))
        axes.invert_yaxis()
    for axes in below:
        axes.remove()
    wide = figure.add_subplot(2, 1, 2)
    for name, scores in graphs.items():
        levels, means = by_level(scores)
        wide.plot(levels, means, "o-", label=name)
    wide.set(
        title="mean score", xlabel="errors in the picture", ylabel="0: least, 1: largest mean of the metric"
    )
    wide.legend()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=80)


def by_level(graphs: Sequence[Sequence[Scored]]) -> tuple[list[int], list[float]]:
    """Return each number of errors with its pictures' mean score, scaled to 0..1."""
    found: dict[int, list[float]] = {}
    for nodes in graphs:
        for node in nodes:
            found.setdefault(node.level, []).extend(node.scores)
    levels = sorted(found)
    means = [float(np.mean(found[level])) for level in levels]
    least, span = min(means), max(means) - min(means)
    return levels, [(mean - least) / span if span else 0.0 for mean in means]
