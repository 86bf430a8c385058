"""The process behind `make demo` and `make serve`: how it starts and ends."""

import json
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from demo.draw_samples import SAMPLES
from demo.process import HOST, Failed, free_port, running
from demo.scoring import PROMPT_METRICS
from demo.serve import curl
from demo.show import main as show
from loadtest.servers import FAKE


def test_a_service_that_does_not_start_is_told_by_its_last_words(capsys, tmp_path):
    """Exit code 2, no page, and the last line of stderr."""
    page = tmp_path / "demo.html"
    words = "import sys; print('first', file=sys.stderr); sys.exit('scoregate-server: no weights')"

    assert 2 == show(["--page", str(page)], (sys.executable, "-c", words))

    told = capsys.readouterr().err
    assert "ended with status 1" in told
    assert "scoregate-server: no weights" in told
    assert "first" not in told
    assert not page.exists()


def test_a_taken_port_is_refused_before_another_service_could_answer(capsys):
    """Else the demo would score with whatever runs there."""
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        assert 2 == show(["--port", str(port)], ("false",))

    assert f"cannot listen on port {port}" in capsys.readouterr().err


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, Failed])
def test_the_service_is_stopped_whatever_happens(error):
    """Ctrl-C and failures end the process too, and signals are handled as before."""
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(error), running(1, ("sleep", "60")) as process:
        raise error

    assert -signal.SIGTERM == process.returncode
    assert before == signal.getsignal(signal.SIGTERM)


def test_a_sigterm_to_the_demo_stops_the_service():
    """A demo that is ended by a supervisor leaves nothing behind."""
    with pytest.raises(SystemExit), running(1, ("sleep", "60")) as process:
        signal.raise_signal(signal.SIGTERM)

    assert -signal.SIGTERM == process.returncode


def test_a_free_port_is_none_that_the_system_gives_to_connections():
    """Or one of them could have it before a slow server listens."""
    given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert free_port(0) < given


def test_free_ports_do_not_depend_on_a_seed():
    """Two processes of tests with one seed would choose the same."""
    found = []
    for _ in range(2):
        random.seed(1)
        found.append([free_port(0) for _ in range(3)])

    assert found[0] != found[1]


def test_no_port_is_given_twice():
    """A service has several, and two of them would be one as often as a start in four thousand."""
    found = [free_port(0) for _ in range(1000)]

    assert len({*found}) == len(found)


def test_the_whole_demo_runs_and_leaves_no_service(capfd, tmp_path):
    """Start, ready, score, show, stop; the fakes guess, so that some pair is told wrong."""
    port = free_port(0)

    code = show(["--port", str(port), "--page", str(tmp_path / "demo.html")], FAKE)

    told = capfd.readouterr()
    assert 1 == code, told.err
    assert "the service is ready after" in told.err
    assert "does not beat" in told.out
    assert all(sample.file in told.out for sample in SAMPLES)
    assert port == free_port(port)


def test_the_curl_line_of_make_serve_works_when_pasted(fake_service):
    """A shell runs it as printed and gets three scores for two prompts."""
    line = curl(fake_service.main, list(PROMPT_METRICS))
    pasted = subprocess.run(["bash", "-c", line], capture_output=True, check=True, timeout=60)

    results = json.loads(pasted.stdout)["results"]
    assert 2 == len(results)
    assert all(PROMPT_METRICS.keys() == result["scores"].keys() for result in results)
