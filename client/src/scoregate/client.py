"""The synchronous client."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from copy import copy
from functools import wraps
from inspect import unwrap
from os import PathLike
from types import AsyncGeneratorType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from scoregate.aio import AsyncClient
from scoregate.connection import Transport
from scoregate.errors import CLIENT_CLOSED, ScoregateError, ServiceConnectionError
from scoregate.http import httpx
from scoregate.images import ImageLike
from scoregate.items import Item, ScoreParams, names_of
from scoregate.many import Many
from scoregate.results import Result
from scoregate.text import hinted_generator, hinted_keywords, in_words_of

P = ParamSpec("P")
T = TypeVar("T")


def closed_meanwhile() -> ServiceConnectionError:
    """Return the error of a call whose client was closed meanwhile."""
    return ServiceConnectionError("the client was closed meanwhile", code=CLIENT_CLOSED)


def blocking(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Client, P], T]:
    """Return the method of `Client` that runs *method* in the client's portal, and returns its result."""
    inner: Callable[..., Coroutine[Any, Any, T]] = unwrap(method)  # a hint is given once

    @wraps(method)
    def wrapped(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            portal = self.portals.here()
            try:
                work = inner(self._inner, *args, **kwargs)  # its body does not run yet
            except TypeError as exc:
                raise in_words_of(self, inner, exc, kwargs) from None
            return portal.run(work)
        except ScoregateError as exc:
            raise exc.with_traceback(None) from exc.__cause__  # the loop's frames do not help

    return wrapped


@hinted_keywords
class Client:
    """
    Client of one service, for any number of threads and forked processes.

    Pictures may be bytes, paths, open files, PIL images, NumPy arrays and tensors
    (`scoregate.images.encoded`).  A call is retried if the service is busy (429, 503) or unreachable: at once
    at another address, at the same one not before the time in `Retry-After`.

    Args:
        base_url: one address, `http://…`, `https://…` or `unix:/path`, or several of services of the same
            models; default `SCOREGATE_BASE_URL` of the environment, else `http://127.0.0.1:8000`.
        api_key: default `SCOREGATE_API_KEY` of the environment, else no key.
        timeout_s: of a whole call with its retries; sent to the service as its deadline.
        retries: maximum attempts after the first.
        priority: `interactive`, or `bulk` for background work.
        allow_urls: send URLs (http:// or https://), which the service fetches; otherwise they are errors.
        strict: raise `WarnedError` for a score with a warning, instead of returning its `warnings`.
        outage: called with a line when a service that has answered is away for longer than *retries*; its
            calls are then retried until their *timeout_s*.  By default they fail.
        transport: of httpx2: `AsyncHTTPTransport` with a proxy or certificates, or `MockTransport` for tests;
            or a `Transport`.

    Raises:
        TypeError: *transport* is neither.
        ValueError: *base_url* is not an address, or a header cannot hold *api_key*.
    """

    def __init__(
        self,
        base_url: Sequence[str] | str | None = None,
        *,
        api_key: str | None = None,
        timeout_s: float = 60.0,
        retries: int = 4,
        max_connections: int = 64,
        priority: str = "interactive",
        allow_urls: bool = False,
        strict: bool = False,
        outage: Callable[[str], object] | None = None,
        transport: Transport | httpx.AsyncBaseTransport | None = None,
    ) -> None:
        inner = AsyncClient(
            base_url,
            api_key=api_key,
            timeout_s=timeout_s,
            retries=retries,
            max_connections=max_connections,
            priority=priority,
            allow_urls=allow_urls,
            strict=strict,
            outage=outage,
            transport=transport,
        )
        self.__setstate__(inner)

    def __getstate__(self) -> AsyncClient:
        return self._inner

    def __setstate__(self, inner: AsyncClient) -> None:
        portals = Portals()
        portals.serve(self, inner.close)
        self._inner = inner
        self.portals: HasPortal = portals

    @property
    def base_url(self) -> str:
        """The service's address; several with commas between them."""
        return self._inner.base_url

    @property
    def strict(self) -> bool:
        """Whether a score with a warning is an error."""
        return self._inner.strict

    def __repr__(self) -> str:
        return f"Client({self.base_url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close this process's connections, which a later call opens again, and free models of `load`."""
        self.portals.close()

    score = blocking(AsyncClient.score)
    score_items = blocking(AsyncClient.score_items)
    matrix = blocking(AsyncClient.matrix)
    rank = blocking(AsyncClient.rank)
    compare = blocking(AsyncClient.compare)
    decide = blocking(AsyncClient.decide)
    decide_items = blocking(AsyncClient.decide_items)
    policies = blocking(AsyncClient.policies)
    label = blocking(AsyncClient.label)
    questions = blocking(AsyncClient.questions)
    question_set = blocking(AsyncClient.question_set)
    models = blocking(AsyncClient.models)
    metrics = blocking(AsyncClient.metrics)
    load_model = blocking(AsyncClient.load_model)
    offload_model = blocking(AsyncClient.offload_model)
    unload_model = blocking(AsyncClient.unload_model)
    version = blocking(AsyncClient.version)
    openapi = blocking(AsyncClient.openapi)
    health = blocking(AsyncClient.health)
    ready = blocking(AsyncClient.ready)

    @hinted_generator
    def stream(
        self,
        items: Iterable[Item | tuple[ImageLike, str | None]],
        metrics: Sequence[str] | str = ("vqascore",),
        *,
        options: Mapping[str, Any] | None = None,
        explain: bool = False,
        priority: str | None = None,
        timeout_s: float | None = None,
    ) -> Iterator[Result]:
        """See `AsyncClient.stream`."""
        portal = self.portals.here()
        results = self._inner.stream(
            items, metrics, options=options, explain=explain, priority=priority, timeout_s=timeout_s
        )
        try:
            while (result := portal.run(following(results))) is not None:
                yield result
        finally:
            portal.leave(results)

    @hinted_generator
    def score_many(
        self,
        items: Iterable[Item | tuple[ImageLike, str | None]],
        metrics: Sequence[str] | str = ("vqascore",),
        *,
        options: Mapping[str, Any] | None = None,
        explain: bool = False,
        concurrency: int = 8,
        batch_size: int = 32,
        progress: bool = False,
        resume: str | PathLike[str] | None = None,
        allow_model_change: bool = False,
        priority: str = "bulk",
    ) -> Iterator[Result]:
        """
        Score any number of items with concurrent requests, and yield the results in order.

        An error of one item is in its result.  An error of a whole request ends the run; with *resume*, the
        next run continues there.

        Args:
            items: as of `score_items`, read lazily, some requests ahead.
            concurrency: concurrent requests, each with its own `timeout_s` and retries.
            batch_size: items of a request.
            progress: show the progress on stderr.
            resume: a JSON Lines file of results, which is read first, and appended to.  The order of
                items must not change.  An item with an error is scored again, and so is one whose picture
                was replaced at its path.  Until a run ends, the last line of an index counts.  A picture
                at a URL is identified by the URL alone.
            allow_model_change: continue if the models change; see `Result.models`.

        Raises:
            ModelChangedError: the models changed, in this run or since the file was written.
            BadResultsError: the file is of another run, of a version that noted no digests of pictures, or
                not valid.  Also a `ValueError`.
            ScoregateError: a request failed as a whole.
        """
        many = Many(
            self._inner,
            items,
            ScoreParams(names_of(metrics), options, explain, priority),
            concurrency=concurrency,
            batch_size=batch_size,
            progress=progress,
            resume=resume,
            allow_model_change=allow_model_change,
        )
        pending: deque[Future[list[Result]]] = deque()
        try:
            for entries in many.batches():
                pending.append(self.portals.here().submit(many.score(entries)))
                if len(pending) > many.ahead:
                    yield from many.finish(pending[0].result())
                    pending.popleft()
            while pending:
                yield from many.finish(pending[0].result())
                pending.popleft()
        finally:  # also of the one that was awaited when Ctrl-C came
            for future in pending:
                future.cancel()
            many.close()


def asynchronous(client: Client, *, strict: bool) -> AsyncClient:
    """Return an `AsyncClient` with the connections of *client*, for tasks in its portal."""
    inner = copy(client._inner)
    inner.strict = strict
    return inner


async def following(results: AsyncGenerator[T, None]) -> T | None:
    """Return the next one of *results*; None at the end."""
    async for result in results:
        return result
    return None


# --- an event loop in a thread, for synchronous callers ---


_forking = threading.Lock()  # no portal opens or ends while a process forks
_open: set[Portal] = set()
ending: set[Portal] = set()  # without a wait
PARK_S = 5.0  # most seconds that a fork waits for a loop
LOOK_S = 0.001  # seconds between two checks whether a fork is over


class Portal:
    """
    An event loop that runs in a thread until `close`.

    During a fork the loop pauses between two callbacks.  Otherwise a child could inherit a lock that the
    loop's thread held, such as an import lock, and that is never released.
    """

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="scoregate", daemon=True)
        self._forked = threading.Event()
        with _forking:
            self._thread.start()
            _open.add(self)

    def _serve(self) -> None:
        self.loop.run_forever()
        self.loop.close()
        ending.discard(self)

    def join(self) -> None:
        """Wait until the loop and its thread have ended."""
        self._thread.join()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start *work* in the loop; cancelling the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run *work* and return its result; cancel it if the caller is interrupted."""
        try:
            return self.submit(work).result()
        except CancelledError as exc:
            raise closed_meanwhile() from exc
        except (KeyboardInterrupt, SystemExit):  # there may be no future yet, though the work has begun
            self.loop.call_soon_threadsafe(cancel, work)
            raise

    def leave(self, results: AsyncGenerator[Any, None]) -> None:
        """
        Close *results* in the loop, without waiting.

        The garbage collector ends generators in any thread, in the loop's own, too.
        """
        closing = ended(results)
        try:
            self.submit(closing)
        except RuntimeError:  # the loop has ended, and its generators with it
            closing.close()

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel all tasks, run *last*, and return when the loop and its thread have ended."""
        ended = self.end(last)
        if threading.current_thread() is not self._thread:
            ended.result()
            self.join()

    def end(self, last: Callable[[], Coroutine[Any, Any, None]]) -> Future[None]:
        """
        Close without waiting.

        The garbage collector runs finalizers in any thread: in the loop's own, or in one that holds
        `_forking`.  So `end` takes no lock.
        """
        ended = self.submit(self._end(last))
        ended.add_done_callback(lambda _: self.loop.call_soon_threadsafe(self._leave))
        return ended

    async def _end(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await last()
        with suppress(RuntimeError):  # at exit no thread starts since Python 3.12; the executor has ended
            await self.loop.shutdown_default_executor()

    def _leave(self) -> None:
        """Stop the loop; if a fork is in progress, retry after it."""
        if not _forking.acquire(blocking=False):
            self.loop.call_later(LOOK_S, self._leave)
            return
        _open.discard(self)
        _forking.release()
        self.loop.stop()

    def pause(self) -> None:
        """Pause the loop until `resume`; return when it has paused."""
        if threading.current_thread() is self._thread:
            return
        parked = threading.Event()
        self._forked.clear()

        def park() -> None:
            parked.set()
            self._forked.wait()

        self.loop.call_soon_threadsafe(park)
        parked.wait(PARK_S)

    def resume(self) -> None:
        """Resume the loop."""
        self._forked.set()


def before_fork() -> None:
    """Pause all loops."""
    _forking.acquire()
    for portal in _open:
        portal.pause()


def after_fork_in_parent() -> None:
    """Resume all loops."""
    for portal in _open:
        portal.resume()
    _forking.release()


def after_fork_in_child() -> None:
    """Forget the loops, whose threads do not exist in the child."""
    _open.clear()
    ending.clear()
    _forking.release()


if hasattr(os, "register_at_fork"):  # Windows has none
    os.register_at_fork(
        before=before_fork, after_in_parent=after_fork_in_parent, after_in_child=after_fork_in_child
    )


def cancel(work: Coroutine[Any, Any, Any]) -> None:
    """Cancel the task of *work*, if it has not ended."""
    for task in asyncio.all_tasks():
        if task.get_coro() is work:
            task.cancel()


async def ended(results: AsyncGenerator[Any, None]) -> None:
    """Close a generator; one that runs was cancelled, since its caller was interrupted, and closes itself."""
    if not cast(AsyncGeneratorType[Any, None], results).ag_running:
        await results.aclose()


async def nothing() -> None:
    """Do nothing: the default cleanup."""


class HasPortal(Protocol):
    """What has a portal for the methods of a client."""

    def here(self) -> Portal:
        """Return the portal of this process."""

    def close(self) -> None:
        """Close it."""


class OnePortal:
    """
    A portal of the process that made it, until `close`, or its owner is collected.

    Args:
        last: run in it before it ends.
    """

    def __init__(self, owner: object, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._process, self._last = os.getpid(), last
        self.portal: Portal | None = Portal()
        self._collected = weakref.finalize(owner, self.end)
        self._collected.atexit = False

    def here(self) -> Portal:
        """
        Return the portal.

        Raises:
            ScoregateError: it was closed, or made in another process: no thread survives a fork.
        """
        if self._process != os.getpid():
            raise ScoregateError(
                "this client was loaded before the fork, and its threads and models are the parent's:"
                " load one in each process, or start processes by spawn",
                code="forked",
            )
        if self.portal is None:
            raise ScoregateError("this client was closed", code=CLIENT_CLOSED)
        return self.portal

    def close(self) -> None:
        """
        Finish, and return when the thread has ended; does nothing a second time.

        It ends in the background if the caller is interrupted.
        """
        self._collected.detach()
        portal, last = self.portal, self.end()
        if portal is not None and last is not None:
            last.result()
            portal.join()

    def end(self) -> Future[None] | None:
        """
        Close without waiting, for the garbage collector, which may run in the portal's own thread.

        Returns:
            The future of `last`; None if nothing is open in this process.
        """
        portal, self.portal = self.portal, None
        if portal is None or self._process != os.getpid():
            return None
        ending.add(portal)
        last = portal.submit(self._last())
        last.add_done_callback(lambda _: portal.end(nothing))
        return last


class Portals:
    """
    A portal for each process that uses a client, created lazily.

    No thread survives a fork, so a child creates its own.  The parent's portal is not closed in the child,
    since both share its selector.
    """

    def __init__(self) -> None:
        self._by_process: dict[int, Portal] = {}
        self._last = nothing
        _all.add(self)

    def serve(self, owner: object, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run *last* in each portal before it ends, and end when *owner* is collected."""
        self._last = last
        weakref.finalize(owner, self._end).atexit = False

    def here(self) -> Portal:
        """Return the portal of this process."""
        portal = self._by_process.get(os.getpid())
        if portal is None:
            made = Portal()
            portal = self._by_process.setdefault(os.getpid(), made)
            if portal is not made:  # another thread was first
                made.close(nothing)
        return portal

    def close(self) -> None:
        """Close the portal of this process, if any."""
        portal = self._by_process.pop(os.getpid(), None)
        if portal is not None:
            portal.close(self._last)

    def _end(self) -> None:
        portal = self._by_process.pop(os.getpid(), None)
        if portal is not None:
            portal.end(self._last)


_all: weakref.WeakSet[Portals] = weakref.WeakSet()


@atexit.register
def close_all() -> None:
    """Close what is open at the end of the process."""
    for portals in tuple(_all):
        portals.close()
