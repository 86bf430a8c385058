"""Workloads of trainers with a reward and of offline runs: everything together, in the lane `bulk`."""

from dataclasses import replace

import orjson

from loadtest.workloads.maker import Maker
from loadtest.workloads.spec import Plan


def rl_burst(maker: Maker, at_s: float = 0.0) -> Plan:
    """Send 512 single-image requests together, one prompt per 16 images, shuffled (verl-omni)."""
    groups = maker.shuffled(maker.scaled(512), 16, 1)
    return Plan([maker.request(at_s, "bulk", "rl", prompts) for prompts in groups])


def rl_group(maker: Maker) -> Plan:
    """Send 32 requests of 9 images, every prompt in 24 of them (flow_grpo)."""
    groups = maker.shuffled(9 * maker.scaled(32), 24, 9)
    return Plan([maker.request(0.0, "bulk", "rl", prompts) for prompts in groups])


def rl_large(maker: Maker) -> Plan:
    """Send 6 requests of 128 images together (UniRL)."""
    groups = maker.shuffled(6 * maker.scaled(128), 16, maker.scaled(128))
    return Plan([maker.request(0.0, "bulk", "rl-fine", prompts) for prompts in groups])


def offline(maker: Maker) -> Plan:
    """Send 7,200 images, 9 for each of 800 prompts, one a request, 64 at a time."""
    groups = maker.shuffled(maker.scaled(7200), 9, 1)
    return Plan([maker.request(0.0, "bulk", "rl", prompts) for prompts in groups], concurrency=64)


def whole(maker: Maker, at_once: int = 128, picture: str = "rl") -> Plan:
    """Send 512 images in large requests together, as an offline run over a file does."""
    groups = maker.shuffled(maker.scaled(512), 16, at_once)
    return Plan([maker.request(0.0, "bulk", picture, prompts) for prompts in groups])


def corrupt(maker: Maker, at_once: int) -> Plan:
    """Send 128 pictures in requests of *at_once*; the file of one in the middle is truncated."""
    groups = maker.shuffled(maker.scaled(128), 16, at_once)
    arrivals = [maker.request(0.0, "bulk", "rl", prompts) for prompts in groups]
    middle = len(arrivals) // 2
    body = orjson.loads(arrivals[middle].body)
    image = body["items"][0]["image"]
    body["items"][0]["image"] = image[: len(image) // 8 * 4]
    arrivals[middle] = replace(arrivals[middle], body=orjson.dumps(body))
    return Plan(arrivals)


def one_prompt(maker: Maker) -> Plan:
    """Send 24 pictures of one prompt in 24 concurrent requests."""
    prompt = [next(maker.prompts)]
    return Plan([maker.request(0.0, "bulk", "rl", prompt) for _ in range(24)])
