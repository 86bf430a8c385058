"""Serve the apps of a service until a signal asks for the end."""

import asyncio
import functools
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from models.core.family import Loaded
from service.core.errors import Draining
from service.core.settings.tree import Settings
from service.process.connections import most_connections
from service.process.ports import AT_ONCE, BACKLOG, Port, all_bound
from service.process.shutdown import ending_within
from service.questions.stores.opening import check_store
from service.web.app import App, create_app
from service.web.auth.keys import Keys
from service.web.dialects.ports import DialectPort, ports
from service.web.server.protocol import Protocol
from service.wiring.bootstrap import Service

STOPPED, WRONG, BROKEN, LATER = 0, 2, 3, os.EX_TEMPFAIL
"""
Exit statuses: stopped as asked; what was configured can't be served, until a person changes it; what was
served can't any more; what was configured can't be served yet (75).
"""

SCRAPERS = 16  # connections of the metrics' own port; a scrape takes the place of one that is idle
CLOSE_S = 2.0  # after the grace: to refuse what is left, and to close everything


def serve(settings: Settings, load: Callable[[], Mapping[str, Loaded]]) -> int:
    """
    The exit status, once everything that was accepted is answered.

    Ports and files are tried before models are loaded, which takes minutes.

    Args:
        load: gives the models.

    Raises:
        SettingsError: a file that the settings name cannot be used.
        Temporary: a port is taken, or something else is not there yet.
        CheckpointError: a model cannot be loaded.
        ScoregateError: a model failed on its example.
    """
    with all_bound(settings) as held:
        check_store(settings.cache)
        Keys.read(settings.server.api_keys_file)
        return serve_on(held, settings, load())


def serve_on(held: Mapping[str, Port], settings: Settings, models: Mapping[str, Loaded]) -> int:
    """The same on the ports that are *held*, with *models*."""
    broken: list[str] = []

    def on_broken(reason: str) -> None:
        """A supervisor can restart the process; nothing else helps."""
        broken.append(reason)
        public.stop()

    def status() -> int:
        """The exit status; a fault is told."""
        if broken:
            print(f"scoregate-server: {broken[0]}", file=sys.stderr, flush=True)
        return BROKEN if broken else STOPPED

    service = Service(settings, models, on_broken)
    app = create_app(service)
    dialects = ports(service, app.state.dialects, app.state.bodies)
    share = most_connections() // (1 + len(dialects))
    trainers = [(each, Private(config(each.app, service, share))) for each in dialects]
    drained = functools.partial(drain, service, app, [server for _, server in trainers])
    public = Server(config(app, service, share), drained)
    # What is there now stays: a pass of the collector over all modules would be somebody's latency.
    gc.collect()
    gc.freeze()
    # Nor does it often pass over all that came since: what 500 requests hold takes 70 ms.
    gc.set_threshold(*gc.get_threshold()[:2], 100)
    try:
        with (
            ending_within(settings.server.grace_s + CLOSE_S, status) as public.begin_end,
            public.capture_signals(),
            asyncio.Runner(loop_factory=public.config.get_loop_factory()) as runner,
        ):
            runner.run(run(service, public, held, trainers))
    finally:
        gc.unfreeze()  # at the end modules are cleared, and some complain of objects that are left
    return status()


async def run(
    service: Service,
    public: "Server",
    held: Mapping[str, Port],
    trainers: Sequence[tuple[DialectPort, "Private"]] = (),
) -> None:
    """Open the service, then the ports; close them the other way round."""
    private = {each.setting: server for each, server in trainers}
    if service.settings.server.metrics_port is not None:
        private["server.metrics_port"] = Private(
            config(service.instruments.app(), service, SCRAPERS, makes_room=True)
        )
    async with service:
        if public.should_exit:
            return
        opened = held["server.port"].open()
        beside = [(server, held[setting].open()) for setting, server in private.items()]
        async with asyncio.TaskGroup() as group:
            for server, listening in beside:
                group.create_task(server.serve([listening]))
            await public.serve([opened])
            for server, _ in beside:
                server.should_exit = True


def drain(service: Service, app: App, trainers: Iterable["Server"] = ()) -> None:
    """Take nothing new: what is still coming is refused now, what has come is answered."""
    service.draining = True
    app.state.bodies.refuse_all(Draining())
    for server in trainers:  # they have the same time to end
        server.should_exit = True


def config(
    app: ASGIApp, service: Service, max_connections: int, *, makes_room: bool = False
) -> uvicorn.Config:
    """How uvicorn serves *app*; its life is not the service's, which several apps share."""
    server = service.settings.server
    protocol = functools.partial(
        Protocol, service=service, max_connections=max_connections, makes_room=makes_room
    )
    return uvicorn.Config(
        app,
        host=server.host,
        port=server.port,
        http=cast(Any, protocol),
        ws="none",
        timeout_keep_alive=server.keep_alive_s,
        timeout_graceful_shutdown=server.grace_s,
        backlog=AT_ONCE,  # which is how many connections asyncio accepts in a turn
        log_config=None,
        access_log=False,
        proxy_headers=False,
        lifespan="off",
    )


class Server(uvicorn.Server):
    """
    Ends by itself after a signal; uvicorn's own dies of the signal once it has finished.

    Attributes:
        begin_end: called when the end begins.
    """

    def __init__(self, config: uvicorn.Config, drain: Callable[[], None] = lambda: None) -> None:
        super().__init__(config)
        self._drain = drain
        self.begin_end: Callable[[], None] = lambda: None

    def stop(self) -> None:
        """Begin to end."""
        self.should_exit = True
        self.begin_end()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End after a signal; a second SIGINT waits for nobody."""
        super().handle_exit(sig, frame)
        self.begin_end()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve; connections beyond those that are being accepted wait in the kernel."""
        await super().startup(sockets)
        for listening in sockets or []:
            listening.listen(BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take nothing new, and let what is under way finish."""
        self._drain()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let SIGTERM and SIGINT ask for the end while serving."""
        signals = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class Private(Server):
    """A server beside the public one, which ends it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the public server's."""
        yield
