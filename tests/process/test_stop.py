"""SIGTERM while batches are in flight."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from models.images.formats.decode import decode
from service.process.launch import CLOSE_S
from tests.support.bombs import flat, many_scans
from tests.support.callers import PROMPTS
from tests.support.double import faulty
from tests.support.fake_service import fake_service
from tests.support.pictures import b64
from tests.support.service import until


def test_sigterm_drops_nothing_that_was_accepted(tmp_path):
    """What runs, what waits in either lane and what comes in groups is answered; the status is 0."""
    with faulty(tmp_path) as double, ThreadPoolExecutor(1 + 2 * len(PROMPTS)) as pool:
        held = pool.submit(double.score, "held")
        until(double.is_held)
        waiting = [pool.submit(double.score, f"{prompt} slow", f"{prompt} 2") for prompt in PROMPTS]
        waiting += [pool.submit(double.score, f"{prompt} 3", priority="bulk") for prompt in PROMPTS]
        until(lambda: double.counts()["entries"] == 3 * len(PROMPTS))
        double.process.send_signal(signal.SIGTERM)
        until(lambda: not double.accepts())
        double.release()
        answers = [answer.result() for answer in (held, *waiting)]

        assert {200} == {answer.status_code for answer in answers}
        assert not any(answer.json()["partial"] for answer in answers)
        assert 0 == double.process.wait(60)


def test_the_next_process_finds_the_question_sets(tmp_path):
    """They are in the file when the first one has ended."""
    cached = []
    for _ in range(2):
        with fake_service(tmp_path) as running:
            body = {"prompts": ["a red dog"], "style": "dsg"}
            answer = httpx.post(f"{running.url}/questions", json=body, timeout=60, trust_env=False)
            cached += [each["cached"] for each in answer.raise_for_status().json()["sets"]]

    assert [False, True] == cached


def test_sigterm_does_not_wait_for_a_batch_beyond_the_grace(tmp_path):
    """Its caller is refused, and the process ends though the batch, held for a minute, still runs."""
    with faulty(tmp_path, SCOREGATE_SERVER__GRACE_S="1") as double, ThreadPoolExecutor(1) as pool:
        held = pool.submit(double.score, "held")
        until(double.is_held)
        double.process.send_signal(signal.SIGTERM)
        status = double.process.wait(50)
        answer = held.result()

        assert 0 == status
        assert (503, "draining") == (answer.status_code, answer.json()["code"])
        assert "running work is dropped" in double.log.read_text("utf-8")


@pytest.fixture(scope="module")
def slow():
    """A picture that takes a second to decode."""
    return many_scans(flat(5000, 5000, "JPEG", progressive=True), 20)


@pytest.mark.parametrize("lane", ["interactive", "bulk"])
def test_sigterm_does_not_wait_for_pictures_that_nobody_waits_for(tmp_path, slow, lane):
    """After the grace, what waits for its turn is dropped, and soon what is being decoded, too."""
    began = time.monotonic()
    decode(slow)
    decoding_s = time.monotonic() - began
    pictures = [b64(slow + bytes([number])) for number in range(128)]  # bytes after the end make it another
    body = {"prompt": "a", "images": pictures, "priority": lane, "timeout_ms": 600_000}
    with faulty(tmp_path, SCOREGATE_SERVER__GRACE_S="1") as double, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(double.score, items=None, **body)
        until(lambda: double.counts()["pixels"] > 0)
        double.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        assert 0 == double.process.wait(1 + 64 * decoding_s)
        waited_s = time.monotonic() - began
        answer = asked.result()

    assert (503, "draining") == (answer.status_code, answer.json()["code"])
    assert waited_s < 1 + CLOSE_S + 16 * decoding_s  # two threads need 64 for all of them
