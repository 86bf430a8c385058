"""A job: its lane, its deadline, and how far it has come."""

import pytest

from models.core.contract import Prepared
from models.core.outcomes import Reward
from service.core.errors import DeadlineExceeded, ModelFault
from service.serving.handle import stage
from service.serving.job import Job, JobResult

WAITS = Prepared(1, None)


def job(prepared=None, *, lane="bulk", running=False):
    made = Job(prepared, lane, deadline=10.0)
    made.running = running
    return made


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([], "decode"),
        ([job(), job()], "decode"),
        ([job(), job(WAITS)], "queue"),
        ([job(), job(WAITS), job(WAITS, running=True)], "model"),
    ],
)
def test_a_group_has_come_as_far_as_the_first_of_its_jobs(jobs, expected):
    """Prepared, queued or on the model."""
    assert expected == stage(jobs)


def test_a_promoted_job_is_interactive_wherever_it_is():
    """What holds it is called once."""
    early, late, seen = job(), job(WAITS), []
    late.on_move = seen.append
    for each in (early, late):
        each.promote()
        each.promote()

    assert ["interactive", "interactive"] == [early.lane, late.lane]
    assert [late] == seen


def test_a_job_has_the_latest_deadline_of_its_callers():
    """Whichever comes first."""
    made = job()
    for deadline in (20.0, 15.0):
        made.join("bulk", deadline)

    assert 20.0 == made.deadline


def test_no_batch_takes_a_job_from_its_deadline_on():
    """Nor one that has its result."""
    made = job()

    assert [False, True] == [made.has_gone(now) for now in (9.9, 10.0)]
    made.refuse(ModelFault())
    assert made.has_gone(0.0)


def test_the_result_of_a_refused_job_has_the_time_that_it_waited():
    """For a batch whose device was lost; a job that no batch took has waited and run for no time."""
    made, refused, reason = job(), job(), DeadlineExceeded(stage="queue")
    made.arrived = 2.0
    made.begin(5.0)
    made.refuse(reason)
    refused.refuse(reason)

    assert JobResult(reason, 3.0, refused=True) == made.result.result()
    assert JobResult(reason, refused=True) == refused.result.result()


def test_a_job_keeps_its_first_result():
    """Also if it was cancelled."""
    made, cancelled, first = job(), job(), JobResult(Reward((1.0,)))
    cancelled.cancel()
    for each in (made, cancelled):
        each.finish(first)
        each.refuse(ModelFault())

    assert first is made.result.result()
    assert cancelled.result.cancelled()


def test_a_job_is_interactive_while_it_has_interactive_callers():
    """Then it is bulk work again, if it ever was; what holds it is called for each change."""
    made, seen = job(), []
    made.on_move = lambda moved: seen.append(moved.lane)
    for lane in ("bulk", "interactive", "interactive"):
        made.join(lane)
    made.leave("interactive")
    assert "interactive" == made.lane
    made.leave("interactive")
    assert ("bulk", 1) == (made.lane, made.callers["bulk"])
    made.leave("bulk")
    assert {"bulk": 0, "interactive": 0} == made.callers

    made.join("interactive")
    made.leave("interactive")
    assert ["interactive", "bulk", "interactive", "bulk"] == seen
    urgent = job(lane="interactive")
    urgent.join("interactive")
    urgent.leave("interactive")
    assert "interactive" == urgent.lane
