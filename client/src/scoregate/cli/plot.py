"""The plot of `scoregate calibrate`: the distribution of scores, and the threshold."""

from pathlib import Path
from typing import Any

from scoregate.cli.exits import UsageFault
from scoregate.cli.samples import Samples
from scoregate.cli.thresholds import roc

KINDS = (".png", ".svg", ".pdf")
BINS = 40


def check(path: Path) -> None:
    """Raise `UsageFault` if nothing could be drawn to *path*."""
    if path.suffix.lower() not in KINDS:
        raise UsageFault(f"{path}: the name of a plot must end in {', '.join(KINDS)}")
    figure()


def figure() -> Any:
    """Return an empty figure that needs no display."""
    try:
        from matplotlib.figure import Figure
    except ImportError as exc:
        raise UsageFault(
            "a plot needs Matplotlib: pip install './client[plot]' in a checkout of Scoregate"
        ) from exc
    return Figure(layout="constrained")


def draw(samples: Samples, threshold: float | None, path: Path) -> None:
    """Draw histograms with the threshold; with labels one for each, and the ROC curve."""
    drawn = figure()
    groups = {"all": samples.scores}
    if samples.labels:
        groups = {"good": samples.of(True), "bad": samples.of(False)}
    drawn.set_size_inches(5 * len(groups), 4)
    left, *right = drawn.subplots(1, len(groups), squeeze=False)[0]
    span = (min(samples.scores), max(samples.scores))
    if span[0] + (span[1] - span[0]) / BINS == span[0]:
        raise UsageFault(f"{samples.metric}: the scores lie too close together to be drawn")
    for name, scores in groups.items():
        left.hist(scores, bins=BINS, range=span, alpha=0.6, label=f"{name} ({len(scores)})")
    if threshold is not None:
        left.axvline(threshold, color="black", linestyle="--", label=f"threshold {threshold:.4g}")
    left.set_xlabel(samples.metric.replace("$", r"\$"))
    left.set_ylabel("pictures")
    left.legend()
    for axes in right:
        axes.plot(*roc(samples.worth(samples.of(False)), samples.worth(samples.of(True))))
        axes.set_xlabel("false-accept rate")
        axes.set_ylabel("true-accept rate")
    drawn.savefig(path)
