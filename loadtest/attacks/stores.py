"""Attacks on question set files, the port of Prometheus metrics, and Ray: n, q and r."""

import json
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from demo.process import HOST, SERVICE, free_port
from loadtest.attacks.target import target
from loadtest.report import Report
from models.core.outcomes import CallResult, Likelihood
from service.images.fetcher import is_public

ONE_REPLICA = """
[models.vqa]
family = "fake"
num_cpus = 0.5
"""
LISTENS = "0A"  # the state of a listening socket in /proc/net/tcp
ALL_INTERFACES = ("00000000", "0" * 32)


def imports(report: Report) -> None:
    """Import a question whose number has thirty digits, among valid sets."""
    with tempfile.TemporaryDirectory() as folder:
        sets, stored = Path(folder) / "sets.jsonl", Path(folder) / "stored.sqlite3"
        lines = [
            {"prompt": f"prompt {number}", "style": "dsg", "questions": [{"id": number, "text": "Is it?"}]}
            for number in (1, 10**30, 2)
        ]
        sets.write_text("\n".join(map(json.dumps, lines)))
        settings = [f"SCOREGATE_CACHE__QUESTIONS=sqlite:///{stored}"]
        done = subprocess.run(
            ["env", *settings, *SERVICE, "questions", "import", str(sets)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        out = Path(folder) / "out.jsonl"
        subprocess.run(
            ["env", *settings, *SERVICE, "questions", "export", str(out)], capture_output=True, timeout=120
        )
        kept = len(out.read_text().splitlines()) if out.exists() else 0
    report.add("n_stored", kept, "of 2", f"status {done.returncode}")


def idle(report: Report) -> None:
    """Open sixteen idle connections to the port of the Prometheus metrics, a forged cache, an address."""
    port = free_port(0)
    with target({"SCOREGATE_SERVER__METRICS_PORT": str(port)}) as server, ExitStack() as open_ones:
        for _ in range(16):
            open_ones.enter_context(socket.create_connection((HOST, port)))
        report.add("q_scrape_status", server.send("GET", "/metrics", port=port)[0])
    forged = json.loads(Likelihood((-0.1,), -0.1, -3.0).dumps())
    forged["log_probs"] = [5.0]
    report.add("q_forged_taken", CallResult.loads(json.dumps(forged).encode()) is not None)
    report.add("q_documentation_is_public", is_public("3fff::1"))


def ray(report: Report) -> None:
    """List the ports on all interfaces where our own Ray listens."""
    before = listening()
    limit = 64 * 2**30  # Ray maps much more memory than it uses
    with target({"SCOREGATE_RUNTIME__KIND": "ray"}, limit_bytes=limit, profile=ONE_REPLICA):
        report.add("r_open_ports", len(listening() - before))


def listening() -> set[str]:
    """Return the sockets that listen on all interfaces, from /proc."""
    return set(rows("tcp")) | set(rows("tcp6"))


def rows(kind: str) -> Iterator[str]:
    """Yield the local addresses of one kind."""
    for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]:
        address, state = line.split()[1], line.split()[3]
        if state == LISTENS and address.partition(":")[0] in ALL_INTERFACES:
            yield address
