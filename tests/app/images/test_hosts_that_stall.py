"""Hosts that answer late, in parts or without end, and whom they delay."""

import asyncio
import socket
import threading
from contextlib import AsyncExitStack

import httpcore
import pytest

from service.core.concurrency.budget import ByteBudget, one_caller
from service.core.errors import UrlFailed
from service.core.settings.sections import Images
from service.images.fetcher import (
    LARGEST_HELD,
    LARGEST_URGENT,
    MAX_HEAD_BYTES,
    MAX_PER_HOST,
    Fetcher,
    PublicNetwork,
)
from tests.support.leaps import leap

pytestmark = pytest.mark.anyio

SIZE = 1000
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
PICTURE = CHUNKED + b"%x\r\n%s\r\n" % (SIZE, b"x" * SIZE) + b"0\r\n\r\n"


class Host(httpcore.AsyncNetworkStream):
    """Answers each request with *parts*, then nothing more, or the last one again and again."""

    def __init__(self, parts, asked, endless):
        self.parts, self.asked, self.endless = parts, asked, endless
        self.coming, self.sent = b"", 0

    async def read(self, max_bytes, timeout=None):  # noqa: ASYNC109 (httpcore's)
        if not self.coming and not self.endless:
            await asyncio.get_running_loop().create_future()
        part = (self.coming or self.parts)[:max_bytes]
        self.coming = self.coming[max_bytes:]
        self.sent += len(part)
        return part

    async def write(self, buffer, timeout=None):  # noqa: ASYNC109 (httpcore's)
        if buffer:
            self.coming = self.parts
            self.asked.release()

    async def aclose(self):
        pass

    def get_extra_info(self, info):
        return None


class Hosts(httpcore.AsyncNetworkBackend):
    """*answer* makes what a host sends; *asked* has a signal for each request."""

    def __init__(self, answer, endless=False):
        self.answer, self.endless, self.asked = answer, endless, asyncio.Semaphore(0)
        self.streams = []

    async def connect_tcp(self, host, *args, **options):
        self.streams.append(Host(self.answer(host), self.asked, self.endless))
        return self.streams[-1]


def fetcher(hosts, **more) -> Fetcher:
    """A fetcher for which "a.test" and "b.test" are listed."""
    settings = {"allow_urls": True, "allowed_url_hosts": ["a.test", "b.test"], "max_bytes": SIZE, **more}
    return Fetcher(Images.model_validate(settings), ByteBudget(2**30), hosts)


async def test_waiting_for_memory_is_not_the_hosts_time():
    """A picture that waits while others are scored is fetched, whatever time that takes."""
    hosts = Hosts(lambda host: PICTURE)
    fetching = fetcher(hosts, url_timeout_s=1)
    async with AsyncExitStack() as scored:
        for number in range(LARGEST_HELD + LARGEST_URGENT):
            with one_caller():
                await scored.enter_async_context(fetching.open(f"http://a.test/{number}", urgent=True))

        async def one_more():
            async with fetching.open("http://b.test/last", urgent=True) as encoded:
                return encoded

        waiting = asyncio.create_task(one_more())
        for _ in range(LARGEST_HELD + LARGEST_URGENT + 1):
            await hosts.asked.acquire()
        while not fetching._budget.waits:
            await asyncio.sleep(0)
        leap()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()

    assert b"x" * SIZE == await waiting
    assert 0 == fetching._budget.held
    await fetching.aclose()


async def test_a_host_that_hangs_delays_no_other_host():
    """Bulk or interactive, before its head or within its body: the pictures of other hosts come at once."""
    for urgent in (False, True):
        for stalls in (b"", CHUNKED, b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"):
            hosts = Hosts(lambda host, stalls=stalls: PICTURE if host == "b.test" else stalls)
            fetching = fetcher(hosts)

            async def fetched(url, urgent, fetching=fetching):
                async with fetching.open(url, urgent) as encoded:
                    return len(encoded)

            with one_caller():
                hung = [asyncio.create_task(fetched(f"http://a.test/{n}", urgent)) for n in range(128)]
            for _ in range(MAX_PER_HOST):
                await hosts.asked.acquire()
            with one_caller():
                assert SIZE == await fetched("http://b.test/", urgent=True)
            assert 0 == fetching._budget.held
            for task in hung:
                task.cancel()
            await asyncio.gather(*hung, return_exceptions=True)
            await fetching.aclose()


async def test_pictures_that_are_cancelled_together_end_each_by_itself():
    """A request at its deadline has more pictures of a host that hangs than there are slots for the host."""
    connecting = asyncio.Semaphore(0)

    class Unreachable(httpcore.AsyncNetworkBackend):
        async def connect_tcp(self, *args, **options):
            connecting.release()
            await asyncio.get_running_loop().create_future()

    fetching = fetcher(Unreachable())

    async def fetched(number):
        async with fetching.open(f"http://a.test/{number}", urgent=True):
            pass

    with one_caller():
        hung = [asyncio.create_task(fetched(number)) for number in range(40)]
    for _ in range(MAX_PER_HOST):
        await connecting.acquire()
    for task in hung:
        task.cancel()
    ends = await asyncio.gather(*hung, return_exceptions=True)
    await fetching.aclose()

    assert {asyncio.CancelledError} == {type(end) for end in ends}


async def test_bulk_requests_never_hold_all_memory():
    """Their pictures leave room for those of interactive requests."""
    fetching = fetcher(Hosts(lambda host: PICTURE))
    async with AsyncExitStack() as scored:
        for number in range(LARGEST_HELD):
            await scored.enter_async_context(fetching.open(f"http://a.test/{number}", urgent=False))
        assert not fetching._budget.take_now(1, urgent=False)
        await scored.enter_async_context(fetching.open("http://b.test/", urgent=True))
    await fetching.aclose()


async def test_interim_responses_without_end_are_an_error():
    """After a bounded number of bytes; httpcore by itself reads them for ever."""
    hosts = Hosts(lambda host: b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100, endless=True)
    fetching = fetcher(hosts)
    with pytest.raises(UrlFailed, match="broke off"):
        async with fetching.open("http://a.test/", urgent=True):
            pass
    await fetching.aclose()

    assert MAX_HEAD_BYTES == hosts.streams[0].sent


async def test_a_name_that_does_not_resolve_holds_a_thread_of_its_own(monkeypatch):
    """One for all pictures of the host; the event loop's threads, which parse requests, stay free."""
    looked_up, over = [], threading.Event()

    def getaddrinfo(host, port, **options):
        looked_up.append(threading.current_thread().name)
        over.wait(10)
        raise socket.gaierror

    monkeypatch.setattr("service.images.fetcher.socket.getaddrinfo", getaddrinfo)
    fetching = fetcher(PublicNetwork())

    async def fetched(number):
        async with fetching.open(f"http://a.test/{number}", urgent=True):
            pass

    tasks = [asyncio.create_task(fetched(number)) for number in range(5)]
    while not looked_up:
        await asyncio.to_thread(lambda: None)
    over.set()
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    await fetching.aclose()

    assert [UrlFailed] * 5 == [type(error) for error in errors]
    assert [True] == [name.startswith("names") for name in looked_up]
