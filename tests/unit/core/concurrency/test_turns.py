"""Whose turn it is among requests."""

import pytest

from service.core.concurrency.turns import Turns, one_caller


def drained(turns: Turns[str]) -> str:
    """All entries in the order of their turns."""
    taken = []
    while turns:
        assert turns.first() == turns.first()
        taken.append(turns.take()[1])
    return "".join(taken)


def test_callers_take_turns_whoever_has_most():
    """And each caller's own entries keep their order."""
    turns: Turns[str] = Turns()
    for entries in ("abc", "A", "12"):
        with one_caller():
            for entry in entries:
                turns.add(entry)

    assert "aA1b2c" == drained(turns)


def test_who_comes_back_goes_behind_the_others():
    """One entry at a time gets no more than many at once."""
    turns: Turns[str] = Turns()
    with one_caller():
        turns.add("a")
        turns.add("b")
    with one_caller():
        turns.add("1")
        _, first = turns.take()
        turns.add("2")

    assert "a1b2" == first + drained(turns)


def test_what_belongs_to_no_request_waits_as_one_caller():
    """First come, first served."""
    turns: Turns[str] = Turns()
    for entry in "abc":
        turns.add(entry)

    assert "abc" == drained(turns)
    with pytest.raises(StopIteration):
        turns.first()


def test_requests_with_one_key_are_one_caller():
    """Its requests share the caller's turns, in turns themselves."""
    turns: Turns[str] = Turns()
    for who, entries in (("key", "ab"), ("key", "12"), (None, "xyz")):
        with one_caller(who):
            for entry in entries:
                turns.add(entry)

    assert "ax1ybz2" == drained(turns)


def test_callers_who_are_last_go_where_no_others_wait():
    """Those who have something go behind those who have nothing, and in turns among themselves."""
    turns: Turns[str] = Turns()
    for who in "abc":
        with one_caller(who):
            turns.add(who)

    assert [("b", "b"), ("a", "a"), ("c", "c")] == [turns.take(last) for last in ("ac", "ac", "c")]
