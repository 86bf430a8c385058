"""
A real redis-server as a process: on a port of its own, and with nothing on disk.

pytest-redis starts one, too, but cannot kill, stop or restart it, nor give it TLS, users and a Unix socket.
"""

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
import trustme

from demo.process import HOST, free_port

STARTED_WITHIN_S = 30
PATIENT_S = 60  # for a command, where its time is not what is tested: the machine may be busy


class RedisServer:
    """One server; what it held is gone when it is killed."""

    def __init__(self, directory: Path, *options: str) -> None:
        program = shutil.which("redis-server")
        assert program, "the tests start a real redis-server: run `make redis` first"
        self.port = free_port(0)
        self.place = f"{HOST}:{self.port}"
        self.url = f"redis://{self.place}/0"
        self.socket = directory / "redis.sock"
        self._log = directory / "redis.log"
        self._command = [
            *(program, "--bind", HOST, "--port", str(self.port), "--unixsocket", str(self.socket)),
            *("--save", "", "--appendonly", "no", "--dir", str(directory)),
            *options,
        ]

    def start(self) -> None:
        """Start the process, for the first time or after `kill`, and wait until it listens."""
        with self._log.open("ab") as output:
            self.process = subprocess.Popen(self._command, stdout=output, stderr=output)
        deadline = time.monotonic() + STARTED_WITHIN_S
        while not self._listens():
            assert self.process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.01)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait(30)

    def hang(self) -> None:
        """Stop it: its connections stay open, and nothing is answered."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on after `hang`."""
        self.process.send_signal(signal.SIGCONT)

    def do(self, *command: Any) -> Any:
        """The answer to one command, asked directly."""
        with redis.Redis.from_url(self.url, protocol=2) as client:
            return client.execute_command(*command)

    def held(self) -> list[bytes]:
        """The keys of everything in it."""
        return sorted(self.do("KEYS", "*"))

    def _listens(self) -> bool:
        try:
            self.do("PING")
        except redis.AuthenticationError:
            return True
        except redis.ConnectionError:
            return False
        return True


def tls_options(directory: Path, certificate: trustme.LeafCert, port: int) -> list[str]:
    """Return the options of a port for TLS with *certificate*, where clients need none."""
    file = directory / "server.pem"
    certificate.private_key_and_cert_chain_pem.write_to_path(file)
    own = ("--tls-cert-file", str(file), "--tls-key-file", str(file))
    return ["--tls-port", str(port), *own, "--tls-auth-clients", "no"]


@contextmanager
def redis_server(directory: Path, *options: str) -> Iterator[RedisServer]:
    """A server that is killed in the end."""
    server = RedisServer(directory, *options)
    server.start()
    try:
        yield server
    finally:
        server.kill()
