"""The threads that prepare calls."""

import asyncio
import gc
import os
import threading
import weakref
from collections.abc import Iterator

import pytest

from service.core.concurrency.budget import one_caller
from service.core.concurrency.cpu_threads import FairThreads, cpu_threads, on_thread
from tests.support.handles import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def one() -> Iterator[FairThreads]:
    """A pool of a single thread."""
    with FairThreads(1, "one") as pool:
        yield pool


async def test_bulk_threads_give_way_to_all_others():
    """On Linux each thread has a niceness of its own; interactive threads keep the process's."""
    pools = cpu_threads(1)
    nice = {lane: await pool.run(os.nice, 0) for lane, pool in pools.items()}
    for pool in pools.values():
        pool.shutdown()

    assert {"interactive": os.nice(0), "bulk": min(19, os.nice(0) + 5)} == nice


async def test_a_request_with_much_work_does_not_stand_before_one_with_little(one):
    """The one waits for a turn of each other request, however much these have."""
    done, hold, futures = [], threading.Event(), []
    one.run(hold.wait, 10)
    for name, count in (("much", 100), ("more", 100), ("little", 1)):
        with one_caller():
            futures += [one.run(done.append, name) for _ in range(count)]
    hold.set()
    await futures[0]
    await futures[-1]

    assert ["much", "more", "little"] == done[:3]


async def test_work_that_nobody_waits_for_is_dropped(one):
    """Before its turn; what runs is not stopped, and its result is nobody's."""
    done, hold = [], threading.Event()
    running = one.run(hold.wait, 10)
    waiting = [one.run(done.append, number) for number in range(3)]
    assert waiting[1].cancel()
    hold.set()

    assert await running
    assert await waiting[2] is None
    assert [0, 2] == done


async def test_a_result_that_comes_too_late_is_nobodys(one):
    """Its caller left while the work ran; the thread and the loop go on."""
    begun, hold = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        hold.wait(10)

    running = one.run(work)
    begun.wait(10)
    assert running.cancel()
    hold.set()

    assert (2, 1) == await one.run(divmod, 9, 4)


async def test_an_error_is_the_callers(one):
    """And the thread goes on."""
    with pytest.raises(ZeroDivisionError):
        await one.run(divmod, 1, 0)

    assert (2, 1) == await one.run(divmod, 9, 4)


async def test_work_that_raises_stop_iteration_is_an_error_of_its_caller(one):
    """A bare `next()`, say; a future takes no StopIteration, and whoever awaited it would wait for good."""

    def work() -> None:
        next(iter(()))

    async with asyncio.timeout(10):
        with pytest.raises(RuntimeError, match="StopIteration") as raised:
            await one.run(work)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await on_thread(work)

    assert isinstance(raised.value.__cause__, StopIteration)
    assert (2, 1) == await one.run(divmod, 9, 4)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
async def test_work_cannot_end_its_caller(one, kind):
    """A library that calls `sys.exit`, say: the event loop would end with it, or a task as if cancelled."""

    def work() -> None:
        raise kind

    for run in (one.run, on_thread):
        with pytest.raises(RuntimeError, match=kind.__name__) as raised:
            await run(work)

        assert isinstance(raised.value.__cause__, kind)
    assert (2, 1) == await one.run(divmod, 9, 4)


async def test_a_thread_that_fails_to_begin_works_all_the_same(caplog):
    """It has the niceness and cores of any thread, and whoever waits for it has a result."""
    with FairThreads(1, "unprepared", begin=lambda: 1 // 0) as pool:
        async with asyncio.timeout(10):
            assert (2, 1) == await pool.run(divmod, 9, 4)

    assert [ZeroDivisionError] == [record.exc_info[0] for record in caplog.records]


async def test_work_is_done_by_the_threads_there_are_where_no_more_can_start(monkeypatch):
    """Nothing is handed to one that never runs; without any, the caller is told."""
    begun, hold = threading.Event(), threading.Event()

    def work() -> bool:
        begun.set()
        return hold.wait(10)

    with FairThreads(2, "few") as few, FairThreads(2, "none") as none:
        first = few.run(work)
        assert begun.wait(10)
        with monkeypatch.context() as full:
            full.setattr(threading.Thread, "start", no_thread)
            second = few.run(divmod, 9, 4)
            with pytest.raises(RuntimeError, match="new thread"):
                none.run(divmod, 9, 4)
        hold.set()
        async with asyncio.timeout(10):
            assert await first
            assert (2, 1) == await second
            assert (2, 1) == await none.run(divmod, 9, 4)


def no_thread(thread: threading.Thread) -> None:
    """As where the system allows no more of them."""
    raise RuntimeError("can't start new thread")


async def test_nothing_of_a_task_is_kept(one):
    """Neither by the thread that waits for the next one, nor by an error: a task may hold a picture."""

    class Picture:
        def fails(self) -> None:
            raise ValueError

    async def failed(picture: Picture) -> bool:
        try:
            await one.run(picture.fails)
        except ValueError:
            return True
        return False

    picture = Picture()
    alive = weakref.ref(picture)
    gc.disable()
    try:
        assert await failed(picture)
        del picture
        await one.run(int)

        assert alive() is None
    finally:
        gc.enable()


async def test_a_thread_that_waits_refers_to_no_caller(one):
    """It may have gone, with all that it holds."""

    class Who:
        pass

    caller = Who()
    alive = weakref.ref(caller)
    with one_caller(caller):
        await one.run(int)
    del caller

    await until(lambda: alive() is None)


async def test_what_was_asked_is_done_before_the_threads_end():
    """And nothing after."""
    pool, done = FairThreads(2, "two"), []
    for number in range(20):
        pool.run(done.append, number)
    pool.shutdown()

    with pytest.raises(RuntimeError):
        pool.run(done.append, 20)
    assert 20 == len(done)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("two")]


@pytest.fixture
def spared() -> Iterator[FairThreads]:
    """A pool of two threads and a spare one."""
    with FairThreads(2, "spared", spare=1) as pool:
        yield pool


async def test_a_caller_of_whom_nothing_runs_has_a_spare_thread(spared):
    """While another one's slow work has all others, and as much of it waits as it may."""
    hold, done = threading.Event(), []
    with one_caller():
        slow = [spared.run(hold.wait, 10) for _ in range(10)]
    for name in ("first", "second"):
        with one_caller():
            await spared.run(done.append, name)

    assert ["first", "second"] == done
    assert not any(future.done() for future in slow)
    hold.set()
    assert all([await future for future in slow])


async def test_the_spare_thread_is_not_for_who_has_others(spared):
    """Whoever is alone has as many as there were before, and the spare one stays for those who come."""
    hold, begun = threading.Event(), threading.Semaphore(0)

    def work() -> bool:
        begun.release()
        return hold.wait(10)

    with one_caller("key"):
        tasks = [spared.run(work) for _ in range(5)]
    assert begun.acquire(timeout=10)
    assert begun.acquire(timeout=10)
    with one_caller("key"):  # another request with the same key is the same caller
        tasks.append(spared.run(work))
    assert not begun.acquire(blocking=False)
    assert 2 == sum(thread.name.startswith("spared") for thread in threading.enumerate())
    hold.set()
    assert all([await task for task in tasks])


async def test_what_waits_is_done_before_the_threads_end_where_few_may_run():
    """What no thread has yet is done, too."""
    done = []
    with FairThreads(1, "ending", spare=1) as pool:
        for number in range(20):
            with one_caller("key" if number % 2 else None):
                pool.run(done.append, number)

    assert sorted(done) == list(range(20))
