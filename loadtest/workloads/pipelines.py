"""Workloads of online filters and rankers: interactive requests at random times."""

from loadtest.workloads.maker import Maker
from loadtest.workloads.spec import Arrival, Plan
from loadtest.workloads.trainers import rl_burst


def filtered(maker: Maker) -> Plan:
    """Online filter: Poisson, 1 image (80 %) or 4 of a new prompt; a fifth of the files are PNG."""
    return Plan([filter_request(maker, at) for at in maker.times()])


def filter_request(maker: Maker, at_s: float) -> Arrival:
    kind = maker.random.choices(("jpeg", "webp", "png"), (5, 3, 2))[0]
    images = maker.random.choices((1, 4), (8, 2))[0]
    return maker.request(at_s, "interactive", kind, [next(maker.prompts)] * images)


def rank(maker: Maker) -> Plan:
    """Best of N: one prompt with 3 to 9 images of 1024², Poisson."""
    sizes = ((at, maker.random.randint(3, 9)) for at in maker.times())
    return Plan([maker.request(at, "interactive", "jpeg", [next(maker.prompts)] * n) for at, n in sizes])


def mixed(maker: Maker) -> Plan:
    """Combine the filter with bursts of RL, one every five seconds."""
    arrivals = [filter_request(maker, at) for at in maker.times()]
    for start in range(0, round(maker.spec.seconds), 5):
        arrivals += rl_burst(maker, float(start)).arrivals
    return Plan(sorted(arrivals, key=lambda arrival: arrival.at_s))
