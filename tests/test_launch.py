"""How the servers take connections."""

import asyncio
import errno
import os
import socket
from types import SimpleNamespace

import pytest

from service.launch import Server, config
from service.settings import sections

pytestmark = pytest.mark.anyio

HOST = "127.0.0.1"


class Full(socket.socket):
    """A listening socket of a process that can open no more files."""

    def accept(self):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


async def test_connections_are_taken_one_at_a_time():
    """One that no file is left for is one line in the log and one more try, not hundreds of both."""
    loop, told = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda loop, context: told.append(context["message"]))
    service = SimpleNamespace(settings=SimpleNamespace(server=sections.Server()))
    with Full() as full, socket.socket() as caller:
        full.bind((HOST, 0))
        server = Server(config(None, service, max_connections=100))
        serving = asyncio.create_task(server.serve([full]))
        while not server.started:
            await asyncio.sleep(0)
        caller.connect(full.getsockname())
        while not told:
            await asyncio.sleep(0)
        server.should_exit = True
        await serving

    assert ["socket.accept() out of system resource"] == told
