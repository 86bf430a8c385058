"""Queueing: the sustained rate, interactive latency under bulk, goodput under overload and Retry-After."""

from collections.abc import Callable, Sequence
from random import Random
from statistics import median

from loadtest import servers
from loadtest.report import Report, Size, tally
from loadtest.results import drain_ratios, goodput, latencies, percentile
from loadtest.servers import Server
from loadtest.simulate import Shape, perfect, simulated
from loadtest.workloads import Spec, plan

# Chosen so that a perfect server meets the target, which takes a large fixed time: the queue that chance
# alone makes at 0.95 of the rate (some 40 calls at p99) must go in few batches, each hardly longer than a
# single call.  A full batch takes 240 ms and the rate is 135/s, about that of the largest model on the
# largest GPU.
BATCHING = Shape(fixed_ms=180, per_call_ms=1.8, max_items=32)
SLOWDOWN = 5  # p99 over the unloaded latency
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)  # shares of the offline rate

# It serves both lanes, slowly enough that two cores can decode twice its capacity and run the generator:
# otherwise the CPU would limit the figures.  A full batch takes 200 ms and the rate is 80/s.
SHARED = Shape(fixed_ms=40, per_call_ms=10, max_items=16)
INTERACTIVE = 25  # requests a second, a third of the capacity
BULK = 0.25  # the scale of bursts, 128 images every half second: with those above, a tenth over the capacity

WITHIN_MS = 2000  # ten full batches
LONG_MS = 5000
MIN_PREDICTION_S = 3.0  # shorter predictions are not checked


def served_over_offline(report: Report, size: Size) -> None:
    """Report the best Poisson rate whose p99 stays below five times the unloaded latency."""
    samples = max(1000, round(1200 * size.share))
    with servers.timed(BATCHING) as server:
        alone = server.run(Spec("one-by-one", rate=10, seconds=1))
        most = SLOWDOWN * median(latencies(alone))

        def holds(seed: int) -> Callable[[float], bool]:
            def passes(share: float) -> bool:
                rate = share * BATCHING.capacity
                run = server.run(Spec("poisson", seed=seed, rate=rate, seconds=samples / rate))
                report.keep("Poisson on the timed model, share of its rate", f"{share:g}", run)
                return percentile(latencies(run), 0.99) <= most

            return passes

        found = [largest(SHARES, holds(seed)) for seed in range(size.rounds)]
    ideal = median(largest(SHARES, ideally(seed, samples)) for seed in range(size.rounds))
    report.add("served_over_offline", median(found), note=f"timed model; a perfect server: {ideal:g}")


def ideally(seed: int, samples: int) -> Callable[[float], bool]:
    """Return a check whether a perfect server meets the bound, by simulation."""

    def passes(share: float) -> bool:
        random, at, arrivals = Random(seed), 0.0, []
        for _ in range(samples):
            at += random.expovariate(share * BATCHING.capacity)
            arrivals.append(at)
        return percentile(perfect(arrivals, BATCHING), 0.99) <= SLOWDOWN * BATCHING.batch_s(1)

    return passes


def largest(shares: Sequence[float], passes: Callable[[float], bool]) -> float:
    """Return the largest of the rising *shares* that passes, by bisection; 0 if none does."""
    low, high = -1, len(shares)
    while high - low > 1:
        middle = (low + high) // 2
        if passes(shares[middle]):
            low = middle
        else:
            high = middle
    return shares[low] if low >= 0 else 0.0


def interactive_under_bulk(report: Report, size: Size) -> None:
    """Report the increase of interactive p99 while bulk fills the device."""
    with servers.timed(SHARED) as server:
        added_by_bulk(report, size, server, SHARED, "interactive_p99_added")


def over_simulated(
    report: Report, size: Size, server: Server, shape: Shape, devices: int, name: str, *, shared: bool
) -> None:
    """Report interactive p99 at 0.8 of the capacity of several devices, over the simulation's."""
    alone = server.run(Spec("one-by-one", rate=10, seconds=2))
    request_s = median(latencies(alone)) - shape.batch_s(1)
    rate = 0.8 * devices * shape.capacity
    ratios = []
    for seed in range(3):
        spec = Spec("poisson", seed=seed, rate=rate, seconds=1000 * size.share / rate)
        outcomes = report.keep(name, str(seed), server.run(spec))
        took = simulated([arrival.at_s for arrival in plan(spec).arrivals], devices, shape, shared=shared)
        ratios.append(percentile(latencies(outcomes), 0.99) / (percentile(took, 0.99) + request_s))
    report.add(name, median(ratios), note=f"0.8 of the capacity of {devices} devices")


def added_by_bulk(report: Report, size: Size, server: Server, shape: Shape, name: str) -> None:
    """Report the increase under the *name*, in full batches of a timed model of some 80 calls a second."""
    alone: list[float] = []
    loaded: list[float] = []
    for seed in range(2):
        seconds = 22 * size.share
        alone += run(server, report, Spec("poisson", seed, rate=INTERACTIVE, seconds=seconds))
        loaded += run(server, report, Spec("saturated", seed, BULK, INTERACTIVE, seconds))
    added = percentile(loaded, 0.99) - percentile(alone, 0.99)
    note = f"batches; p99 {1000 * percentile(alone, 0.99):.0f} ms alone, {len(loaded)} samples"
    report.add(name, added / shape.batch_s(shape.max_items), note=note)


def run(server: Server, report: Report, spec: Spec) -> list[float]:
    """Return the latencies of the interactive requests."""
    outcomes = report.keep("interactive under bulk", spec.workload, server.run(spec))
    print(f"  {spec.workload}: {tally(outcomes)}", flush=True)
    return latencies(outcomes, "interactive")


def overload(report: Report, size: Size) -> None:
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


def retry_after(report: Report, size: Size) -> None:
    """Report the error of Retry-After against the true drain time, at the 90th percentile."""
    with servers.timed(SHARED) as server:
        spec = Spec("poisson", rate=2 * SHARED.capacity, seconds=12, timeout_ms=LONG_MS)
        outcomes = report.keep("refusals at 2x capacity", "5 s allowed", server.run(spec))
    ratios = drain_ratios(outcomes, MIN_PREDICTION_S)
    off = percentile([abs(ratio - 1) for ratio in ratios], 0.9) if ratios else float("nan")
    typical = f", median ratio {median(ratios):.2f}" if ratios else ""
    report.add("retry_after_off", off, note=f"{len(ratios)} predictions of 3 s or more{typical}")
