"""Workloads of single pictures, for figures of queueing and overhead."""

from dataclasses import replace

from loadtest.workloads.maker import Maker
from loadtest.workloads.spec import Plan


def poisson(maker: Maker) -> Plan:
    """Send single pictures at random times."""
    prompt = [next(maker.prompts)]
    return Plan([maker.request(at, "interactive", maker.spec.picture, prompt) for at in maker.times()])


def saturated(maker: Maker) -> Plan:
    """Send single interactive pictures at random times, and every half second 128 bulk ones."""
    bulk = [next(maker.prompts)] * maker.scaled(128)
    steps = range(round(2 * maker.spec.seconds))
    arrivals = [maker.request(step / 2, "bulk", maker.spec.picture, bulk) for step in steps]
    arrivals += poisson(maker).arrivals
    return Plan(sorted(arrivals, key=lambda arrival: arrival.at_s))


def under_bulk(maker: Maker) -> Plan:
    """Send single pictures one after the other, while 64 callers repeat single bulk pictures."""
    bulk = [maker.request(0.0, "bulk", maker.spec.picture, [next(maker.prompts)]) for _ in range(256)]
    return replace(closed(maker, 1), arrivals=[*bulk, *closed(maker, 1).arrivals], background=64)


def closed(maker: Maker, concurrency: int) -> Plan:
    """Send `rate` times `seconds` single pictures, each when a previous one is answered."""
    prompt = [next(maker.prompts)]
    count = round(maker.spec.rate * maker.spec.seconds)
    arrivals = [maker.request(0.0, "interactive", maker.spec.picture, prompt) for _ in range(count)]
    return Plan(arrivals, concurrency)
