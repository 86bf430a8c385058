"""One picture of runs: latency over time, and by percentile."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

from loadtest.results import Outcome, percentile

SHARES = [share / 1000 for share in range(1, 1000)]


def plot(runs: Mapping[str, Sequence[Outcome]], file: Path) -> None:
    """Write a PNG with a row for each run; refused and failed requests are crosses at the foot."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(runs), 2, figsize=(12, 2.6 * len(runs)), squeeze=False)
    for (name, outcomes), (over_time, by_share) in zip(runs.items(), axes, strict=True):
        for lane in sorted({outcome.lane for outcome in outcomes}):
            good = [o for o in outcomes if o.lane == lane and o.kind == "ok"]
            bad = [o for o in outcomes if o.lane == lane and o.kind != "ok"]
            over_time.plot(
                [o.due_s for o in good], [o.latency_s for o in good], ".", markersize=3, label=lane
            )
            over_time.plot([o.due_s for o in bad], [0] * len(bad), "x", color="red", markersize=3)
            if good:
                ordered = [o.latency_s for o in good]
                by_share.plot([100 * s for s in SHARES], [percentile(ordered, s) for s in SHARES], label=lane)
        over_time.set(title=name, xlabel="due at, s", ylabel="latency, s")
        by_share.set(title=f"{name}: by percentile", xlabel="percentile", ylabel="latency, s")
        over_time.legend(loc="upper left")
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=80)
    pyplot.close(figure)
