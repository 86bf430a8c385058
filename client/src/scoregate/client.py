"""The synchronous client."""

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
    Client of one service, for any number of threads and forked processes.

    Pictures may be bytes, paths, open files, PIL images, NumPy arrays and tensors
    (`scoregate.images.encoded`).  Calls are retried if the service is busy (429, 503) or unreachable, not
    before its `Retry-After`.

    Args:
        base_url: default `SCOREGATE_BASE_URL` of the environment, else `http://127.0.0.1:8000`.
        api_key: default `SCOREGATE_API_KEY` of the environment, else no key.
        timeout_s: of a whole call with its retries; sent to the service as its deadline.
        retries: maximum attempts after the first.
        priority: `interactive`, or `bulk` for background work.
        allow_urls: send URLs (http:// or https://), which the service fetches; otherwise they are errors.
        strict: raise `Warned` for a score with a warning, instead of returning its `warnings`.
        transport: of httpx, for tests, such as `httpx.MockTransport`.

    Raises:
        ValueError: *base_url* is not an HTTP address.
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
        self.__setstate__(inner)

    def __getstate__(self) -> AsyncClient:
        return self._inner

    def __setstate__(self, inner: AsyncClient) -> None:
        self._inner, self._portals = inner, Portals()
        self._portals.serve(self, inner.close)

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
        Score one picture.

        Args:
            image: one picture, or the frames of one scene as a list.
            options: by metric, as in the service's API.
            explain: fill `details` with the parts of the score.

        Raises:
            BadImage: the picture cannot be encoded, or the service cannot decode it.
            ScoregateError: the request or the metric failed.
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
        Score items in one request.

        Errors of single metrics are in `Result.errors`: check `Report.partial`, or call
        `Report.raise_for_errors`.

        Args:
            items: `Item`, or pairs (image, prompt); up to the service's limit, 128 by default.

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
        Score any number of items with concurrent requests, and yield the results in order.

        An error of one item is in its result.  An error of a whole request ends the run; with *resume*, the
        next run continues there.

        Args:
            pairs: read lazily, some requests ahead.
            concurrency: concurrent requests, each with its own `timeout_s` and retries.
            batch: items of a request.
            progress: show the progress on stderr.
            resume: a JSON Lines file of results, read first and appended to.  Pictures are identified by
                path only, so the order of items must not change.
            allow_model_change: continue if the models change; see `Result.models`.

        Raises:
            ModelChanged: the models changed, in this run or since the file was written.
            BadResults: the file is of another run, or not valid.  Also a `ValueError`.
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
        Rank pictures of one prompt, best first.

        Args:
            images: 1 to 64 pictures.
            top_k, threshold: the pictures to accept; all by default.
            cascade: `{"metric": "clipscore", "keep": 8}` ranks all by a cheap metric first, and only the best
                by *metric*.
            on_error: `raise`, or rank failed pictures last, accepted (`pass`) or not (`block`).
            orient: `exif` applies the EXIF orientation; by default as the service is set.
            on_deadline: `cheap` falls back to the cheap metric's order at the deadline; `fail` raises.

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
        Return the question sets of prompts, written if missing; one that failed has an `error`.

        Raises:
            ScoregateError: no set could be written, or the request failed.
        """
        return self._run(self._inner.questions(prompts, style, priority=priority, timeout_s=timeout_s))

    def question_set(self, id: str) -> QuestionSet:
        """Return a stored question set.  Raises `UnknownQuestionSet`."""
        return self._run(self._inner.question_set(id))

    def models(self) -> dict[str, Any]:
        """Return the JSON of `GET /models`: models, metrics and limits."""
        return self._run(self._inner.models())

    def version(self) -> str:
        """Return the service's version, from its OpenAPI document."""
        return self._run(self._inner.version())

    def health(self) -> dict[str, Any]:
        """Return the JSON of `GET /health`: the metrics that are ready, and why others are not."""
        return self._run(self._inner.health())

    def ready(self) -> tuple[bool, dict[str, Any]]:
        """Return whether every required model serves, and the JSON of `GET /readyz`; without retries."""
        return self._run(self._inner.ready())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._portals.here().run(work)
