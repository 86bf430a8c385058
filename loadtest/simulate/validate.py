"""Validation of the simulation against the service, with the same arrivals and batch costs."""

from statistics import median

from loadtest import servers
from loadtest.measures.queueing import BULK, INTERACTIVE, SHARED
from loadtest.report import tally
from loadtest.results import latencies, lateness, percentile
from loadtest.simulate.sweep import Point, predicted
from loadtest.simulate.trace import requests_of
from loadtest.workloads.named import plan
from loadtest.workloads.spec import Spec

WITHIN = 0.15  # of the measured p99
SPECS = (
    Spec("poisson", rate=0.8 * SHARED.capacity, seconds=16),
    Spec("saturated", scale=BULK, rate=INTERACTIVE, seconds=16),
    Spec("rl-burst", scale=0.25),
)


def validate() -> bool:
    """Run each workload on the service with the timed model, and print both p99; return True if all agree."""
    agree = []
    with servers.timed(SHARED) as server:
        alone = server.run(Spec("one-by-one", rate=20, seconds=1))
        request_s = median(latencies(alone)) - SHARED.batch_s(1)
        print(f"a request takes {1000 * request_s:.1f} ms outside its batch", flush=True)
        for spec in SPECS:
            outcomes = server.run(spec)
            point = predicted(requests_of(plan(spec).arrivals), 1, SHARED, request_s=request_s)
            measured = {lane: percentile(latencies(outcomes, lane), 0.99) for lane in point.p99_s}
            print(f"{spec.workload}: {tally(outcomes)}, sent {1000 * lateness(outcomes):.0f} ms late at p99")
            agree += [agrees(lane, point, seconds) for lane, seconds in measured.items()]
    return all(agree)


def agrees(lane: str, point: Point, measured_s: float) -> bool:
    """Print one comparison; return True if it is within the bound."""
    off = point.p99_s[lane] / measured_s - 1
    good = abs(off) <= WITHIN
    both = f"measured {1000 * measured_s:.0f} ms, predicted {1000 * point.p99_s[lane]:.0f} ms"
    print(f"  {lane:<12} p99 {both} ({off:+.1%}){'' if good else ' TOO FAR OFF'}", flush=True)
    return good
