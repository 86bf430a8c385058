"""Servers that attack the Python client, and tables that attack its command: k, l and o."""

import json
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadtest.attacks.target import Handler, hostile_server, jpeg
from loadtest.report import Report

TIMEOUT_S = 8
LIMIT_BYTES = 8 * 2**30
UNPACKED_MB = 2000
SCORE = {"request_id": "r", "partial": False, "warnings": [], "models": {}, "timings_ms": {}}
CALL = """
import resource, sys, time
import scoregate

begun = time.monotonic()
try:
    with scoregate.Client(sys.argv[1], timeout_s=float(sys.argv[3])) as client:
        client.score(sys.argv[2], "a")
    end = "score"
except scoregate.ScoregateError:
    end = "error of the client"
except Exception as error:
    end = type(error).__name__
print(end, time.monotonic() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, sep="|")
"""


def large_answers(report: Report) -> None:
    """Answer with two megabytes that decompress to 2 GB, and without end."""
    for way in ("gzip", "endless"):
        end, seconds, peak_mb = called(way)
        report.add(f"k_{way}_peak_mb", peak_mb, "MB", end)
        report.add(f"k_{way}_over_timeout", seconds / TIMEOUT_S)


def wrong_answers(report: Report) -> None:
    """Answer with numbers, nesting and types that our server never sends."""
    ends = {way: called(way)[0] for way in ("number", "nesting", "retry")}
    wrong = {way: end for way, end in ends.items() if end != "error of the client"}
    report.add("l_other_errors", len(wrong), "of 3", ", ".join(f"{way}: {end}" for way, end in wrong.items()))


def foreign_files(report: Report) -> None:
    """Read a table that names files that are not pictures."""
    with hostile("upload") as (port, received), tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        table.write_text("image,prompt\n/etc/passwd,a\n/proc/self/environ,a\n")
        command = [sys.executable, "-m", "scoregate.cli", "batch", str(table)]
        command += ["--out", str(Path(folder) / "out.jsonl"), "--base-url", f"http://127.0.0.1:{port}"]
        subprocess.run(command, capture_output=True, timeout=60)
    report.add("o_uploads", sum(b"root:" in body or b"PATH=" in body for body in received))


def called(way: str) -> tuple[str, float, float]:
    """Return the result of one client call, its seconds, and its peak memory in MB."""
    with hostile(way) as (port, _), tempfile.NamedTemporaryFile(suffix=".jpg") as image:
        image.write(jpeg())
        image.flush()
        done = subprocess.run(
            [sys.executable, "-c", CALL, f"http://127.0.0.1:{port}", image.name, str(TIMEOUT_S)],
            capture_output=True,
            text=True,
            timeout=60,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES)),
        )
    end, seconds, peak_mb = (done.stdout.strip() or f"{done.stderr.strip()[-60:]}|inf|inf").split("|")
    return end, float(seconds), float(peak_mb)


@contextmanager
def hostile(way: str) -> Iterator[tuple[int, list[bytes]]]:
    """Run a server with one kind of hostile response; yield its port and the bodies that it receives."""
    received: list[bytes] = []

    class Ways(Handler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            self.do_GET()

        def answer(self) -> None:
            self.close_connection = True
            if way == "gzip":
                self.send(packed, "200", "Content-Encoding: gzip\r\n")
            elif way == "endless":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                begun, part = time.monotonic(), b"10000\r\n" + b" " * 65536 + b"\r\n"
                while time.monotonic() < begun + 2 * TIMEOUT_S:
                    self.wfile.write(part)
            elif way == "nesting":
                self.send(b"[" * 200_000)
            elif way == "retry":
                self.send(b'{"code":"lane_full","detail":5,"retry_after_s":"x"}', "429")
            elif self.command == "GET":
                self.send(b'{"metrics": {"vqascore": {"available": true, "models": []}}, "models": {}}')
            else:
                value = "1" + "0" * 400 if way == "number" else "0.5"
                result = {"index": 0, "id": None, "scores": {"vqascore": 0.5}}
                self.send(json.dumps({**SCORE, "results": [result]}).replace("0.5", value).encode())

        def send(self, body: bytes, status: str = "200", more: str = "") -> None:
            more += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            self.wfile.write(f"HTTP/1.1 {status} X\r\n{more}".encode() + body)

    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [packer.compress(b" " * 2**20) for _ in range(UNPACKED_MB)] if way == "gzip" else []
    packed = b"".join([*parts, packer.flush()])
    with hostile_server(Ways) as port:
        yield port, received
