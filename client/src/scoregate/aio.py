"""The asynchronous client."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from os import PathLike
from time import perf_counter
from typing import Any
from urllib.parse import quote

from scoregate.comparison import Comparison, lonely
from scoregate.connection import (
    Breaker,
    CircuitOpenError,
    Connection,
    Transport,
    addresses_of,
    api_key_of,
    in_time,
)
from scoregate.decisions.decision import (
    DecideBody,
    Decision,
    Decisions,
    check_fallback,
    is_fault,
)
from scoregate.errors import ScoregateError
from scoregate.http import httpx
from scoregate.images import ImageLike, check_one, several
from scoregate.items import (
    ALL_IMAGES,
    ALL_PAIRS,
    WHOLE_VIDEO,
    Accept,
    Cascade,
    Files,
    Item,
    Pairing,
    ScoreBody,
    ScoreParams,
    TimeSpan,
    check_prompt,
    given,
    name_of,
    names_of,
)
from scoregate.many import MATRIX_ITEMS, MAX_ITEMS, Many
from scoregate.policy import Verdict
from scoregate.ranking import Ranked, Ranking, ranking_of
from scoregate.results import (
    QuestionSet,
    Report,
    Result,
    Score,
    question_set_of,
    question_sets_of,
    score_of,
    streamed,
    understood,
    warned,
    without_warned,
)
from scoregate.text import hinted, hinted_keywords
from scoregate.transport import HttpTransport

Filled = Callable[[Files], "Mapping[str, Any] | None"]


@hinted
@hinted_keywords
class AsyncClient:
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
        outage: Callable[[str], object] | None = None,
        transport: Transport | httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.timeout_s, self.priority, self.allow_urls = timeout_s, priority, allow_urls
        self.strict = strict
        urls, key = addresses_of(base_url), api_key_of(api_key)
        if not isinstance(transport, Transport):
            transport = HttpTransport(urls, key, max_connections, transport)
        self.transport = transport
        self.connection = Connection(urls, retries, transport, outage)
        self._breaker = Breaker(transport.time)

    @property
    def base_url(self) -> str:
        """The service's address; several with commas between them."""
        return self.connection.base_url

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections of this event loop."""
        await self.connection.close()

    async def score(
        self,
        image: ImageLike,
        prompt: str | None = None,
        metric: str = "vqascore",
        *,
        span: TimeSpan = WHOLE_VIDEO,
        options: Mapping[str, Any] | None = None,
        explain: bool = False,
        priority: str | None = None,
        timeout_s: float | None = None,
    ) -> Score:
        """
        Score one picture.

        Args:
            image: one picture, the `Frames` of one scene, or a video.
            prompt: not needed by metrics that read none, such as `aesthetic`.
            span: of a video file.
            options: by metric, as in the service's API.
            explain: fill `details` with the parts of the score.

        Raises:
            BadImageError: the picture cannot be encoded, or the service cannot decode it.
            ScoregateError: the request or the metric failed.
            TypeError: *image* is a list of pictures.
        """
        params = ScoreParams([name_of(metric)], options, explain, priority or self.priority)
        item = Item(prompt=prompt, image=image, span=span)
        report = await self._report([item], params, timeout_s)
        return score_of(report, metric)

    async def score_items(
        self,
        items: Iterable[Item | tuple[ImageLike, str | None]],
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
            items: `Item`, or tuples (image, prompt); up to the service's limit, 128 by default.  One whose
                picture cannot be encoded is not sent, and gets the error.

        Raises:
            ScoregateError: the request failed as a whole.
        """
        params = ScoreParams(names_of(metrics), options, explain, priority or self.priority)
        return await self._report([Item.of(item) for item in items], params, timeout_s)

    async def stream(
        self,
        items: Iterable[Item | tuple[ImageLike, str | None]],
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
        score = ScoreBody([Item.of(item) for item in items], params)
        body = await self._body(score.request, timeout_s)
        for failed in score.unsent.values():
            yield failed
        if body is None:
            return
        places = [place for place in range(len(score.items)) if place not in score.unsent]
        own = [params.metrics_of(score.items[place]) for place in places]
        async with aclosing(streamed(self.connection.lines("/score?stream=1", *body), own)) as results:
            async for result in results:
                found = replace(result, index=places[result.index])
                yield without_warned(found) if self.strict else found

    async def score_many(
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
    ) -> AsyncIterator[Result]:
        """See `Client.score_many`."""
        many = Many(
            self,
            items,
            ScoreParams(names_of(metrics), options, explain, priority),
            concurrency=concurrency,
            batch_size=batch_size,
            progress=progress,
            resume=resume,
            allow_model_change=allow_model_change,
        )
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

    async def matrix(
        self,
        images: Iterable[ImageLike],
        prompts: Iterable[str],
        metric: str = "vqascore",
        *,
        options: Mapping[str, Any] | None = None,
        concurrency: int = 8,
        priority: str = "bulk",
    ) -> Any:
        """
        Score each picture against each prompt.

        A picture is sent and decoded once for up to 128 prompts.

        Returns:
            A NumPy array of float64, (images, prompts).

        Raises:
            ImportError: NumPy is not installed.
            ScoregateError: an item has no score; the error names the picture and the prompt by index.
        """
        import numpy as np

        name_of(metric)
        every, texts = several(images), several(prompts, "prompts")
        if not (every and texts):
            return np.zeros((len(every), len(texts)))
        items = [(image, text) for image in every for text in texts]
        batch_size = len(texts) * max(1, MATRIX_ITEMS // len(texts)) if len(texts) <= MAX_ITEMS else MAX_ITEMS
        scored = self.score_many(
            items, metric, options=options, concurrency=concurrency, batch_size=batch_size, priority=priority
        )
        values = []
        async for result in scored:
            if metric in result.errors:
                image, text = divmod(result.index, len(texts))
                raise result.errors[metric].at(f"picture {image}, prompt {text}")
            values.append(result.scores[metric])
        return np.array(values).reshape(len(every), len(texts))

    async def rank(
        self,
        prompt: str | None,
        images: Iterable[ImageLike],
        *,
        metric: str = "vqascore",
        accept: Accept = ALL_IMAGES,
        cascade: Cascade | None = None,
        span: TimeSpan = WHOLE_VIDEO,
        orient: str | None = None,
        options: Mapping[str, Any] | None = None,
        priority: str | None = None,
        timeout_s: float | None = None,
    ) -> Ranking:
        """
        Rank pictures of one prompt, best first.

        Args:
            prompt: None for metrics that read none.
            images: 1 to 64 pictures.
            accept: the pictures to accept, and what happens to those that fail.
            cascade: ranks all pictures by a cheap metric first, and only the best of them by *metric*.
            span: of all video files.
            orient: `exif` applies the EXIF orientation; by default the service's setting.

        Raises:
            InvalidError: a picture failed, and *accept* has `on_error` `raise`.
            ScoregateError: the request failed.
        """
        check_prompt(prompt)
        name_of(metric)
        every, unsent = several(images), dict[int, Ranked]()

        def filled(files: Files) -> dict[str, Any] | None:
            wire, broken = files.images(every, strict=accept.on_error == "raise")
            for place, error in broken.items():
                unsent[place] = Ranked(place, None, accept.on_error == "pass", None, error)
            if unsent and not wire:
                return None
            return given(
                prompt=prompt or None,
                images=wire,
                metric=metric,
                top_k=accept.top_k,
                threshold=accept.threshold,
                on_error=accept.on_error,
                cascade=cascade and {"metric": cascade.metric, "keep": cascade.keep},
                on_deadline=cascade and cascade.on_deadline,
                orient=orient,
                options=options,
                priority=priority or self.priority,
                **span.fields,
            )

        raw = await self._send("/rank", filled, timeout_s)
        ranking = understood(ranking_of, raw, len(every), unsent)
        if self.strict and ranking.warnings:
            raise warned(ranking.warnings, ranking.request_id)
        return ranking

    async def compare(
        self,
        prompt: str | None,
        images: Iterable[ImageLike],
        *,
        metric: str | None = None,
        rubric: str | Mapping[str, Any] | None = None,
        source: ImageLike | None = None,
        pairs: Pairing = ALL_PAIRS,
        orient: str | None = None,
        options: Mapping[str, Any] | None = None,
        explain: bool = False,
        priority: str | None = None,
        timeout_s: float | None = None,
    ) -> Comparison:
        """
        Compare pictures of one prompt in pairs.

        Args:
            prompt: None for metrics that read none.
            images: 2 to 32 pictures.
            metric: the metric whose scores are compared, `vqascore` by default.
            rubric: in its place, the rubric of a judge that sees two pictures, such as `preference`.
            source: the picture before the edits.
            pairs: those that are compared, and what happens to those that fail; all by default.
            orient: `exif` applies the EXIF orientation; by default the service's setting.
            explain: fill the `details` of pairs.

        Raises:
            BadImageError: a picture cannot be encoded.
            ScoregateError: the request failed.
        """
        check_prompt(prompt)
        check_one(source, "source")
        if metric is not None:
            name_of(metric)
        every, unsent = several(images), dict[int, ScoregateError]()

        def filled(files: Files) -> dict[str, Any] | None:
            wire, broken = files.images(every, strict=pairs.on_error == "raise")
            unsent.update(broken)
            if unsent and len(wire) < 2:
                unsent.update({n: lonely(unsent) for n in range(len(every)) if n not in unsent})
                return None
            return given(
                prompt=prompt or None,
                images=wire,
                source=None if source is None else files.add(source, "/source"),
                metric=metric,
                rubric=rubric,
                schedule=pairs.schedule,
                noise=pairs.noise,
                orient=orient,
                options=options,
                explain=explain or None,
                priority=priority or self.priority,
            )

        raw = await self._send("/compare", filled, timeout_s)
        comparison = understood(Comparison, raw, len(every), unsent)
        if self.strict and comparison.warnings:
            raise warned(comparison.warnings, comparison.request_id)
        return comparison

    async def decide(
        self,
        image: ImageLike,
        prompt: str | None = None,
        policy: Sequence[str] | str = "show",
        *,
        span: TimeSpan = WHOLE_VIDEO,
        explain: bool = False,
        timeout_s: float | None = None,
        fallback: Verdict | None = None,
    ) -> Decision:
        """
        Decide about one picture; arguments and errors as of `decide_items`.

        The decision of a picture that cannot be encoded is the policy's `unreadable`.
        """
        item = Item(prompt=prompt, image=image, span=span)
        made = await self.decide_items(
            [item], policy, explain=explain, timeout_s=timeout_s, fallback=fallback
        )
        return made[0]

    async def decide_items(
        self,
        items: Iterable[Item | tuple[ImageLike, str | None]],
        policy: Sequence[str] | str = "show",
        *,
        keep: int = 1,
        explain: bool = False,
        timeout_s: float | None = None,
        fallback: Verdict | None = None,
    ) -> Decisions:
        """
        Decide about items in one request, by a policy of the service's settings.

        Args:
            items: `Item`, whose `group` is used here, or tuples (image, prompt).
            policy: several names decide from the same scores: the first decides, see `Decision.policies`.
            keep: the most items of a group that are accepted.
            fallback: the decision without an answer, for errors of the service or the network; by default
                they are raised.  After five in a row it is returned at once, and one call a second is sent.

        Raises:
            UnknownPolicyError: the service has no such policy.
            ScoregateError: the request is not valid, or the key; without *fallback*, any failure.
        """
        decide = DecideBody([Item.of(item) for item in items], policy, keep, explain)
        time_s = self.timeout_s if timeout_s is None else timeout_s
        if fallback is None:
            return await self._decided(decide, time_s, lambda: None)
        check_fallback(fallback)
        try:
            sent = self._decided(decide, time_s, self._breaker.check)
            decisions = await in_time(sent, time_s, f"{self.base_url}/decide")
        except CircuitOpenError as exc:
            return decide.fallback(fallback, str(exc))
        except ScoregateError as exc:
            if not is_fault(exc):
                self._breaker.succeeded()
                raise
            why = f"{exc.code}: {exc.detail}"
            self._breaker.failed(why)
            return decide.fallback(fallback, why)
        self._breaker.succeeded()
        return decisions

    async def _decided(self, decide: DecideBody, timeout_s: float, check: Callable[[], None]) -> Decisions:
        """Send a request for decisions, after *check*, which raises if none is to be sent."""
        body = await self._body(decide.request, timeout_s)
        assert body is not None
        left, kind, content = body
        check()
        raw = await self.connection.call("POST", "/decide", left, content, kind)
        decisions = understood(decide.decisions, raw)
        if self.strict and decisions.warnings:
            raise warned(decisions.warnings, decisions.request_id)
        return decisions

    async def policies(self) -> dict[str, Any]:
        """Return the service's policies by name: their ids, expressions and options."""
        raw = await self._get("/policies")
        return understood(lambda: dict(raw["policies"]))

    async def label(self, decision_id: str, good: bool, who: str | None = None) -> None:
        """
        Store a person's label of a decision in the service's log.

        A call that is repeated after a broken connection may store it twice.

        Args:
            good: whether users should see the picture.

        Raises:
            NotFoundError: the service keeps no log, or that is no id.
            ScoregateError: the request failed.
        """
        content = json.dumps(given(good=good, who=who)).encode()
        path = f"/decisions/{quote(decision_id, safe='')}/label"
        await self.connection.call("POST", path, self.timeout_s, content)

    async def models(self, metrics: Sequence[str] | str = ()) -> dict[str, Any]:
        """
        Return the JSON of `GET /models`: models, metrics and limits.

        Args:
            metrics: load the models of these first.  In this process a model is loaded when it is first
                needed, and has the id and the revision of the settings before.
        """
        return await self._get("/models", metrics)

    async def metrics(self) -> dict[str, dict[str, Any]]:
        """
        Return every metric by name: the entry of `GET /models`, with `served`, True or False.

        All have `options`, with their defaults, and one that is not served has the `reason`.
        """
        raw = await self.models()

        def entries() -> dict[str, dict[str, Any]]:
            served = {name: {"served": True, **each} for name, each in raw["metrics"].items()}
            return served | {name: {"served": False, **each} for name, each in raw["absent"].items()}

        return understood(entries)

    async def load_model(self, name: str, revision: str = "") -> dict[str, Any]:
        """
        Load a model again, or another *revision* of it; the key needs the right `models`.

        Requests that use the model are finished first.  If the other revision fails, the previous one is
        served.

        Returns:
            Name, state, and the bytes on its devices before and after.

        Raises:
            ValueError: this client has several addresses.
            ForbiddenError, NotFoundError, ConflictError: see the service's errors.
            InvalidError: there is no such revision, or models of this kind have one revision only.
            ModelFaultError: the model gives other numbers than before, and is not served.
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
        if len(self.connection.urls) > 1:
            raise ValueError(f"{action} changes one service: use a client of one address, not of several")
        path = f"/models/{quote(name, safe='')}/{action}"
        content = json.dumps(body or {}).encode()  # the operator's port takes nothing but JSON
        raw = await self.connection.call("POST", path, self.timeout_s, content)
        return understood(dict, raw)

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
        """
        Return whether every required model serves, and the JSON of `GET /readyz`; without retries.

        Of several addresses one is enough.
        """
        return await self.connection.probe("/readyz", self.timeout_s)

    async def questions(
        self,
        prompts: Sequence[str] | str,
        style: str = "dsg",
        *,
        options: Mapping[str, Any] | None = None,
        priority: str | None = None,
        timeout_s: float | None = None,
    ) -> list[QuestionSet]:
        """
        Return the question sets of prompts.

        The service's question LLM writes the missing sets; a set that could not be written has an `error`.

        Args:
            options: by metric; some change how a set is written.

        Raises:
            ScoregateError: no set could be written, or the request failed.
        """
        wanted = [prompts] if isinstance(prompts, str) else list(prompts)
        asked = given(
            prompts=wanted, style=style, options=options or None, priority=priority or self.priority
        )
        content = json.dumps(asked)
        time_s = self.timeout_s if timeout_s is None else timeout_s
        raw = await self.connection.call("POST", "/questions", time_s, content.encode())
        return understood(question_sets_of, raw, len(wanted))

    async def question_set(self, id: str) -> QuestionSet:
        """Return a stored question set.  Raises `UnknownQuestionSetError`."""
        raw = await self._get(f"/questions/{quote(id, safe='')}")
        return understood(question_set_of, raw)

    async def _get(self, path: str, metrics: Sequence[str] | str = ()) -> dict[str, Any]:
        raw = await self.connection.call("GET", path, self.timeout_s, metrics=names_of(metrics))
        return understood(dict, raw)

    async def _report(
        self, items: Sequence[Item], params: ScoreParams, timeout_s: float | None = None
    ) -> Report:
        """Score *items* in one request.  Raises `ScoregateError`."""
        score = ScoreBody(items, params)
        metrics = () if any(item.metrics for item in items) else params.metrics
        raw = await self._send("/score", score.request, timeout_s, metrics)
        return score.report(raw, strict=self.strict)

    async def _send(
        self, path: str, filled: Filled, timeout_s: float | None, metrics: Sequence[str] = ()
    ) -> Any:
        """
        POST the request that *filled* returns, and return the response's JSON; an empty one for None.

        Args:
            metrics: see `Connection.call`.
        """
        body = await self._body(filled, timeout_s)
        if body is None:
            return {"results": [], "ranking": []}
        left, kind, content = body
        return await self.connection.call("POST", path, left, content, kind, metrics)

    async def _body(self, filled: Filled, timeout_s: float | None) -> tuple[float, str, bytes] | None:
        """
        Encode the request that *filled* returns for its files, in a thread.

        Returns:
            The seconds left, the content type and the body; None if no picture could be encoded.
        """
        began = perf_counter()
        time_s = self.timeout_s if timeout_s is None else timeout_s

        def encoded() -> tuple[str, bytes] | None:
            files = Files(allow_urls=self.allow_urls)
            request = filled(files)
            return None if request is None else files.body(request)

        sent = await asyncio.to_thread(encoded)
        return None if sent is None else (time_s - (perf_counter() - began), *sent)
