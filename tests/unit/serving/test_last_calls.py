"""How the last calls of a served model went, and what /health says of it."""

import math

import pytest

from models.core.contract import Prepared, UpstreamError
from models.core.outcomes import Reward
from service.core.errors import ModelFault
from service.serving.backends.trust import AGAIN_S, FAILURES_IN_A_ROW, MOST_S, LastCalls
from service.serving.backends.upstream import ServerFailed, Unreachable
from tests.support.handles import asking, until
from tests.unit.serving.test_lanes_before_a_server import calls as asked_for
from tests.unit.serving.test_lanes_before_a_server import serving

CALL, OTHER = Prepared(1, "a call"), Prepared(1, "another")


@pytest.mark.parametrize(
    "error", [Unreachable("cannot be reached"), ServerFailed("returned status 500", 500)]
)
def test_one_call_that_the_server_does_not_answer_is_enough(error):
    """And one that works makes up for it."""
    calls = LastCalls()
    calls.failed(CALL, error, 0)
    failed = calls.reason
    calls.worked()

    assert (f"failed its last call: {error}", "") == (failed, calls.reason)


@pytest.mark.parametrize(
    "error",
    [UpstreamError("wrote no text"), ServerFailed("returned status 400", 400), ModelFault("no number")],
)
def test_bad_answers_may_be_their_calls_fault_until_several_follow_each_other(error):
    """A success between them starts the count again."""
    calls = LastCalls()
    for call in (CALL, CALL, None, CALL, CALL):
        calls.failed(call, error, 0) if call else calls.worked()
    before = calls.reason
    calls.failed(OTHER, error, 0)

    assert 3 == FAILURES_IN_A_ROW
    assert ("", f"failed its last 3 calls: {error}") == (before, calls.reason)


def test_the_call_that_failed_last_is_due_at_once_then_ever_more_rarely():
    """Up to a minute apart; nothing is due while all is well."""
    calls = LastCalls()
    idle = calls.take_due(0)
    calls.failed(CALL, Unreachable("cannot be reached"), 0)
    calls.failed(OTHER, Unreachable("cannot be reached"), 0)
    due = [(now, call.data) for now in range(0, 200, 5) if (call := calls.take_due(now))]
    calls.worked()

    assert (None, None) == (idle, calls.take_due(1000))
    assert (5.0, 60.0) == (AGAIN_S, MOST_S)
    assert [(now, "another") for now in (0, 5, 15, 35, 75, 135, 195)] == due


@pytest.mark.anyio
async def test_a_server_that_returns_no_numbers_has_failed_its_last_calls():
    """As with other answers that nobody can use; its next number makes up for them."""
    async with serving() as (handle, server, *_):

        async def answered(text, value):
            task, _ = asking(handle, *asked_for(text))
            await until(lambda: text in server.waiting)
            server.answers(text, Reward((value,)))
            return (await task)[0]

        reasons, outcomes = [], []
        for number, value in enumerate([math.nan, math.nan, math.inf, 1.0]):
            outcomes.append(await answered(f"call {number}", value))
            reasons.append(handle.backend.failing)

    assert [ModelFault, ModelFault, ModelFault, Reward] == [*map(type, outcomes)]
    said = "failed its last 3 calls: the model questions returned a number that is not finite"
    assert ["", "", said, ""] == reasons
