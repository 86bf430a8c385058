"""`python -m tests.fuzz`: the service around fakes, and schemathesis looking for faults in its contract."""

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx

from demo.process import SERVICE, free_port, running, url, wait_until_ready

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FAKES = (*SERVICE, "--config", str(ROOT / "loadtest" / "fake.toml"))
SCHEMATHESIS = str(Path(sys.executable).with_name("schemathesis"))
CONFIG = str(HERE / "schemathesis.toml")
KEY = "a key"  # as in schemathesis.toml

CASES = 300  # of each kind, for each endpoint
LIMIT_S = 3600


def fuzz(cases: int, directory: Path) -> int:
    """
    Send about that many requests of each kind to each endpoint; files go to *directory*.

    Returns:
        Schemathesis' exit status: 0 where it found nothing.
    """
    port, keys, document = free_port(0), directory / "keys", directory / "openapi.json"
    keys.write_text(f"fuzz:{hashlib.sha256(KEY.encode()).hexdigest()}\n", "utf-8")
    settings = {
        "SCOREGATE_CACHE__QUESTIONS": f"sqlite:///{directory}/questions.sqlite3",
        "SCOREGATE_SERVER__API_KEYS_FILE": str(keys),
    }
    with running(port, FAKES, directory / "service.log", **settings) as process:
        wait_until_ready(process, port)
        told = httpx.get(f"{url(port)}/openapi.json", headers={"X-API-Key": KEY}, timeout=60, trust_env=False)
        document.write_bytes(told.raise_for_status().content)
        options = ["--url", url(port), "--max-examples", str(cases)]
        command = [SCHEMATHESIS, "--config-file", CONFIG, "run", str(document), *options]
        return subprocess.run(command, cwd=ROOT, timeout=LIMIT_S).returncode


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        sys.exit(fuzz(CASES, Path(directory)))
