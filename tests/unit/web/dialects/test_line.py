"""Requests that wait for room in a lane: in line, so that many cost no more than one."""

import asyncio
from types import SimpleNamespace

import pytest

from service.core.errors import DeadlineExceeded, Overloaded
from service.core.lanes import BULK
from service.metrics.common.contract import Score
from service.serving.context import Context
from service.web.dialects import deadline_retry, retry_budget
from service.web.dialects.deadline_retry import DeadlineRetry
from service.web.dialects.retry_budget import AGAIN_PER_S, MAX_ITEMS, MAX_REQUESTS, RetryBudget
from service.web.dialects.unheard import Unheard

pytestmark = pytest.mark.anyio

METRICS = ("vqascore",)


class Lane:
    """An engine whose lane has room for so many requests, which are items by their name."""

    def __init__(self, room=0):
        self.room = room
        self.looked, self.scored = [], []
        self.later = None  # with what a request is refused after it was admitted

    def admit(self, items, metrics, context):
        self.looked.append(items[0])
        if not self.room:
            raise Overloaded("full")

    async def score(self, items, metrics, context):
        self.admit(items, metrics, context)
        self.room -= 1
        if self.later:
            raise self.later
        self.scored.append(items[0])
        found = SimpleNamespace(results={name: Score(1.0, {}) for name in metrics})
        return SimpleNamespace(items=[found] * len(items), warnings=[])


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Tests wait a hundredth of the time."""
    monkeypatch.setattr(deadline_retry, "FIRST_WAIT_S", 0.002)
    monkeypatch.setattr(deadline_retry, "LONGEST_WAIT_S", 0.02)


def asked(lane, room, name, metrics=METRICS, timeout_s=60, items=1):
    """A request that waits for its scores."""
    context = Context("", asyncio.get_running_loop().time() + timeout_s, BULK, None)
    one = DeadlineRetry(lane, [name] * items, [metrics] * items, context, Unheard())
    return asyncio.create_task(one.outcomes(room, 0))


async def turns(count=20):
    for _ in range(count):
        await asyncio.sleep(0)


async def until(condition):
    while not condition():
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("count", [10, 300])
async def test_only_the_first_in_line_looks_for_room(count):
    """1,500 waiters that each looked by themselves took a whole core."""
    lane, room = Lane(), RetryBudget(0)
    tasks = [asked(lane, room, number) for number in range(count)]
    await turns()
    lane.looked.clear()  # the first ask of each
    await until(lambda: len(lane.looked) >= 10)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert {0} == {*lane.looked}


async def test_who_came_first_is_asked_first_and_one_by_one():
    """Also before one who comes when there is room again."""
    lane, room = Lane(), RetryBudget(0)
    tasks = [asked(lane, room, number) for number in range(20)]
    await turns()
    lane.room = 5
    tasks.append(asked(lane, room, "late"))
    await until(lambda: len(lane.scored) == 5)
    assert [0, 1, 2, 3, 4] == lane.scored
    lane.room = 100
    await asyncio.gather(*tasks)

    assert [*range(20), "late"] == lane.scored


async def test_who_waits_for_one_metric_keeps_nobody_from_another():
    lane, room = Lane(), RetryBudget(0)
    waits = asked(lane, room, "vqa")
    await turns()
    lane.room = 1
    await asked(lane, room, "clip", ("clipscore",))

    assert ["clip"] == lane.scored
    waits.cancel()


async def test_who_leaves_the_line_keeps_nobody_from_it():
    lane, room = Lane(), RetryBudget(0)
    first, second = asked(lane, room, 1), asked(lane, room, 2)
    await turns()
    first.cancel()
    lane.room = 1
    await second

    assert [2] == lane.scored
    assert not room.is_waited_for("vqascore")


async def test_who_is_not_asked_before_the_deadline_has_its_error_and_no_score():
    lane, room = Lane(), RetryBudget(0)
    first = asked(lane, room, 1)
    await turns()
    [outcome] = await asked(lane, room, 2, timeout_s=0.02)
    first.cancel()

    assert isinstance(outcome["vqascore"], DeadlineExceeded)
    assert 2 not in lane.looked


async def test_so_many_requests_and_items_may_wait_and_no_more():
    room = RetryBudget(0)
    with room.place("vqascore", 0, MAX_ITEMS), pytest.raises(Overloaded):
        room.place("vqascore", 0, 1).__enter__()
    with room.place("vqascore", 0, MAX_ITEMS):
        pass  # what was taken was given back


async def test_as_many_requests_as_trainers_send_may_wait(monkeypatch):
    """Who is beyond is told to come again."""
    monkeypatch.setattr(retry_budget, "MAX_REQUESTS", 3)
    lane, room = Lane(), RetryBudget(0)
    tasks = [asked(lane, room, number) for number in range(3)]
    await turns()
    with pytest.raises(Overloaded):
        await asked(lane, room, 3)
    for task in tasks:
        task.cancel()

    assert MAX_REQUESTS >= 800  # of verl-omni at once


def test_what_is_refused_after_it_was_admitted_is_asked_again_at_a_bounded_rate():
    """By the question LLM, say: the more wait, the later each is asked again."""
    room = RetryBudget(0)
    with room.place("dsg", 0, 2 * AGAIN_PER_S):
        assert room.pause_s == 2
    assert room.pause_s == 0


async def test_what_is_refused_though_there_is_room_is_not_asked_without_a_pause(monkeypatch):
    """Or a quota that is used up would take a whole core."""
    pauses, sleep = [], asyncio.sleep

    async def noted(seconds):
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    lane, room = Lane(room=10**6), RetryBudget(0)
    lane.later = Overloaded("another model is full")
    waits = asked(lane, room, 1)
    while len(pauses) < 5:
        await sleep(0)
    waits.cancel()

    assert len(lane.looked) <= 2 * len(pauses) + 2  # each time by the line, and by the engine
    assert all(pause > 0 for pause in pauses)
