"""`scoregate report`: scores are those of `batch`, a run goes on where it stopped, and the page tells all."""

import json
import re
import signal
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from tests.process.client.cli.conftest import COMMAND
from tests.support.service import until
from tests.unit.client.cli.rated import NAMED, ratings

__all__ = ["ratings"]


@contextmanager
def held_after_one(service):
    """The service, but the second request for scores is never answered; its address."""
    over, asked = threading.Event(), []

    class Gate(BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer(httpx.get(f"{service}{self.path}", trust_env=False))

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append(self.path)
            if len(asked) > 1:
                over.wait()
                return
            kind = {"Content-Type": self.headers["Content-Type"]}
            self.answer(httpx.post(f"{service}{self.path}", content=body, headers=kind, trust_env=False))

        def answer(self, found):
            self.send_response(found.status_code)
            self.send_header("Content-Type", found.headers["Content-Type"])
            self.send_header("Content-Length", str(len(found.content)))
            self.end_headers()
            self.wfile.write(found.content)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Gate) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            over.set()
            server.shutdown()


def test_a_report_that_was_stopped_goes_on_and_draws_its_page(scoregate, service, ratings, tmp_path):
    """What has a score is not asked again; the cost is that of both runs."""
    command = ("report", "rows.jsonl", "-o", "page.html", "-m", "vqascore", "-m", "skills", *NAMED)
    results = tmp_path / "page.results.jsonl"
    with held_after_one(service) as gate:
        process = subprocess.Popen(
            [COMMAND, *command, "--concurrency", "1", "--base-url", gate],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
        )
        until(lambda: results.exists() and 16 == results.read_bytes().count(b"\n"))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)

    assert 130 == process.returncode
    assert not (tmp_path / "page.html").exists()
    lines = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    missing = sum("skills" in line["errors"] for line in lines)  # the fake is unsure of all
    assert 0 < missing < 16
    done = scoregate(*command, "--price-per-hour", "3")
    page = (tmp_path / "page.html").read_text("utf-8")

    assert 1 == done.returncode
    assert f"; {24 + missing} were requested in this run" in done.stderr
    assert f"<dd>{40 + missing}, in 2 runs</dd>" in page
    assert re.search(r"<dt>service</dt><dd>Scoregate \d", page)
    assert "price of 1,000 pictures" in page
    for said in ("crayon", "kind 2", "skills by its own skills", "people: people", "<dt>Spearman</dt>"):
        assert said in page


def test_the_scores_are_those_of_batch(scoregate, ratings, tmp_path):
    """A result of `batch --explain` is continued, with nothing to ask; its manifest has the time."""
    scoregate("batch", "rows.jsonl", "-o", "scores.jsonl", "--explain")
    done = scoregate("report", "rows.jsonl", "-o", "page.html", "--results", "scores.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text("utf-8").splitlines()]
    mean = sum(line["scores"]["vqascore"] for line in lines) / len(lines)

    assert "0 were requested in this run" in done.stderr
    assert f"<td>{mean:.4f}</td>" in (tmp_path / "page.html").read_text("utf-8")
    assert "<dd>40, in 1 run</dd>" in (tmp_path / "page.html").read_text("utf-8")


def test_a_row_without_a_score_is_status_1_and_on_the_page(scoregate, pictures, tmp_path):
    """The page is drawn all the same, and counts it."""
    done = scoregate("report", "pictures", "-o", "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")

    assert 1 == done.returncode
    assert "<dt>without some score</dt><dd>1</dd>" in page
    assert re.search(r"image_undecodable</th><td>vqascore</td><td>1</td><td>row \d: ", page)
