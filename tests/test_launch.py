"""How the servers take connections."""

import asyncio
import errno
import os
import socket
import sqlite3
from types import SimpleNamespace

import pytest

from service.launch import Server, config, serve
from service.settings import NotYet, SettingsError, sections
from service.settings.tree import Settings

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


def test_a_question_store_is_opened_before_models_are_loaded(tmp_path, monkeypatch):
    """One that another process keeps locked may be free the next time; a folder in its place stays wrong."""
    monkeypatch.setattr("service.questions.stores.file.START_S", 0.01)
    (tmp_path / "wrong" / "questions.sqlite3").mkdir(parents=True)
    with sqlite3.connect(tmp_path / "questions.sqlite3") as other:
        other.execute("CREATE TABLE a (b)")
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(NotYet, match=r"cache\.questions: .* locked"):
            serve(settings(tmp_path), never)
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
        service = client._transport.app.state.service
        server = Server(config(service.instruments.app(), service, max_connections=2, makes_room=True))
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
