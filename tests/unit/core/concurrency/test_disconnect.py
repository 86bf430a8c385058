"""Work for a caller who may leave."""

import asyncio

import pytest

from service.core.concurrency.tasks import CallerGone, while_connected

pytestmark = pytest.mark.anyio


class Channel:
    """An ASGI channel whose caller leaves when told to."""

    def __init__(self):
        self.left = asyncio.Event()

    async def receive(self):
        await self.left.wait()
        return {"type": "http.disconnect"}


async def waiting(begun, ended):
    begun.set()
    try:
        await asyncio.Event().wait()
    finally:
        ended.append(True)


async def test_work_ends_with_its_result_and_nobody_watches_any_more():
    """The answer goes out, and no task is left."""

    async def work():
        return "scored"

    before = asyncio.all_tasks()
    assert "scored" == await while_connected(Channel().receive, work())
    await asyncio.sleep(0)
    assert before == asyncio.all_tasks()


async def test_a_caller_who_leaves_ends_his_work():
    """It is cancelled where it stands, and the request goes on to be noted down."""
    channel, begun, ended = Channel(), asyncio.Event(), []
    request = asyncio.create_task(while_connected(channel.receive, waiting(begun, ended)))
    await begun.wait()
    channel.left.set()

    with pytest.raises(CallerGone):
        await request
    assert [True] == ended
    assert 0 == request.cancelling()


async def test_a_request_that_is_cancelled_itself_is_no_caller_who_left():
    """The end of the server is told from the end of a connection."""
    begun, ended = asyncio.Event(), []
    request = asyncio.create_task(while_connected(Channel().receive, waiting(begun, ended)))
    await begun.wait()
    request.cancel()

    with pytest.raises(asyncio.CancelledError):
        await request
    assert [True] == ended


async def test_a_fault_of_the_work_reaches_the_caller():
    """As it is."""

    async def work():
        raise KeyError

    with pytest.raises(KeyError):
        await while_connected(Channel().receive, work())
