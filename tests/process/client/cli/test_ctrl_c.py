"""Ctrl-C while the service has the request and does not answer, and while a model is loaded."""

import json
import os
import signal
import subprocess
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.process.client.cli.conftest import COMMAND
from tests.support.packages import FAKES, declare
from tests.support.service import until

ENDLESS = """
from models.core.family import Family
from models.families.fake import FakeSettings

FAMILY = Family("endless", role="", settings=FakeSettings, loader="endless:load")


def load(settings):
    with open("weights") as file:
        file.read()
"""


class Silent(BaseHTTPRequestHandler):
    """A service that has a model, and never scores."""

    asked, over = threading.Event(), threading.Event()

    def do_GET(self):
        model = {"name": "vqa", "id": "fake", "revision": "1"}
        content = json.dumps({"models": [model], "metrics": {"vqascore": {"models": ["vqa"]}}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self):
        self.asked.set()
        self.over.wait()

    def log_message(self, *_):
        pass


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("score", "pictures/red.png", "-p", "x"), b""),
        (("batch", "pictures", "-o", "out.jsonl"), b"scoregate: interrupted: no row was scored yet\n"),
        (("versus", "A=pictures", "B=pictures"), b""),
    ],
)
def test_ctrl_c_ends_with_130_and_what_is_kept(pictures, tmp_path, command, said):
    """While the service has the request and does not answer."""
    Silent.asked.clear()
    Silent.over.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        threading.Thread(target=server.serve_forever).start()
        base_url = ("--base-url", f"http://127.0.0.1:{server.server_port}")
        process = subprocess.Popen(
            [COMMAND, *command, *base_url], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            assert Silent.asked.wait(60)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            Silent.over.set()
            server.shutdown()

    assert 130 == process.returncode
    assert (b"", said) == (out, err)
    assert not (tmp_path / "out.jsonl").exists()  # nothing was scored


@pytest.fixture
def endless(tmp_path, monkeypatch):
    """A profile of models whose weights are a pipe, which has an end when the test says so."""
    packages = tmp_path / "packages"
    declare(packages, "endless", "1", {"scoregate.models": {"endless": "endless:FAMILY"}})
    (packages / "endless.py").write_text(ENDLESS, "utf-8")
    (tmp_path / "endless.toml").write_text(FAKES.replace('family = "fake"', 'family = "endless"'), "utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(packages), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{tmp_path}/questions.sqlite3")
    os.mkfifo(tmp_path / "weights")
    return tmp_path / "endless.toml"


@pytest.mark.parametrize(
    "command", [("score", "pictures/red.png", "-p", "x", "-m", "clipscore"), ("questions", "x")]
)
def test_ctrl_c_ends_a_load(pictures, tmp_path, endless, command):
    """At once: that of a metric that is known before, and that of a model that a call needs first."""
    process = subprocess.Popen(
        [COMMAND, *command, "--local", endless],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    written = []

    def is_read():
        with suppress(OSError):  # nobody reads the pipe yet
            written.append(os.open(tmp_path / "weights", os.O_WRONLY | os.O_NONBLOCK))
        return written

    try:
        until(is_read)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)
    finally:
        process.kill()
        for each in written:
            os.close(each)

    assert 130 == process.returncode
    assert (b"", b"") == said
