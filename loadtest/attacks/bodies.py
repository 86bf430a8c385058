"""Attacks by request bodies on the public API: a, e and i of the table."""

import pickle
import socket
from collections.abc import Iterator
from contextlib import ExitStack

from demo.process import HOST
from loadtest.attacks.target import base64_of, gif, jpeg, meanwhile, padded, progressive, target
from loadtest.report import Report

MB = 2**20
LARGE = 31 * MB
BUDGET_MB = 512


def memory(report: Report) -> None:
    """Hold large bodies that have arrived and wait for a slow model."""
    body = {"items": [{"prompt": "a", "image": base64_of(padded(LARGE))}], "metrics": ["vqascore"]}
    body |= {"priority": "bulk", "timeout_ms": 600_000}
    budget = {"SCOREGATE_SERVER__REQUESTS_MB": str(BUDGET_MB)}
    with target(budget, model_ms=1000) as server, server.measured() as impact:
        statuses = server.at_once([lambda: server.post("/score", body)] * 60, wait_s=25, every_s=0.12)
    report.add("a_json_peak_over_budget", impact.peak_mb / BUDGET_MB, "", counted(statuses))
    report.add("a_json_livez_ms", impact.worst_ms, "ms")

    images = {"images": [padded(LARGE - 1), padded(LARGE - 2)], "prompts": ["a", "b"]}
    data = pickle.dumps(images, 4)
    with target(budget, model_ms=1000) as server, server.measured() as impact:
        asks = [lambda: server.send("POST", "/", data, server.pickles)] * 50
        statuses = server.at_once(asks, wait_s=25, every_s=0.12)
    report.add("a_pickle_peak_over_budget", impact.peak_mb / BUDGET_MB, "", counted(statuses))


def lists(report: Report) -> None:
    """Send long lists of invalid metrics and questions."""
    image = base64_of(jpeg())
    question = {"id": 1, "text": "a", "depends_on": [0.5] * 60}
    item = {"prompt": "a", "image": image, "options": {"dsg": {"question_set": [question] * 64}}}
    bodies = {
        "metrics": {"prompt": "a", "images": [image], "metrics": [1] * 590_000},
        "depends_on": {"items": [item] * 128},
        "items": {"items": [{"prompt": "a", "image": ""}] * 590_000},
    }
    with target({}) as server:
        for name, body in bodies.items():
            with server.measured() as impact:
                statuses = server.at_once([lambda body=body: server.post("/score", body)] * 8, wait_s=60)  # type: ignore[misc]
            report.add(f"e_{name}_livez_ms", impact.worst_ms, "ms", counted(statuses))
            report.add(f"e_{name}_grown_mb", impact.grown_mb, "MB")


def pipelines(report: Report) -> None:
    """Send twenty pipelined requests for the OpenAPI document on each of 200 connections, never read."""
    ask = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 20
    with target({}) as server, ExitStack() as open_ones, server.measured() as impact:
        for connection in connections(server.port, 200):
            open_ones.enter_context(connection).send(ask)
        for _ in range(100):
            server.send("GET", "/livez")
    report.add("i_livez_ms", impact.worst_ms, "ms", f"{len(impact.livez_s)} checks")


def slow_images(report: Report) -> None:
    """Slow pictures of one caller in the same lane as small ones of another caller."""
    films = {"clipscore": {"samples": 1}}
    for name, make, options in (("progressive", progressive, {}), ("films", gif, films)):
        items = [{"prompt": "a", "image": base64_of(make(seed))} for seed in range(60)]
        body = {"items": items, "metrics": ["clipscore"], "options": options, "timeout_ms": 20_000}
        with target({}) as server, meanwhile(lambda: server.post("/score", body)):  # noqa: B023 (it ends here)
            report.add(f"slow_{name}_neighbour_ms", 1000 * server.score_s(base64_of(jpeg(1))), "ms")


def connections(port: int, count: int) -> Iterator[socket.socket]:
    """Yield *count* new connections."""
    for _ in range(count):
        yield socket.create_connection((HOST, port))


def counted(statuses: list[int]) -> str:
    """Format the number of responses by status."""
    return ", ".join(f"{statuses.count(status)} x {status}" for status in sorted(set(statuses)))
