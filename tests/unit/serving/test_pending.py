"""Calls that are being prepared: how many come, and how soon."""

import pytest

from service.serving.batcher.batching import PendingCalls


def test_calls_on_their_way_are_counted_by_lane_until_their_group_is_ready():
    """Two groups of one lane add up, and each takes away its own."""
    pending = PendingCalls()
    first = pending.begin("bulk", 2, 0.0)
    pending.begin("bulk", 3, 0.0)
    pending.begin("interactive", 4, 0.0)
    assert (5, 4, 3) == (pending.count["bulk"], pending.count["interactive"], len(pending.groups))
    pending.end(first, 1.0)

    assert (3, 4, 2) == (pending.count["bulk"], pending.count["interactive"], len(pending.groups))


def test_the_time_of_a_call_is_a_running_mean_from_the_first_one_on():
    """The first says all, and each later one a fifth; it counts from when the first of the groups began."""
    pending = PendingCalls()
    pending.end(pending.begin("bulk", 1, 10.0), 12.0)
    assert 2.0 == pending.between_s
    pending.end(pending.begin("bulk", 4, 20.0), 24.0)

    assert pytest.approx(1.8) == pending.between_s


def test_each_group_is_timed_from_the_one_that_was_ready_before_it():
    """They are prepared by the same threads, one after the other."""
    pending = PendingCalls()
    first, second = pending.begin("bulk", 1, 10.0), pending.begin("bulk", 1, 11.0)
    pending.end(first, 13.0)
    pending.end(second, 16.0)

    assert pytest.approx(3.0) == pending.between_s
