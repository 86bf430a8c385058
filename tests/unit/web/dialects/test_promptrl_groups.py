"""Which groups of PromptRL are kept, and for how long."""

import pytest

from service.core.errors import Conflict
from service.metrics.common.contract import Score
from service.web.dialects.promptrl.groups import Groups

KEPT_S = 300.0


class Clock:
    """A clock that stands still."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def groups(clock):
    return Groups(KEPT_S, most=2, clock=clock)


def scored(groups, digest=b"a", request="r"):
    """Send the only sample of a group, and return whether it had a score before."""
    with groups.joined(request, "g", 1, "s", digest) as group:
        before = "s" in group.outcomes
        group.add("s", Score(1.0, {}))
    return before


def test_a_finished_group_is_kept_for_retries_and_then_forgotten(groups, clock):
    """So a restarted training can use its ids for other videos."""
    assert not scored(groups)
    clock.now += KEPT_S
    assert scored(groups)
    with pytest.raises(Conflict):
        scored(groups, b"b")
    clock.now += KEPT_S + 1

    assert not scored(groups, b"b")


def test_a_group_that_is_awaited_is_not_forgotten(groups, clock):
    """However long its other samples take."""
    with groups.joined("r", "g", 2, "first", b"a") as awaited:
        clock.now += 10 * KEPT_S
        with groups.joined("r", "g", 2, "second", b"b") as joined:
            assert awaited is joined


def test_the_oldest_groups_are_forgotten_if_there_are_too_many(groups):
    """Also before their time."""
    for request in "abc":
        scored(groups, request=request)

    assert [False, True] == [scored(groups, request=request) for request in "ac"]
