"""
`python -m loadtest.client`: what the Python client costs, and how busy `score_many` keeps a device.

The cost is processor time of the client's process for each 512 x 512 picture, encoding and HTTP, against a
service whose models take no time.  For `score_many` the models are fakes that hold their device; its busy
share is compared with that of a loop that decodes a batch and holds, with no service at all.  Bursts are
single calls that begin at once on one client, as a trainer's samples do.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from demo.process import url
from loadtest import servers
from loadtest.baselines import decode
from loadtest.corpus import image_files
from loadtest.simulate import Shape
from scoregate import AsyncClient, Client

SHAPE = Shape(fixed_ms=20, per_call_ms=6, max_items=32)
BUSY = 'scoregate_batch_duration_seconds_sum{model="vqa"}'
MAX_JPEG_MS = 3.0  # processor time of a picture in JPEG bytes
MIN_LOOP_SHARE = 0.9  # the busy share over the loop's
BURSTS = (512, 1024, 2048)  # calls at once
MAX_CALL_GROWTH = 1.5  # a call's cost in the largest burst over that in the smallest


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.client", description=__doc__)
    parser.add_argument("--pictures", dest="images", type=int, default=7200, help="of score_many")
    parser.add_argument("--costed", type=int, default=128, help="pictures of each form whose cost is taken")
    options = parser.parse_args(argv)
    bytes_ms = cost(options.costed)
    growth = bursts()
    share = busy_share(options.images)
    return int(bytes_ms > MAX_JPEG_MS or growth > MAX_CALL_GROWTH or share < MIN_LOOP_SHARE)


# --- cost ---------------------------------------------------------------------------------------


def array(file: bytes) -> Any:
    """Return the pixels as (height, width, 3) of uint8."""
    return np.array(decode(file))


def tensor(file: bytes) -> torch.Tensor:
    """Return the pixels as (3, height, width) from 0 to 1, as decoders of latents return them."""
    return torch.from_numpy(array(file)).permute(2, 0, 1).float() / 255


FORMS: dict[str, Callable[[bytes], Any]] = {
    "JPEG bytes": lambda file: bytes(bytearray(file)),
    "PIL": decode,
    "uint8 array": array,
    "float tensor": tensor,
}


def cost(count: int) -> float:
    """Print processor time a picture, one by one and in batches; returns that of bytes one by one, in ms."""
    torch.set_num_threads(1)  # threads of a pool that wait would be counted
    files, found = image_files("rl"), {}
    with servers.null() as server, Client(url(server.port)) as client:
        print(f"{'ms of processor time a picture':32}{'score':>8}{'score_many':>12}")
        for name, form in FORMS.items():
            # Each picture is an object of its own: one that a request names twice is sent once.
            asked = [(form(file), prompt) for file, prompt in pairs(files, count)]
            found[name] = spent_ms(partial(one_by_one, client, asked)) / count
            many_ms = spent_ms(partial(in_batches, client, asked)) / count
            print(f"{name:32}{found[name]:8.2f}{many_ms:12.2f}", flush=True)
    return found["JPEG bytes"]


def one_by_one(client: Client, asked: Sequence[tuple[Any, str]]) -> None:
    """Send a request for each pair."""
    for image, prompt in asked:
        client.score(image, prompt)


def in_batches(client: Client, asked: Sequence[tuple[Any, str]]) -> None:
    """Send requests of 32 pairs, 8 concurrently."""
    for result in client.score_many(asked):
        result.score("vqascore")


def spent_ms(work: Callable[[], object]) -> float:
    """Milliseconds of this process's processor time that *work* takes, at its second run."""
    work()
    began = time.process_time()
    work()
    return 1000 * (time.process_time() - began)


def pairs(images: Sequence[Any], count: int) -> Iterator[tuple[Any, str]]:
    """Pictures in turn, each time with another prompt: equal calls would be one."""
    return ((images[number % len(images)], f"picture {number}") for number in range(count))


# --- bursts -------------------------------------------------------------------------------------


def bursts() -> float:
    """Print processor time a call in bursts; return that of the largest over that of the smallest."""
    file, costs = image_files("tiny")[0], list[float]()
    with servers.null() as server:
        for size in BURSTS:
            began = time.perf_counter()
            costs.append(spent_ms(partial(one_burst, url(server.port), file, size)) / size)
            passed = (time.perf_counter() - began) / 2
            print(f"{size} calls at once: {costs[-1]:.2f} ms of processor time a call, {passed:.1f} s in all")
    return costs[-1] / costs[0]


def one_burst(address: str, file: bytes, size: int) -> None:
    """Score one picture with as many prompts, each in a call of its own."""

    async def calls() -> None:
        async with AsyncClient(address, priority="bulk") as client:
            await asyncio.gather(*(client.score(file, f"picture {number}") for number in range(size)))

    asyncio.run(calls())


# --- score_many ---------------------------------------------------------------------------------


def busy_share(count: int) -> float:
    """Print which share of the time the device is busy either way; that of `score_many` over the loop's."""
    files = image_files("tiny")
    loop = loop_share(files, count)
    with servers.timed(SHAPE) as server, Client(url(server.port)) as client:
        before = server.sample(BUSY)
        began = time.perf_counter()
        failed = sum(bool(result.errors) for result in client.score_many(pairs(files, count), progress=True))
        passed = time.perf_counter() - began
        many = (server.sample(BUSY) - before) / passed
    if failed:
        raise SystemExit(f"{failed} of {count} pictures have no score")
    print(f"score_many of {count}: {passed:.1f} s, device busy {many:.3f}; a loop's {loop:.3f}")
    print(f"share of the loop's: {many / loop:.3f}")
    return many / loop


def loop_share(files: Sequence[bytes], count: int) -> float:
    """Of a loop that decodes a batch and then holds the device for as long as the fake does."""
    held = 0.0
    began = time.perf_counter()
    for start in range(0, count, SHAPE.max_items):
        batch = range(start, min(start + SHAPE.max_items, count))
        for number in batch:
            decode(files[number % len(files)])
        begun = time.perf_counter()
        time.sleep(SHAPE.batch_s(len(batch)))
        held += time.perf_counter() - begun
    return held / (time.perf_counter() - began)


if __name__ == "__main__":
    sys.exit(main())
