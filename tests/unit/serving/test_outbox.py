"""Results that callers fetch later: whose they are, how long they stay, and what runs at once."""

import asyncio
import logging
from functools import partial

import pytest

from service.core.concurrency.budget import ByteBudget
from service.core.errors import MemoryFull, NotFound, Overloaded, ScoregateError
from service.serving.outbox import MAX_RUNNING, RESULT_KEPT_S, Outbox
from tests.support.clocks import Clock

pytestmark = pytest.mark.anyio


async def done(parts):
    return parts


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def box(clock):
    return Outbox(ByteBudget(1000), clock)


async def posted(box, caller, parts, size=0):
    """The id of a result that is there."""
    identity = box.post(caller, partial(done, parts), size)
    await box._tasks.wait()
    return identity


async def test_a_result_is_there_when_its_work_is_done_and_stays(box):
    """A caller whose connection broke fetches it again."""
    goes_on = asyncio.Event()

    async def work():
        await goes_on.wait()
        return {"a": 1.0}

    identity = box.post("me", work)
    assert box.get("me", identity) is None
    goes_on.set()
    await box._tasks.wait()

    assert [{"a": 1.0}] * 2 == [box.get("me", identity) for _ in range(2)]


async def test_ids_are_bound_to_their_caller(box):
    """Also to callers without a key."""
    mine, anyones = await posted(box, "me", {}), await posted(box, None, {})

    for caller, identity in (("you", mine), (None, mine), ("me", anyones), ("me", "")):
        with pytest.raises(NotFound):
            box.get(caller, identity)


async def test_a_result_is_dropped_after_its_time(box, clock):
    identity = await posted(box, "me", {})
    clock.set(RESULT_KEPT_S - 1)
    kept = box.get("me", identity)
    clock.set(RESULT_KEPT_S)

    assert {} == kept
    with pytest.raises(NotFound):
        box.get("me", identity)


async def test_too_much_drops_the_callers_own_oldest_results(clock):
    """The last one stays, however large it is."""
    box = Outbox(ByteBudget(1000), clock, max_bytes=100)
    yours = await posted(box, "you", {"a": "x" * 80})
    mine = [await posted(box, "me", {"a": "x" * 40}) for _ in range(4)]
    large = await posted(box, "me", {"a": "x" * 500})

    assert box.get("you", yours)
    assert box.get("me", large)
    for identity in mine:
        with pytest.raises(NotFound):
            box.get("me", identity)


async def test_work_holds_bytes_of_the_requests_budget_until_it_ends(box):
    identity = box.post("me", partial(done, {}), 800)
    with pytest.raises(MemoryFull):
        box.post("me", partial(done, {}), 300)
    await box._tasks.wait()

    assert {} == box.get("me", identity)
    assert 0 == box._memory.held


async def test_a_caller_has_a_limit_of_running_work(box):
    """What is refused has no entry; other callers have their own."""
    for _ in range(MAX_RUNNING):
        box.post("me", partial(done, {}))
    with pytest.raises(Overloaded) as refused:
        box.post("me", partial(done, {}))
    box.post("you", partial(done, {}))
    await box._tasks.wait()

    assert refused.value.retry_after_s
    assert [MAX_RUNNING, 1] == [len(box._entries[who]) for who in ("me", "you")]


async def test_work_that_fails_is_an_error_of_its_result(box, caplog):
    """Its reason is in the log alone."""

    async def work():
        raise RuntimeError("a secret")

    with caplog.at_level(logging.ERROR):
        identity = box.post("me", work, 10)
        await box._tasks.wait()

    with pytest.raises(ScoregateError) as failed:
        box.get("me", identity)
    assert "secret" not in failed.value.detail
    assert "a secret" in caplog.text
    assert 0 == box._memory.held


async def test_closing_cancels_what_runs(box):
    ended = []

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    box.post("me", work)
    await asyncio.sleep(0)
    await box.aclose()

    assert [True] == ended
