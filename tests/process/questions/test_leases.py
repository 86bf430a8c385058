"""One process writes a set; when it dies, another does, and what it wrote too late is not stored."""

import asyncio
import math

import pytest

from models.core.outcomes import Text
from service.observability.instruments import Instruments
from service.questions.stores.contract import LEASE_S, LeaseLost
from service.questions.stores.redis import LEASE
from service.questions.stores.sqlite import SQLiteStore
from service.questions.styles.dsg import DSG
from service.questions.writer import QuestionWriter, lookup_key
from service.serving.context import Context
from tests.app.questions.test_stores import KEY, MADE
from tests.process.questions.test_stores import OTHER, Redis
from tests.support.clocks import Clock
from tests.support.question_llm import FakeHandle

pytestmark = pytest.mark.anyio

ANSWER = Text('{"questions": [{"id": 1, "kind": "", "text": "Is there a dog?", "depends_on": []}]}')


class Sqlite:
    """Stores on one file, with a clock of their own."""

    def __init__(self, path):
        self.path, self.clock = path, Clock(1000.0)

    def open(self):
        return SQLiteStore(self.path, in_memory=8, now=self.clock)

    def let_leases_end(self):
        """Let as much time go by as a lease lasts."""
        self.clock.advance(LEASE_S + 0.001)

    def pass_nearly(self):
        self.clock.advance(LEASE_S - 0.001)


class RedisOnes(Redis):
    """Stores in one Redis, whose clock is the server's own."""

    def let_leases_end(self):
        for key in self.leases():
            self.server.do("PEXPIRE", key, 0)

    def pass_nearly(self):
        for key in self.leases():
            self.server.do("PEXPIRE", key, 20_000)

    def leases(self):
        return [key for key in self.server.held() if key.startswith(LEASE.encode())]


@pytest.fixture(params=["sqlite", "redis"])
def place(request, tmp_path):
    if request.param == "sqlite":
        return Sqlite(tmp_path / "sets.sqlite3")
    return RedisOnes(request.getfixturevalue("redis"))


async def test_one_of_all_who_ask_has_the_lease(place):
    """Until it is released; then the next one has it, under another token."""
    async with place.open() as one, place.open() as two:
        tokens = await asyncio.gather(one.claim(KEY), two.claim(KEY), one.claim(KEY))
        [token] = filter(None, tokens)
        await two.release(KEY, token)
        later = await two.claim(KEY)
        other_key = await one.claim("lookup:2")

    assert later
    assert other_key
    assert 3 == len({token, later, other_key})


async def test_a_lease_ends_by_itself_when_its_holder_is_gone(place):
    """Not before its time is over."""
    async with place.open() as one, place.open() as two:
        assert await one.claim(KEY)
        place.pass_nearly()
        early = await two.claim(KEY)
        place.let_leases_end()

        assert early is None
        assert await two.claim(KEY)


async def test_a_renewed_lease_lasts_on(place):
    """From the time of its renewal."""
    async with place.open() as one, place.open() as two:
        token = await one.claim(KEY)
        place.pass_nearly()
        await one.renew(KEY, token)
        place.pass_nearly()

        assert await two.claim(KEY) is None


async def test_a_holder_that_was_too_slow_stores_nothing(place):
    """Its token is not the lease's any more, whether the new holder has stored something or not."""
    async with place.open() as one, place.open() as two:
        stale = await one.claim(KEY)
        place.let_leases_end()
        token = await two.claim(KEY)
        with pytest.raises(LeaseLost):
            await one.put(KEY, MADE, stale)
        await one.renew(KEY, stale)
        await one.release(KEY, stale)
        nothing = [await two.find(KEY), await two.get(MADE.id)]
        stored = await two.put(KEY, OTHER, token)
        with pytest.raises(LeaseLost):
            await one.put(KEY, MADE, stale)
        await two.release(KEY, token)
        found = await one.find(KEY)

    assert [None, None] == nothing
    assert OTHER == stored == found


async def test_a_clock_that_was_set_back_keeps_nobody_waiting(tmp_path):
    """A lease that seems to last longer than any lease does is over."""
    place = Sqlite(tmp_path / "sets.sqlite3")
    async with place.open() as one, place.open() as two:
        await one.claim(KEY)
        place.clock.advance(-3600)

        assert await two.claim(KEY)


def writer_of(store, sleep=asyncio.sleep):
    return QuestionWriter(store, {"questions": 60.0}, Instruments(["questions"]), sleep)


def writing(writer, llm):
    context = Context("", math.inf, "interactive", Instruments(["questions"]))
    return asyncio.create_task(writer.of("a dog", DSG, llm, context))


def dog_key(llm):
    return lookup_key("a dog", DSG, llm.info.label)


async def nothing_left_to_do():
    for _ in range(100):
        await asyncio.sleep(0.001)


async def test_a_process_waits_for_the_set_that_another_one_writes(place, fakes):
    """Its own LLM is not asked."""
    ours, theirs = (FakeHandle(fakes["questions"].info) for _ in range(2))
    async with place.open() as one, place.open() as two:
        first = writing(writer_of(one), ours)
        while not ours.asked:
            await asyncio.sleep(0.001)
        second = writing(writer_of(two), theirs)
        await nothing_left_to_do()
        ours.answers.put_nowait(ANSWER)
        (made, how), (found, other) = await first, await second

    assert made == found
    assert ("miss", "coalesced") == (how, other)
    assert [] == theirs.asked


async def test_a_process_takes_over_from_one_that_died(place, fakes):
    """A dead process renews nothing; its lease ends, and the next one writes."""
    llm = FakeHandle(fakes["questions"].info)
    async with place.open() as dead, place.open() as store:
        assert await dead.claim(dog_key(llm))
        task = writing(writer_of(store), llm)
        await nothing_left_to_do()
        before = list(llm.asked)
        place.let_leases_end()
        llm.answers.put_nowait(ANSWER)
        _, how = await task
        released = await dead.claim(dog_key(llm))

    assert [] == before
    assert "miss" == how
    assert released


async def test_a_writer_renews_its_lease_while_the_llm_writes(place, fakes):
    """However long that takes."""
    llm = FakeHandle(fakes["questions"].info)
    renewals = asyncio.Queue()

    async def sleep(seconds):
        assert seconds < LEASE_S / 2
        await renewals.get()

    async with place.open() as store, place.open() as other:
        task = writing(writer_of(store, sleep), llm)
        while not llm.asked:
            await asyncio.sleep(0.001)
        for _ in range(3):
            place.pass_nearly()
            renewals.put_nowait(None)
            while not renewals.empty():
                await asyncio.sleep(0.001)
            await nothing_left_to_do()
        taken = await other.claim(dog_key(llm))
        llm.answers.put_nowait(ANSWER)
        await task

    assert taken is None


async def test_a_writer_that_lost_its_lease_gives_what_the_other_one_stored(place, fakes):
    """And not its own set, so that all score with the same."""
    llm = FakeHandle(fakes["questions"].info)
    async with place.open() as store, place.open() as other:
        task = writing(writer_of(store), llm)
        while not llm.asked:
            await asyncio.sleep(0.001)
        place.let_leases_end()
        token = await other.claim(dog_key(llm))
        await other.put(dog_key(llm), OTHER, token)
        llm.answers.put_nowait(ANSWER)
        found, how = await task

    assert OTHER == found
    assert "coalesced" == how
