"""The client of those who have no event loop, or don't want to think of theirs."""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from os import PathLike
from typing import Any, TypeVar

from scoregate.aio import AsyncClient
from scoregate.items import Item
from scoregate.portal import Portals
from scoregate.requests import ScoreParams, names_of
from scoregate.results import QuestionSet, Ranking, Report, Result, Score

T = TypeVar("T")


class Client:
    """
    One service, asked by any number of threads and forked processes at once.

    Pictures may be bytes, paths, open files, PIL images, NumPy arrays and tensors
    (`scoregate.images.encoded`).  Each call ends within its time, retries included.  It is tried again where
    the service is busy (429, 503) or cannot be reached, not before the service's `Retry-After`.

    Args:
        base_url: else `SCOREGATE_BASE_URL` of the environment, else `http://127.0.0.1:8000`.
        api_key: else `SCOREGATE_API_KEY` of the environment, else none is sent.
        timeout_s: of a whole call, in seconds; the service is told what is left of it.
        retries: most attempts after the first one.
        priority: `interactive`, or `bulk` for work that nobody waits for.
        allow_urls: whether texts that begin with http:// or https:// are addresses that the service fetches.
        strict: whether a score that the service warns about is an error, `Warned`.  Else the warnings are in
            `warnings` of what is returned.
        transport: of httpx, for tests: `httpx.MockTransport`, for example.

    Raises:
        ValueError: the address is none.
    """

    def __init__(
        self,
        base_url: str | None = None,
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
        self._begin(inner)

    def _begin(self, inner: AsyncClient) -> None:
        self._inner, self._portals = inner, Portals()
        self._portals.serve(self, inner.close)

    def __reduce__(self) -> tuple[Any, ...]:
        """As it travels to another process: without its connections."""
        return around, (type(self), self._inner)

    @property
    def base_url(self) -> str:
        """The service's address."""
        return self._inner.base_url

    def __repr__(self) -> str:
        return f"Client({self.base_url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close this process's connections.  A later call opens new ones."""
        self._portals.close()

    def score(
        self,
        image: Any,
        prompt: str,
        metric: str = "vqascore",
        *,
        options: Mapping[str, Any] | None = None,
        explain: bool = False,
        priority: str | None = None,
        timeout_s: float | None = None,
    ) -> Score:
        """
        One picture's score.

        Args:
            image: a list of pictures is frames of one scene.
            options: by metric, as in the service's API.
            explain: whether `details` say what the score is made of.

        Raises:
            BadImage: the picture cannot be encoded, or not be decoded by the service.
            ScoregateError: the request failed, or the metric did; see `scoregate.errors`.
        """
        return self._run(
            self._inner.score(
                image,
                prompt,
                metric,
                options=options,
                explain=explain,
                priority=priority,
                timeout_s=timeout_s,
            )
        )

    def score_items(
        self,
        items: Iterable[Item | tuple[Any, str]],
        metrics: Sequence[str] | str = ("vqascore",),
        *,
        options: Mapping[str, Any] | None = None,
        explain: bool = False,
        priority: str | None = None,
        timeout_s: float | None = None,
    ) -> Report:
        """
        The scores of some items, asked in one request.

        A metric of an item that fails is in its result's `errors`: look at `Report.partial`, or call
        `Report.raise_for_errors`.

        Args:
            items: `Item`, or pairs (image, prompt); as many as the service takes, 128 if not set otherwise.

        Raises:
            BadImage: a picture cannot be encoded; the error names the item.
            ScoregateError: the request failed as a whole.
        """
        return self._run(
            self._inner.score_items(
                items, metrics, options=options, explain=explain, priority=priority, timeout_s=timeout_s
            )
        )

    def score_many(
        self,
        pairs: Iterable[Item | tuple[Any, str]],
        metrics: Sequence[str] | str = ("vqascore",),
        *,
        options: Mapping[str, Any] | None = None,
        explain: bool = False,
        concurrency: int = 8,
        batch: int = 32,
        progress: bool = False,
        resume: str | PathLike[str] | None = None,
        allow_model_change: bool = False,
        priority: str = "bulk",
    ) -> Iterator[Result]:
        """
        The results of any number of items, in order, while further requests are under way.

        What is wrong with one item is an error of its result.  What concerns all ends the run: with
        *resume*, the next one goes on from there.

        Args:
            pairs: read as they are needed, some requests ahead.
            concurrency: requests at once, each with its own `timeout_s` and retries.
            batch: items of a request.
            progress: whether stderr says how far it is.
            resume: a file with a JSON line for each result, read first and added to.  A picture is told
                from another only by its path, so the order of items must stay.
            allow_model_change: go on where other models answer than before; the `models` of each result
                say which.

        Raises:
            ModelChanged: other models answer than before, in this run or in the file.
            BadResults: the file is of another run, or no file of results.  It is a `ValueError`, too.
            ScoregateError: a request failed as a whole.
        """
        params = ScoreParams(names_of(metrics), options, explain, priority)
        many = self._inner._many(pairs, params, concurrency, batch, progress, resume, allow_model_change)
        pending: deque[Future[list[Result]]] = deque()
        try:
            for entries in many.batches():
                pending.append(self._portals.here().submit(many.score(entries)))
                if len(pending) > many.ahead:
                    yield from many.finish(pending.popleft().result())
            while pending:
                yield from many.finish(pending.popleft().result())
        finally:
            for future in pending:
                future.cancel()
            many.close()

    def rank(
        self,
        prompt: str,
        images: Iterable[Any],
        *,
        metric: str = "vqascore",
        top_k: int | None = None,
        threshold: float | None = None,
        cascade: Mapping[str, Any] | None = None,
        on_error: str = "raise",
        on_deadline: str = "fail",
        orient: str | None = None,
        options: Mapping[str, Any] | None = None,
        priority: str | None = None,
        timeout_s: float | None = None,
    ) -> Ranking:
        """
        Pictures of one prompt, best first.

        Args:
            images: 1 to 64 pictures.
            top_k, threshold: what is accepted; all, if neither is given.
            cascade: `{"metric": "clipscore", "keep": 8}` orders all by a cheap metric first, and asks
                *metric* about the best of them alone.
            on_error: what becomes of a picture that fails: `raise`, or it stands last and is accepted
                (`pass`) or not (`block`).
            orient: `exif` turns pictures as their EXIF orientation says; by default as the service is set.
            on_deadline: `cheap` takes the order of the cheap metric where time runs out; `fail` is an error.

        Raises:
            Invalid: a picture failed, and *on_error* is `raise`.
            ScoregateError: the request failed.
        """
        return self._run(
            self._inner.rank(
                prompt,
                images,
                metric=metric,
                top_k=top_k,
                threshold=threshold,
                cascade=cascade,
                on_error=on_error,
                on_deadline=on_deadline,
                orient=orient,
                options=options,
                priority=priority,
                timeout_s=timeout_s,
            )
        )

    def questions(
        self,
        prompts: Sequence[str] | str,
        style: str = "dsg",
        *,
        priority: str | None = None,
        timeout_s: float | None = None,
    ) -> list[QuestionSet]:
        """
        The question sets of prompts, written where there are none yet; one that failed has an `error`.

        Raises:
            ScoregateError: none could be written, or the request failed.
        """
        return self._run(self._inner.questions(prompts, style, priority=priority, timeout_s=timeout_s))

    def question_set(self, id: str) -> QuestionSet:
        """A stored question set.  Raises `UnknownQuestionSet`."""
        return self._run(self._inner.question_set(id))

    def models(self) -> dict[str, Any]:
        """The service's models, metrics and limits: the JSON of `GET /models`."""
        return self._run(self._inner.models())

    def version(self) -> str:
        """The service's version, as its OpenAPI document tells it."""
        return self._run(self._inner.version())

    def health(self) -> dict[str, Any]:
        """The metrics that are ready, and why others are not: the JSON of `GET /health`."""
        return self._run(self._inner.health())

    def ready(self) -> tuple[bool, dict[str, Any]]:
        """Whether every required model serves, and the JSON of `GET /readyz`.  It is asked once."""
        return self._run(self._inner.ready())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._portals.here().run(work)


def around(kind: type[Client], inner: AsyncClient) -> Client:
    """A client that asks through *inner*."""
    client = kind.__new__(kind)
    client._begin(inner)
    return client
