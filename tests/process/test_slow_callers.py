"""Callers who send or read slowly, or never to the end, against a service that is a process."""

import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest

from tests.support.double import faulty
from tests.support.pictures import item
from tests.support.raw import calling, chunked, head
from tests.support.service import until

MB = 2**20
SENDERS = 20
BODY = orjson.dumps({"items": [item("a red square")], "metrics": ["vqascore"]})
ANSWERS = 300  # together far more than the system holds of what is not read
UNREAD = head("/openapi.json", "GET") * (ANSWERS - 1) + head("/openapi.json", "GET", Connection="close")


def test_a_body_that_stops_coming_is_answered_408_and_the_connection_closes(double):
    """Twenty at once; others are served all the while."""
    with calling(double.port, SENDERS) as callers:
        for caller in callers:
            caller.send(head(Content_Length=10 * MB), b"{" * 1000)
        served = double.score("a red square")
        answers = [caller.answer() for caller in callers]

        assert 200 == served.status_code
        assert {(408, "request_timeout")} == {answer.said for answer in answers}
        assert all(answer.closes and answer.headers["x-request-id"] for answer in answers)
        assert all(caller.is_closed() for caller in callers)


def test_a_body_that_trickles_ends_too(double):
    """A byte now and then is no progress."""
    with calling(double.port) as [caller]:
        caller.send(head(Content_Length=10 * MB))
        caller.socket.settimeout(0.05)
        for _ in range(1000):
            try:
                if caller.send(b" ").socket.recv(1, 2):  # a look: MSG_PEEK
                    break
            except TimeoutError:
                continue
        assert (408, "request_timeout") == caller.answer().said


def test_a_body_that_comes_in_time_is_scored(double):
    """Also in many pieces."""
    with calling(double.port) as [caller]:
        pieces = (BODY[n : n + 10] for n in range(0, len(BODY), 10))

        assert (200, "") == caller.send(head(Content_Length=len(BODY)), *pieces).answer().said


def test_headers_that_do_not_end_are_answered_408(double):
    """From their first byte on they have as long as a body without progress."""
    with calling(double.port) as [caller]:
        answer = caller.send(b"POST /score HTTP/1.1\r\nX-Slow: ").answer()

        assert (408, "request_timeout") == answer.said
        assert answer.headers["x-request-id"]
        assert caller.is_closed()


def test_a_connection_on_which_nothing_comes_is_closed_without_a_word(double):
    """Before the first request as after the last."""
    with calling(double.port, 2) as [fresh, used]:
        used.send(head("/health", "GET")).answer()

        assert fresh.is_closed()
        assert used.is_closed()


def test_unfinished_bodies_have_a_budget_and_the_first_one_gives_way(tmp_path):
    """All but as many as the budget holds are refused with 503; the last one sends its body to the end."""
    limits = {"SCOREGATE_SERVER__BODY_LIMIT_MB": "8", "SCOREGATE_SERVER__UNFINISHED_BODIES_MB": "20"}
    with faulty(tmp_path, **limits) as double, calling(double.port, SENDERS) as callers:
        before = memory_mb(double.process.pid)
        for caller in callers:
            caller.send(head(Content_Length=7 * MB), b" " * (6 * MB))
        refused = [caller.answer() for caller in callers[: SENDERS - 3]]
        grown = memory_mb(double.process.pid) - before
        served = callers[-1].send(b" " * MB).answer()

        assert {(503, "overloaded")} == {answer.said for answer in refused}
        assert (400, "malformed") == served.said  # it was read, and is no JSON
        assert grown < SENDERS * 6 / 2


def memory_mb(process: int) -> float:
    """What a process has in memory."""
    status = Path(f"/proc/{process}/status").read_text("utf-8")
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def test_a_body_that_is_still_coming_at_sigterm_is_refused_at_once(tmp_path):
    """503 `draining`, long before the time of grace is over."""
    with (
        faulty(tmp_path, SCOREGATE_SERVER__GRACE_S="600") as double,
        calling(double.port, SENDERS) as callers,
    ):
        for caller in callers:
            caller.send(head(Content_Length=10 * MB), b"{" * 1000)
        double.counts()  # answered after what was sent before
        double.process.send_signal(signal.SIGTERM)
        answers = [caller.answer() for caller in callers]

        assert {(503, "draining")} == {answer.said for answer in answers}
        assert all(answer.closes for answer in answers)
        assert 0 == double.process.wait(60)


def test_a_caller_who_does_not_read_the_answer_loses_its_connection(double):
    """One who reads slowly gets all of it, however long that takes."""
    with calling(double.port, 2) as [idle, slow], ThreadPoolExecutor(1) as pool:
        files = double.counts()["files"]
        read = pool.submit(read_slowly, slow.send(UNREAD).socket)
        idle.send(UNREAD)
        until(lambda: "does not read" in double.log.read_text("utf-8"))
        until(lambda: double.counts()["files"] < files)

        assert ANSWERS == read.result().count(b"HTTP/1.1 200 OK")
        with pytest.raises(ConnectionResetError):
            read_slowly(idle.socket)


def read_slowly(connection):
    """All that comes on a connection, a quarter of a megabyte at a time."""
    read = bytearray()
    while piece := connection.recv(MB // 4):
        read += piece
        time.sleep(0.02)  # to be slow is the point
    return bytes(read)


def test_a_million_chunks_of_one_byte_are_refused_once_it_is_seen_what_they_are(double):
    """400, and what follows is not read."""
    with calling(double.port) as [caller]:
        chunks = chunked([b" "] * 20_000)
        answer = caller.send(head(Transfer_Encoding="chunked"), *[chunks] * 50).answer()

        assert (400, "malformed") == answer.said
        assert b"chunks" in answer.body
        assert caller.is_closed()


def test_a_body_in_chunks_of_any_size_is_scored(double):
    """Thousands of small ones are no offence."""
    with calling(double.port) as [caller]:
        chunks = chunked(BODY[n : n + 1] for n in range(len(BODY)))

        assert (200, "") == caller.send(head(Transfer_Encoding="chunked"), chunks).answer().said


def test_a_broken_chunk_amid_a_body_is_answered_400(double):
    """By the request's own answer, and counted as such."""
    series = 'scoregate_requests_total{code="400",route="/score"}'
    before = double.instrument(series)
    with calling(double.port) as [caller]:
        answer = caller.send(head(Transfer_Encoding="chunked"), b"3\r\nabc\r\nsecret\r\n").answer()

        assert (400, "malformed") == answer.said
        assert b"secret" not in answer.body
        assert caller.is_closed()
    assert before + 1 == double.instrument(series)


def test_an_early_refusal_reaches_a_caller_who_is_still_sending(double):
    """413 for what was declared; the rest is read for a while, so that the answer is not lost to a reset."""
    with calling(double.port) as [caller]:
        caller.send(head(Content_Length=100 * MB), *[bytes(MB)] * 100)
        answer = caller.answer()

        assert (413, "too_large") == answer.said
        assert answer.closes
