"""The image's health check, run."""

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler

from demo.process import free_port
from tests.external.helm.test_scripts import served
from tests.support.dockerfile import stages


class NotReady(BaseHTTPRequestHandler):
    """A service that lives, and has a model that does not serve."""

    def do_GET(self) -> None:
        self.send_response(503 if self.path == "/readyz" else 200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def test_the_health_check_asks_whether_the_service_is_ready(fake_service):
    """Its command, against a service, against one that lives and is not ready, and where there is none."""
    _, command = stages()["runtime"].all("HEALTHCHECK")[0].split("CMD ", 1)
    program, *arguments = json.loads(command)

    def status(port):
        variables = f"SCOREGATE_SERVER__PORT={port}", "http_proxy=http://127.0.0.1:9"
        return subprocess.run(["env", *variables, sys.executable, *arguments], capture_output=True).returncode

    assert "python" == program
    assert not status(fake_service.main)
    with served(NotReady) as address:
        assert status(address.rpartition(":")[2])
    assert status(free_port(0))
