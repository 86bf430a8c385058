"""The asynchronous client."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from os import PathLike
from time import perf_counter
from typing import Any
from urllib.parse import quote

from scoregate.answers import (
    question_set_of,
    question_sets_of,
    ranking_of,
    report_of,
    score_of,
    understood,
    warned,
)
from scoregate.connection import Connection, api_key_of, base_url_of, form
from scoregate.images import Picture
from scoregate.items import Files, Item, ScoreParams, given, names_of, packed
from scoregate.many import Many, Matrices
from scoregate.results import QuestionSet, Ranked, Ranking, Report, Result, Score


class Models:
    """The methods of `scoregate.AsyncClient` that score nothing: models, questions, health and version."""

    timeout_s: float
    priority: str
    _connection: Connection

    async def models(self) -> dict[str, Any]:
        """Return the JSON of `GET /models`: models, metrics and limits."""
        return await self._get("/models")

    async def load_model(self, name: str, revision: str = "") -> dict[str, Any]:
        """
        Load a model again, or another *revision* of it; the key needs the right `models`.

        Requests that use the model are finished first.  If the other revision fails, the previous one is
        served.

        Returns:
            Name, state, and the bytes on its devices before and after.

        Raises:
            Forbidden, NotFound, Conflict: see the service's errors.
            Invalid: there is no such revision, or models of this kind have one revision only.
            ModelFault: the model gives other numbers than before, and is not served.
        """
        return await self._change_model(name, "load", {"revision": revision} if revision else None)

    async def offload_model(self, name: str) -> dict[str, Any]:
        """Move the weights of a model to the host's memory; result and errors as for `load_model`."""
        return await self._change_model(name, "offload")

    async def unload_model(self, name: str) -> dict[str, Any]:
        """Drop the weights of a model; result and errors as for `load_model`."""
        return await self._change_model(name, "unload")

    async def _change_model(
        self, name: str, action: str, body: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        path = f"/models/{quote(name, safe='')}/{action}"
        content = json.dumps(body or {}).encode()  # the operator's port takes nothing but JSON
        raw = await self._connection.call("POST", path, self.timeout_s, content)
        return understood(lambda: dict(raw))

    async def version(self) -> str:
        """Return the service's version, from its OpenAPI document."""
        raw = await self.openapi()
        return understood(lambda: str(raw["info"]["version"]))

    async def openapi(self) -> dict[str, Any]:
        """Return the service's OpenAPI document, with the schema of each metric's options."""
        return await self._get("/openapi.json")

    async def health(self) -> dict[str, Any]:
        """Return the JSON of `GET /health`: the metrics that are ready, and why others are not."""
        return await self._get("/health")

    async def ready(self) -> tuple[bool, dict[str, Any]]:
        """Return whether every required model serves, and the JSON of `GET /readyz`; without retries."""
        return await self._connection.probe("/readyz", self.timeout_s)

    async def questions(
        self,
        prompts: Sequence[str] | str,
        style: str = "dsg",
        *,
        priority: str | None = None,
        timeout_s: float | None = None,
    ) -> list[QuestionSet]:
        """
        Return the question sets of prompts.

        The service's question LLM writes the missing sets; a set that could not be written has an `error`.

        Raises:
            ScoregateError: no set could be written, or the request failed.
        """
        wanted = [prompts] if isinstance(prompts, str) else list(prompts)
        content = json.dumps({"prompts": wanted, "style": style, "priority": priority or self.priority})
        time_s = self.timeout_s if timeout_s is None else timeout_s
        raw = await self._connection.call("POST", "/questions", time_s, content.encode())
        return understood(lambda: question_sets_of(raw, len(wanted)))

    async def question_set(self, id: str) -> QuestionSet:
        """Return a stored question set.  Raises `UnknownQuestionSet`."""
        raw = await self._get(f"/questions/{quote(id, safe='')}")
        return understood(lambda: question_set_of(raw))

    async def _get(self, path: str) -> dict[str, Any]:
        raw = await self._connection.call("GET", path, self.timeout_s)
        return understood(lambda: dict(raw))


class AsyncClient(Models, Matrices):
    """
    Asynchronous version of `scoregate.Client`, with the same methods.

    Event loops may share an instance: each gets its own connections.
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
        self.timeout_s, self.priority, self.allow_urls = timeout_s, priority, allow_urls
        self.strict = strict
        if hasattr(transport, "connection"):  # a service of this process
            self._connection = transport.connection(retries)
        else:
            address, key = base_url_of(base_url), api_key_of(api_key)
            self._connection = Connection(address, key, retries, max_connections, transport)

    @property
    def base_url(self) -> str:
        """The service's address."""
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
        metrics = [*map(params.metrics_of, items)]

        def filled(files: Files) -> dict[str, Any] | None:
            wire, broken = packed(files.item, items, "/items")
            for place, error in broken.items():
                unsent[place] = Result.failed(place, items[place].id, metrics[place], error)
            return None if unsent and not wire else params.request(wire)

        raw = await self._send("/score", files, filled, timeout_s)
        shown = [(item.prompt or "", files.picture(item.image)) for item in items]
        return report_of(raw, metrics, shown, unsent, strict=self.strict)

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
        filled: Callable[[Files], Mapping[str, Any] | None],
        timeout_s: float | None,
    ) -> Any:
        """
        POST the request that *filled* returns, encoded in a thread, and return the response's JSON.

        If *filled* returns None, since no picture could be encoded, return an empty response.
        """
        began = perf_counter()
        time_s = self.timeout_s if timeout_s is None else timeout_s

        def encoded() -> tuple[str, bytes] | None:
            request = filled(files)
            return None if request is None else form(request, files.parts)

        sent = await asyncio.to_thread(encoded)
        if sent is None:
            return {"results": [], "ranking": []}
        kind, content = sent
        left = time_s - (perf_counter() - began)
        return await self._connection.call("POST", path, left, content, kind)
