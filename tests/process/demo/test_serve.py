"""`make serve`: waits as long as it takes, says what for, and serves any profile."""

import json
import re
import shlex
import sys
from math import inf

from demo import serve
from demo.process import free_port, running, wait_until_ready

# A service that downloads weights once it is told to, opens its port when the test has seen that, and is
# ready at the second look.
SLOW = """
import http.server, json, pathlib, sys, time

folder, port = pathlib.Path(sys.argv[1]), int(sys.argv[2])

def wait_for(name):
    for _ in range(600):
        if (folder / name).exists():
            return
        time.sleep(0.1)
    sys.exit(1)

wait_for("begin")
blobs = folder / "hub" / "models--owner--name" / "blobs"
blobs.mkdir(parents=True)
(blobs / "weights.incomplete").write_bytes(bytes(7_000_000))
wait_for("seen")

class Probe(http.server.BaseHTTPRequestHandler):
    looks = 0

    def do_GET(self):
        Probe.looks += 1
        self.send_response(200 if Probe.looks > 1 else 503)
        self.end_headers()
        self.wfile.write(json.dumps({"detail": "models.questions: no answer yet"}).encode())

http.server.HTTPServer(("127.0.0.1", port), Probe).serve_forever()
"""
FETCHING = "models to load, 7 MB of weights fetched so far"


def test_a_download_takes_as_long_as_it_takes(tmp_path):
    """No limit but the life of the process; each line says what is waited for."""
    lines = []

    def say(line):
        lines.append(line)
        (tmp_path / ("seen" if FETCHING in line else "begin")).touch()

    port = free_port(0)
    with running(port, (sys.executable, "-c", SLOW, str(tmp_path), str(port))) as service:
        wait_until_ready(service, port, inf, tmp_path / "hub", say)

    waits = [line.partition(" s, waiting for ")[2].strip() for line in lines[1:-1]]
    assert FETCHING in waits
    assert "models.questions: no answer yet" == waits[-1]
    assert lines[-1].startswith("the service is ready after")


def test_make_serve_has_no_limit_of_its_own(capsys):
    """Whatever the profile loads; where the process ends, it says so and gives its own status."""
    limits = []

    def wait(service, port, limit_s):
        limits.append(limit_s)
        wait_until_ready(service, port, limit_s)

    assert 2 == serve.main(["--port", "0"], (sys.executable, "-c", ""), wait)
    assert "the service ended with status 0" in capsys.readouterr().err
    assert [inf] == limits


def test_any_profile_is_served_and_its_metrics_are_asked_for(tmp_path):
    """The line to paste names only metrics that this profile can score with."""
    profile = tmp_path / "profile.toml"
    profile.write_text(
        f'[models.vqa]\nfamily = "fake"\n[cache]\nquestions = "sqlite:///{tmp_path}/questions.sqlite3"\n'
    )
    said = []

    def say(text, **_):
        said.append(text)
        raise KeyboardInterrupt  # the person has read it

    assert 0 == serve.main(["--port", "0", "--config", str(profile)], say=say)
    [metrics] = re.findall(r'"metrics": (\[.*?\])', said[0])
    assert ["vqascore"] == json.loads(metrics)


def test_the_line_to_paste_asks_for_the_given_metrics():
    """As JSON in the part `request`."""
    words = shlex.split(serve.curl(9, ["vqascore"]))
    request = next(word for word in words if word.startswith("request=")).removeprefix("request=")

    assert ["vqascore"] == json.loads(request)["metrics"]
