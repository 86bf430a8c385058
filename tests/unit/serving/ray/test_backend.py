"""Calls to replicas on Ray, as one gateway sends them; the replicas are fakes."""

import asyncio
from collections import Counter

import pytest

from models.core.calls import VideoCall
from models.core.outcomes import Likelihood
from models.families.fake.model import COST, GREY
from models.images.image import Image
from service.core.concurrency.cpu_threads import FairThreads
from service.core.errors import Draining, LaneFull, ModelFault
from service.scoring.plan import Workload
from service.serving.admission import Demand
from service.serving.job import JobResult
from service.serving.ray.groups import GroupResult, Work
from tests.support.handles import asking, call, context
from tests.unit.serving.ray.replicas import BATCH, RAN_S, about, answered, asked, known, sent, settled

pytestmark = pytest.mark.anyio


async def test_calls_that_are_asked_together_travel_together():
    async with asked(a="m") as (deployment, handle, _):
        task, _ = asking(handle, *about(1, questions=5))
        await sent(deployment, 1)
        deployment.answer_all()
        assert all(isinstance(outcome, Likelihood) for outcome in await task)
        assert [len(group.calls) for group in deployment.groups] == [5]


async def test_calls_of_several_requests_about_one_image_go_to_one_replica():
    async with asked(a="m", b="m", c="m") as (deployment, handle, _):
        for n in range(6):
            task, _ = asking(handle, call(f"question {n}?", "one image"))
            await sent(deployment, 1)
            deployment.answer_all()
            await task
        assert len({group.replica for group in deployment.groups}) == 1


async def test_videos_are_spread_over_idle_replicas_and_one_video_goes_to_one_replica():
    """By their first frame, whose features the replica may have."""
    async with asked(a="m", b="m", c="m") as (deployment, handle, _):
        for n in range(12):
            frames = tuple(Image(GREY.encoded, f"video {n // 2}, frame {number}") for number in range(2))
            task, _ = asking(handle, VideoCall(frames, f"prompt {n}"))
            await sent(deployment, 1)
            deployment.answer_all()
            await task
        places = [group.replica for group in deployment.groups]
    assert places[::2] == places[1::2]
    assert len({*places}) > 1


async def test_many_images_are_spread_over_all_replicas_in_groups_of_about_a_batch():
    async with asked(a="m", b="m", c="m", d="m") as (deployment, handle, _):
        task, _ = asking(handle, *about(128))
        while not task.done():
            await asyncio.sleep(0)
            deployment.answer_all()
        by_replica = Counter()
        for group in deployment.groups:
            by_replica[group.replica] += len(group.calls)
        assert len(by_replica) == 4
        assert max(by_replica.values()) < 64
        assert len(deployment.groups) <= 2 * 128 / BATCH


async def test_a_replica_has_two_groups_to_work_on_and_no_more():
    async with asked(a="m") as (deployment, handle, _):
        task, _ = asking(handle, *about(40))
        await sent(deployment, 2)
        await settled()
        assert len(deployment.under_way) == 2
        while not task.done():
            deployment.answer_all()
            await asyncio.sleep(0)


async def test_a_group_that_is_not_full_grows_while_the_one_before_it_is_worked_on():
    async with asked(a="m") as (deployment, handle, backend):
        for place in backend._replicas.in_use:
            place.queue.finished(80, 5.0)  # batches take long
        tasks = [asking(handle, call("first?"))[0]]
        await sent(deployment, 1)
        tasks += [asking(handle, call(f"question {n}?"))[0] for n in range(3)]
        while backend._replicas.depth("interactive") < 3:
            await asyncio.sleep(0)
        assert len(deployment.under_way) == 1
        deployment.answer_all()
        await sent(deployment, 1)
        assert len(deployment.under_way[0].calls) == 3
        deployment.answer_all()
        await asyncio.gather(*tasks)


async def test_a_group_that_is_not_full_is_sent_when_the_one_before_it_should_have_ended():
    async with asked(a="m") as (deployment, handle, _):
        tasks = [asking(handle, call("first?"))[0]]
        await sent(deployment, 1)
        tasks.append(asking(handle, call("second?"))[0])
        await sent(deployment, 2)
        deployment.answer_all()
        await asyncio.gather(*tasks)


async def test_an_idle_replica_takes_what_waits_for_a_busy_one():
    async with asked(a="m", b="m") as (deployment, handle, _):
        task, _ = asking(handle, *about(80))
        await sent(deployment, 4)
        while to_b := [group for group in deployment.under_way if group.replica == "b"]:
            to_b[0].answered()
            await settled()
        by_replica = Counter(group.replica for group in deployment.groups)
        assert by_replica["a"] == 2  # it has answered nothing
        assert by_replica["b"] >= 7
        while not task.done():
            deployment.answer_all()
            await asyncio.sleep(0)


async def test_groups_are_as_large_as_the_replicas_own_batches_allow_however_long_their_way_is():
    """Two groups on their way to one replica: the second waits for the first, and took no longer for it."""
    now = [0.0]
    async with asked(clock=lambda: now[0], a="m") as (deployment, handle, backend):
        task, _ = asking(handle, *about(40))
        while not task.done():
            now[0] += 100.0
            deployment.answer_all()
            await settled()
        model = backend._replicas.in_use[0].queue.cost_model
        assert model.run_s(model.typical_cost) <= RAN_S


async def test_calls_that_a_replica_failed_on_teach_nothing():
    """However long it took."""
    async with asked(a="m") as (deployment, handle, backend):
        [replica] = backend._replicas.in_use
        before = replica.queue.estimate_s(1000)
        task, _ = asking(handle, *about(4))
        await sent(deployment, 1)
        [group] = deployment.groups
        failed = [JobResult(ModelFault("it failed"), 0.0, 60.0) for _ in group.calls]
        group.said.set_result(GroupResult(failed, Work()))
        assert all(isinstance(outcome, ModelFault) for outcome in await task)
        assert before == replica.queue.estimate_s(1000)


async def test_calls_that_are_prepared_for_replicas_count_in_equal_parts():
    """Between their admission and their queues they are in neither."""
    queues, during = [], []

    class Watched(FairThreads):
        def run(self, *work):
            during.extend(queue.pending.count["bulk"] for queue in queues)
            return super().run(*work)

    async with asked(a="m", b="m", threads=Watched) as (deployment, handle, backend):
        queues += [replica.queue for replica in backend._replicas.in_use]
        task, _ = asking(handle, *about(5), lane="bulk")
        await answered(deployment, task)

    assert [3, 3] == during
    assert [0, 0] == [queue.pending.count["bulk"] for queue in queues]


async def test_an_idle_replica_that_was_slow_is_tried_again():
    """Ten seconds after its last group, as a device of this process."""
    now = [0.0]
    async with asked(clock=lambda: now[0], a="m") as (_, handle, backend):
        [replica] = backend._replicas.in_use
        for _ in range(5000):
            replica.queue.finished(COST, 60.0)
        with pytest.raises(LaneFull):
            handle.admit(context(seconds=2.0), Demand(calls=2 * BATCH))
        now[0] = 10.0
        handle.admit(context(seconds=2.0), Demand(calls=2 * BATCH))


async def test_interactive_calls_go_before_bulk_calls_that_came_first():
    async with asked(a="m") as (deployment, handle, _):
        bulk, _ = asking(handle, *about(40), lane="bulk")
        await sent(deployment, 2)
        urgent, _ = asking(handle, call("urgent?"))
        await settled()
        deployment.groups[0].answered()
        await settled()
        assert "urgent?" in deployment.groups[2].questions
        for task in (bulk, urgent):
            while not task.done():
                deployment.answer_all()
                await asyncio.sleep(0)


async def test_what_a_replica_went_away_with_is_answered_by_another_one():
    async with asked(a="m", b="m") as (deployment, handle, _):
        task, _ = asking(handle, *about(4))
        await sent(deployment, 1)
        lost = deployment.under_way[0]
        deployment.holds.pop(lost.replica)
        lost.lost()
        while not task.done():
            await asyncio.sleep(0)
            for group in deployment.under_way:
                assert group.replica != lost.replica
                group.answered()
        assert all(isinstance(outcome, Likelihood) for outcome in task.result())


async def test_a_group_whose_replica_ended_without_an_answer_goes_to_another_one():
    """A connection to a node that vanished reports nothing, so the group is given up."""
    async with asked(a="m", b="m", grace_s=0) as (deployment, handle, _):
        task, _ = asking(handle, *about(4))
        await sent(deployment, 1)
        vanished = deployment.under_way[0].replica
        deployment.runs(**{name: "m" for name in ("a", "b") if name != vanished})
        await settled()
        assert vanished not in {group.replica for group in deployment.under_way}
        deployment.answer_all()
        assert all(isinstance(outcome, Likelihood) for outcome in await task)


async def test_a_replica_that_ends_may_answer_its_last_groups():
    async with asked(a="m", b="m") as (deployment, handle, _):
        task, _ = asking(handle, *about(4))
        await sent(deployment, 1)
        ends = deployment.under_way[0].replica
        deployment.runs(**{name: "m" for name in ("a", "b") if name != ends})
        await settled()
        assert [ends] == [group.replica for group in deployment.under_way]
        deployment.answer_all()
        assert all(isinstance(outcome, Likelihood) for outcome in await task)


async def test_a_call_that_three_replicas_went_away_with_is_a_fault_and_not_tried_again():
    async with asked(a="m") as (deployment, handle, _):
        task, _ = asking(handle, call())
        for _ in range(3):
            await sent(deployment, 1)
            deployment.under_way[0].lost()
            await settled()
        [outcome] = await task
        assert isinstance(outcome, ModelFault)
        assert "3 replicas of vqa went away" in outcome.detail
        assert len(deployment.groups) == 3


async def test_a_replica_that_could_not_be_reached_is_asked_again_once_it_answers():
    async with asked(a="m") as (deployment, handle, backend):
        task, _ = asking(handle, call())
        await sent(deployment, 1)
        deployment.under_way[0].lost()
        await sent(deployment, 1)
        deployment.answer_all()
        assert isinstance((await task)[0], Likelihood)
        assert backend.missing == ""


async def test_without_a_replica_for_ten_seconds_new_work_is_refused_with_a_time_to_wait():
    now = [0.0]
    async with asked(clock=lambda: now[0], a="m") as (deployment, handle, backend):
        deployment.runs()
        await known(backend, 0)
        assert backend.missing == "no replica runs"
        now[0] += 9.9
        handle.admit(context(), Demand(1))
        now[0] += 0.1
        with pytest.raises(LaneFull) as refusal:
            handle.admit(context(), Demand(1))
        assert str(refusal.value) == "vqa: no replica runs"
        assert refusal.value.retry_after_s > 0


async def test_who_has_no_ten_seconds_is_refused_at_once_where_no_replica_runs():
    async with asked(a="m") as (deployment, handle, backend):
        deployment.runs()
        await known(backend, 0)
        with pytest.raises(LaneFull):
            handle.admit(context(seconds=9.0), Demand(1))


async def test_a_request_of_many_frames_goes_on_where_no_replica_runs():
    async with asked(a="m") as (deployment, handle, backend):
        deployment.runs()
        await known(backend, 0)
        work = Workload({handle: Demand(8)}, 8, "interactive")
        with work.reserved():
            with work.frame():
                pass
            assert work.at_once() >= 1


async def test_calls_under_way_wait_for_the_next_replica():
    async with asked(a="m") as (deployment, handle, backend):
        task, _ = asking(handle, *about(3))
        await sent(deployment, 1)
        deployment.runs()
        deployment.under_way[0].lost()
        await known(backend, 0)
        deployment.runs(b="m")
        await sent(deployment, 1)
        assert [group.replica for group in deployment.under_way] == ["b"]
        deployment.answer_all()
        assert all(isinstance(outcome, Likelihood) for outcome in await task)


async def test_a_replica_that_shuts_down_answers_nothing_that_others_cannot():
    async with asked(a="m", b="m") as (deployment, handle, _):
        task, _ = asking(handle, call())
        await sent(deployment, 1)
        first = deployment.under_way[0]
        deployment.runs(**{each: "m" for each in "ab" if each != first.replica})
        first.said.set_result(GroupResult([JobResult(Draining())], Work()))
        await sent(deployment, 1)
        assert deployment.under_way[0].replica != first.replica
        deployment.answer_all()
        assert isinstance((await task)[0], Likelihood)


async def test_a_promoted_call_is_promoted_where_it_is():
    async with asked(a="m") as (deployment, handle, _):
        bulk, _ = asking(handle, call(), lane="bulk")
        await sent(deployment, 1)
        urgent, _ = asking(handle, call())
        await settled()
        assert deployment.promoted == [("a", deployment.groups[0].name)]
        deployment.answer_all()
        await asyncio.gather(bulk, urgent)


async def test_a_group_that_nobody_waits_for_is_cancelled():
    async with asked(a="m") as (deployment, handle, _):
        task, _ = asking(handle, *about(2))
        await sent(deployment, 1)
        task.cancel()
        await settled()
        assert deployment.groups[0].said.cancelled()


async def test_a_call_carries_the_seconds_to_its_deadline():
    async with asked(a="m") as (deployment, handle, _):
        task, _ = asking(handle, call(), seconds=7.0)
        await sent(deployment, 1)
        [left] = deployment.groups[0].calls
        assert 0 < left.left_s <= 7
        deployment.answer_all()
        await task


async def test_the_time_in_a_replicas_queue_counts_as_waiting():
    async with asked(a="m") as (deployment, handle, _):
        task, request = asking(handle, call())
        await sent(deployment, 1)
        deployment.answer_all()
        await task
        assert request.request.slowest["queue"] >= 0.5
        assert request.request.slowest["model"] == 0.25
