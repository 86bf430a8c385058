"""Whose turn it is among requests."""

import pytest

from service.concurrency.turns import Turns, one_caller


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
