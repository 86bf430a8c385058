"""Attacks by picture URLs, and the hostile server they lead to: g, h, j and p of the table."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import orjson

from loadtest.attacks.target import Handler, Target, base64_of, hostile_server, jpeg, meanwhile, target
from loadtest.report import Report

STALL_S = 11  # a second more than the service waits
WRITES = 4000
SERVE = (sys.executable, "-m", "loadtest.attacks.serve")
SLOW_NAMES = [f"h{number}.slow" for number in range(40)]
NEIGHBOURS = [f"n{number}" for number in range(30)]
LARGE_ENOUGH = 340_000  # a body that is parsed on a thread


@dataclass
class Hosts:
    """A server reachable under any name, with its port and the requested paths."""

    port: int
    requested: list[str]

    def url(self, name: str, path: str) -> str:
        """Return a URL on it."""
        return f"http://{name}.test:{self.port}/{path}"


@contextmanager
def hosts() -> Iterator[Hosts]:
    """Run the server on a free port; each path is a kind of response."""
    image, requested = jpeg(), list[str]()

    class Paths(Handler):
        def answer(self) -> None:
            requested.append(self.path)
            way = self.path.strip("/").partition("?")[0]
            head = b"HTTP/1.1 200 OK\r\n"
            if way == "good":
                self.wfile.write(head + b"Content-Length: %d\r\n\r\n" % len(image) + image)
            elif way == "stops":
                self.wfile.write(head + b"Transfer-Encoding: chunked\r\n\r\n")
                time.sleep(STALL_S)
            elif way == "hangs":
                time.sleep(STALL_S)
            elif way == "bytes":
                self.wfile.write(head + b"Transfer-Encoding: chunked\r\n\r\n")
                self.again(b"1\r\nx\r\n" * 20_000)
            elif way == "interim":
                self.again(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 3000)
            self.close_connection = way != "good"

        def again(self, part: bytes) -> None:
            for _ in range(WRITES):
                self.wfile.write(part)

    with hostile_server(Paths) as port:
        yield Hosts(port, requested)


def names(report: Report) -> None:
    """Fetch from forty listed hosts whose names fail to resolve after nine seconds."""
    with reached() as (server, reachable):
        large = base64_of(jpeg().ljust(LARGE_ENOUGH, b"\0"))
        calm = server.score_s(large)
        urls = [reachable.url(name, "good") for name in SLOW_NAMES]
        with meanwhile(lambda: server.post("/score", bulk(urls))):
            report.add(
                "g_neighbour_over_calm", server.score_s(large) / calm, "", f"calm {1000 * calm:.1f} ms"
            )


def stalls(report: Report) -> None:
    """Fetch from a listed host that stalls or hangs, for one bulk caller."""
    for way in ("stops", "hangs"):
        with reached() as (server, reachable):
            urls = [f"{reachable.url('bad', way)}?{number}" for number in range(16)]
            with meanwhile(lambda: server.post("/score", bulk(urls))):  # noqa: B023 (it ends with the block)
                times = list(by_url(server, (reachable.url(name, "good") for name in NEIGHBOURS)))
            report.add(f"h_{way}_neighbour_s", median(times), "s", f"the slowest {max(times):.2f} s")


def chunks(report: Report) -> None:
    """Fetch endless responses of one-byte chunks or of status 103."""
    for way in ("bytes", "interim"):
        with reached() as (server, reachable), server.measured() as impact:
            server.post("/score", bulk([reachable.url("bad", way)]))
        report.add(f"j_{way}_cpu_s", impact.cpu_s, "s", f"livez {impact.worst_ms:.0f} ms")


def repeats(report: Report) -> None:
    """Fetch one URL for 128 texts."""
    with reached() as (server, reachable):
        image = {"content": [{"type": "image_url", "image_url": {"url": reachable.url("bad", "good")}}]}
        status, _ = server.post(
            "/v1/score", {"text_1": [f"{n}" for n in range(128)], "text_2": [image] * 128}
        )
        report.add("p_fetches", len(reachable.requested), "", f"status {status}")


@contextmanager
def reached() -> Iterator[tuple[Target, Hosts]]:
    """Run a service that may fetch from hostile hosts."""
    with hosts() as reachable:
        listed = [f"{name}.test:{reachable.port}" for name in ("bad", *SLOW_NAMES, *NEIGHBOURS)]
        settings = {
            "SCOREGATE_IMAGES__ALLOW_URLS": "true",
            "SCOREGATE_IMAGES__ALLOWED_URL_HOSTS": orjson.dumps(listed).decode(),
        }
        with target(settings, SERVE) as server:
            yield server, reachable


def bulk(urls: Iterable[str]) -> object:
    """Return a bulk request for pictures at *urls*."""
    items = [{"prompt": "a", "image": {"url": url}} for url in urls]
    return {"items": items, "metrics": ["clipscore"], "priority": "bulk", "timeout_ms": 60_000}


def by_url(server: Target, urls: Iterable[str]) -> Iterator[float]:
    """
    Yield the seconds of an interactive request for a picture at each of *urls*; infinite without a score.
    """
    for url in urls:
        begun = time.monotonic()
        _, answer = server.post(
            "/score", {"items": [{"prompt": "a", "image": {"url": url}}], "metrics": ["clipscore"]}
        )
        scored = orjson.loads(answer)["results"][0]["scores"]
        yield time.monotonic() - begun if scored else float("inf")
