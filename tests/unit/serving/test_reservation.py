"""What a request was admitted for counts against its lane until it asks for it."""

import pytest

from service.serving.admission import Reservation


def test_each_part_that_begins_gives_back_its_share():
    """A quarter of 100 tokens each; what other requests have reserved stays."""
    reserved = {"bulk": 7.0, "interactive": 3.0}
    reservation = Reservation([(reserved, 100.0)], "bulk", parts=4)
    left = [reserved["bulk"]]
    for _ in range(4):
        reservation.begin_part()
        left.append(reserved["bulk"])

    assert [107.0, 82.0, 57.0, 32.0, 7.0] == left
    assert 3.0 == reserved["interactive"]


@pytest.mark.parametrize("parts", [1, 3, 5])
def test_no_more_is_given_back_than_was_reserved(parts):
    """However often a part begins, and when the request ends before or after."""
    reserved = {"bulk": 0.0}
    reservation = Reservation([(reserved, 90.0)], "bulk", parts=3)
    for _ in range(parts):
        reservation.begin_part()
    reservation.close()
    reservation.close()

    assert 0.0 == reserved["bulk"]


def test_a_request_on_several_replicas_gives_back_on_each_of_them():
    """As a part begins, and as the request ends."""
    replicas = [{"bulk": 0.0}, {"bulk": 2.0}]
    request = Reservation([(reserved, 10.0) for reserved in replicas], "bulk", parts=2)
    request.begin_part()
    begun = [reserved["bulk"] for reserved in replicas]
    request.close()

    assert [5.0, 7.0] == begun
    assert [0.0, 2.0] == [reserved["bulk"] for reserved in replicas]
