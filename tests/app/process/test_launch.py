"""How the servers take connections."""

import asyncio
import errno
import os
import socket
import sqlite3
from contextlib import ExitStack, asynccontextmanager
from types import SimpleNamespace

import pytest

from service.core.settings import NotYet, SettingsError, sections
from service.core.settings.tree import Settings
from service.process.launch import UvicornServer, config, serve
from service.process.ports import Listener
from service.questions.stores.opening import check_store
from tests.support.app import service_of

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
    server = UvicornServer(config(None, service, max_connections=100))
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


def settings(folder, **server):
    """Those of a service with a port and a store of its own."""
    store = {"questions": f"sqlite:///{folder}/questions.sqlite3"}
    models = {"vqa": {"family": "fake", "role": "vqa"}}
    return Settings.model_validate(
        {"server": {"host": HOST, "port": 0, **server}, "cache": store, "models": models}
    )


def never():
    """Load no models."""
    raise AssertionError("models were loaded")


def test_a_port_is_taken_before_models_are_loaded(tmp_path):
    """Which takes minutes; it may be free the next time."""
    with socket.create_server((HOST, 0)) as other, pytest.raises(NotYet, match=r"server\.port"):
        serve(settings(tmp_path, port=other.getsockname()[1]), never)


def test_a_question_store_is_opened_before_models_are_loaded(tmp_path):
    """One that another process keeps locked may be free the next time; a folder in its place stays wrong."""
    (tmp_path / "wrong" / "questions.sqlite3").mkdir(parents=True)
    with sqlite3.connect(tmp_path / "questions.sqlite3") as other:
        other.execute("CREATE TABLE a (b)")
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(NotYet, match=r"cache\.questions: .* locked"):
            check_store(settings(tmp_path).cache, 0.01)
    other.close()
    with pytest.raises(SettingsError, match=r"cache\.questions") as wrong:
        serve(settings(tmp_path / "wrong"), never)

    assert not isinstance(wrong.value, NotYet)


def test_keys_are_read_before_models_are_loaded(tmp_path):
    """A line of them that is wrong stays wrong."""
    (tmp_path / "keys").write_text("trainer:secret", "utf-8")
    with pytest.raises(SettingsError, match=r"server\.api_keys_file") as wrong:
        serve(settings(tmp_path, api_keys_file=tmp_path / "keys"), never)

    assert not isinstance(wrong.value, NotYet)


async def asked(port, path):
    """The status of a request on a connection of its own."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return int(answer.split(b" ", 2)[1])


async def test_a_scrape_takes_the_place_of_an_idle_connection(serve):
    """Of the one that was idle for longest: on the port of the instruments nobody may hold a place."""
    async with serve() as client:
        service = service_of(client)
        server = UvicornServer(config(service.instruments.app(), service, max_connections=2, makes_room=True))
        with socket.create_server((HOST, 0)) as listening:
            port = listening.getsockname()[1]
            serving = asyncio.create_task(server.serve([listening]))
            while not server.started:
                await asyncio.sleep(0)
            idle = [await asyncio.open_connection(HOST, port) for _ in range(2)]
            idle[1][1].write(b"GET /metr")  # headers that do not come either
            while len(server.server_state.connections) < 2:
                await asyncio.sleep(0)
            statuses = [await asked(port, "/metrics") for _ in range(3)]
            with pytest.raises(ConnectionResetError):
                await idle[0][0].read()
            idle[1][1].write(b"ics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            kept = await idle[1][0].read()
            for _, writer in idle:
                writer.close()
            server.should_exit = True
            await serving

    assert [200] * 3 == statuses
    assert kept.startswith(b"HTTP/1.1 200")
