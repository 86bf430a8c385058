"""
Measures' sizes, and their figures with thresholds: as one table, and as a plot of the runs.

A threshold without a figure counts as missed, so that figures cannot disappear unnoticed.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import matplotlib.figure

from loadtest.results import Outcome, count, lateness, percentile

THRESHOLDS = Path(__file__).with_name("thresholds.toml")
LATE_S = 0.05
SHARES = [share / 1000 for share in range(1, 1000)]


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
    "bench": Size(rounds=3, share=0.25, scale=0.0625, threads=("1",)),  # steady enough on a busy machine
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its unit (``""`` for a ratio), and a note on its origin."""

    name: str
    value: float
    unit: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Threshold:
    """
    The bounds within which a figure meets its target.

    Attributes:
        meaning: what the figure is, in words.
        measured: the last values of it, in words.
    """

    least: float = -inf
    most: float = inf
    meaning: str = ""
    measured: str = ""

    def met(self, value: float) -> bool:
        """Return True if *value* is within the bounds; NaN never is."""
        return self.least <= value <= self.most

    def __str__(self) -> str:
        if self.least == self.most:
            return f"= {self.least:g}"
        return f"≥ {self.least:g}" if self.least > -inf else f"≤ {self.most:g}"


@dataclass(slots=True)
class Report:
    """Collects figures, and the runs to plot."""

    figures: list[Figure] = field(default_factory=list)
    runs: dict[str, dict[str, list[Outcome]]] = field(default_factory=dict)

    def add(self, name: str, value: float, unit: str = "", note: str = "") -> None:
        """Record a figure, and print it immediately, since a run takes minutes."""
        figure = Figure(name, value, unit, note)
        self.figures.append(figure)
        print(f"  {figure.name} = {figure.value:.4g} {figure.unit}  {figure.note}", flush=True)

    def keep(self, panel: str, name: str, outcomes: list[Outcome]) -> list[Outcome]:
        """Add a run to a panel of the plot; warn if the generator was late."""
        self.runs.setdefault(panel, {})[name] = outcomes
        if (late := lateness(outcomes)) > LATE_S:
            print(f"  {panel}, {name}: the generator was late, p99 {1000 * late:.0f} ms", flush=True)
        return outcomes


def read_thresholds(name: str, file: Path = THRESHOLDS) -> dict[str, Threshold]:
    """Return the thresholds of one set."""
    tables = tomllib.loads(file.read_text("utf-8"))[name]
    return {figure: Threshold(**bounds) for figure, bounds in tables.items()}


def table(figures: Sequence[Figure], thresholds: Mapping[str, Threshold]) -> list[str]:
    """Return one line a figure: name, value, threshold, whether it is met."""
    lines = []
    for figure in figures:
        threshold = thresholds.get(figure.name)
        mark = "" if threshold is None else "met" if threshold.met(figure.value) else "MISSED"
        shown = f"{figure.value:.3g} {figure.unit}".strip()
        wanted = "" if threshold is None else str(threshold)
        lines.append(f"{figure.name:<44} {shown:>10} {wanted:>9} {mark:<6} {figure.note}".rstrip())
    return lines


def show(report: Report, thresholds: Mapping[str, Threshold], *, some: bool) -> list[str]:
    """Print the table; return the names of missed thresholds, if only *some* ran of those with a figure."""
    if some:
        measured = {figure.name for figure in report.figures}
        thresholds = {name: wanted for name, wanted in thresholds.items() if name in measured}
    print("\n".join(["", *table(report.figures, thresholds)]))
    return missed(report.figures, thresholds)


def missed(figures: Sequence[Figure], thresholds: Mapping[str, Threshold]) -> list[str]:
    """Return the names of missed thresholds, including those without a figure."""
    values = {figure.name: figure.value for figure in figures}
    return [name for name, wanted in thresholds.items() if not wanted.met(values.get(name, float("nan")))]


def tally(outcomes: Sequence[Outcome]) -> str:
    """Format the number of requests by kind."""
    kinds = {kind: count(outcomes, kind) for kind in ("ok", "refused", "timeout", "error")}
    return ", ".join(f"{number} {kind}" for kind, number in kinds.items() if number)


def plot(panels: Mapping[str, Mapping[str, Sequence[Outcome]]], file: Path) -> None:
    """Write a PNG with a row for each panel; requests without scores are crosses at the bottom."""
    figure = matplotlib.figure.Figure(figsize=(12, 2.8 * len(panels)), layout="tight")
    axes = figure.subplots(len(panels), 2, squeeze=False)
    for (panel, runs), (over_time, by_share) in zip(panels.items(), axes, strict=True):
        for name, outcomes in by_lane(runs).items():
            good = [outcome for outcome in outcomes if outcome.kind == "ok"]
            bad = [outcome.due_s for outcome in outcomes if outcome.kind != "ok"]
            latencies = [outcome.latency_s for outcome in good]
            over_time.plot([outcome.due_s for outcome in good], latencies, ".", markersize=3, label=name)
            over_time.plot(bad, [0] * len(bad), "x", color="red", markersize=3)
            shown = [percentile(latencies, share) for share in SHARES] if latencies else []
            by_share.plot([100 * share for share in SHARES[: len(shown)]], shown)
        over_time.set(title=panel, xlabel="due at, s", ylabel="latency, s")
        by_share.set(title=f"{panel}: by percentile", xlabel="percentile", ylabel="latency, s")
        over_time.legend(loc="upper left")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=80)


def by_lane(runs: Mapping[str, Sequence[Outcome]]) -> dict[str, list[Outcome]]:
    """Split runs with two lanes by lane."""
    parts: dict[str, list[Outcome]] = {}
    for name, outcomes in runs.items():
        lanes = sorted({outcome.lane for outcome in outcomes})
        for lane in lanes:
            label = f"{name}, {lane}" if len(lanes) > 1 else name
            parts[label] = [outcome for outcome in outcomes if outcome.lane == lane]
    return parts
