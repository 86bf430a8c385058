"""The asynchronous client."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from os import PathLike
from time import perf_counter
from typing import Any

from scoregate.addresses import addresses_of
from scoregate.answers import (
    ranking_of,
    report_of,
    score_of,
    streamed,
    understood,
    warned,
    without_warned,
)
from scoregate.comparison import Comparisons
from scoregate.connection import Connection, api_key_of, form
from scoregate.images import Picture
from scoregate.items import Files, Item, ScoreParams, given, names_of, packed
from scoregate.many import Many, Matrices
from scoregate.models import Models
from scoregate.results import Ranked, Ranking, Report, Result, Score

Filled = Callable[[Files], "Mapping[str, Any] | None"]


class AsyncClient(Models, Matrices, Comparisons):
    """
    Asynchronous version of `scoregate.Client`, with the same methods.

    Event loops may share an instance: each gets its own connections.
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
        self.timeout_s, self.priority, self.allow_urls = timeout_s, priority, allow_urls
        self.strict = strict
        if hasattr(transport, "connection"):  # a service of this process
            self._connection = transport.connection(retries)
        else:
            urls, key = addresses_of(base_url), api_key_of(api_key)
            self._connection = Connection(urls, key, retries, max_connections, transport)

    @property
    def base_url(self) -> str:
        """The service's address; several with commas between them."""
        return self._connection.base_url

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections of this event loop."""
        await self._connection.close()

    async def score(
        self,
        image: Picture,
        prompt: str | None = None,
        metric: str = "vqascore",
        *,
        start: float | None = None,
        end: float | None = None,
        fps: float | None = None,
        options: Mapping[str, Any] | None = None,
        explain: bool = False,
        priority: str | None = None,
        timeout_s: float | None = None,
    ) -> Score:
        """
        Score one picture.

        Args:
            image: one picture, the frames of one scene as a list, or a video.
            prompt: not needed by metrics that read none, such as `aesthetic`.
            start, end, fps: the part of a video file, in seconds, and the frames taken from each second.
            options: by metric, as in the service's API.
            explain: fill `details` with the parts of the score.

        Raises:
            BadImage: the picture cannot be encoded, or the service cannot decode it.
            ScoregateError: the request or the metric failed.
        """
        params = ScoreParams([metric], options, explain, priority or self.priority)
        item = Item(prompt, image, start=start, end=end, fps=fps)
        report = await self._report([item], params, timeout_s)
        return score_of(report, metric)

    async def score_items(
        self,
        items: Iterable[Item | tuple[Picture, str | None]],
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
            items: `Item`, or pairs (image, prompt); up to the service's limit, 128 by default.  One whose
                picture cannot be encoded is not sent, and gets the error.

        Raises:
            ScoregateError: the request failed as a whole.
        """
        params = ScoreParams(names_of(metrics), options, explain, priority or self.priority)
        return await self._report([Item.of(item) for item in items], params, timeout_s)

    async def stream(
        self,
        items: Iterable[Item | tuple[Picture, str | None]],
        metrics: Sequence[str] | str = ("vqascore",),
        *,
        options: Mapping[str, Any] | None = None,
        explain: bool = False,
        priority: str | None = None,
        timeout_s: float | None = None,
    ) -> AsyncGenerator[Result, None]:
        """
        Score items in one request, and yield each result when it is there, in any order.

        A result has the `index` of its item, and neither `models` nor `provenance`, which come last.  One
        whose picture cannot be encoded is the first, with its error.

        Raises:
            ScoregateError: the request failed as a whole; after some results, the others are missing.
        """
        params = ScoreParams(names_of(metrics), options, explain, priority or self.priority)
        every, unsent = [Item.of(item) for item in items], dict[int, Result]()
        files = Files(allow_urls=self.allow_urls, options=params.options)
        body = await self._body(files, filler(every, params, unsent), timeout_s)
        for failed in unsent.values():
            yield failed
        if body is None:
            return
        places = [place for place in range(len(every)) if place not in unsent]
        own = [params.metrics_of(every[place]) for place in places]
        async with aclosing(streamed(self._connection.lines("/score?stream=1", *body), own)) as results:
            async for result in results:
                found = replace(result, index=places[result.index])
                yield without_warned(found) if self.strict else found

    async def score_many(
        self,
        pairs: Iterable[Item | tuple[Picture, str | None]],
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
    ) -> AsyncIterator[Result]:
        """See `Client.score_many`."""
        params = ScoreParams(names_of(metrics), options, explain, priority)
        many = self._many(pairs, params, concurrency, batch, progress, resume, allow_model_change)
        pending: deque[asyncio.Task[list[Result]]] = deque()
        try:
            for each in many.batches():
                pending.append(asyncio.create_task(many.score(each)))
                if len(pending) > many.ahead:
                    for result in many.finish(await pending.popleft()):
                        yield result
            while pending:
                for result in many.finish(await pending.popleft()):
                    yield result
        finally:
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
            many.close()

    @property
    def _many(self) -> partial[Many]:
        """`Many`, with the settings of this client."""
        return partial(Many, self._report_packed, self.strict, self.allow_urls)

    async def rank(
        self,
        prompt: str | None,
        images: Iterable[Picture],
        *,
        metric: str = "vqascore",
        top_k: int | None = None,
        threshold: float | None = None,
        cascade: Mapping[str, Any] | None = None,
        on_error: str = "raise",
        on_deadline: str = "fail",
        orient: str | None = None,
        start: float | None = None,
        end: float | None = None,
        fps: float | None = None,
        options: Mapping[str, Any] | None = None,
        priority: str | None = None,
        timeout_s: float | None = None,
    ) -> Ranking:
        """
        Rank pictures of one prompt, best first.

        Args:
            prompt: None for metrics that read none.
            images: 1 to 64 pictures.
            top_k, threshold: the pictures to accept; all by default.
            cascade: `{"metric": "clipscore", "keep": 8}` ranks all pictures by a cheap metric first, and only
                the best of them by *metric*.
            on_error: for pictures that fail or cannot be encoded: `raise` an error, or rank them last, as
                accepted (`pass`) or not accepted (`block`).
            orient: `exif` applies the EXIF orientation; by default the service's setting.
            start, end, fps: as in `score`, for all videos.
            on_deadline: `cheap` falls back to the cheap metric's order at the deadline; `fail` raises.

        Raises:
            Invalid: a picture failed, and *on_error* is `raise`.
            ScoregateError: the request failed.
        """
        pictures, unsent = list(images), dict[int, Ranked]()

        def filled(files: Files) -> dict[str, Any] | None:
            if on_error == "raise":
                wire = [files.add(image, f"/images/{place}") for place, image in enumerate(pictures)]
            else:
                wire, broken = packed(files.add, pictures, "/images")
                for place, error in broken.items():
                    unsent[place] = Ranked(place, None, on_error == "pass", None, error)
            if unsent and not wire:
                return None
            return given(
                prompt=prompt or None,
                images=wire,
                metric=metric,
                top_k=top_k,
                threshold=threshold,
                cascade=cascade,
                on_error=on_error,
                on_deadline=on_deadline,
                orient=orient,
                start=start,
                end=end,
                fps=fps,
                options=options,
                priority=priority or self.priority,
            )

        raw = await self._send("/rank", Files(allow_urls=self.allow_urls), filled, timeout_s)
        ranking = understood(lambda: ranking_of(raw, len(pictures), unsent))
        if self.strict and ranking.warnings:
            raise warned(ranking.warnings, ranking.request_id)
        return ranking

    async def _report(
        self, items: Sequence[Item], params: ScoreParams, timeout_s: float | None = None
    ) -> Report:
        """Score *items* in one request.  Raises `ScoregateError`."""
        files, unsent = Files(allow_urls=self.allow_urls, options=params.options), dict[int, Result]()
        raw = await self._send("/score", files, filler(items, params, unsent), timeout_s)
        shown = [(item.prompt or "", files.picture(item.image)) for item in items]
        return report_of(raw, [*map(params.metrics_of, items)], shown, unsent, strict=self.strict)

    async def _report_packed(
        self, wire: Sequence[Mapping[str, Any]], files: Files, params: ScoreParams
    ) -> Report:
        """Score items of the wire format whose pictures are in *files*."""
        raw = await self._send("/score", files, lambda _: params.request(wire), None)
        sent = [(item.get("prompt", ""), None) for item in wire]
        metrics = [item.get("metrics", params.metrics) for item in wire]
        return report_of(raw, metrics, sent, {}, strict=self.strict)

    async def _send(
        self,
        path: str,
        files: Files,
        filled: Filled,
        timeout_s: float | None,
    ) -> Any:
        """POST the request that *filled* returns, and return the response's JSON; an empty one for None."""
        body = await self._body(files, filled, timeout_s)
        if body is None:
            return {"results": [], "ranking": []}
        left, kind, content = body
        return await self._connection.call("POST", path, left, content, kind)

    async def _body(
        self, files: Files, filled: Filled, timeout_s: float | None
    ) -> tuple[float, str, bytes] | None:
        """
        Encode the request that *filled* returns, in a thread.

        Returns:
            The seconds left, the content type and the body; None if no picture could be encoded.
        """
        began = perf_counter()
        time_s = self.timeout_s if timeout_s is None else timeout_s

        def encoded() -> tuple[str, bytes] | None:
            request = filled(files)
            return None if request is None else form(request, files.parts)

        sent = await asyncio.to_thread(encoded)
        return None if sent is None else (time_s - (perf_counter() - began), *sent)


def filler(items: Sequence[Item], params: ScoreParams, unsent: dict[int, Result]) -> Filled:
    """Return the function that encodes a request for *items*; those that cannot be encoded are *unsent*."""

    def filled(files: Files) -> dict[str, Any] | None:
        wire, broken = packed(files.item, items, "/items")
        for place, error in broken.items():
            metrics = params.metrics_of(items[place])
            unsent[place] = Result.failed(place, items[place].id, metrics, error)
        return None if unsent and not wire else params.request(wire)

    return filled
