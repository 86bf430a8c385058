"""SIGTERM while batches are in flight."""

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.callers import PROMPTS
from tests.e2e.double import faulty, until

pytestmark = pytest.mark.integration


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
