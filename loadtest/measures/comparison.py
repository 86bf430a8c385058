"""Every workload on the timed model: the service against the two simplest servers."""

from collections.abc import Sequence
from contextlib import ExitStack
from statistics import median

from loadtest import servers
from loadtest.report import Report
from loadtest.results import Outcome, latencies, percentile, throughput
from loadtest.shape import Shape
from loadtest.sizes import Size
from loadtest.workloads import Spec

# Full batches have four times the rate of single calls.
SHAPE = Shape(fixed_ms=20, per_call_ms=6, max_items=32)
BURSTS = ("rl-burst", "rl-group", "rl-large", "offline")
FLOWS = {"filter": 10.0, "rank": 3.0, "mixed": 5.0}  # requests a second


def measure(report: Report, size: Size) -> None:
    """Report the worst ratio over the workloads for each baseline; above 1 the service is better."""
    with ExitStack() as stack:
        service = stack.enter_context(servers.timed(SHAPE))
        others = {
            name: stack.enter_context(servers.baseline(name, SHAPE)) for name in ("timer", "one-by-one")
        }
        ratios: dict[str, dict[str, float]] = {name: {} for name in others}
        for workload in (*BURSTS, *FLOWS):
            won: dict[str, list[float]] = {name: [] for name in others}
            for seed in range(min(3, size.rounds) if workload in FLOWS else size.rounds):
                spec = spec_of(workload, size, seed)
                ours = merit(workload, report.keep(workload, "service", service.run(spec)))
                for name, server in others.items():
                    run = report.keep(workload, name, server.run(spec))
                    won[name].append(ours / merit(workload, run))
            for name, values in won.items():
                ratios[name][workload] = median(values)
    for name, by_workload in ratios.items():
        note = ", ".join(f"{workload} {ratio:.2f}" for workload, ratio in by_workload.items())
        report.add(f"over_{name.replace('-', '_')}", min(by_workload.values()), note=note)


def spec_of(workload: str, size: Size, seed: int) -> Spec:
    """Return bursts small enough for the slowest of the three."""
    scale = size.scale / 16 if workload == "offline" else size.scale / 2
    return Spec(workload, seed, scale, FLOWS.get(workload, 0.0), seconds=10 * size.share)


def merit(workload: str, outcomes: Sequence[Outcome]) -> float:
    """Return items a second for bursts, else the inverse p95 of the interactive requests."""
    if workload in BURSTS:
        return throughput(outcomes)
    return 1 / percentile(latencies(outcomes, "interactive"), 0.95)
