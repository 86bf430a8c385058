"""Ctrl-C while the service has the request and does not answer."""

import json
import signal
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.process.client.cli.conftest import COMMAND


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
