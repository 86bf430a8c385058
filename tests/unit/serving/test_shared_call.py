"""A call that several wait for: its lane, its deadline, and how far it has come."""

import pytest

from service.serving.shared_call import SharedCall, stage


class Started:
    """The backend's side of a call, which keeps what becomes of it."""

    def __init__(self, running=False):
        self.running, self.seen = running, []

    def promote(self):
        self.seen.append("promoted")

    def extend(self, deadline):
        self.seen.append(deadline)


def shared(started=None, lane="bulk"):
    call = SharedCall(b"key", None, None, lane, 10.0)
    call.started = started
    return call


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([], "decode"),
        ([None, None], "decode"),
        ([None, Started()], "queue"),
        ([None, Started(), Started(running=True)], "model"),
    ],
)
def test_a_group_has_come_as_far_as_the_first_of_its_calls(calls, expected):
    """Prepared, queued or on the model."""
    assert expected == stage([shared(each) for each in calls])


def test_a_promoted_call_is_interactive_wherever_it_is():
    """The backend learns of it once, where it has the call already."""
    early, late = shared(), shared(Started())
    for call in (early, late):
        call.promote()
        call.promote()

    assert ["interactive", "interactive"] == [early.lane, late.lane]
    assert ["promoted"] == late.started.seen


def test_a_call_has_the_latest_deadline_of_its_callers():
    """And so has the backend's side of it."""
    call = shared(Started())
    for deadline in (20.0, 15.0):
        call.extend(deadline)

    assert 20.0 == call.deadline
    assert [20.0, 20.0] == call.started.seen
