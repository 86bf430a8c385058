"""The chart's two scripts, as its pods run them: by the command and the text in the objects."""

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from models.checkpoints.locate import cached
from tests.external.helm.chart import containers, pods

COMMIT, OTHER = "1" * 40, "2" * 40
FILES = {"config.json": b"{}", "model.safetensors": b"weights"}


class Hub(BaseHTTPRequestHandler):
    """As much of the Hugging Face hub as a download needs."""

    def do_HEAD(self) -> None:
        """A file's size and commit."""
        self._answer(body=False)

    def do_GET(self) -> None:
        """A repository's files, or one of them."""
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        listing = re.fullmatch(r"/api/models/\S+/\S+/tree/\w+\?.*", self.path)
        file = re.fullmatch(r"/\S+/\S+/resolve/(\w+)/(\S+)", self.path)
        if listing:
            tree = [
                {"type": "file", "path": name, "size": len(text), "oid": hashlib.sha1(text).hexdigest()}
                for name, text in FILES.items()
            ]
            self._send(json.dumps(tree).encode(), body, {"Content-Type": "application/json"})
        elif file and file[2] in FILES:
            text = FILES[file[2]]
            tag = hashlib.sha256(text).hexdigest()
            self._send(text, body, {"ETag": f'"{tag}"', "X-Repo-Commit": file[1]})
        else:
            self.send_error(404)

    def _send(self, text: bytes, body: bool, headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server on a port of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run(component: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a pod's script with this Python."""
    [container] = containers(pods("one-gpu")[component])
    assert ["python", "-c"] == container["command"]
    known = {"PATH": os.environ["PATH"], **environment}
    return subprocess.run(
        [sys.executable, "-c", *container["args"]], env=known, capture_output=True, text=True
    )


def prefetch(folder: Path, hub: str, *models: dict[str, object]) -> subprocess.CompletedProcess[str]:
    """Run the job, with *folder* in place of /models."""
    return run(
        "models",
        HOME=str(folder / "home"),
        HF_ENDPOINT=hub,
        HF_HUB_CACHE=str(folder / "hub"),
        MODELS=json.dumps(models),
        READY=str(folder / "ready" / "abc"),
    )


def test_the_job_downloads_what_the_service_then_finds_without_a_network(tmp_path, offline_hub):
    """A repository in the hub's cache, some files of another in a folder, then the file that says so."""
    with served(Hub) as hub:
        done = prefetch(
            tmp_path,
            hub,
            {"repository": "owner/vqa", "revision": COMMIT},
            {"repository": "owner/clip", "revision": OTHER, "files": ["*.safetensors"], "directory": "clip"},
        )
    found = cached("owner/vqa", COMMIT)

    assert not done.returncode, done.stderr
    assert (tmp_path / "ready" / "abc").is_file()
    assert found is not None
    assert FILES == {each.name: each.read_bytes() for each in found.iterdir()}
    assert FILES["model.safetensors"] == (tmp_path / "clip" / "model.safetensors").read_bytes()
    assert not (tmp_path / "clip" / "config.json").exists()


def test_nobody_is_told_that_models_are_there_that_are_not(tmp_path):
    """A download that fails ends the job, which Kubernetes tries again."""
    with served(Hub) as hub:
        done = prefetch(
            tmp_path, hub, {"repository": "owner/vqa", "revision": COMMIT, "files": []}, {"revision": OTHER}
        )

    assert done.returncode
    assert not (tmp_path / "ready").exists()


class Service(BaseHTTPRequestHandler):
    """A service that is ready or not."""

    status = 200

    def do_GET(self) -> None:
        """/readyz."""
        assert self.path == "/readyz"
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(b"the models are there" if self.status == 200 else b"no model yet")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.mark.parametrize(
    ("status", "code", "told"), [(200, 0, "the models are there"), (503, 1, "no model yet")]
)
def test_helm_test_says_whether_the_release_is_ready(status, code, told):
    """Its pod's status is the test's, and its log is what the service said."""
    with served(type("Answering", (Service,), {"status": status})) as address:
        done = run("test", SERVICE=address)

    assert (code, True) == (done.returncode, told in done.stdout + done.stderr)


def test_helm_test_fails_where_nothing_answers():
    """In one line."""
    done = run("test", SERVICE="http://127.0.0.1:9")

    assert done.returncode == 1
    assert "refused" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_test_asks_the_release_s_own_service():
    """By its name and port."""
    [container] = containers(pods("rayservice")["test"])

    assert [{"name": "SERVICE", "value": "http://scoregate:8000"}] == container["env"]
