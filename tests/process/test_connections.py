"""Connections as they come: too many, ended on one side, kept while the service stops, no HTTP."""

import resource
import signal
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

from demo.process import HOST
from tests.process.test_slow_callers import BODY
from tests.support.double import COMMAND, faulty
from tests.support.raw import calling, head
from tests.support.service import until

FILES = 128
CALLERS = 200
KEPT = 16
NO_FILES = "out of system resource"


def limited(*limits: str) -> tuple[str, ...]:
    """The double's command under limits of ulimit(1)."""
    return ("sh", "-c", f'{" && ".join(f"ulimit {limit}" for limit in limits)} && exec "$@"', "sh", *COMMAND)


def test_more_connections_than_files_are_refused_and_leave_nothing_behind(tmp_path):
    """503 for those above the limit, a handful of lines in the log, and service for whoever comes later."""
    with faulty(tmp_path, limited(f"-n {FILES}")) as double:
        with calling(double.port, CALLERS) as callers:
            answers = [caller.send(head("/health", "GET")).answer() for caller in callers]
            said = [answer.said for answer in answers]
            served = said.index((503, "overloaded"))

            assert FILES / 2 < served < FILES
            assert {(200, "")} == set(said[:served])
            assert {(503, "overloaded")} == set(said[served:])
            assert all(answer.closes and answer.headers["x-request-id"] for answer in answers[served:])
        until(lambda: serves(double.port))
        lines = double.log.read_text("utf-8").splitlines()
        refusals = [line for line in lines if "a connection was refused" in line]

        assert 1 == len(refusals)
        assert "Traceback" not in "".join(lines)


def test_a_process_without_files_says_so_once_and_recovers(double):
    """Where something else has taken them: connections wait, and the log does not fill."""
    soft, hard = resource.prlimit(double.process.pid, resource.RLIMIT_NOFILE)
    files = double.counts()["files"]
    resource.prlimit(double.process.pid, resource.RLIMIT_NOFILE, (files + KEPT, hard))
    try:
        with calling(double.port, 3 * KEPT):  # asyncio rests for a second whenever KEPT have come
            until(lambda: NO_FILES in double.log.read_text("utf-8"))
        until(lambda: serves(double.port))
    finally:
        resource.prlimit(double.process.pid, resource.RLIMIT_NOFILE, (soft, hard))

    assert 1 == double.log.read_text("utf-8").count(NO_FILES)


def serves(port):
    """Whether a new connection gets an answer."""
    with calling(port) as [caller]:
        return caller.send(head("/livez", "GET")).answer().status == 200


def test_the_process_opens_as_many_files_as_the_system_lets_it(tmp_path):
    """A low soft limit is raised to the hard one."""
    with (
        faulty(tmp_path, limited(f"-S -n {FILES}", f"-H -n {2 * CALLERS}")) as double,
        calling(double.port, CALLERS) as callers,
    ):
        answers = {caller.send(head("/health", "GET")).answer().status for caller in callers}

        assert {200} == answers


def test_a_caller_who_ends_its_side_has_left(double):
    """As one who closed the connection: its work is dropped."""
    left = 'scoregate_requests_total{code="499",route="/score"}'
    before = double.instrument(left)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(double.score, "held")
        until(double.is_held)
        with calling(double.port) as [leaves]:
            leaves.send(head(Content_Length=len(BODY)), BODY).socket.shutdown(1)
            until(lambda: double.instrument(left) == before + 1)
            double.release()

            assert 200 == held.result().status_code
            assert leaves.is_closed()


def test_callers_who_keep_their_connections_are_told_when_they_end(tmp_path):
    """While the service stops, each gets `Connection: close` and nobody a reset."""
    with faulty(tmp_path) as double, ThreadPoolExecutor(KEPT) as pool:
        callers = [pool.submit(ask_until_told, double.port) for _ in range(KEPT)]
        until(lambda: double.instrument('scoregate_requests_total{code="200",route="/health"}') > KEPT)
        double.process.send_signal(signal.SIGTERM)
        last = [caller.result() for caller in callers]

        assert set(last) <= {200, 503}
        assert 0 == double.process.wait(60)


def ask_until_told(port):
    """The status of the answer that ends the connection."""
    connection = HTTPConnection(HOST, port, timeout=60)
    for _ in range(1_000_000):
        connection.request("GET", "/health")
        answer = connection.getresponse()
        answer.read()
        if answer.getheader("connection") == "close":
            return answer.status
    raise AssertionError("the service never said so")


def test_a_message_with_two_lengths_is_refused_and_ends_the_connection(double):
    """What follows it may be another caller's, to a proxy that believes the other length."""
    smuggled = head("/health", "GET")
    with calling(double.port) as [caller]:
        both = head(Content_Length=5, Transfer_Encoding="chunked")
        answer = caller.send(both + b"0\r\n\r\n" + smuggled).answer()

        assert (400, "malformed") == answer.said
        assert answer.closes
        assert caller.is_closed()


def test_what_is_not_http_is_answered_400(double):
    """In the form of all errors, and with nothing of what was sent."""
    with calling(double.port) as [caller]:
        answer = caller.send(b"SECRET\r\n\r\n").answer()

        assert (400, "malformed") == answer.said
        assert "application/problem+json" == answer.headers["content-type"]
        assert b"SECRET" not in answer.body
        assert caller.is_closed()


def test_a_kept_connection_serves_one_request_after_the_other(double):
    """Refusals that have read the whole body do not end it."""
    with calling(double.port) as [caller]:
        answers = [
            caller.send(head(Content_Length=len(body)), body).answer() for body in (BODY, b"{", b"[]", BODY)
        ]

        assert [200, 400, 422, 200] == [answer.status for answer in answers]
        assert not any(answer.closes for answer in answers)
