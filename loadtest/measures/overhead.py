"""Overhead of the service: requests to the null model against those to a bare endpoint."""

from statistics import median

from loadtest import servers
from loadtest.report import Report
from loadtest.results import latencies, percentile, throughput
from loadtest.servers import Server, cpu_s
from loadtest.sizes import Size
from loadtest.workloads import Spec


def measure(report: Report, size: Size) -> None:
    """Report requests a second with sixteen at a time, and latency with one at a time, in turns."""
    with servers.null() as null, servers.baseline("bare") as bare:
        before = cpu_s(null.pid), cpu_s(bare.pid)
        rates = [ratio(null, bare, "tiny", size, seed) for seed in range(size.rounds)]
        ours, theirs = cpu_s(null.pid) - before[0], cpu_s(bare.pid) - before[1]
        report.add("null_over_bare", median(rates), note="requests/s, 32² PNG")
        report.add("null_cpu_over_bare", ours / theirs, note=f"{ours:.1f} over {theirs:.1f} s of CPU time")
        rates = [ratio(null, bare, "rl", size, seed) for seed in range(size.rounds)]
        report.add(
            "null_over_bare_512", median(rates), note="the same with 512² JPEG, decoded by one of them"
        )
        pairs = [(latency(null, size, seed), latency(bare, size, seed)) for seed in range(size.rounds)]
        added, over = median(a - b for a, b in pairs), median(a / b for a, b in pairs)
        report.add("added_latency_ms", 1000 * added, "ms", "one request at a time")
        report.add("latency_over_bare", over, note="the same two as a ratio")


def ratio(null: Server, bare: Server, picture: str, size: Size, seed: int) -> float:
    """Return the ratio of requests a second."""
    spec = Spec("sixteen-at-once", seed=seed, rate=800 * size.share, seconds=1, picture=picture)
    return throughput(null.run(spec)) / throughput(bare.run(spec))


def latency(server: Server, size: Size, seed: int, requests: int = 300) -> float:
    """Return the median latency of single requests, in seconds."""
    spec = Spec("one-by-one", seed=seed, rate=requests * size.share, seconds=1)
    return percentile(latencies(server.run(spec)), 0.5)
