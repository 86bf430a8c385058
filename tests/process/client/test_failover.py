"""Clients of several services and of Unix sockets, as processes."""

import signal

import httpx2
import pytest

from demo.process import free_port, running, url
from scoregate import Client, ScoregateError
from scoregate.cli.main import main
from scoregate.trainers import Reward
from tests.support.double import faulty
from tests.support.fake_service import COMMAND
from tests.support.pictures import png
from tests.support.service import until

ITEMS = [(png(), f"slow {number}") for number in range(240)]
KILLED_AFTER = 40  # results


@pytest.mark.parametrize("way", ["score_many", "reward"])
def test_a_service_that_is_killed_under_load_costs_no_result_and_doubles_none(double, tmp_path, way):
    """Requests that it was working on go to the other, and every score is that of a service alone."""
    with Client(url(double.port)) as alone:
        expected = [each.scores["vqascore"] for each in alone.score_many(ITEMS)]
    with (
        faulty(tmp_path) as other,
        Client([url(other.port), url(double.port)], timeout_s=120) as client,
    ):
        if way == "score_many":
            found = []
            for result in client.score_many(ITEMS, batch_size=4, concurrency=8):
                found.append((result.index, result.scores["vqascore"]))
                if len(found) == KILLED_AFTER:
                    assert other.instrument('scoregate_requests_total{code="200",route="/score"}')
                    other.process.kill()
            assert [*enumerate(expected)] == found
        else:
            reward = Reward(client=client, logit=False, batch_size=4)
            pictures, prompts = zip(*ITEMS, strict=True)
            scored = client.portals.here().submit(reward.outcomes_soon(list(pictures), list(prompts)))
            until(lambda: other.instrument('scoregate_requests_total{code="200",route="/score"}') > 0)
            other.process.kill()
            assert expected == [*map(float, scored.result())]
        other.process.wait()
        assert expected[0] == client.score(*ITEMS[0]).value


@pytest.fixture
def unix(tmp_path):
    """The path of a Unix socket, and a function that starts a service on it."""
    path = tmp_path / "http.sock"

    def started():
        return running(
            free_port(0),
            COMMAND,
            tmp_path / "stderr",
            SCOREGATE_SERVER__UDS=str(path),
            SCOREGATE_CACHE__QUESTIONS=f"sqlite:///{tmp_path}/questions.sqlite3",
        )

    return path, started


def is_ready(client):
    try:
        return client.ready()[0]
    except ScoregateError:
        return False


def test_a_unix_socket_serves_as_a_port_does(unix, client, capsys):
    """Also when a killed process has left its file; a process that ends removes it."""
    path, started = unix
    pairs = [(png(), "a red square"), (png(), "a dog")]
    with Client(f"unix:{path}") as local:
        with started() as process:
            until(lambda: is_ready(local))
            assert 0o660 == path.stat().st_mode & 0o777
            found = {each.index: each.scores for each in local.stream(pairs)}
            assert found == {each.index: each.scores for each in client.score_items(pairs)}
            with httpx2.Client(transport=httpx2.HTTPTransport(uds=str(path))) as probe:
                assert 200 == probe.get("http://localhost/readyz").status_code
            assert 0 == main(["health", "--base-url", f"unix://{path}"])
            assert capsys.readouterr().out.startswith("ready")
            process.kill()
            process.wait()
        assert path.is_socket()
        with started() as process:
            until(lambda: is_ready(local))
            again = local.score_items(pairs)
            process.send_signal(signal.SIGTERM)
            assert 0 == process.wait(60)

    assert [found[each.index] for each in again] == [each.scores for each in again]
    assert not path.exists()


def test_a_socket_and_a_port_are_addresses_of_one_client(unix, service):
    """The socket is gone: the port answers."""
    path, _ = unix
    with Client([f"unix:{path}", service]) as both:
        assert len({both.score(png(), "a red square").value for _ in range(5)}) == 1
