"""Calls that wait for a served model: the two lanes, predictions and places, as in front of a device."""

import asyncio
from contextlib import asynccontextmanager

import httpx
import pytest

from models.core.calls import GenerateCall
from models.core.contract import ModelInfo, Prepared, RemoteModel
from models.core.settings import RemoteSettings
from service.core.concurrency.cpu_threads import FairThreads
from service.core.errors import DeadlineExceeded, Draining, LaneFull, Overloaded, UpstreamFailed
from service.core.lanes import LANES, Shares
from service.serving.admission import Demand
from service.serving.backends.remote import RemoteBackend
from service.serving.backends.upstream import Upstream
from service.serving.batcher.batching import Queue
from service.serving.cache import NO_CACHE
from service.serving.handle import Handle
from service.serving.job import Job
from tests.support.devices import until_idle
from tests.support.handles import asking, context, until
from tests.support.instruments import give_back, lend

pytestmark = pytest.mark.anyio

PLACES, CALL_S = 4, 0.05


class Server(RemoteModel):
    """A served model that answers when it is told to, and keeps what was sent, by its text and priority."""

    info = ModelInfo("questions", "openai", "m", "", "", "remote", generates=True)

    def __init__(self):
        self.sent, self.waiting = [], {}

    def prepare(self, call):
        return Prepared(10, call.user)

    async def answer(self, prepared, post):
        headers = post.keywords["headers"]
        self.sent.append((prepared.data, headers["X-Vllm-Priority"]))
        self.waiting[prepared.data] = asyncio.get_running_loop().create_future()
        outcome = await self.waiting[prepared.data]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def answers(self, text, outcome="an answer"):
        """Answer with *outcome*, which may be an error."""
        answer = self.waiting.pop(text)
        if not answer.done():  # whoever asked may have left
            answer.set_result(outcome)


@asynccontextmanager
async def serving(queue=Queue, **limits):
    """A handle on a server with four places, the server, its clock and its backend."""
    now = [0.0]
    settings = RemoteSettings(
        role="questions", family="openai", base_url="http://x/v1", model="m", max_in_flight=PLACES
    )
    lists_the_model = httpx.MockTransport(lambda request: httpx.Response(200, json={"data": [{"id": "m"}]}))
    upstream = Upstream("http://x/v1", timeout_s=5, max_in_flight=PLACES, transport=lists_the_model)
    instruments, server = lend(["questions"], {}), Server()
    with FairThreads(1, "cpu") as cpu:
        backend = RemoteBackend(
            "questions",
            server,
            settings,
            upstream,
            queue(
                max_items=1,
                max_cost=1000,
                shares=Shares(9.0, 1.0, ageing_s=1e9),
                **{"max_waiting": 1_000_000, **limits},
            ),
            cpu=dict.fromkeys(LANES, cpu),
            instruments=instruments,
            sleep=lambda seconds: asyncio.get_running_loop().create_future(),
            clock=lambda: now[0],
        )
        async with backend:
            handle = Handle(backend, NO_CACHE)
            yield handle, server, now, instruments
            await handle.aclose()
    give_back(instruments)


def calls(*texts):
    return [GenerateCall("", text) for text in texts]


async def busy(handle, server, now, bulk):
    """Four calls run, so many bulk calls wait, and calls lately took 50 ms."""
    first = [asking(handle, *calls(f"before {n}"))[0] for n in range(PLACES)]
    await until(lambda: len(server.sent) == PLACES)
    now[0] += CALL_S
    for n in range(PLACES):
        server.answers(f"before {n}")
    await asyncio.gather(*first)
    running, _ = asking(handle, *calls(*(f"running {n}" for n in range(PLACES))), lane="bulk")
    waiting, _ = asking(handle, *calls(*(f"bulk {n}" for n in range(bulk))), lane="bulk")
    await until(lambda: PLACES + bulk == handle.under_way and 2 * PLACES == len(server.sent))
    await until(lambda: depth(handle, "bulk") == bulk)
    server.sent.clear()
    return running, waiting


def depth(handle, lane):
    return handle.backend._hosted.queue.depth[lane]


async def answered(server, *tasks):
    """Everything that is sent is answered, until *tasks* are done."""
    for _ in range(100_000):
        if all(task.done() for task in tasks):
            return
        for text in list(server.waiting):
            server.answers(text)
        await asyncio.sleep(0)
    raise AssertionError("not all was sent")


async def test_an_interactive_call_goes_before_two_hundred_bulk_calls_that_came_first():
    """It takes the first of the four places that becomes free."""
    async with serving() as (handle, server, now, _):
        running, waiting = await busy(handle, server, now, bulk=200)
        urgent, _ = asking(handle, *calls("urgent"))
        await until(lambda: depth(handle, "interactive"))
        server.answers("running 2")
        await until(lambda: server.sent)
        assert [("urgent", "0")] == server.sent
        await answered(server, running, waiting, urgent)

    assert [("bulk 0", "1"), ("bulk 1", "1")] == server.sent[1:3]


async def test_bulk_calls_get_their_share_of_places_while_both_lanes_wait():
    """With weights of 9 to 1, every tenth."""
    async with serving() as (handle, server, now, _):
        running, waiting = await busy(handle, server, now, bulk=200)
        urgent, _ = asking(handle, *calls(*(f"urgent {n}" for n in range(90))))
        await until(lambda: depth(handle, "interactive") == 90)
        await answered(server, running, waiting, urgent)

    assert 10 == sum(priority == "1" for _, priority in server.sent[:100])


async def test_the_wait_before_a_server_is_predicted_and_calls_that_would_come_too_late_are_refused():
    """200 bulk calls of 50 ms in four places take 2.5 s; interactive ones wait for a place and each other."""
    async with serving() as (handle, server, now, _):
        running, waiting = await busy(handle, server, now, bulk=200)

        def look(lane):
            return handle.backend.forecast(lane, Demand())

        assert pytest.approx((CALL_S, 2.5 + CALL_S)) == (look("interactive").wait_s, look("bulk").wait_s)
        urgent, _ = asking(handle, *calls(*(f"urgent {n}" for n in range(40))), seconds=60.0)
        await until(lambda: depth(handle, "interactive") == 40)
        ahead = 40 * CALL_S / PLACES * 10 / 9 + CALL_S
        assert pytest.approx(ahead) == look("interactive").wait_s

        with pytest.raises(LaneFull) as refused:
            handle.admit(context(seconds=0.5), Demand())
        handle.admit(context(seconds=2.0), Demand())
        handle.admit(context("bulk", seconds=0.5), Demand())
        await answered(server, running, waiting, urgent)

    assert pytest.approx(ahead) == refused.value.retry_after_s


@pytest.mark.parametrize("failing_s", [0.001, 60.0])
async def test_calls_that_fail_teach_nothing_about_those_that_will_not(failing_s):
    """However soon or late: their time is not that of the work."""
    async with serving() as (handle, server, now, _):

        async def answered_after(seconds, text, outcome="an answer"):
            # Deadlines are the loop's, whose clock began when the machine did, and this one goes to 1,220 s.
            task, _ = asking(handle, *calls(text), seconds=3600.0)
            await until(lambda: text in server.waiting)
            now[0] += seconds
            server.answers(text, outcome)
            return (await task)[0]

        for n in range(20):
            await answered_after(1.0, f"good {n}")
        before = handle.backend.forecast("interactive", Demand(calls=20))
        for n in range(20):
            failed = await answered_after(failing_s, f"bad {n}", UpstreamFailed("did not answer"))
            assert isinstance(failed, UpstreamFailed)
        after = handle.backend.forecast("interactive", Demand(calls=20))

    assert pytest.approx(20 / PLACES) == before.run_s
    assert before == after


async def test_nothing_is_predicted_before_a_server_has_answered_anything():
    """A full lane is refused without a time to wait."""
    async with serving(max_waiting=30) as (handle, server, _, _):
        task, _ = asking(handle, *calls(*(str(n) for n in range(7))), lane="bulk")
        await until(lambda: depth(handle, "bulk") == 3)
        with pytest.raises(Overloaded) as refused:
            handle.admit(context("bulk"), Demand())
        await answered(server, task)

    assert refused.value.retry_after_s is None


async def test_a_promoted_call_goes_first_and_is_sent_as_urgent():
    """The server is told the lane that the call has when it is sent."""
    async with serving() as (handle, server, now, _):
        running, waiting = await busy(handle, server, now, bulk=20)
        urgent, _ = asking(handle, *calls("bulk 17"))
        await until(lambda: depth(handle, "interactive"))
        server.answers("running 0")
        await until(lambda: server.sent)
        assert [("bulk 17", "0")] == server.sent
        await answered(server, running, waiting, urgent)

    assert 20 == len(server.sent)


async def test_a_call_that_is_promoted_while_the_server_is_checked_is_sent_as_urgent():
    """After a start of the server, calls wait until it has answered known ones."""
    async with serving() as (handle, server, _, _):
        backend, checked = handle.backend, asyncio.Event()
        backend._trust.check = checked.wait
        bulk, _ = asking(handle, *calls("shared"), lane="bulk")
        await until(lambda: not depth(handle, "bulk") and backend._scheduler.running)
        urgent, _ = asking(handle, *calls("shared"))
        await until_idle()
        checked.set()
        await answered(server, bulk, urgent)

    assert [("shared", "0")] == server.sent


async def test_a_call_whose_deadline_passes_while_it_waits_is_never_sent():
    """And a place is free for those behind it."""
    async with serving() as (handle, server, now, _):
        running, _ = asking(handle, *calls(*(f"running {n}" for n in range(PLACES))))
        await until(lambda: len(server.sent) == PLACES)
        task, asked = asking(handle, *calls("late"))
        behind, _ = asking(handle, *calls("behind"), seconds=3600.0)
        await until(lambda: depth(handle, "interactive") == 2)
        now[0] = asked.deadline + 1
        await answered(server, running, behind)
        [outcome] = await task

    assert isinstance(outcome, DeadlineExceeded)
    assert ["behind"] == [text for text, _ in server.sent[PLACES:]]


async def test_callers_who_leave_free_their_places():
    """In the queue, while it is sent, and while the server works on it."""
    async with serving() as (handle, server, _, instruments):
        tasks = [asking(handle, *calls(f"gone {n}"))[0] for n in range(PLACES + 1)]
        await until(lambda: len(server.sent) == PLACES and depth(handle, "interactive") == 1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await until_idle()
        job = Job(Prepared(10, "at once"), "interactive")
        handle.backend.start(job)
        job.cancel()
        after, _ = asking(handle, *calls(*(f"after {n}" for n in range(PLACES))))
        await until(lambda: {f"after {n}" for n in range(PLACES)} <= {text for text, _ in server.sent})
        assert "gone 4" not in {text for text, _ in server.sent}
        await answered(server, after)
        shown = instruments.exposition().decode()

    assert 'calls_total{lane="interactive",model="questions",result="cancelled"} 5.0' in shown
    assert 'calls_total{lane="interactive",model="questions",result="ok"} 4.0' in shown


async def test_depth_and_wait_before_a_server_are_shown_by_lane():
    """Those that wait, and for how long the others did."""
    async with serving() as (handle, server, now, instruments):
        running, waiting = await busy(handle, server, now, bulk=3)
        deep = instruments.exposition().decode()
        now[0] += 7.0
        await answered(server, running, waiting)
        shown = instruments.exposition().decode()

    assert 'scoregate_queue_depth{lane="bulk",model="questions"} 3.0' in deep
    assert 'scoregate_queue_depth{lane="bulk",model="questions"} 0.0' in shown
    assert 'scoregate_queue_wait_seconds_sum{lane="bulk",model="questions"} 21.0' in shown


async def test_closing_answers_those_who_wait_and_those_who_were_sent():
    """Nobody is left without an answer, and nothing new is taken."""
    async with serving() as (handle, server, _, _):
        task, _ = asking(handle, *calls(*(str(n) for n in range(PLACES + 2))))
        await until(lambda: len(server.sent) == PLACES and depth(handle, "interactive") == 2)
        backend = handle.backend
    outcomes = await task

    assert {Draining} == {type(outcome) for outcome in outcomes}
    assert PLACES == len(server.sent)
    with pytest.raises(Draining):
        backend.start(Job(Prepared(10, "late"), "interactive"))
