"""What a group of calls shows in the trace and in the timings of whoever asked."""

from time import monotonic

import pytest

from models.core.outcomes import Reward
from models.images.image import DecodeTime
from service.serving.job import Job, JobResult
from tests.support.handles import HeldLocalBackend, asking, call, context, held, serving, until
from tests.support.spans import Recorded

pytestmark = pytest.mark.anyio


async def test_calls_of_a_batch_show_together_how_long_they_waited_and_ran():
    """One after the other, since they were asked for, with a link to the batch."""
    async with serving() as (handle, model, _, hosted):
        busy = await held(handle, model)
        asked = monotonic()
        task, context = asking(handle, call("one"), call("two"))
        context.span = Recorded("request")
        await until(lambda: 2 == hosted.queue.depth["interactive"])
        model.hold.set()
        await task
        await busy

    (queue, began, until_s, no_links, of), (name, since_s, ended, links, of_too) = context.span.added
    assert ("queue", (), "model", ["request/batch"]) == (queue, no_links, name, links)
    assert {"model": "vqa", "calls": 2} == of == of_too
    assert asked <= began <= until_s == since_s <= ended <= monotonic()


async def test_the_stages_of_a_call_that_a_replica_answered_are_those_there_and_here():
    """Each in seconds; preparation is the sum of both."""
    async with serving() as (handle, *_):
        asked, shared = context(), Job(None, "interactive", call=call(), model=handle.info)
        shared.prepared_s = 0.25
        shared.join("interactive")
        shared.finish(JobResult(Reward((1.0,)), waited_s=0.5, ran_s=1.0, decoded_s=0.125, prepared_s=2.0))
        await handle._wait([shared], asked)

    stages = {"decode": 0.125, "prepare": 2.25, "queue": 0.5, "model": 1.0}
    assert stages.items() <= asked.request.slowest.items()


async def test_preparation_is_what_its_groups_took_without_decoding():
    """From the end of the request's last stage on; a call that was not prepared took none."""
    async with serving(backend=HeldLocalBackend) as (handle, *_):
        asked, failed = context(), context()
        decoded = call()
        decoded.image.rgb.load()
        decoded.image.decode_time = DecodeTime(asked.since, 4.0)
        since = asked.since = asked.since - 10.0
        await handle.call([decoded], asked)
        handle.backend.fault = RuntimeError("the threads have ended")
        await handle.call([call("other")], failed)

    assert 6.0 <= asked.request.slowest["prepare"] <= monotonic() - since - 4.0
    assert 0.0 == failed.request.slowest["prepare"]
