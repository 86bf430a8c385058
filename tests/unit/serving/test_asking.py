"""What a handle asks of its model and of the cache, and what callers learn where that ends early."""

import asyncio

import pytest

from models.core.calls import LikelihoodCall
from models.core.outcomes import Likelihood
from service.core.errors import Draining
from service.serving.backends.local import LocalBackend
from service.serving.cache import OutcomeCache
from tests.support.handles import HeldLocalBackend, asking, call, held, questions, serving, until

pytestmark = pytest.mark.anyio


async def test_calls_whose_preparation_is_cancelled_are_told_that_the_service_ends():
    """The event loop cancels its tasks as it ends, and their callers wait for an answer."""
    async with serving(backend=HeldLocalBackend) as (handle, _, _, _):
        handle.backend.go.clear()
        asked, _ = asking(handle, call())
        await handle.backend.begun.wait()
        [group] = handle._groups.values()
        group.preparing.cancel()

        assert [Draining] == [type(outcome) for outcome in await asked]


async def test_a_caller_who_runs_out_of_time_before_the_cache_answers_is_told_so():
    """Nothing of its calls has been prepared by then."""

    class Silent(OutcomeCache):
        async def find(self, keys):
            await asyncio.Event().wait()

    async with serving(Silent(10**6)) as (handle, _, _, _):
        task, asked = asking(handle, call())
        asked.calls.stage = "questions"
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert "decode" == asked.calls.stage


async def test_models_of_other_names_share_no_answer():
    """An operator may have given two of them one id and revision."""
    cache = OutcomeCache(10**6)
    async with serving(cache) as (handle, _, _, _):
        await asking(handle, call())[0]
    async with serving(cache, name="another") as (handle, model, _, _):
        _, other = asked = asking(handle, call())
        await asked[0]

    assert "miss" == other.found
    assert ["Is it?"] == questions(model)


async def test_a_call_that_is_given_up_while_it_is_prepared_takes_no_other_along():
    """Those that are prepared together with it are started."""
    async with serving(backend=HeldLocalBackend) as (handle, _, _, _):
        handle.backend.go.clear()
        leaves, _ = asking(handle, call("one"), call("two"))
        await handle.backend.begun.wait()
        stays, found = asking(handle, call("two"))
        while not found.calls.lookups:
            await asyncio.sleep(0)
        leaves.cancel()
        await asyncio.gather(leaves, return_exceptions=True)
        handle.backend.go.set()

        assert [Likelihood] == [type(outcome) for outcome in await stays]


async def test_a_bulk_call_without_a_caller_is_not_kept_once_the_handle_is_closed():
    """Nobody could come back for it."""
    async with serving() as (handle, model, later, _):
        busy = await held(handle, model)
        task, _ = asking(handle, call(), lane="bulk")
        await until(lambda: handle.under_way == 2)
        await handle.aclose()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        left = later.left, handle.under_way
        model.hold.set()
        await busy

    assert ([], 1) == left


@pytest.mark.parametrize("begun", [True, False])
async def test_a_handle_that_is_closed_waits_for_no_preparation(begun):
    """Its calls are answered at once, whether their preparation has begun, and later ones are refused."""
    async with serving(backend=HeldLocalBackend) as (handle, _, _, _):
        handle.backend.go.clear()
        asked, _ = asking(handle, call())
        await (handle.backend.begun.wait() if begun else asyncio.sleep(0))
        assert (1, begun) == (handle.under_way, handle.backend.begun.is_set())
        async with asyncio.timeout(10):
            await handle.aclose()
            assert [Draining] == [type(outcome) for outcome in await asked]

        with pytest.raises(Draining):
            await asking(handle, call())[0]


async def test_a_handle_that_is_closed_while_calls_are_looked_up_prepares_none_of_them():
    """The threads may have ended, which would be shown as a fault of the model."""

    class Slow(OutcomeCache):
        go = asyncio.Event()

        async def find(self, keys):
            await self.go.wait()
            return await super().find(keys)

    cache = Slow(10**6)
    async with serving(cache) as (handle, model, _, _):
        asked, _ = asking(handle, call())
        await asyncio.sleep(0)
        await handle.aclose()
        cache.go.set()
        with pytest.raises(Draining):
            await asked
        assert (0, []) == (handle.under_way, model.calls)


async def test_an_outcome_that_may_not_be_kept_is_in_no_cache():
    """Such as a text that the question LLM wrote: question sets have a store of their own."""

    class OnlyOnce(LikelihoodCall):
        cacheable = False

    cache = OutcomeCache(10**6)
    async with serving(cache) as (handle, _, _, _):
        await asking(handle, OnlyOnce(call().image, "Is it?"))[0]
        without = len(cache)
        await asking(handle, call())[0]

    assert (0, 1) == (without, len(cache))


async def test_the_backend_gets_the_id_of_the_request():
    """A server behind it writes the id into its own log."""
    ids = []

    class Noted(LocalBackend):
        def start(self, job):
            ids.append(job.request_id)
            super().start(job)

    async with serving(backend=Noted) as (handle, _, _, _):
        _, asked = task = asking(handle, call())
        await task[0]

    assert [asked.request_id] == ids
