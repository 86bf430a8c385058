"""`scoregate.load`: the service in this process, on a thread of its own, without a port; or another one."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401  # registers the end of its executors
import os
import sys
import threading
import weakref
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass, replace
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from scoregate.aio import AsyncClient
from scoregate.client import Client, OnePortal, closed_meanwhile, ending
from scoregate.connection import Reply, ServiceRequest, Transport
from scoregate.errors import InputError, NotReadyError, ScoregateError, named
from scoregate.http import failure
from scoregate.items import names_of
from scoregate.text import meant, meant_file, say

IN_PROCESS = "http://in-process"  # the address of a service of this process
NOT_LOADED = "not_loaded"  # the code of an error that a person has to mend
NO_SERVER = (
    "scoregate.load runs the models in this process, and needs the package scoregate-server in this"
    " environment: pip install . in a checkout of Scoregate"
)


class Given(NamedTuple):
    """
    What is loaded: the arguments of `load`.

    Attributes:
        metrics: the options of those that will be scored; None if any may be.
    """

    names: tuple[str, ...]
    devices: tuple[str, ...]
    dtype: str
    policies: str
    metrics: Mapping[str, Mapping[str, Any]] | None


class LocalService:
    """
    The service on the event loop of a thread, from `open` until its portal is closed, or it is collected.

    Args:
        given: the arguments of `load`.
    """

    def __init__(self, given: Given) -> None:
        self.given = given
        self._server = server()
        self._stack = AsyncExitStack()
        self._gate: Any = None
        self._opening = asyncio.Lock()
        # The models of metrics that are given are loaded by `open`.
        self.transport_class = InProcessTransport if given.metrics else LoadingTransport
        self.portals = OnePortal(self, self._stack.aclose)
        _all.add(self.portals)

    async def open(self) -> None:
        """
        Open the service, on its own loop.  If that fails, `abandon` it.

        Raises:
            NotReadyError: something is missing that may come, such as free memory or the hub.
            ScoregateError: it cannot be opened; the detail says why.
        """
        async with self._opening:
            with self._faults():
                self._gate = await self._stack.enter_async_context(
                    self._server.open_gate(*self.given, say=say_on_terminal)
                )

    def abandon(self) -> None:
        """End the loop when `open` has ended, without waiting; a task that was cancelled may not begin it."""
        if portal := self.portals.portal:
            portal.submit(self._ended())

    async def _ended(self) -> None:
        async with self._opening:
            self.portals.end()

    async def load_for(self, path: str, content_type: str, content: bytes, metrics: Sequence[str]) -> None:
        """Load the models that a request needs, from any event loop.  Raises as `open`."""
        with self._faults():
            await self._on_loop(self._gate.load_for, path, content_type, content, metrics)

    async def exchange(self, method: str, path: str, headers: Mapping[str, str], content: bytes) -> Any:
        """Send a request to the app, from any event loop; cancelling the task cancels the work."""
        return await self._on_loop(self._gate.exchange, method, path, headers, content)

    async def _on_loop(self, work: Callable[..., Coroutine[Any, Any, Any]], *given: Any) -> Any:
        """
        Return the result of *work* on the service's loop.

        Raises:
            ServiceConnectionError: the service was closed meanwhile; `CancelledError` would mean that the
                caller's task was cancelled.
        """
        portal = self.portals.portal
        if portal is not None and portal.loop is asyncio.get_running_loop():
            return await work(*given)
        result = asyncio.wrap_future(self.portals.here().submit(work(*given)))
        try:
            await asyncio.wait([result])
        except asyncio.CancelledError:
            result.cancel()
            raise
        if result.cancelled():
            raise closed_meanwhile()
        return result.result()

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Raise what the server raises for models that it cannot load as errors of the client."""
        try:
            yield
        except self._server.TEMPORARY_ERRORS as exc:
            raise NotReadyError(str(exc), status=503) from exc
        except self._server.FAULTS as exc:
            raise ScoregateError(str(exc), code=NOT_LOADED) from exc


def server() -> Any:
    """Import the server's package.  Raises `ImportError` with what is to be installed."""
    try:
        command = import_module("scoregate_server")
        foreign = [found for name in command.PACKAGES if (found := command.where_foreign(name))]
        if foreign:
            raise ImportError(f"scoregate.load: {foreign[0]}")
        return import_module("service.process.gate")
    except ModuleNotFoundError as exc:
        raise ImportError(f"{NO_SERVER} ({exc})") from exc


@dataclass(eq=False)
class InProcessTransport(Transport):
    """Requests to a service of this process, whose models were loaded when it was opened."""

    service: LocalService

    async def send(self, request: ServiceRequest) -> Reply:
        method, path, content = request.method, request.path, request.content or b""
        answer = await self.service.exchange(method, path, request.headers, content)
        return Reply(f"{IN_PROCESS}{path}", answer.status, answer.headers, answer.content)

    @asynccontextmanager
    async def opened(self, request: ServiceRequest) -> AsyncIterator[tuple[str, AsyncIterator[bytes]]]:
        """Yield the whole response as one piece: in this process nothing is sent in parts."""
        reply = await self.send(request)
        if reply.status != 200:
            raise failure(reply)

        async def whole() -> AsyncIterator[bytes]:
            yield reply.content

        yield reply.headers.get("x-request-id", ""), whole()


class LoadingTransport(InProcessTransport):
    """Requests to a service of this process, whose models are loaded by the first ones that need them."""

    async def prepare(self, path: str, content_type: str, content: bytes, metrics: Sequence[str]) -> None:
        await self.service.load_for(path, content_type, content, metrics)


class LocalClient(Client):
    """
    A `Client` of a service in this process, made by `load`.  All methods and errors are the client's.

    It may be used by any number of threads, also where an event loop runs.  Pickled, as for a process that
    is started by spawn, it is loaded anew there.
    """

    portals: OnePortal

    def __init__(self, service: LocalService, **client: Any) -> None:
        self._inner = AsyncClient(
            IN_PROCESS, api_key="", transport=service.transport_class(service), **client
        )
        self.portals = service.portals  # their loop runs the client's part, too, and no other is made
        self._given = service.given, client

    def __repr__(self) -> str:
        return f"scoregate.load({', '.join(map(repr, self._given[0].names))})"

    def __exit__(self, *raised: object) -> None:
        """Close; after Ctrl-C without a wait: a thread that loads a model cannot be interrupted."""
        if KeyboardInterrupt in raised:
            self.portals.end()
        else:
            self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _loaded, self._given


class AsyncLocalClient(AsyncClient):
    """An `AsyncClient` of a service in this process, made by `aload`; any event loop may use it."""

    def __init__(self, service: LocalService, **client: Any) -> None:
        super().__init__(IN_PROCESS, api_key="", transport=service.transport_class(service), **client)
        self._portals = service.portals

    async def close(self) -> None:
        """Free the models, and end the threads."""
        await asyncio.to_thread(self._portals.close)


def load(
    *names: str | os.PathLike[str],
    devices: Sequence[str] | str = (),
    dtype: str = "",
    policies: str | os.PathLike[str] = "",
    metrics: Sequence[str] | str = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    **client: Any,
) -> LocalClient:
    """
    Open the service of models in this process, and return a `Client` of it; no port is opened.

    A model is loaded by the first call that needs it, which has its timeout from then on.  The engine,
    batching, caches, limits and errors are the service's.  The environment's `SCOREGATE_…` settings hold
    here, too.  Close it, or use it as a context manager, to free the models; one that is collected closes
    itself.

    Args:
        names: "demo"; the name or the file of a profile, such as "gpu-24gb"; or models, by the names that
            `scoregate-server serve --model` takes, such as "zhiqiulin/clip-flant5-xl".
        devices: of models by name, such as "cuda:1"; by default the first GPU, or the CPU without one.
        dtype: of models by name, "float32" or "bfloat16".
        policies: a TOML file with tables `policies.NAME` for `decide`, in addition to the profile's.
        metrics: that will be scored: their models are loaded now, and there are no others and no policies.
        options: of these, checked before the models are loaded.
        client: arguments of `Client`, such as `timeout_s`.

    Raises:
        ImportError: the package scoregate-server is not installed here.
        NotReadyError: something is missing that may come, such as free memory or the hub.
        ScoregateError: a name or a setting is wrong, or a model cannot be loaded; the detail says why.
            The first call that needs a model raises both, too.
        TypeError: no name is given, or a keyword is unknown.
    """
    check_keywords(load, client)
    return _loaded(given_of(names, devices, dtype, policies, names_of(metrics), options), client)


def aload(
    *names: str | os.PathLike[str],
    devices: Sequence[str] | str = (),
    dtype: str = "",
    policies: str | os.PathLike[str] = "",
    metrics: Sequence[str] | str = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    **client: Any,
) -> Loading:
    """
    Open the service of models in this process as `load` does, for an `AsyncClient` of it.

    `client = await scoregate.aload("demo")`, or `async with scoregate.aload("demo") as client`.
    """
    check_keywords(aload, client)
    return Loading(given_of(names, devices, dtype, policies, names_of(metrics), options), client)


def check_keywords(owner: Callable[..., Any], client: Iterable[str]) -> None:
    """Raise `TypeError` for a keyword that neither *owner* nor a client of this process has."""
    of_client = signature(Client).parameters.keys() - {"base_url", "api_key", "transport"}
    if wrong := next((name for name in client if name not in of_client), ""):
        near = meant(wrong, [*signature(owner).parameters, *of_client])
        raise TypeError(f"{owner.__name__}() got an unexpected keyword argument {wrong!r}{near}")


def given_of(
    names: Sequence[str | os.PathLike[str]],
    devices: Sequence[str] | str,
    dtype: str,
    policies: str | os.PathLike[str],
    metrics: Sequence[str],
    options: Mapping[str, Mapping[str, Any]] | None,
) -> Given:
    """Return what `load` is given.  Raises `TypeError` without a name."""
    if not names:
        raise TypeError('name a model, a profile, or "demo"')
    if wrong := next((each for each in names if not isinstance(each, str | os.PathLike)), None):
        raise TypeError(f'models are named one by one, as load("a", "b"), and not by {wrong!r}')
    if not isinstance(devices, str | Sequence):
        raise TypeError(f'devices are names such as "cuda:1", not {devices!r}')
    placed = tuple(devices.split() if isinstance(devices, str) else devices)
    scored = {name: dict((options or {}).get(name, {})) for name in metrics}
    return Given(tuple(os.fspath(name) for name in names), placed, dtype, os.fspath(policies), scored or None)


class Loading:
    """The loading of an `AsyncLocalClient`: await it, or use it as an asynchronous context manager."""

    def __init__(self, given: Given, client: Mapping[str, Any]) -> None:
        self._given, self._client = given, client

    def __await__(self) -> Generator[Any, None, AsyncLocalClient]:
        return self._loaded().__await__()

    async def __aenter__(self) -> AsyncLocalClient:
        self._gate = await self
        return self._gate

    async def __aexit__(self, *_: object) -> None:
        await self._gate.close()

    async def _loaded(self) -> AsyncLocalClient:
        service = LocalService(self._given)
        try:
            await asyncio.wrap_future(service.portals.here().submit(service.open()))
        except BaseException:
            service.abandon()
            raise
        return AsyncLocalClient(service, **self._client)


def _loaded(given: Given, client: Mapping[str, Any]) -> LocalClient:
    service = LocalService(given)
    try:
        service.portals.here().run(service.open())
    except BaseException:
        service.abandon()
        raise
    return LocalClient(service, **client)


def say_on_terminal(line: str) -> None:
    """Print a line to stderr if that is a terminal."""
    if sys.stderr.isatty():
        say(f"scoregate: {line}")


_all: weakref.WeakSet[OnePortal] = weakref.WeakSet()


def close_all() -> None:
    """Close what is open at the end of the process, and wait until what ends has ended."""
    for portals in tuple(_all):
        portals.close()
    for portal in tuple(ending):
        portal.join()


# A service needs its executors until it is closed.  They end before what `atexit` calls, and after what is
# registered here, if it is registered later than theirs.
threading._register_atexit(close_all)  # type: ignore[attr-defined]


@dataclass(frozen=True, kw_only=True)
class Service:
    """
    Where the scores come from; other processes make a client of it, too.

    Attributes:
        existing: a client, which stays open; it has its own models and policies, and is strict or not.
        base_url, api_key: as of `scoregate.Client`.
        local: models that each process loads in place of a service, see `scoregate.load`; without an address
            and a key, by default those of the variable SCOREGATE_LOCAL.
        timeout_s: of a call with its retries.
        strict: a score that the service warns about is an error.
        policies: a file of policies for models of this process; a service has its own.
    """

    existing: Client | None = None
    base_url: str | None = None
    api_key: str | None = None
    local: Sequence[str] = ()
    timeout_s: float = 60.0
    strict: bool = False
    policies: str = ""

    @classmethod
    def of(
        cls,
        client: Client | None = None,
        local: Sequence[str] | str = (),
        strict: bool | None = None,
        timeout_s: float = 60.0,
    ) -> Service:
        """
        Return the service of a call in Python: an open client, models to load, or the environment's service.

        Args:
            strict: by default as the client is.

        Raises:
            InputError: a client and models are given, or it is not as *strict*.
        """
        strict = (client.strict if client else False) if strict is None else strict
        found = cls(existing=client, local=names_of(local), timeout_s=timeout_s, strict=strict)
        if client:
            found.given(client)
        return found

    def given(self, client: Client) -> Client:
        """Return the existing client.  Raises `InputError` if it is not what else is set."""
        if self.local or self.policies or self.strict != client.strict:
            raise InputError("a client has its own models and policies, and is strict or not by itself")
        return client

    @property
    def models(self) -> list[str]:
        """The models to load; none of a service.  Raises `InputError` for both."""
        given = {"base_url": self.base_url, "api_key": self.api_key}
        remote = [name for name, value in given.items() if value is not None]
        if remote and self.local:
            both = f"{named('local')} and {named(remote[0])}"
            raise InputError(f"{both}: models of this process have no address and no key")
        return [*self.local] or ([] if remote else os.environ.get("SCOREGATE_LOCAL", "").split())

    def client(
        self,
        *,
        metrics: Sequence[str] = (),
        options: Mapping[str, Mapping[str, Any]] | None = None,
        strict: bool = False,
        **more: Any,
    ) -> AbstractContextManager[Client]:
        """
        Return a context of a client, which is closed at the end unless it existed before.

        Args:
            metrics, options: of all calls, if known: models of this process are loaded for these alone, and
                mistakes in them are found before.
            strict: as the settings of a call are; the service may be strict, too.
            more: further arguments of `scoregate.Client`.

        Raises:
            InputError: the address is not valid, or the server's package is not installed.
            ScoregateError: the models cannot be loaded.
        """
        if strict and not self.strict:
            return replace(self, strict=True).client(metrics=metrics, options=options, **more)
        if self.existing:
            return nullcontext(self.given(self.existing))
        more = {"timeout_s": self.timeout_s, "strict": self.strict, **more}
        try:
            if names := self.models:
                if self.policies and not Path(self.policies).is_file():
                    raise InputError(f"{self.policies}: no such file{meant_file(self.policies)}")
                given = given_of(names, (), "", self.policies, metrics, options)
                return _loaded(given, more)
            if self.policies:
                whose = f"{named('policy_file')} is for models of {named('local')}"
                raise InputError(f"{whose}: a service has policies of its own")
            return Client(self.base_url, api_key=self.api_key, **more)
        except ScoregateError:  # an error about settings is a ValueError, too
            raise
        except (ValueError, ImportError) as exc:
            raise InputError(str(exc)) from exc
