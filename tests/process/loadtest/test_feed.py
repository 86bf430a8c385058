"""How many pictures a process feeds, measured."""

import pytest

from loadtest import feed, servers
from loadtest.workloads import Spec


def test_the_processor_time_of_pictures_is_what_the_service_used_for_them():
    """Seconds between two scrapes, over the number of pictures."""
    with servers.null() as null:
        seconds, rate = feed.round_of(null, Spec("sixty-four-at-once", rate=1, seconds=4, image="rl"))

    assert 0 < seconds < 10
    assert 0 < rate == pytest.approx(rate)
