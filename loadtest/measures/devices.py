"""The timed model on several devices of one process, and on several replicas of Ray Serve."""

import os
import signal
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from statistics import median
from time import monotonic

import httpx
import orjson

from loadtest import servers
from loadtest.measures import queueing
from loadtest.measures.comparison import latency
from loadtest.report import Report, Size
from loadtest.results import throughput
from loadtest.servers import Server
from loadtest.simulate import Shape
from loadtest.workloads import Spec, plan

# Devices are names of the CPU, each with a thread.  Eight score 167 pictures a second, so that two cores have
# 6 ms of each for everything else.
MODEL = Shape(fixed_ms=40, per_call_ms=40, max_items=5)
FAILING = (sys.executable, "-m", "loadtest.failing", "--config", str(servers.PROFILE))
SECONDS = 12  # duration of a run on any number of devices
FOUR = 4

# A replica is slow enough that two cores decode for two: 53 calls a second each.
REPLICA = Shape(fixed_ms=100, per_call_ms=12.5, max_items=16)
ON_RAY = {
    "SCOREGATE_RUNTIME__KIND": "ray",
    "SCOREGATE_RUNTIME__ADDRESS": "local",
    "SCOREGATE_MODELS__CLIP__NUM_CPUS": "0",
    "SCOREGATE_MODELS__QUESTIONS__NUM_CPUS": "0",
    "SCOREGATE_MODELS__VQA__NUM_CPUS": "0.5",
    "SCOREGATE_MODELS__VQA__BATCH__MAX_BATCH_MS": "1000",  # a full batch must not be near it
}


def several_devices(report: Report, size: Size) -> None:
    """Report throughput, p99 and fairness of several devices, and the loss of one."""
    scaling(report, size)
    tails(report, size)
    loss(report)


def timed(
    devices: int, command: Sequence[str] = servers.FAKE, **settings: str
) -> AbstractContextManager[Server]:
    """Run the service around the timed model on that many devices."""
    names = orjson.dumps([f"cpu:{number}" for number in range(devices)]).decode()
    limit = {"SCOREGATE_MODELS__VQA__BATCH__MAX_BATCH_MS": "1000"}  # a full batch must not be near it
    return servers.timed(MODEL, command, SCOREGATE_MODELS__VQA__DEVICES=names, **limit, **settings)


def scaling(report: Report, size: Size) -> None:
    """Report the rates of two and of eight devices over that of one."""
    numbers = (1, 2, 8)
    rates: dict[int, list[float]] = {devices: [] for devices in numbers}
    with ExitStack() as stack:
        running = {devices: stack.enter_context(timed(devices)) for devices in numbers}
        for seed in range(size.rounds):
            for devices, server in running.items():
                outcomes = report.keep("devices", str(devices), server.run(large(devices, seed)))
                rates[devices].append(throughput(outcomes))
    for name, devices in (("two", 2), ("eight", 8)):
        ratios = [many / one for many, one in zip(rates[devices], rates[1], strict=True)]
        note = f"{median(rates[devices]):.0f} images/s over {median(rates[1]):.1f}; requests of 128"
        report.add(f"{name}_devices_over_one", median(ratios), note=note)


def large(devices: int, seed: int) -> Spec:
    """Return requests of 128 small pictures, for the same time on any number of devices."""
    return Spec("whole-tiny", seed=seed, scale=SECONDS * devices * MODEL.capacity / 512)


def tails(report: Report, size: Size) -> None:
    """Report interactive p99 on four devices: over the simulation's, and under bulk."""
    with timed(FOUR) as server:
        queueing.over_simulated(report, size, server, MODEL, FOUR, "devices_p99_over_simulated", shared=True)
        queueing.added_by_bulk(report, size, server, MODEL, "devices_interactive_p99_added")


def loss(report: Report) -> None:
    """Report wrong answers while one of four devices fails, and the throughput of the other three."""
    bodies = [arrival.body for arrival in plan(large(FOUR, 0)).arrivals]
    with timed(FOUR, FAILING) as server:
        whole_s, expected = answered(server, bodies)
        failing = threading.Timer(whole_s / 3, os.kill, (server.pid, signal.SIGUSR1))
        failing.start()
        _, found = answered(server, bodies)
        failing.join()
        left_s, after = answered(server, bodies)
    wrong = sum(
        score != other for runs in (found, after) for score, other in zip(runs, expected, strict=True)
    )
    report.add("wrong_after_loss", wrong, note=f"of {2 * len(expected)} scores, one of four devices failing")
    report.add("three_devices_over_four", whole_s / left_s, note="after the failure over before it")


def answered(server: Server, bodies: Sequence[bytes]) -> tuple[float, list[float | None]]:
    """Post all bodies concurrently; return the seconds, and the scores in order: None for a failure."""
    with server.client() as client, ThreadPoolExecutor(len(bodies)) as threads:
        began = monotonic()
        scores = [
            score for found in threads.map(lambda body: scores_of(client, body), bodies) for score in found
        ]
        return monotonic() - began, scores


def scores_of(client: httpx.Client, body: bytes) -> list[float | None]:
    """Return the score of each item of one request."""
    answer = client.post("/score", content=body, headers={"Content-Type": "application/json"})
    if answer.status_code != 200:
        return [None] * len(orjson.loads(body)["items"])
    return [result["scores"].get("vqascore") for result in answer.json()["results"]]


def several_replicas(report: Report, size: Size) -> None:
    """Report the rates of one and two replicas, the p99 of two, and the latency that Ray adds."""
    with on_ray(2) as two:
        with on_ray(1) as one:
            ratios = [
                rate(two, report, "2", seed) / rate(one, report, "1", seed) for seed in range(size.rounds)
            ]
        report.add("two_replicas_over_one", median(ratios), note="items/s, 8 requests of 128 images at once")
        queueing.over_simulated(report, size, two, REPLICA, 2, "replicas_p99_over_simulated", shared=False)
        with servers.timed(REPLICA) as local:
            added = [
                latency(two, size, seed, 40) - latency(local, size, seed, 40) for seed in range(size.rounds)
            ]
        report.add("hop_ms", 1000 * median(added), "ms", "added to a single request by a replica on Ray")


def on_ray(replicas: int) -> AbstractContextManager[Server]:
    """Run the service around the timed model on so many replicas."""
    return servers.timed(REPLICA, **ON_RAY, SCOREGATE_MODELS__VQA__REPLICAS=str(replicas))


def rate(server: Server, report: Report, replicas: str, seed: int) -> float:
    """Return items a second."""
    outcomes = server.run(Spec("whole", seed=seed, scale=2))
    return throughput(report.keep("replicas", replicas, outcomes))
