"""Serve the apps of a service until SIGTERM or SIGINT."""

import asyncio
import functools
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from models.core.family import Loaded
from service.core.errors import Draining
from service.core.settings.tree import Settings
from service.decisions.log import check_log
from service.process import BROKEN, STOPPED
from service.process.ports import ACCEPTS_PER_TURN, BACKLOG, ListeningPlace, all_bound, most_connections
from service.questions.stores.opening import check_store
from service.web.app import create_app, operator_app
from service.web.dialect_ports import ports
from service.web.edge import App
from service.web.keys import Keys
from service.web.problems import ErrorFormat
from service.web.server.protocol import Protocol
from service.wiring.bootstrap import Service

log = logging.getLogger("scoregate.end")

OnReady = Callable[[Service, str], None]

SCRAPERS = 16  # connections of the metrics' own port; a scrape takes the place of one that is idle
CLOSE_S = 2.0  # refusing what is left after the grace, and closing everything, may take so long


def serve(
    settings: Settings,
    load: Callable[[], Mapping[str, Loaded]],
    on_ready: OnReady = lambda service, url: None,
) -> int:
    """
    Serve until a signal, and return the exit status once every accepted request has its response.

    Ports and files are tried before models are loaded, which takes minutes.

    Args:
        load: gives the models.
        on_ready: called with the service and its address once requests are served.

    Raises:
        SettingsError: a file that the settings name cannot be used.
        Temporary: a port is taken, or something else is not there yet.
        CheckpointError: a model cannot be loaded.
        ScoregateError: a model failed on its example.
    """
    with all_bound(settings) as held:
        check_store(settings.cache)
        check_log(settings.decisions)
        Keys.read(settings.server.api_keys_file)
        return serve_on(held, settings, load(), on_ready)


def serve_on(
    held: Mapping[str, ListeningPlace],
    settings: Settings,
    models: Mapping[str, Loaded],
    on_ready: OnReady = lambda service, url: None,
) -> int:
    """Serve *models* on the ports that are *held*, and return the exit status."""
    broken: list[str] = []

    def on_broken(reason: str) -> None:
        """Stop: only a restart by the supervisor can help."""
        broken.append(reason)
        public.stop()

    def status() -> int:
        """Return the exit status, and print the fault."""
        if broken:
            print(f"scoregate-server: {broken[0]}", file=sys.stderr, flush=True)
        return BROKEN if broken else STOPPED

    service = Service(settings, models, on_broken)
    app = create_app(service)
    dialects = ports(service, app.state.dialects, app.state.bodies)
    share = most_connections() // (1 + len(dialects))
    private = {
        each.setting: Private(config(each.app, service, share, error_format=each.error_format))
        for each in dialects
    }
    drained = functools.partial(drain, service, app, list(private.values()))
    public = UvicornServer(config(app, service, share), drained, functools.partial(on_ready, service))
    if settings.server.metrics_port is not None:  # it answers while the others drain
        operators = operator_app(service, app.state.bodies)
        private["server.metrics_port"] = Private(config(operators, service, SCRAPERS, makes_room=True))
    # All modules stay: a pass of the garbage collector over them would delay a request.
    gc.collect()
    gc.freeze()
    # Full passes over newer objects are rare: those of 500 requests take 70 ms.
    gc.set_threshold(*gc.get_threshold()[:2], 100)
    try:
        with (
            ending_within(settings.server.grace_s + CLOSE_S, status) as public.begin_end,
            public.capture_signals(),
            asyncio.Runner(loop_factory=public.config.get_loop_factory()) as runner,
        ):
            runner.run(run(service, public, held, private))
    finally:
        gc.unfreeze()  # some modules complain about frozen objects at exit
    return status()


async def run(
    service: Service,
    public: "UvicornServer",
    held: Mapping[str, ListeningPlace],
    private: Mapping[str, "Private"],
) -> None:
    """Open the service, then the ports; close them in reverse."""
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


def drain(service: Service, app: App, trainers: Iterable["UvicornServer"] = ()) -> None:
    """Accept no more: refuse requests whose body is incomplete, and finish the others."""
    service.draining = True
    app.state.bodies.refuse_all(Draining())
    for server in trainers:  # they share the time to end
        server.should_exit = True


def config(
    app: ASGIApp,
    service: Service,
    max_connections: int,
    *,
    makes_room: bool = False,
    error_format: ErrorFormat | None = None,
) -> uvicorn.Config:
    """Configure uvicorn for *app*, without a lifespan: several apps share the service's."""
    server = service.settings.server
    protocol = functools.partial(
        Protocol,
        service=service,
        max_connections=max_connections,
        makes_room=makes_room,
        error_format=error_format,
    )
    return uvicorn.Config(
        app,
        host=server.host,
        port=server.port,
        http=cast(Any, protocol),
        ws="none",
        timeout_keep_alive=server.keep_alive_s,
        timeout_graceful_shutdown=server.grace_s,
        backlog=ACCEPTS_PER_TURN,  # asyncio accepts as many connections in a turn
        log_config=None,
        access_log=False,
        proxy_headers=False,
        lifespan="off",
    )


class UvicornServer(uvicorn.Server):
    """
    A server that returns after a signal; uvicorn's own raises the signal again.

    Attributes:
        begin_end: called when the end begins.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        drain: Callable[[], None] = lambda: None,
        on_ready: Callable[[str], None] = lambda url: None,
    ) -> None:
        super().__init__(config)
        self._drain = drain
        self._on_ready = on_ready
        self.begin_end: Callable[[], None] = lambda: None

    def stop(self) -> None:
        """Start the end."""
        self.should_exit = True
        self.begin_end()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End after a signal; a second SIGINT ends without waiting for requests."""
        super().handle_exit(sig, frame)
        self.begin_end()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start serving; connections that are not accepted yet wait in the kernel."""
        await super().startup(sockets)
        for listening in sockets or []:
            listening.listen(BACKLOG)
            self._on_ready(url_of(listening))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, and let running requests finish."""
        self._drain()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGTERM and SIGINT while serving."""
        signals = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def url_of(listening: socket.socket) -> str:
    """Return the address of a socket, as the client takes it."""
    if listening.family == socket.AF_UNIX:
        return f"unix:{listening.getsockname()}"
    host, port, *_ = listening.getsockname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class Private(UvicornServer):
    """A server of another port, which the public server ends."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the public server."""
        yield


@contextmanager
def ending_within(seconds: float, status: Callable[[], int]) -> Iterator[Callable[[], None]]:
    """
    Yield a function that starts the time limit: *seconds* later the process exits, in or after the context.

    Threads that compute cannot be interrupted.

    Works in the main thread only, and once at a time: it uses the process' alarm signal.

    Args:
        status: returns the exit status.
    """

    def begin() -> None:
        if not signal.getitimer(signal.ITIMER_REAL)[0]:  # a second signal gives no more time
            signal.setitimer(signal.ITIMER_REAL, seconds)

    def exit_now(*_: Any) -> None:
        try:
            log.warning("the time to finish is over: running work is dropped")
        finally:
            os._exit(status())

    before = signal.signal(signal.SIGALRM, exit_now)
    try:
        yield begin
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
