"""Goodput at twice the capacity, and the accuracy of Retry-After."""

from statistics import median

from loadtest import servers
from loadtest.measures.queueing import SHARED
from loadtest.report import Report, tally
from loadtest.results import drain_ratios, goodput, percentile
from loadtest.sizes import Size
from loadtest.workloads import Spec

WITHIN_MS = 2000  # ten full batches
LONG_MS = 5000
LEAST_S = 3.0  # shorter predictions are not checked


def measure_goodput(report: Report, size: Size) -> None:
    """Report the in-time responses at 2x over those at 1x, in turns."""
    seconds = 8 * size.share
    ratios = []
    with servers.timed(SHARED) as server:
        for seed in range(size.rounds):
            good = []
            for times in (1, 2):
                spec = Spec(
                    "poisson", seed, rate=times * SHARED.capacity, seconds=seconds, timeout_ms=WITHIN_MS
                )
                outcomes = report.keep("goodput", f"{times}x capacity", server.run(spec))
                good.append(goodput(outcomes, WITHIN_MS / 1000, seconds))
            ratios.append(good[1] / good[0])
    report.add("goodput_2x_over_1x", median(ratios), note=f"at 2x: {tally(outcomes)}")


def measure_retry_after(report: Report, size: Size) -> None:
    """Report the error of Retry-After against the true drain time, at the 90th percentile."""
    with servers.timed(SHARED) as server:
        spec = Spec("poisson", rate=2 * SHARED.capacity, seconds=12, timeout_ms=LONG_MS)
        outcomes = report.keep("refusals at 2x capacity", "5 s allowed", server.run(spec))
    ratios = drain_ratios(outcomes, LEAST_S)
    off = percentile([abs(ratio - 1) for ratio in ratios], 0.9) if ratios else float("nan")
    typical = f", median ratio {median(ratios):.2f}" if ratios else ""
    report.add("retry_after_off", off, note=f"{len(ratios)} predictions of 3 s or more{typical}")
