"""Work that several callers share."""

import asyncio
import gc

import pytest

from service.core.concurrency.sharing import BatchLoader, SingleFlight

pytestmark = pytest.mark.anyio


async def test_work_is_done_once_however_many_ask():
    """Everyone who comes while it is under way joins; the next one starts anew."""
    flights, gate, begun = SingleFlight(), asyncio.Event(), []

    async def work():
        begun.append(1)
        await gate.wait()
        return "done"

    tasks = [asyncio.create_task(flights.do("key", work)) for _ in range(24)]
    await asyncio.sleep(0)
    tasks[0].cancel()  # the one who began it leaves
    await asyncio.sleep(0)
    gate.set()
    results = await asyncio.gather(*tasks[1:])

    assert [("done", True)] * 23 == results
    assert 1 == len(begun)
    assert ("done", False) == await flights.do("key", work)


async def test_a_failure_reaches_all_who_wait_and_is_forgotten():
    """The next one starts anew."""
    flights = SingleFlight()

    async def fail():
        raise ValueError

    outcomes = await asyncio.gather(*(flights.do("key", fail) for _ in range(3)), return_exceptions=True)
    assert [ValueError] * 3 == [type(outcome) for outcome in outcomes]
    assert 0 == len(flights)


async def test_closing_cancels_what_is_under_way_and_waits_for_its_end():
    """Also for work that takes its time to end, and whatever it ends with."""
    flights, ended = SingleFlight(), []

    async def ends(how):
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(how)
            raise how

    for how in (ValueError(), asyncio.CancelledError()):
        asyncio.create_task(flights.do(how, lambda how=how: ends(how))).add_done_callback(
            lambda asked: asked.cancelled() or asked.exception()
        )
    while len(flights) < 2:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    await flights.aclose()

    assert 2 == len(ended)
    assert 0 == len(flights)


@pytest.mark.parametrize("end", [ValueError, asyncio.CancelledError])
async def test_work_that_fails_when_all_have_left_is_no_fault_of_the_loop(end):
    """Nobody is there to read its exception, and nothing is logged for that."""
    flights, gate, complaints = SingleFlight(), asyncio.Event(), []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def fail():
        await gate.wait()
        raise end

    asked = asyncio.create_task(flights.do("key", fail))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait([asked])
    del asked  # whose traceback keeps the work
    gate.set()
    while len(flights):
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    gc.collect()

    assert [] == complaints


class Work:
    """Doubles numbers, once it is let go, and refuses batches with a 13."""

    def __init__(self):
        self.batches = []
        self.go = asyncio.Event()

    async def __call__(self, batch):
        self.batches.append(list(batch))
        await self.go.wait()
        if 13 in batch:
            raise ValueError
        return [2 * number for number in batch]


async def test_what_is_asked_in_one_turn_shares_a_batch_and_so_does_what_waits():
    """Two batches for six questions; each has its own answer."""
    work = Work()
    loader = BatchLoader(work)
    first = [loader.load(number) for number in (1, 2, 3)]
    while not work.batches:
        await asyncio.sleep(0)
    second = [loader.load(number) for number in (4, 5, 6)]
    work.go.set()

    assert [2, 4, 6, 8, 10, 12] == list(await asyncio.gather(*first, *second))
    assert [[1, 2, 3], [4, 5, 6]] == work.batches


async def test_closing_waits_for_everything_that_was_asked():
    """Also for what nobody awaits."""
    work = Work()
    loader = BatchLoader(work)
    answer = loader.load(1)
    work.go.set()
    await loader.aclose()

    assert 2 == answer.result()


async def test_an_error_reaches_its_batch_and_nobody_else():
    """The next batch is worked on."""
    work = Work()
    work.go.set()
    loader = BatchLoader(work)
    bad = await asyncio.gather(loader.load(13), loader.load(1), return_exceptions=True)

    assert [ValueError, ValueError] == [type(answer) for answer in bad]
    assert 4 == await loader.load(2)


async def test_who_leaves_takes_no_answer_from_the_others():
    """A cancelled question is worked on and its answer dropped."""
    work = Work()
    loader = BatchLoader(work)
    gone, stays = loader.load(1), loader.load(2)
    gone.cancel()
    work.go.set()

    assert 4 == await stays


async def test_nobody_waits_for_work_that_was_cancelled():
    """Neither who shares its batch, nor who waits for the next; who asks later has an answer."""
    work = Work()
    loader = BatchLoader(work)
    shares = loader.load(1)
    while not work.batches:
        await asyncio.sleep(0)
    waits = loader.load(2)
    loader._worker.cancel()
    async with asyncio.timeout(10):
        ended = await asyncio.gather(shares, waits, return_exceptions=True)
        work.go.set()
        later = await loader.load(3)

    assert [asyncio.CancelledError, asyncio.CancelledError] == [type(each) for each in ended]
    assert 6 == later


async def test_a_question_that_work_leaves_out_is_an_error():
    """Whoever asked it would wait without end."""

    async def forgetful(batch):
        return batch[:1]

    loader = BatchLoader(forgetful)
    answers = await asyncio.gather(loader.load(1), loader.load(2), return_exceptions=True)

    assert [int, ValueError] == [type(answer) for answer in answers]
