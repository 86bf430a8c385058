"""A result that comes once."""

import asyncio

import pytest

from service.serving.job import Promise, all_done

pytestmark = pytest.mark.anyio


def test_whoever_waits_is_told_at_once():
    """And who asks to be told later, too."""
    promise, told = Promise[int](), []
    promise.add_done_callback(lambda done: told.append(("before", done.result())))
    promise.set_result(7)
    promise.add_done_callback(lambda done: told.append(("after", done.result())))

    assert [("before", 7), ("after", 7)] == told


def test_a_result_comes_once():
    promise = Promise[int]()
    assert (False, False) == (promise.done(), promise.cancelled())
    with pytest.raises(asyncio.InvalidStateError, match=r"^the result is not set$"):
        promise.result()
    promise.set_result(1)

    assert [False, 1] == [promise.cancel(), promise.result()]
    assert (True, False) == (promise.done(), promise.cancelled())
    with pytest.raises(asyncio.InvalidStateError, match=r"^the promise is done$"):
        promise.set_result(2)


def test_a_cancelled_promise_has_no_result():
    """Whoever waits is told of that, too."""
    promise, told = Promise[int](), []
    promise.add_done_callback(lambda done: told.append(done.cancelled()))

    assert promise.cancel()
    assert [True] == told
    with pytest.raises(asyncio.CancelledError):
        promise.result()


async def test_a_group_is_waited_for_as_one():
    """Results, cancellations, and what was done before."""
    promises = [Promise[int]() for _ in range(3)]
    promises[0].set_result(0)
    waiting = asyncio.create_task(all_done(promises))
    await asyncio.sleep(0)
    promises[1].set_result(1)
    await asyncio.sleep(0)
    assert not waiting.done()
    promises[2].cancel()

    await waiting
    await all_done(promises)
    await all_done([])


async def test_one_who_leaves_is_told_nothing_more():
    """Nor is kept by what others wait for still."""
    promise = Promise[int]()
    leaves, stays = (asyncio.create_task(all_done([promise])) for _ in range(2))
    await asyncio.sleep(0)
    leaves.cancel()
    await asyncio.wait([leaves])
    assert 1 == len(promise._callbacks)
    promise.set_result(1)

    await stays
    assert 1 == await promise


def test_a_callback_that_fails_keeps_nobody_from_being_told(caplog):
    """Whoever set the result goes on, too: to answer the others of its batch, say."""
    promise, told = Promise[int](), []
    promise.add_done_callback(lambda done: told.append("first"))
    promise.add_done_callback(lambda done: 1 // 0)
    promise.add_done_callback(lambda done: told.append("last"))
    promise.set_result(1)

    assert ["first", "last"] == told
    assert ["a callback failed"] == caplog.messages
    assert [ZeroDivisionError] == [record.exc_info[0] for record in caplog.records]
