"""A real Prometheus as a process, which scrapes one service several times a second."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from demo.process import HOST, free_port, stop, url

EVERY = "250ms"
STARTED_WITHIN_S = 60


def program(name: str) -> str:
    """The path of `prometheus` or `promtool`."""
    found = shutil.which(name)
    assert found, "the tests start a real Prometheus: run `make prometheus` first"
    return found


class Prometheus:
    """A running one."""

    def __init__(self, port: int) -> None:
        self._client = httpx.Client(base_url=url(port), timeout=30, trust_env=False)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that *expression* has now, each with its labels and its value."""
        answer = self._client.post("/api/v1/query", data={"query": expression}).json()
        assert "success" == answer["status"], (expression, answer)
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    def firing(self) -> list[dict[str, str]]:
        """The labels of every alert that fires."""
        alerts = self._client.get("/api/v1/alerts").json()["data"]["alerts"]
        return [alert["labels"] for alert in alerts if alert["state"] == "firing"]

    def is_ready(self) -> bool:
        """Whether it answers queries."""
        try:
            return self._client.get("/-/ready").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def close(self) -> None:
        """Close the connections to it."""
        self._client.close()


@contextmanager
def prometheus_server(directory: Path, service: int, rules: str) -> Iterator[Prometheus]:
    """One that scrapes the *service* on that port and evaluates *rules*; stopped in the end."""
    (directory / "rules.yaml").write_text(rules, "utf-8")
    (directory / "prometheus.yaml").write_text(
        f"global: {{scrape_interval: {EVERY}, scrape_timeout: {EVERY}, evaluation_interval: {EVERY}}}\n"
        "rule_files: [rules.yaml]\n"
        "scrape_configs:\n"
        "  - job_name: scoregate\n"
        f"    static_configs: [{{targets: ['{HOST}:{service}'], labels: {{namespace: tests}}}}]\n",
        "utf-8",
    )
    port, log = free_port(0), directory / "prometheus.log"
    command = [
        *(program("prometheus"), f"--config.file={directory}/prometheus.yaml"),
        *(f"--storage.tsdb.path={directory}/data", f"--web.listen-address={HOST}:{port}"),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    running = Prometheus(port)
    try:
        deadline = time.monotonic() + STARTED_WITHIN_S
        while not running.is_ready():
            assert process.poll() is None, log.read_text("utf-8")
            assert time.monotonic() < deadline, log.read_text("utf-8")
            time.sleep(0.05)
        yield running
    finally:
        running.close()
        stop(process)
