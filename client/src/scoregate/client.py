"""The synchronous client."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from copy import copy
from functools import wraps
from os import PathLike
from typing import Any, Concatenate, ParamSpec, TypeVar

from scoregate.aio import AsyncClient
from scoregate.errors import ScoregateError
from scoregate.images import Picture
from scoregate.items import Item, ScoreParams, names_of
from scoregate.portal import HasPortal, Portals
from scoregate.results import Result

P = ParamSpec("P")
T = TypeVar("T")


def blocking(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Client, P], T]:
    """Return the method of `Client` that runs *method* in the client's portal, and returns its result."""

    @wraps(method)
    def wrapped(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return self.portals.here().run(method(self._inner, *args, **kwargs))
        except ScoregateError as exc:
            raise exc.with_traceback(None) from exc.__cause__  # without the frames of the loop

    return wrapped


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
        transport: of httpx2: `AsyncHTTPTransport` with a proxy or certificates, or `MockTransport` for tests.

    Raises:
        TypeError: *transport* is not an `httpx2.AsyncBaseTransport`.
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
        transport: Any = None,
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
        """Close this process's connections.  A later call opens new ones."""
        self.portals.close()

    score = blocking(AsyncClient.score)
    score_items = blocking(AsyncClient.score_items)
    matrix = blocking(AsyncClient.matrix)
    rank = blocking(AsyncClient.rank)
    compare = blocking(AsyncClient.compare)
    questions = blocking(AsyncClient.questions)
    question_set = blocking(AsyncClient.question_set)
    models = blocking(AsyncClient.models)
    load_model = blocking(AsyncClient.load_model)
    offload_model = blocking(AsyncClient.offload_model)
    unload_model = blocking(AsyncClient.unload_model)
    version = blocking(AsyncClient.version)
    openapi = blocking(AsyncClient.openapi)
    health = blocking(AsyncClient.health)
    ready = blocking(AsyncClient.ready)

    def stream(
        self,
        items: Iterable[Item | tuple[Picture, str | None]],
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

    def score_many(
        self,
        pairs: Iterable[Item | tuple[Picture, str | None]],
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
            pairs: read lazily, some requests ahead.
            concurrency: concurrent requests, each with its own `timeout_s` and retries.
            batch_size: items of a request.
            progress: show the progress on stderr.
            resume: a JSON Lines file of results, which is read first, and appended to.  Pictures are
                identified by their paths only, so the order of items must not change.
            allow_model_change: continue if the models change; see `Result.models`.

        Raises:
            ModelChangedError: the models changed, in this run or since the file was written.
            BadResultsError: the file is of another run, or not valid.  Also a `ValueError`.
            ScoregateError: a request failed as a whole.
        """
        many = self._inner._many(
            pairs,
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
                    yield from many.finish(pending.popleft().result())
            while pending:
                yield from many.finish(pending.popleft().result())
        finally:
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
