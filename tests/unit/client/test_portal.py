"""A client that the garbage collector finds: wherever that happens, nobody waits for a lock."""

import asyncio
import gc
import threading
from weakref import ref

import httpx2 as httpx
import pytest

from scoregate import Client
from scoregate import client as portal
from scoregate.trainers.reward import Reward

LIMIT_S = 60  # a deadlock lasts longer


def opened(kind):
    """A client or a reward whose loop runs, in a ring that only the garbage collector takes apart."""
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json={"metrics": {"vqascore": {}}}))
    made = kind(base_url="http://test", transport=transport)
    made.models() if isinstance(made, Client) else made.check()
    made.ring = made
    return made


def loops():
    """The threads of all loops."""
    return {thread for thread in threading.enumerate() if thread.name == "scoregate"}


def in_a_thread(work):
    """Run *work* where it may block without holding the tests up."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(LIMIT_S)
    return not thread.is_alive()


@pytest.mark.parametrize("kind", [Client, Reward])
def test_a_client_may_be_collected_while_the_process_forks(kind):
    """In the thread that forks, too: preparing a fork makes objects, and so may run the collector."""
    before = loops()
    made = [opened(kind)]
    [loop] = loops() - before

    def fork():
        portal.before_fork()
        made.clear()
        gc.collect()
        portal.after_fork_in_parent()

    assert in_a_thread(fork)
    loop.join(LIMIT_S)
    assert not loop.is_alive()


def test_a_client_may_be_collected_in_its_own_loop():
    """Which then ends, and no other does."""
    before = loops()
    first, second = [opened(Client)], opened(Client)
    mine = first[0].portals.here()

    async def collect():
        first.clear()
        gc.collect()

    mine.run(collect())
    mine._thread.join(LIMIT_S)

    assert 1 == len(loops() - before)
    assert second.models()
    second.close()
    assert loops() == before


def test_a_fork_waits_for_no_loop_that_ends_meanwhile():
    """Each either stands still before the fork, or is gone."""
    made = [opened(Client) for _ in range(8)]

    def fork():
        for client in made:
            client.portals._end()
            portal.before_fork()
            portal.after_fork_in_parent()

    assert in_a_thread(fork)
    assert all(client.models() for client in made)
    for client in made:
        client.close()


def test_a_portal_ends_though_no_thread_can_be_started(monkeypatch):
    """As at the exit of Python 3.12, where asyncio starts one to end its executor."""

    def at_exit(self):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    before = loops()
    client = opened(Client)
    client.portals.here().run(asyncio.to_thread(int))  # so that there is an executor
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", at_exit)
        client.close()

    assert loops() == before


def test_a_closed_portal_is_kept_by_nothing():
    """Its owner may live on, as a gate does that was closed."""
    owner = threading.Event()
    portals = portal.OnePortal(owner, portal.nothing)
    kept = ref(portals)
    portals.close()
    del portals
    gc.collect()

    assert kept() is None
