"""A plot of runs: latency over time, and by percentile."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from loadtest.results import Outcome, percentile

SHARES = [share / 1000 for share in range(1, 1000)]


def plot(panels: Mapping[str, Mapping[str, Sequence[Outcome]]], file: Path) -> None:
    """Write a PNG with a row for each panel; requests without scores are crosses at the bottom."""
    figure = Figure(figsize=(12, 2.8 * len(panels)), layout="tight")
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
