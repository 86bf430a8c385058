"""Callers who leave, in a service that is a process of its own.  `make soak` sends fifty times as many."""

import asyncio

from tests.support.callers import leave_often
from tests.support.double import LEFT_BEHIND
from tests.support.service import until

LEAVERS = 200
SERIES = 'scoregate_requests_total{code="499",route="/score"}'


def test_callers_who_left_leave_nothing_behind(double):
    """Tasks, threads, open files, calls and pictures: as after a clean request before them."""
    double.score("a red circle")  # its batch clears the queue of calls that an earlier test gave up
    before, left = double.at_rest(), double.instrument(SERIES)
    asyncio.run(leave_often(double.port, LEAVERS, seed=5))
    answer = double.score("a red square")

    assert 200 == answer.status_code
    assert 0 < answer.json()["results"][0]["scores"]["vqascore"] < 1
    assert double.instrument(SERIES) - left > LEAVERS / 4
    until(lambda: {name: double.counts()[name] for name in LEFT_BEHIND} == before)
