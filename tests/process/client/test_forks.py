"""A process that was forked inherits the client, and asks on connections of its own."""

import multiprocessing
import os
import pickle
import threading

from scoregate import Client
from tests.support.pictures import png

FORK = multiprocessing.get_context("fork")


def ask(client, results, name):
    """What a DataLoader's worker does."""
    results.put((name, client.score(png(), f"a square {name}").value))


def test_forked_workers_get_their_own_scores(client):
    """Several at once, while the parent asks as well; nobody gets another's answer."""
    expected = {name: client.score(png(), f"a square {name}").value for name in range(4)}
    results = FORK.SimpleQueue()
    workers = [FORK.Process(target=ask, args=(client, results, name)) for name in expected]
    for worker in workers:
        worker.start()
    again = {name: client.score(png(), f"a square {name}").value for name in expected}
    found = dict(results.get() for _ in workers)
    for worker in workers:
        worker.join()

    assert expected == again == found
    assert {0} == {worker.exitcode for worker in workers}


def test_a_fork_while_other_threads_ask_holds_no_lock(client):
    """A child that inherits a lock which nobody will release would wait for ever."""
    going = threading.Event()
    going.set()

    def keep_asking():
        while going.is_set():
            client.score(png(), "a square")

    threads = [threading.Thread(target=keep_asking) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for name in range(5):
            results = FORK.SimpleQueue()
            worker = FORK.Process(target=ask, args=(client, results, name))
            worker.start()
            worker.join(60)
            assert 0 == worker.exitcode
    finally:
        going.clear()
        for thread in threads:
            thread.join()


def test_a_child_that_closes_leaves_its_parent_s_connections(client):
    """And one that ends as a process of its own does, not as a worker."""
    before = client.score(png(), "a square").value
    if (child := os.fork()) == 0:
        code = 1
        try:
            with client:
                code = int(before != client.score(png(), "a square").value)
        finally:
            os._exit(code)

    assert 0 == os.waitpid(child, 0)[1]
    assert before == client.score(png(), "a square").value


def test_a_spawned_worker_can_be_given_a_client(service):
    """It is sent as its settings."""
    with Client(service) as client:
        health = client.health()
        with pickle.loads(pickle.dumps(client)) as copy:
            assert health == copy.health()
