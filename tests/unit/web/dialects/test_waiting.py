"""A trainer that is refused may die of it: requests wait for room until their deadline."""

import pytest

from service.core.errors import (
    DeadlineExceeded,
    LaneFull,
    Malformed,
    ModelFault,
    NotReady,
    Overloaded,
    QuotaExceeded,
    RequestTimeout,
    ScoregateError,
    TooLarge,
    UpstreamFailed,
)
from service.web.dialects import deadline_retry
from service.web.dialects.failures import answer_to, is_temporary
from service.web.openapi import tree


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Tests wait a hundredth of the time."""
    monkeypatch.setattr(deadline_retry, "FIRST_WAIT_S", 0.002)
    monkeypatch.setattr(deadline_retry, "LONGEST_WAIT_S", 0.02)


def test_no_error_of_the_service_reaches_a_trainer_in_a_form_that_ends_it():
    """Never a bare 429, 502, 503, 504 or 408; and never Retry-After where waiting does not help."""
    for kind in tree():
        status, headers = answer_to(kind() if kind is not DeadlineExceeded else DeadlineExceeded())
        assert status not in (408, 429, 502, 504), kind
        assert ("Retry-After" in headers) == (status == 503), kind


@pytest.mark.parametrize(
    "error",
    [
        Overloaded(),
        NotReady(),
        LaneFull(),
        QuotaExceeded(),
        UpstreamFailed(),
        DeadlineExceeded(),
        RequestTimeout(),
    ],
)
def test_what_passes_by_itself_is_temporary(error):
    assert is_temporary(error)


@pytest.mark.parametrize("error", [ScoregateError(), ModelFault(), TooLarge(), Malformed()])
def test_what_stays_wrong_is_not(error):
    assert not is_temporary(error)
