"""`scoregate batch` while the service's port refuses connections, and then takes them again."""

import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.process.client.cli.conftest import COMMAND
from tests.support.pictures import png

ROWS = 40  # three requests


class Scoring(BaseHTTPRequestHandler):
    """A service that scores everything alike; its port is closed before it sends the first scores."""

    scored = threading.Event()

    def do_GET(self):
        model = {"name": "vqa", "id": "fake", "revision": "1"}
        self.answer({"models": [model], "metrics": {"vqascore": {"models": ["vqa"]}}})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        count = body.count(b'"prompt"')
        if not self.scored.is_set():
            self.server.socket.close()
        results = [{"index": n, "scores": {"vqascore": 0.5}, "errors": {}} for n in range(count)]
        self.answer({"results": results, "models": {"vqa": "fake@1"}, "request_id": "r"})
        self.scored.set()

    def answer(self, content):
        data = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def serving(port):
    """A service on a port, or on a free one."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Scoring)
    threading.Thread(target=server.serve_forever).start()
    return server


def stop(server):
    """End a service."""
    server.shutdown()
    server.server_close()


def test_a_batch_goes_on_when_the_port_is_back(tmp_path):
    """One line says that it waits; every row has its score, and none is sent twice."""
    (tmp_path / "p.png").write_bytes(png())
    rows = [json.dumps({"image": "p.png", "prompt": f"prompt {n}"}) for n in range(ROWS)]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows), "utf-8")
    Scoring.scored.clear()
    server = serving(0)
    base_url = f"http://127.0.0.1:{server.server_port}"
    call = [COMMAND, "batch", "rows.jsonl", "-o", "out.jsonl", "--base-url", base_url, "--concurrency", "1"]
    with subprocess.Popen(call, cwd=tmp_path, stderr=subprocess.PIPE, encoding="utf-8") as process:
        try:
            assert Scoring.scored.wait(60)
            stop(server)
            line = process.stderr.readline()
            assert line.startswith(f"scoregate: connection_failed: {base_url}: ")
            assert "requests are retried for up to " in line
            server = serving(server.server_port)
            rest = process.stderr.read()
        finally:
            stop(server)
            process.kill()

    assert "40 of 40 rows have all scores; 40 were requested in this run\n" in rest
    assert ROWS == len((tmp_path / "out.jsonl").read_text("utf-8").splitlines())
