"""Which of several addresses gets a request; the clock is a number."""

from contextlib import ExitStack, suppress

import pytest

from scoregate.connection import MAX_REST_S, REST_S, Address, addresses_of, choice
from scoregate.errors import LaneFullError, ServiceConnectionError, ServiceTimeoutError, UnknownMetricError
from tests.support.clocks import Clock

JITTER = 1.25


def fails(address, clock, error, lasts=0.0):
    """A request to *address* that fails after so many seconds."""
    with suppress(type(error)), address.request(clock):
        clock.advance(lasts)
        raise error


def succeeds(address, clock):
    """A request to *address* with a response."""
    with address.request(clock):
        pass


@pytest.fixture
def clock():
    return Clock(100.0)


@pytest.fixture
def pair():
    """Two addresses."""
    return Address("http://a"), Address("http://b")


def test_the_address_with_the_fewest_waiting_requests_is_chosen(clock, pair):
    """A request counts from its start until its response is complete."""
    a, b = pair
    with ExitStack() as waiting:
        for address, then in ((a, b), (b, None), (a, b)):
            waiting.enter_context(address.request(clock))
            assert then in (None, choice(pair, clock.now))
        assert (2, 1) == (a.waiting, b.waiting)
    assert (0, 0) == (a.waiting, b.waiting)


def test_equal_addresses_are_chosen_at_random(clock, pair):
    """So many processes do not all begin with the first."""
    assert set(pair) == {choice(pair, clock.now) for _ in range(200)}


def test_an_address_that_fails_rests_twice_as_long_each_time(clock, pair):
    """Up to a limit; a response ends it."""
    a, b = pair
    for number in range(9):
        fails(a, clock, ServiceConnectionError())
        rest_s = min(MAX_REST_S, REST_S * 2**number)
        assert rest_s <= a.rests_until - clock.now <= JITTER * rest_s
        assert b is choice(pair, clock.now + rest_s - 0.01)
        clock.set(a.rests_until)
        assert a.is_free(clock.now)
    assert JITTER * MAX_REST_S >= a.rests_until - clock.now + MAX_REST_S
    succeeds(a, clock)
    fails(a, clock, ServiceConnectionError())

    assert a.rests_until - clock.now <= JITTER * REST_S


def test_requests_that_fail_together_are_one_failure(clock, pair):
    """They say nothing more about the address than one of them."""
    a, _ = pair
    together, error = [a.request(clock) for _ in range(50)], ServiceConnectionError()
    for each in together:
        each.__enter__()
    for each in together:
        clock.advance(0.01)
        assert not each.__exit__(type(error), error, None)

    assert 0 < a.rests_until - clock.now <= JITTER * REST_S
    assert 0 == a.waiting


def test_one_request_finds_out_whether_an_address_is_back(clock, pair):
    """The others go elsewhere meanwhile."""
    a, b = pair
    fails(a, clock, ServiceConnectionError())
    clock.set(a.rests_until)
    with b.request(clock):
        assert a is choice(pair, clock.now)
        with a.request(clock):
            assert b is choice(pair, clock.now)
        assert a is choice(pair, clock.now)


def test_a_busy_address_is_free_after_its_retry_after(clock, pair):
    """It has not failed, so it does not rest longer each time."""
    a, b = pair
    for _ in range(5):
        fails(a, clock, LaneFullError(retry_after_s=2.0, status=429))
        assert 2.0 <= a.busy_until - clock.now <= 2.0 * JITTER
        assert b is choice(pair, clock.now + 1.99)
        clock.set(a.busy_until)
        assert a.is_free(clock.now)


def test_a_silent_address_rests(clock, pair):
    """If the request had the time that the service needs to answer that there is no time."""
    a, b = pair
    fails(a, clock, ServiceTimeoutError(), lasts=0.9)
    assert a.is_free(clock.now)
    fails(a, clock, ServiceTimeoutError(), lasts=1.1)
    assert not a.is_free(clock.now)
    assert b is choice(pair, clock.now)


@pytest.mark.parametrize("error", [UnknownMetricError(status=422), KeyError("a fault of the caller's")])
def test_other_errors_leave_an_address_free(clock, pair, error):
    """An error response is a response."""
    a, _ = pair
    fails(a, clock, error)

    assert a.is_free(clock.now)


def test_without_a_free_address_the_one_that_rests_is_tried_before_the_one_that_is_busy(clock, pair):
    """A busy one has said when; and of two that rest it is the first that is back."""
    a, b = pair
    fails(a, clock, LaneFullError(retry_after_s=1.0, status=429))
    fails(b, clock, ServiceConnectionError())
    assert b is choice(pair, clock.now)
    c = Address("http://c")
    fails(c, clock, ServiceConnectionError())
    fails(c, clock, ServiceConnectionError())
    assert b is choice((a, b, c), clock.now)


SPELLINGS = {
    "http://a,https://b/": ["http://a", "https://b"],
    ("HTTP://a", "http://b"): ["http://a", "http://b"],
    "http://a,http://a/": ["http://a"],
    "unix:/run/a b.sock": ["unix:/run/a b.sock"],
    "Unix:///run/a.sock,http://b": ["unix:/run/a.sock", "http://b"],
}


@pytest.mark.parametrize(("given", "found"), SPELLINGS.items())
def test_addresses_are_a_list_or_a_text_with_commas(monkeypatch, given, found):
    """The environment has a text; an address counts once."""
    assert found == addresses_of(given)
    monkeypatch.setenv("SCOREGATE_BASE_URL", given if isinstance(given, str) else ",".join(given))
    assert found == addresses_of(None)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("http://a,", "must begin with http://"),
        ("http://a,b", "must begin with http:// or https://, and is 'b'"),
        ("unix:run/a.sock", "must name an absolute path after unix:"),
        ("unix://run/a.sock", "must name an absolute path after unix:"),
        ("unix:", "must name an absolute path after unix:"),
        ("unix:/a\n", "must name an absolute path after unix:"),
        (f"unix:/{107 * 'a'}", "must have a path of at most 107 bytes"),
    ],
)
def test_each_address_is_checked(given, why):
    """One that is wrong is named."""
    with pytest.raises(ValueError, match=f"^base_url {why}"):
        addresses_of(given)
