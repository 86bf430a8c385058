"""How the servers take connections."""

import asyncio
import errno
import os
import socket
from contextlib import ExitStack, asynccontextmanager
from types import SimpleNamespace

import pytest

from service.launch import Server, config
from service.ports import Listener
from service.settings import sections

pytestmark = pytest.mark.anyio

HOST = "127.0.0.1"


CALLERS = 50
TURNS = 8  # of the event loop, for all of them; one at a time would take as many as there are callers


class Full(Listener):
    """A listening socket of a process that can open no more files."""

    def _accept(self):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@asynccontextmanager
async def serving(listening):
    """A server on a socket, which has no app."""
    settings = sections.Server()
    service = SimpleNamespace(settings=SimpleNamespace(server=settings), draining=False)
    listening.bind((HOST, 0))
    server = Server(config(None, service, max_connections=100))
    task = asyncio.create_task(server.serve([listening]))
    while not server.started:
        await asyncio.sleep(0)
    yield server
    server.should_exit = True
    await task


async def test_after_a_connection_that_failed_no_more_are_taken_in_that_turn():
    """One that no file is left for is one line in the log and one more try, not hundreds of both."""
    told = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context["message"]))
    with Full() as full, socket.socket() as caller:
        async with serving(full):
            caller.connect(full.getsockname())
            while not told:
                await asyncio.sleep(0)

    assert ["socket.accept() out of system resource"] == told


async def test_several_connections_are_taken_in_one_turn():
    """Who comes behind two hundred others, each with work for the loop, does not wait for as many turns."""
    with Listener() as listening, ExitStack() as callers:
        async with serving(listening) as server:
            for _ in range(CALLERS):
                callers.enter_context(socket.create_connection(listening.getsockname()))
            for _ in range(TURNS):
                await asyncio.sleep(0)
            taken = len(server.server_state.connections)
            callers.close()

    assert CALLERS == taken
