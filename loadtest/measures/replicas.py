"""The timed model on Ray Serve against the same model in the service's process."""

from contextlib import AbstractContextManager
from statistics import median

from loadtest import servers
from loadtest.measures import queueing
from loadtest.measures.overhead import latency
from loadtest.report import Report
from loadtest.results import throughput
from loadtest.servers import Server
from loadtest.shape import Shape
from loadtest.sizes import Size
from loadtest.workloads import Spec

# Slow enough that two cores decode for two of them: 53 calls a second each.
MODEL = Shape(fixed_ms=100, per_call_ms=12.5, max_items=16)
ON_RAY = {
    "SCOREGATE_RUNTIME__KIND": "ray",
    "SCOREGATE_RUNTIME__ADDRESS": "local",
    "SCOREGATE_MODELS__CLIP__NUM_CPUS": "0",
    "SCOREGATE_MODELS__QUESTIONS__NUM_CPUS": "0",
    "SCOREGATE_MODELS__VQA__NUM_CPUS": "0.5",
    "SCOREGATE_MODELS__VQA__BATCH__MAX_BATCH_MS": "1000",  # a full batch must not be near it
}


def measure(report: Report, size: Size) -> None:
    """Report the rates of one and two replicas, the p99 of two, and the latency that Ray adds."""
    with on_ray(2) as two:
        with on_ray(1) as one:
            ratios = [
                rate(two, report, "2", seed) / rate(one, report, "1", seed) for seed in range(size.rounds)
            ]
        report.add("two_replicas_over_one", median(ratios), note="items/s, 8 requests of 128 images at once")
        queueing.over_simulated(report, size, two, MODEL, 2, "replicas_p99_over_simulated", "spread")
        with servers.timed(MODEL) as local:
            added = [
                latency(two, size, seed, 40) - latency(local, size, seed, 40) for seed in range(size.rounds)
            ]
        report.add("hop_ms", 1000 * median(added), "ms", "added to a single request by a replica on Ray")


def on_ray(replicas: int) -> AbstractContextManager[Server]:
    """Run the service around the timed model on so many replicas."""
    return servers.timed(MODEL, **ON_RAY, SCOREGATE_MODELS__VQA__REPLICAS=str(replicas))


def rate(server: Server, report: Report, replicas: str, seed: int) -> float:
    """Return items a second."""
    outcomes = server.run(Spec("whole", seed=seed, scale=2))
    return throughput(report.keep("replicas", replicas, outcomes))
