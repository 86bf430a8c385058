"""Logs: no line without an end of others like it, and the place where an exception was raised."""

import io
import json
import logging

import pytest

from service.observability.logs import REPEAT_S, JsonLines, OnceAMinute, TextLines, formatter_for
from tests.support.terminal import Terminal


def record(text, level=logging.ERROR, at=0.0):
    made = logging.LogRecord("asyncio", level, __file__, 1, text, (), None)
    made.created = at
    return made


def test_a_warning_is_written_once_a_minute():
    """By its first line: what follows differs from time to time."""
    filter = OnceAMinute()
    out = "socket.accept() out of system resource\nsocket: {}"
    times = (0, 1, REPEAT_S - 1, REPEAT_S, REPEAT_S + 1)

    assert [0, REPEAT_S] == [at for n, at in enumerate(times) if filter.filter(record(out.format(n), at=at))]


def test_others_pass():
    """Another warning, and what is no warning at all."""
    filter = OnceAMinute()
    texts = ["one", "another"]

    assert all(filter.filter(record(text)) for text in texts)
    assert all(filter.filter(record("one", logging.INFO)) for _ in range(3))


def test_of_a_group_of_exceptions_the_line_has_the_first_one_and_where_it_was_raised():
    def fails():
        raise ZeroDivisionError

    try:
        try:
            fails()
        except ZeroDivisionError as exc:
            raise ExceptionGroup("unhandled errors", [exc]) from None
    except ExceptionGroup as group:
        raised = (type(group), group, group.__traceback__)
    record = logging.LogRecord("scoregate", logging.ERROR, "", 0, "request failed", (), raised)
    line = json.loads(JsonLines().format(record))

    assert line["exception"] == "ZeroDivisionError"
    assert line["traceback"][-1].endswith(" fails")


@pytest.mark.parametrize(("stream", "kind"), [(Terminal(), TextLines), (io.StringIO(), JsonLines)])
def test_a_terminal_gets_lines_for_people_and_a_file_those_for_programs(stream, kind):
    """By what the stream is, without a setting."""
    assert kind is type(formatter_for(stream))


def test_a_line_for_people_has_the_fields_that_are_short():
    """And nothing that controls a terminal."""
    made = record("request\x1b[2J", logging.INFO)
    vars(made).update(route="/score", code=200, ms=22.5, request_id="810f", stages={"model": 9.4})
    line = TextLines().format(made)

    assert line.endswith("info request?[2J route=/score code=200 ms=22.5")
