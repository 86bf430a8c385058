"""A model on Ray that is replaced while calls are on their way: no answer goes out in another's name."""

import asyncio

import pytest

from models.core.outcomes import Likelihood
from service.core.errors import DeadlineExceeded, ModelChanged
from service.serving.cache import OutcomeCache
from service.serving.job import JobResult
from service.serving.ray.backend import ReplicatedBackend
from service.serving.ray.groups import GroupResult, Work
from tests.support.handles import HeldPreparation, asking, call
from tests.support.leaps import leap
from tests.unit.serving.ray.replicas import about, answered, asked, known, sent, settled

pytestmark = pytest.mark.anyio


class HeldReplicatedBackend(HeldPreparation, ReplicatedBackend):
    """A model whose replicas Ray runs."""


async def test_an_update_asks_the_new_model_as_soon_as_most_replicas_hold_it():
    async with asked(a="old", b="old", c="old") as (deployment, handle, backend):
        deployment.runs(a="old", b="old", d="new")
        await known(backend, 2)
        assert handle.info.label == "old@1"
        deployment.runs(a="old", d="new", e="new")
        while handle.info.label != "new@1":
            await asyncio.sleep(0)
        task, _ = asking(handle, *about(20))
        await sent(deployment, 2)
        assert {group.replica for group in deployment.under_way} == {"d", "e"}
        while not task.done():
            deployment.answer_all()
            await asyncio.sleep(0)


async def test_calls_that_wait_while_the_model_is_replaced_end_and_the_old_groups_count():
    """The request that they belong to is repeated as a whole; what the old model computed is its own."""
    cache, pictures = OutcomeCache(2**20), about(30)
    async with asked(cache, a="old") as (deployment, handle, _):
        old = handle.info
        task, _ = asking(handle, *pictures)
        await sent(deployment, 2)
        groups = deployment.under_way
        deployment.runs(b="new")
        while handle.info.label != "new@1":
            await asyncio.sleep(0)
        for group in groups:
            group.answered()
        outcomes = await task
        assert {Likelihood, ModelChanged} == {type(outcome) for outcome in outcomes}
        again, _ = asking(handle, *pictures)
        assert {Likelihood} == {type(outcome) for outcome in await answered(deployment, again)}
        by_new = [call for group in deployment.groups if group.replica == "b" for call in group.questions]
        assert len(by_new) == 30  # also those that the old one had answered
        assert kept(cache, pictures[0], old)


async def test_what_the_last_replica_of_the_old_model_went_away_with_is_kept_under_no_wrong_name():
    cache, one = OutcomeCache(2**20), call()
    async with asked(cache, a="old") as (deployment, handle, _):
        old = handle.info
        task, _ = asking(handle, one)
        await sent(deployment, 1)
        lost = deployment.under_way[0]
        await replaced(deployment, handle)
        lost.lost()
        assert [ModelChanged] == [type(outcome) for outcome in await task]
        assert (kept(cache, one, old), kept(cache, one, handle.info)) == (False, False)


class SlowCache(OutcomeCache):
    """One that looks up as long as it is told to, as one in a Redis does."""

    def __init__(self):
        super().__init__(2**20)
        self.go = asyncio.Event()

    async def find(self, keys):
        found = await super().find(keys)
        await self.go.wait()
        return found


async def replaced(deployment, handle):
    """The one replica is replaced by one with another model."""
    deployment.runs(b="new")
    while handle.info.label != "new@1":
        await asyncio.sleep(0)


def kept(cache, one, model):
    return cache.get(one.key(("vqa", *model.identity))) is not None


async def test_a_model_that_is_replaced_while_a_call_is_looked_up_answers_nothing_in_the_others_name():
    """Its key names the old model."""
    cache, one = SlowCache(), call()
    async with asked(cache, a="old") as (deployment, handle, _):
        old = handle.info
        task, _ = asking(handle, one)
        await settled()
        await replaced(deployment, handle)
        cache.go.set()
        [outcome] = await answered(deployment, task)
        assert isinstance(outcome, ModelChanged)
        assert (kept(cache, one, old), kept(cache, one, handle.info)) == (False, False)


async def test_a_model_that_is_replaced_while_a_call_is_prepared_answers_nothing_in_the_others_name():
    """After the look-up, and before any replica is sent the call."""
    cache, one = OutcomeCache(2**20), call()
    async with asked(cache, backend=HeldReplicatedBackend, a="old") as (deployment, handle, backend):
        old = handle.info
        backend.go.clear()
        task, _ = asking(handle, one)
        await settled()
        await replaced(deployment, handle)
        backend.go.set()
        [outcome] = await answered(deployment, task)
        assert isinstance(outcome, ModelChanged)
        assert (kept(cache, one, old), kept(cache, one, handle.info)) == (False, False)


async def test_a_request_that_used_one_model_gets_nothing_of_another():
    """Its first calls were answered by the one before."""
    async with asked(a="old") as (deployment, handle, _):
        task, request = asking(handle, call())
        await answered(deployment, task)
        await replaced(deployment, handle)
        with pytest.raises(ModelChanged):
            await handle.call([call("Is it red?")], request)


async def test_a_caller_who_joins_a_call_on_its_way_waits_until_his_own_deadline():
    """The replica drops it at the deadline that it was sent with: then it is asked again."""
    async with asked(a="m") as (deployment, handle, _):
        first, _ = asking(handle, call(), seconds=20.0, lane="bulk")
        await sent(deployment, 1)
        second, _ = asking(handle, call(), seconds=60.0)
        await settled()
        deployment.under_way[0].said.set_result(
            GroupResult([JobResult(DeadlineExceeded(stage="queue"))], Work())
        )
        await sent(deployment, 1)
        assert deployment.under_way[0].calls[0].left_s > 30
        [outcome] = await answered(deployment, second)
        assert isinstance(outcome, Likelihood)
        first.cancel()


async def test_a_deadline_that_passed_in_a_replicas_queue_is_told_to_whoever_waits():
    """Nobody has joined the call: it is not asked again."""
    async with asked(a="m") as (deployment, handle, _):
        task, request = asking(handle, call(), seconds=5.0)
        await sent(deployment, 1)
        leap(request.deadline + 0.1 - asyncio.get_running_loop().time())
        deployment.under_way[0].said.set_result(
            GroupResult([JobResult(DeadlineExceeded(stage="queue"))], Work())
        )
        assert [type(outcome) for outcome in await task] == [DeadlineExceeded]
        assert len(deployment.groups) == 1
