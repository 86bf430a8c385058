"""The client's errors are those of the service."""

import pickle

import pytest

import scoregate
from scoregate.errors import (
    CLIENT_ERRORS,
    KINDS,
    ColumnError,
    InputError,
    NoColumnError,
    ScoregateError,
    error_of,
    named,
    tree,
)
from service.core import errors


def test_every_code_of_the_service_is_a_class_of_the_same_name():
    """And below the same class, so that who catches `BadImageError` catches every bad image."""
    theirs = {kind.code: kind for kind in tree(errors.ScoregateError)}
    ours = {code: kind for code, kind in KINDS.items() if kind not in CLIENT_ERRORS}

    assert theirs.keys() == ours.keys()
    for code, kind in theirs.items():
        assert f"{kind.__name__.removesuffix('Error')}Error" == ours[code].__name__
        if code != ScoregateError.code:
            base = kind.__base__.__name__
            assert f"{base.removesuffix('Error')}Error" == ours[code].__bases__[0].__name__


def test_every_error_can_be_named_after_one_import():
    """`except scoregate.errors.LaneFullError`."""
    here = tree()

    assert [] == [kind for kind in here if getattr(scoregate.errors, kind.__name__, None) is not kind]
    assert [] == [kind.__name__ for kind in here if not kind.__name__.endswith("Error")]
    assert len(here) == len({kind.code for kind in here})


@pytest.mark.parametrize("code", ["timeout", "deadline_exceeded", "request_timeout"])
def test_every_timeout_is_a_timeout_error(code):
    """The service's deadline is a little before the client's, so its error is the usual one."""
    assert issubclass(KINDS[code], TimeoutError)


def test_a_timeout_and_a_failed_connection_are_also_the_built_in_errors():
    assert issubclass(KINDS["connection_failed"], ConnectionError)
    copy = pickle.loads(pickle.dumps(error_of({"code": "timeout", "detail": "late"}).at("item 3")))
    assert ("item 3: late", "item 3: late", None) == (str(copy), copy.detail, copy.errno)


def test_a_code_that_nobody_knows_is_kept():
    """That of a newer service."""
    error = error_of({"code": "on_strike", "detail": "no models today"}, status=503)

    assert ScoregateError is type(error)
    assert ("on_strike", "no models today", 503) == (error.code, error.detail, error.status)


def test_an_error_travels_between_processes():
    """With all that it says."""
    entry = {"code": "lane_full", "detail": "full", "retry_after_s": 1.5}
    error = error_of(entry, status=429, request_id="r")
    copy = pickle.loads(pickle.dumps(error))

    assert type(error) is type(copy)
    assert error.__dict__ == copy.__dict__
    assert "full" == str(copy)


@pytest.mark.parametrize(
    "error",
    [
        NoColumnError("rows.csv", "image", ["file", "prompt"], "image_column", ["prompt"]),
        ColumnError("metric", "it is constant"),
        InputError("rows.csv: no rows"),
    ],
    ids=lambda error: error.code,
)
def test_an_error_of_a_file_travels_between_processes(error):
    """Although its arguments are others than a message, as a worker of Ray sends it."""
    copy = pickle.loads(pickle.dumps(error))

    assert (type(error), str(error), error.__dict__) == (type(copy), str(copy), copy.__dict__)
    assert isinstance(copy, ValueError)


def test_no_response_is_an_error_of_a_file():
    """Such an error has other arguments; the code of one in a response is unknown."""
    assert ScoregateError is type(error_of({"code": NoColumnError.code, "detail": "x"}))


def test_the_command_line_shows_flags_in_place_of_settings():
    """Also in a copy that came from another process, behind a place."""
    error = InputError(f"{named('any_path')} and {named('grid', '2x2')}: give one").at("rows.csv")
    copy = pickle.loads(pickle.dumps(error))
    typed = copy.with_flags(lambda name, value: f"<{name} {value}>")

    assert "rows.csv: `any_path` and grid='2x2': give one" == error.detail == str(copy)
    assert "rows.csv: <any_path None> and <grid 2x2>: give one" == typed.detail == str(typed)


def test_a_value_of_a_setting_may_be_any_text():
    """Its characters are not taken for those of a mark."""
    value = "0\0x\1\0"
    error = InputError(f"{named('grid', value)}: none")

    assert f"grid={value!r}: none" == error.detail
    assert "0x\1: none" == error.with_flags(lambda _, value: value).detail


@pytest.mark.parametrize(
    ("code", "expected"),
    [("image_undecodable", True), ("bad_image", True), ("lane_full", False), ("invalid", False)],
)
def test_an_error_says_whether_the_picture_is_its_reason(code, expected):
    """So that a filter which fails open shows no broken picture."""
    assert expected == error_of({"code": code, "detail": "x"}).of_image
