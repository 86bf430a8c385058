"""The threads that prepare calls."""

import gc
import os
import threading
import weakref
from collections.abc import Iterator

import pytest

from service.concurrency.cpu_threads import FairThreads, cpu_threads
from service.concurrency.turns import one_caller


@pytest.fixture
def one() -> Iterator[FairThreads]:
    """A pool of a single thread."""
    pool = FairThreads(1, "one", 0)
    yield pool
    pool.shutdown()


def test_bulk_threads_give_way_to_all_others():
    """On Linux each thread has a niceness of its own; interactive threads keep the process's."""
    pools = cpu_threads(1)
    nice = {lane: pool.submit(os.nice, 0).result() for lane, pool in pools.items()}
    for pool in pools.values():
        pool.shutdown()

    assert {"interactive": os.nice(0), "bulk": min(19, os.nice(0) + 5)} == nice


def test_a_request_with_much_work_does_not_stand_before_one_with_little(one):
    """The one waits for a turn of each other request, however much these have."""
    done, hold = [], threading.Event()
    one.submit(hold.wait, 10)
    for name, count in (("much", 100), ("more", 100), ("little", 1)):
        with one_caller():
            futures = [one.submit(done.append, name) for _ in range(count)]
    hold.set()
    futures[0].result(10)

    assert ["much", "more", "little"] == done[:3]


def test_work_that_nobody_waits_for_is_dropped(one):
    """Before its turn; what runs is not stopped."""
    done, hold = [], threading.Event()
    running = one.submit(hold.wait, 10)
    waiting = [one.submit(done.append, number) for number in range(3)]
    assert [True, False] == [waiting[1].cancel(), hold.is_set()]
    hold.set()

    assert running.result(10)
    assert waiting[2].result(10) is None
    assert [0, 2] == done


def test_an_error_is_the_callers(one):
    """And the thread goes on."""
    with pytest.raises(ZeroDivisionError):
        one.submit(divmod, 1, 0).result(10)

    assert (2, 1) == one.submit(divmod, 9, 4).result(10)


def test_nothing_of_a_task_is_kept(one):
    """Neither by the thread that waits for the next one, nor by an error: a task may hold a picture."""

    class Picture:
        def fails(self) -> None:
            raise ValueError

    picture = Picture()
    alive = weakref.ref(picture)
    gc.disable()
    try:
        failed = one.submit(picture.fails)
        assert isinstance(failed.exception(10), ValueError)
        del picture, failed
        one.submit(int).result(10)

        assert alive() is None
    finally:
        gc.enable()


def test_what_was_submitted_is_done_before_the_threads_end():
    """And nothing after."""
    pool, done = FairThreads(2, "two", 0), []
    for number in range(20):
        pool.submit(done.append, number)
    pool.shutdown()

    with pytest.raises(RuntimeError):
        pool.submit(done.append, 20)
    assert 20 == len(done)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("two")]
