"""The service against a bare endpoint, the two simplest servers, and Flask, in turns."""

import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from loadtest import servers
from loadtest.peers.peer import PEERS, peer_served
from loadtest.peers.rounds import alternate, check_same, running
from loadtest.peers.rows import ROWS, Result
from loadtest.report import Report, Size
from loadtest.results import Outcome, latencies, percentile, throughput
from loadtest.servers import Server, cpu_s
from loadtest.simulate import Shape
from loadtest.workloads import Spec

# Full batches have four times the rate of single calls.
SHAPE = Shape(fixed_ms=20, per_call_ms=6, max_items=32)
BURSTS = ("rl-burst", "rl-group", "rl-large", "offline")
FLOWS = {"filter": 10.0, "rank": 3.0, "mixed": 5.0}  # requests a second
FLASK = {"burst_over_flask": "burst", "large_over_flask": "4x128"}  # rows of `loadtest.peers`


def overhead(report: Report, size: Size) -> None:
    """Report requests a second, sixteen at a time, and latency, one at a time, over a bare endpoint."""
    with servers.null() as null, servers.baseline("bare") as bare:
        before = cpu_s(null.pid), cpu_s(bare.pid)
        rates = [ratio(null, bare, "tiny", size, seed) for seed in range(size.rounds)]
        ours, theirs = cpu_s(null.pid) - before[0], cpu_s(bare.pid) - before[1]
        report.add("null_over_bare", median(rates), note="requests/s, 32² PNG")
        report.add("null_cpu_over_bare", ours / theirs, note=f"{ours:.1f} over {theirs:.1f} s of CPU time")
        pairs = [(latency(null, size, seed), latency(bare, size, seed)) for seed in range(size.rounds)]
        added, over = median(a - b for a, b in pairs), median(a / b for a, b in pairs)
        report.add("added_latency_ms", 1000 * added, "ms", "one request at a time")
        report.add("latency_over_bare", over, note="the same two as a ratio")


def overhead_of_photos(report: Report, size: Size) -> None:
    """Report the same rate for pictures that take time to decode."""
    with servers.null() as null, servers.baseline("bare") as bare:
        rates = [ratio(null, bare, "rl", size, seed) for seed in range(size.rounds)]
        report.add("null_over_bare_512", median(rates), note="512² JPEG, decoded by one of them")


def ratio(null: Server, bare: Server, image: str, size: Size, seed: int) -> float:
    """Return the ratio of requests a second."""
    spec = Spec("sixteen-at-once", seed=seed, rate=800 * size.share, seconds=1, image=image)
    return throughput(null.run(spec)) / throughput(bare.run(spec))


def latency(server: Server, size: Size, seed: int, requests: int = 300) -> float:
    """Return the median latency of single requests, in seconds."""
    spec = Spec("one-by-one", seed=seed, rate=requests * size.share, seconds=1)
    return percentile(latencies(server.run(spec)), 0.5)


def over_baselines(report: Report, size: Size) -> None:
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


def over_flask(report: Report, size: Size) -> None:
    """
    Report 512 single requests, and large ones, against Flask and gunicorn, the easiest peer to install.

    Flask is in this environment for the tests.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.demo() as ours,
        peer_served(PEERS["flask"], "vqa", Path(sys.executable), Path(folder) / "log") as theirs,
    ):
        check_same(ours, theirs, "vqascore")
        for figure, name in FLASK.items():
            row = ROWS[name].scaled(min(1.0, 4 * size.scale))
            runs = alternate(size.rounds, running(ours, row), running(theirs, row))
            note = f"{runs[0][-1].value:.0f} over {runs[1][-1].value:.0f} images/s, {row.what}"
            report.add(figure, Result(name, "flask", PEERS["flask"].version, *runs).ratio, note=note)
