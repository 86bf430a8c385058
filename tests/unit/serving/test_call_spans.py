"""What a group of calls shows in the trace of whoever asked."""

from time import monotonic

import pytest

from tests.support.handles import asking, call, held, serving, until
from tests.support.spans import Recorded

pytestmark = pytest.mark.anyio


async def test_calls_of_a_batch_show_together_how_long_they_waited_and_ran():
    """One after the other, since they were asked for, with a link to the batch."""
    async with serving() as (handle, model, _, resident):
        busy = await held(handle, model)
        asked = monotonic()
        task, context = asking(handle, call("one"), call("two"))
        context.span = Recorded("request")
        await until(lambda: 2 == resident.queue.depth("interactive"))
        model.hold.set()
        await task
        await busy

    (queue, began, until_s, no_links, of), (name, since_s, ended, links, of_too) = context.span.added
    assert ("queue", (), "model", ["request/batch"]) == (queue, no_links, name, links)
    assert {"model": "vqa", "calls": 2} == of == of_too
    assert asked <= began <= until_s == since_s <= ended <= monotonic()
