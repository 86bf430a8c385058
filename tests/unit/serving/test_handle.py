"""Calls under way: equal ones are shared, and what becomes of them when their callers leave."""

import asyncio
import gc
from dataclasses import replace

import pytest

from models.core.calls import LikelihoodCall
from models.core.outcomes import Likelihood
from models.images.image import Image
from service.core.errors import ImageUndecodable, ModelChanged, ModelFault, NotReady
from service.serving.cache import OutcomeCache
from service.serving.handle import BULK_KEPT_S
from service.serving.job import Job
from tests.support.handles import HeldLocalBackend, asking, call, context, held, questions, serving, until

pytestmark = pytest.mark.anyio


async def left(task):
    """The caller disconnects."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_equal_calls_run_once_and_each_caller_is_told_how_it_was_found():
    """One of them is a miss, the others coalesced; the next one, later, a hit."""
    async with serving(OutcomeCache(10**6)) as (handle, model, _, _):
        busy = await held(handle, model)
        asked = [asking(handle, call(), call("other")) for _ in range(5)]
        await until(lambda: 3 == handle.under_way)
        model.hold.set()
        results = [await task for task, _ in asked]
        _, after = late = asking(handle, call())
        await late[0]
        await busy

    assert 1 == len({str(result) for result in results})
    assert ["busy", "Is it?", "other"] == questions(model)
    assert ["miss"] + ["coalesced"] * 4 == [context.found for _, context in asked]
    assert "hit" == after.found


async def test_nobody_waits_for_a_cache_that_fails():
    """The answer is there, and the device goes on."""

    class Failing(OutcomeCache):
        def keep(self, key, outcome):
            raise ZeroDivisionError

    async with serving(Failing(10**6)) as (handle, _, _, _):
        async with asyncio.timeout(10):
            answers = [await asking(handle, call())[0] for _ in range(2)]

        assert not handle.under_way
    assert all(isinstance(answer, Likelihood) for [answer] in answers)


async def test_the_first_to_ask_may_leave_without_the_others_losing_their_answer():
    """The shared call belongs to nobody."""
    async with serving() as (handle, model, _, _):
        busy = await held(handle, model)
        (first, _), (second, _) = asking(handle, call()), asking(handle, call())
        await until(lambda: 2 == handle.under_way)
        first.cancel()
        model.hold.set()
        [answer] = await second
        await busy

    assert not isinstance(answer, Exception)
    assert ["busy", "Is it?"] == questions(model)


async def test_interactive_work_that_nobody_waits_for_is_dropped_at_once():
    """It never reaches the device, and nothing of it is left."""
    async with serving() as (handle, model, later, hosted):
        busy = await held(handle, model)
        task, _ = asking(handle, call())
        await until(lambda: hosted.queue.depth["interactive"])
        task.cancel()
        await until(lambda: not hosted.queue.depth["interactive"])
        model.hold.set()
        await busy
        await until(lambda: not handle.under_way)

    assert ["busy"] == questions(model)
    assert [] == later.left


async def test_a_bulk_call_waits_some_seconds_for_its_caller_to_come_back():
    """A trainer that sends its body again finds its place in the queue, and the answer runs once."""
    async with serving() as (handle, model, later, hosted):
        busy = await held(handle, model)
        first, _ = asking(handle, call(), lane="bulk")
        other, _ = asking(handle, call("behind it"), lane="bulk")
        await until(lambda: 2 == hosted.queue.depth["bulk"])
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        again, found = asking(handle, call(), lane="bulk")
        await until(lambda: found.calls.lookups)
        later.come()
        model.hold.set()
        [answer] = await again
        await asyncio.gather(busy, other)

    assert [BULK_KEPT_S] == [seconds for seconds, _ in later.left]
    assert not isinstance(answer, Exception)
    assert ["busy", "Is it?", "behind it"] == questions(model)
    assert "coalesced" == found.found


async def test_a_bulk_call_whose_caller_stays_away_is_dropped_in_the_end():
    """After those seconds nobody waits and nothing is left."""
    async with serving() as (handle, model, later, hosted):
        busy = await held(handle, model)
        task, _ = asking(handle, call(), lane="bulk")
        await until(lambda: hosted.queue.depth["bulk"])
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert 1 == hosted.queue.depth["bulk"]
        later.come()
        await until(lambda: not hosted.queue.depth["bulk"])
        model.hold.set()
        await busy

    assert ["busy"] == questions(model)


async def test_a_bulk_call_that_is_kept_may_be_run_for_as_long():
    """Whenever its caller's deadline was: past it no batch would take the call."""
    async with serving() as (handle, model, later, hosted):
        busy = await held(handle, model)
        task, _ = asking(handle, call(), lane="bulk")
        await until(lambda: hosted.queue.depth["bulk"])
        [queued] = hosted.queue._lanes["bulk"]
        before = asyncio.get_running_loop().time()
        await left(task)
        after = asyncio.get_running_loop().time()
        assert before + BULK_KEPT_S <= queued.deadline <= after + BULK_KEPT_S
        again, found = asking(handle, call(), lane="bulk")
        await until(lambda: found.calls.lookups)
        assert found.deadline == queued.deadline
        await left(again)
        later.come()
        model.hold.set()
        await busy


async def test_a_bulk_call_is_kept_as_long_after_each_caller_that_leaves():
    """What was begun for the first one does not drop it early after the second."""
    async with serving() as (handle, model, later, hosted):
        busy = await held(handle, model)
        for _ in range(2):
            task, _ = asking(handle, call(), lane="bulk")
            await until(lambda: any(job.callers["bulk"] for job in hosted.queue._lanes["bulk"]))
            await left(task)
        [(_, first), (_, second)] = later.left
        first()
        assert 1 == hosted.queue.depth["bulk"]
        second()
        assert 0 == hosted.queue.depth["bulk"]
        model.hold.set()
        await busy


async def test_a_call_is_bulk_work_again_when_its_urgent_caller_has_left():
    """It goes back to its place in that lane, and is kept if its bulk caller leaves, too."""
    async with serving(max_items=1) as (handle, model, later, hosted):
        busy = await held(handle, model)
        bulk = []
        for n, text in enumerate(("ahead", "Is it?", "behind"), 1):
            bulk.append(asking(handle, call(text), lane="bulk")[0])
            await until(lambda: n == hosted.queue.depth["bulk"])  # noqa: B023
        urgent, _ = asking(handle, call())
        await until(lambda: 1 == hosted.queue.depth["interactive"])
        await left(urgent)
        assert {"interactive": 0, "bulk": 3} == hosted.queue.depth
        await left(bulk.pop(1))
        assert 3 == hosted.queue.depth["bulk"]
        model.hold.set()
        await asyncio.gather(busy, *bulk)

    assert ["busy", "ahead", "Is it?", "behind"] == questions(model)
    assert 1 == len(later.left)


async def test_an_urgent_caller_promotes_the_call_that_he_joins():
    """It leaves the bulk lane, and goes before the bulk calls that came first."""
    async with serving(max_items=1) as (handle, model, _, hosted):
        busy = await held(handle, model)
        ahead, _ = asking(handle, call("ahead"), lane="bulk")
        await until(lambda: 1 == hosted.queue.depth["bulk"])
        bulk, _ = asking(handle, call(), lane="bulk")
        await until(lambda: 2 == hosted.queue.depth["bulk"])
        urgent, _ = asking(handle, call())
        await until(lambda: 1 == hosted.queue.depth["interactive"])
        model.hold.set()
        await asyncio.gather(busy, ahead, bulk, urgent)

    assert ["busy", "Is it?", "ahead"] == questions(model)


async def test_work_that_is_promoted_takes_the_calls_it_waits_for_along():
    """All of them, and only while it waits: bulk work that an urgent request has joined."""
    async with serving(max_items=1) as (handle, model, _, hosted):
        busy = await held(handle, model)
        ahead, _ = asking(handle, call("ahead"), lane="bulk")
        await until(lambda: 1 == hosted.queue.depth["bulk"])
        bulk, shared = asking(handle, call("one"), call("two"), lane="bulk")
        await until(lambda: 3 == hosted.queue.depth["bulk"])
        shared.promote()
        assert (2, 1) == (hosted.queue.depth["interactive"], hosted.queue.depth["bulk"])
        callers = [job.callers for job in hosted.queue._lanes["interactive"]]
        assert [{"bulk": 0, "interactive": 1}] * 2 == callers
        model.hold.set()
        await asyncio.gather(busy, ahead, bulk)

    assert ["busy", "one", "two", "ahead"] == questions(model)
    assert not shared._promotions


async def test_a_request_has_the_name_of_the_model_that_counts_its_calls_once_for_each_group():
    """From then on they are no longer reserved; also if another request began them."""
    async with serving() as (handle, model, *_):
        busy, queued = await held(handle, model), []
        asked = replace(context(), queued=queued.append)
        tasks = [asyncio.create_task(handle.call([call("one"), call("two")], asked)) for _ in range(2)]
        await until(lambda: len(queued) == len(tasks))
        model.hold.set()
        await asyncio.gather(busy, *tasks)

    assert ["vqa", "vqa"] == queued


async def test_a_call_tells_every_caller_how_long_it_waited_and_ran():
    """The stages of a request are those of its slowest call."""
    async with serving() as (handle, model, _, _):
        busy = await held(handle, model)
        (first, one), (second, other) = asking(handle, call()), asking(handle, call())
        await until(lambda: 2 == handle.under_way)
        await asyncio.sleep(0.02)
        model.hold.set()
        await asyncio.gather(busy, first, second)

    assert one.request.slowest == other.request.slowest
    assert 0.0 < one.request.slowest["queue"]
    assert 0.0 < one.request.slowest["model"]


async def test_a_broken_image_is_an_error_of_its_call():
    """The model says `ImageError`; the caller is told what is wrong with the image."""
    async with serving() as (handle, _, _, _):
        broken = LikelihoodCall(Image(b"no image"), "Is it?")
        task, asked = asking(handle, broken, call())
        bad, fine = await task

    assert [] == asked.calls.unknown  # no share of its tokens is known
    assert ImageUndecodable is type(bad)
    assert "no image of a known format" in bad.detail
    assert not isinstance(fine, Exception)


async def test_whatever_happens_while_a_group_is_prepared_each_call_of_it_is_answered(caplog):
    """Also where the pool of threads itself fails; the next one to ask starts anew."""
    async with serving(backend=HeldLocalBackend) as (handle, _, _, _):
        handle.backend.fault = RuntimeError("the threads have ended")
        outcomes = await handle.call([call("one"), call("two")], context())
        handle.backend.fault = None

        assert [ModelFault, ModelFault] == [type(outcome) for outcome in outcomes]
        assert {"the model vqa failed to prepare this call"} == {outcome.detail for outcome in outcomes}
        [said] = [record for record in caplog.records if record.name == "scoregate.models"]
        assert ("group not prepared", "vqa") == (said.getMessage(), said.model)
        assert "the threads have ended" == str(said.exc_info[1])
        assert 0 == handle.under_way
        assert isinstance((await handle.call([call("one")], context()))[0], Likelihood)


async def test_a_failure_reaches_all_who_wait_and_is_not_kept():
    """The next one asks anew."""
    async with serving(OutcomeCache(10**6)) as (handle, model, _, _):
        example = model.example()
        model.fault = lambda one: None if one == example else ValueError()
        failed = [
            outcome for task, _ in (asking(handle, call()), asking(handle, call())) for outcome in await task
        ]
        model.fault = lambda one: None
        [fine] = await asking(handle, call())[0]

    assert [ModelFault, ModelFault] == [type(outcome) for outcome in failed]
    assert not isinstance(fine, Exception)
    assert 0 == handle.under_way


async def test_a_caller_who_runs_out_of_time_is_told_where():
    """In the queue, or on the model."""
    async with serving() as (handle, model, _, hosted):
        busy = await held(handle, model)
        waiting, queued = asking(handle, call())
        await until(lambda: hosted.queue.depth["interactive"])
        waiting.cancel()
        running, on_model = asking(handle, call("busy"))
        await until(lambda: on_model.calls.lookups)
        running.cancel()
        await asyncio.gather(waiting, running, return_exceptions=True)
        model.hold.set()
        await busy

    assert ("queue", "model") == (queued.calls.stage, on_model.calls.stage)


async def test_a_finished_call_leaves_nothing_for_the_garbage_collector():
    """Calls that are prepared together know each other only until they are."""
    async with serving() as (handle, _, _, _):
        gc.collect()
        gc.disable()
        try:
            for n in range(10):
                await asking(handle, call(f"{n}"), call(f"{n} too"))[0]
            left = [one for one in gc.get_objects() if type(one) is Job]
        finally:
            gc.enable()

    assert [] == left


async def test_a_model_is_idle_when_its_calls_have_their_results():
    """Also calls whose callers have left."""
    async with serving() as (handle, model, _, _):
        busy = await held(handle, model)
        idle = asyncio.create_task(handle.idle())
        await asyncio.sleep(0)
        assert not idle.done()
        model.hold.set()
        await idle
        assert not handle.under_way
        await busy


async def test_a_model_that_leaves_is_kept_for_the_requests_that_it_serves():
    """Their calls run, and it is idle when they have ended."""
    async with serving() as (handle, *_):
        asked = context()
        with handle.used_by(asked):
            handle.backend.presence.change("leaving")
            idle = asyncio.create_task(handle.idle())
            [answer] = await handle.call([call()], asked)
            await asyncio.sleep(0)
            assert not idle.done()
        await idle

    assert isinstance(answer, Likelihood)


async def test_work_that_a_request_under_way_shares_runs_before_its_model_leaves():
    """Though the work came after the model was taken away."""
    async with serving() as (handle, *_):
        asked, late = context(), context()
        with handle.used_by(asked):
            handle.backend.presence.change("leaving")
            with handle.used_by(late):
                with pytest.raises(NotReady):
                    await handle.call([call()], late)
                handle.shared_by(asked, late)
                [answer] = await handle.call([call()], late)

    assert isinstance(answer, Likelihood)


async def test_a_request_has_one_model_by_each_name():
    """Another one that took its place meanwhile answers none of its calls; a later request's, it does."""
    async with serving() as (handle, *_):
        begun = context()
        assert isinstance((await handle.call([call()], begun))[0], Likelihood)
        handle.backend.info = replace(handle.info, revision="newer")

        with pytest.raises(ModelChanged):
            await handle.call([call("Is it red?")], begun)
        assert isinstance((await handle.call([call("Is it red?")], context()))[0], Likelihood)


async def test_a_model_that_is_replaced_while_a_call_is_prepared_does_not_answer_it():
    """The call's key names the one before."""
    async with serving() as (handle, model, *_):
        prepare = model.prepare

        def replaced(call):
            handle.backend.info = replace(handle.info, revision="newer")
            return prepare(call)

        model.prepare = replaced
        [outcome] = await handle.call([call()], context())

    assert isinstance(outcome, ModelChanged)
