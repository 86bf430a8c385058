"""How many pictures a process feeds."""

from loadtest import feed


def test_a_core_feeds_what_decoding_handing_over_and_resizing_leave_it():
    """4 ms and 1 ms of each second."""
    assert 200 == feed.Feed(service_ms=4, resize_ms=1, rate=700).per_core


def test_a_line_for_each_way_to_send():
    """With the figures that the page about sizing has."""
    found = {"one a request": feed.Feed(service_ms=1.5, resize_ms=0.5, rate=700)}

    assert "| one a request | 1.50 | 0.50 | 500 | 700 |" == feed.table(found)[-1]


def test_a_picture_is_resized_in_more_than_no_time():
    """Of a core, in milliseconds."""
    assert 0 < feed.resize_ms("rl") < 100
