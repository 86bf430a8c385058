"""`python -m tests.process.fuzz`: schemathesis looks for faults in the contract of a service around fakes."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx

from tests.support.fake_service import FakeService, key_table, locked_service
from tests.support.paths import ROOT
from tests.support.service import until

HERE = Path(__file__).parent
SCHEMATHESIS = str(Path(sys.executable).with_name("schemathesis"))
CONFIG = str(HERE / "schemathesis.toml")
KEY = "a key"  # as in schemathesis.toml
LABEL_KEY = "a key for labels"  # which have a right of their own
OPERATOR_KEY = "a key for changes of models"

CASES = 300  # of each kind, for each endpoint
LIMIT_S = 3600


def openapi(service: FakeService) -> dict[str, Any]:
    """Return the document of a service with keys; those of this file become some of them."""
    with service.keys.open("a", encoding="utf-8") as keys:
        keys.write(key_table("fuzz", KEY) + key_table("operator", OPERATOR_KEY, "models = true"))
        keys.write(key_table("people", LABEL_KEY, 'endpoints = ["label"]'))

    def described() -> httpx.Response:
        return httpx.get(
            f"{service.url}/openapi.json", headers={"X-API-Key": KEY}, timeout=60, trust_env=False
        )

    until(lambda: described().is_success)  # the service has read the file again
    document: dict[str, Any] = described().json()
    return document


def fuzz(cases: int, service: FakeService, document: dict[str, Any]) -> int:
    """
    Send about that many requests of each kind to each endpoint of the *document*.

    Returns:
        Schemathesis' exit status: 0 where it found nothing.
    """
    path = service.directory / "openapi.json"
    path.write_text(json.dumps(document), "utf-8")
    options = ["--url", service.url, "--max-examples", str(cases)]
    command = [SCHEMATHESIS, "--config-file", CONFIG, "run", str(path), *options]
    environment = os.environ | {"NO_PROXY": "127.0.0.1"}  # else it is searched for a proxy for each request
    return subprocess.run(command, cwd=ROOT, env=environment, timeout=LIMIT_S).returncode


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory, locked_service(Path(directory)) as service:
        sys.exit(fuzz(CASES, service, openapi(service)))
