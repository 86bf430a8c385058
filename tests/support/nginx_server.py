"""A real nginx as a process, with the configuration that is shipped, before one service."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.process import HOST, free_port, stop
from tests.support.paths import ROOT

CONFIGURATION = ROOT / "deploy" / "nginx.conf"
STARTED_WITHIN_S = 30
FOLDERS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def program() -> str:
    """The path of nginx."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    assert found, "the tests start a real nginx: run `make nginx` first"
    return found


@contextmanager
def nginx_server(directory: Path, service: int) -> Iterator[int]:
    """The port of an nginx before the *service* on that one, its files in *directory*; stopped in the end."""
    port = free_port(0)
    site = CONFIGURATION.read_text("utf-8")
    for shipped, here in (
        ("listen 80;", f"listen {HOST}:{port};"),
        ("server 127.0.0.1:8000 ", f"server {HOST}:{service} "),
    ):
        assert 1 == site.count(shipped)
        site = site.replace(shipped, here)
    (directory / "site.conf").write_text(site, "utf-8")
    folders = "".join(f"  {name}_temp_path {directory}/{name};\n" for name in FOLDERS)
    (directory / "main.conf").write_text(
        f"daemon off; master_process off; pid {directory}/pid; error_log stderr;\nevents {{}}\n"
        f"http {{\n{folders}  access_log off;\n  include {directory}/site.conf;\n}}\n",
        "utf-8",
    )
    log = directory / "nginx.log"
    with log.open("wb") as output:
        command = [program(), "-p", str(directory), "-e", "stderr", "-c", str(directory / "main.conf")]
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + STARTED_WITHIN_S
        while not listens(port):
            assert process.poll() is None, log.read_text("utf-8")
            assert time.monotonic() < deadline, log.read_text("utf-8")
            time.sleep(0.02)
        yield port
    finally:
        stop(process)


def listens(port: int) -> bool:
    """Whether connections are taken there."""
    with socket.socket() as probe:
        return not probe.connect_ex((HOST, port))
