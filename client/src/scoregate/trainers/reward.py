"""The reward that all adapters share: a score or an error for each picture and prompt."""

from __future__ import annotations

import asyncio
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

from scoregate.aio import AsyncClient
from scoregate.answers import understood
from scoregate.direction import lower_is_better
from scoregate.errors import ConnectionFailed, Invalid, ScoregateError, Timeout, TooLarge, UnknownMetric
from scoregate.items import Item
from scoregate.notices import Notice, ScoregateWarning
from scoregate.portal import Portals
from scoregate.trainers.batches import in_batches, items_of
from scoregate.trainers.patience import passing, pause_s

AT_ONCE = 8  # requests of one call

Outcome = float | ScoregateError
T = TypeVar("T")
WHOLE = (ConnectionFailed, Timeout, ScoregateError)  # the last as itself: a response of an unknown form


class NoScore(ScoregateError):
    """
    Some pictures have no score.

    Attributes:
        missing: the error of each such picture, by its index.
    """

    code = "no_score"
    missing: Mapping[int, ScoregateError] = {}

    @classmethod
    def among(cls, outcomes: Sequence[Any]) -> NoScore:
        """Return the error for *outcomes* with errors; its text is the first one's."""
        missing = {index: one for index, one in enumerate(outcomes) if isinstance(one, ScoregateError)}
        index, first = next(iter(missing.items()))
        count = f"{len(missing)} of {len(outcomes)} pictures have no score"
        error = cls(f"{count}; picture {index}: {first.code}: {first.detail}", request_id=first.request_id)
        error.missing, error.__cause__ = missing, first
        return error


@dataclass(eq=False)
class Reward:
    """
    Scores for trainers, for any number of threads, event loops and processes.

    Connections are opened by the first call, and by each process for itself.  So an instance can be created
    at import, before a fork, and can be pickled.

    Attributes:
        logit: log-odds in place of a probability; `vqascore` only.
        options: of the metric.
        base_url, api_key: as for `Client`.
        priority: the lane, `bulk` or `interactive`.
        timeout_s: of one call with its retries.
        batch: maximum pictures per request, which also has a limit of 16 MiB.
        strict: raise an error for a score with a warning, instead of a `ScoregateWarning` for the first of
            its kind.
        transport: of httpx, for tests.
    """

    metric: str = "vqascore"
    logit: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    priority: str = "bulk"
    timeout_s: float = 300.0
    batch: int = 32
    strict: bool = False
    transport: Any = None

    def __post_init__(self) -> None:
        self._portals = Portals()
        self._warned: Counter[str] = Counter()
        self._lower: bool | None = None  # until the first request

    @property
    def warned(self) -> Mapping[str, int]:
        """The number of warnings in this process, by kind."""
        return dict(self._warned)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    def __call__(
        self,
        images: Any,
        prompts: Sequence[str],
        *,
        fill: float | None = None,
        channels: int | None = None,
        references: Sequence[Any] | None = None,
    ) -> list[float]:
        """
        Return the score of each picture with its prompt.

        Args:
            images, channels: as `scoregate.trainers.pictures.pictures` takes them.
            prompts: one for each.
            fill: the score of a picture that cannot be scored because of the picture or its prompt; an error
                by default.  It does not replace errors of a whole request.
            references: the references of each picture; the metric must use them.

        Raises:
            NoScore: a picture has no score, and no *fill* applies.
            ValueError, TypeError: *images* are not pictures, or their number is not that of *prompts*.
        """
        outcomes = self.outcomes(images, prompts, channels=channels, references=references)
        if fill is not None:
            outcomes = [fill if isinstance(one, Invalid) and of_one(one) else one for one in outcomes]
        return complete(outcomes)

    def outcomes(
        self,
        images: Any,
        prompts: Sequence[str],
        *,
        channels: int | None = None,
        references: Sequence[Any] | None = None,
    ) -> list[Outcome]:
        """Return the score of each picture, or its error."""
        items = items_of(images, prompts, channels, references)
        return self._portals.here().run(self._outcomes(items))

    async def outcomes_soon(
        self, images: Any, prompts: Sequence[str], *, channels: int | None = None
    ) -> list[Outcome]:
        """Return `outcomes`, awaited; the connections do not depend on the caller's event loop."""
        items = await asyncio.to_thread(items_of, images, prompts, channels)
        return await asyncio.wrap_future(self._portals.here().submit(self._outcomes(items)))

    def check(self) -> Mapping[str, Any]:
        """
        Return the service's entry of the metric.

        Raises:
            ScoregateError: the service does not serve it, or is unreachable.
        """
        models = self._portals.here().run(self._client().models())
        served = understood(lambda: {str(name): dict(entry) for name, entry in models["metrics"].items()})
        if self.metric not in served:
            raise UnknownMetric(f"the service has no metric {self.metric!r}, but {', '.join(sorted(served))}")
        if lower_is_better(served[self.metric]):
            warnings.warn(
                f"lower scores of {self.metric} are better, and trainers seek high rewards: give it a"
                " negative weight",
                ScoregateWarning,
                stacklevel=2,
            )
        return served[self.metric]

    @contextmanager
    def awake(self, *models: str) -> Iterator[None]:
        """
        Load *models* at the service while the context is open, and offload them afterwards.

        For a trainer that shares its GPUs with the rewards.  The key needs the right `models`.

        Args:
            models: by default all that the metric uses.

        Raises:
            ScoregateError: a model cannot be loaded; those that were are offloaded again.
        """
        here, client = self._portals.here(), self._client()
        names = models or tuple(self.check()["models"])

        def offload(name: str) -> None:
            here.run(client.offload_model(name))

        with ExitStack() as loaded:
            for name in names:
                here.run(client.load_model(name))
                loaded.callback(offload, name)
            yield

    def lower_is_better(self) -> bool:
        """Return True if lower scores are better; one request.  Raises `ScoregateError`."""
        if self._lower is None:
            served = self._portals.here().run(self._client().models()).get("metrics", {})
            self._lower = lower_is_better(served.get(self.metric, {}))
        return self._lower

    def close(self) -> None:
        """Close this process's connections.  A later call opens new ones."""
        self._portals.close()

    def _client(self) -> AsyncClient:
        made: AsyncClient | None = self.__dict__.get("_made")
        if made is None:  # of two concurrent threads, both get the first one's
            client = AsyncClient(
                self.base_url,
                api_key=self.api_key,
                timeout_s=self.timeout_s,
                strict=self.strict,
                transport=self.transport,
            )
            made = self.__dict__.setdefault("_made", client)
            self._portals.serve(self, made.close)
        return made

    async def _outcomes(self, items: Sequence[Item | ScoregateError]) -> list[Outcome]:
        """Return the outcome of each item, with retries of temporary errors until the time is up."""
        clock = asyncio.get_running_loop().time
        deadline, places, attempt = clock() + self.timeout_s, asyncio.Semaphore(AT_ONCE), 0
        outcomes: list[Any] = list(items)
        left = [index for index, item in enumerate(items) if isinstance(item, Item)]
        while True:
            attempt += 1
            batches = list(in_batches(left, items, self.batch))
            asked = (self._ask([items[index] for index in batch], deadline, places) for batch in batches)
            answers = await asyncio.gather(*asked)
            for index, outcome in zip(chain(*batches), chain(*answers), strict=True):
                if attempt == 1 or not isinstance(outcome, Timeout):  # the error before it says more
                    outcomes[index] = outcome
            left = [index for index in left if passing(outcomes[index], attempt)]
            pause = pause_s([outcomes[index] for index in left], attempt)
            if not left or clock() + pause > deadline:
                return outcomes
            await asyncio.sleep(pause)

    async def _ask(self, items: Sequence[Any], deadline: float, places: asyncio.Semaphore) -> list[Outcome]:
        """
        Return the outcome of each of *items*, in one request.

        If it is rejected for its size, or for items that the error names, each half is sent alone.
        """
        options = {**self.options, **({"output": "logit"} if self.logit else {})}
        try:
            async with places:
                report = await self._client().score_items(
                    items,
                    [self.metric],
                    options={self.metric: options} if options else None,
                    priority=self.priority,
                    timeout_s=max(0.001, deadline - asyncio.get_running_loop().time()),
                )
        except ScoregateError as error:
            if len(items) == 1 or not concerns_some(error):
                return [error] * len(items)
            half = len(items) // 2
            return [
                *await self._ask(items[:half], deadline, places),
                *await self._ask(items[half:], deadline, places),
            ]
        self._warn(report.warnings)
        return [result.errors.get(self.metric) or result.scores[self.metric] for result in report]

    def _warn(self, notices: Sequence[Notice]) -> None:
        """Count each warning; the first of its kind is a `ScoregateWarning`, unless it is an error."""
        for notice in notices:
            if not (self.strict or self._warned[notice.kind]):
                text = f"{notice.code}: {notice}" if notice.code else str(notice)
                warnings.warn(text, ScoregateWarning, stacklevel=2)
            self._warned[notice.kind] += 1


def complete(outcomes: Sequence[T | ScoregateError]) -> list[T]:
    """Return *outcomes* if all are scores.  Raises `NoScore`."""
    found = [one for one in outcomes if not isinstance(one, ScoregateError)]
    if len(found) < len(outcomes):
        raise NoScore.among(outcomes)
    return found


def of_one(error: ScoregateError) -> bool:
    """
    Return True if an error is that of one picture or its prompt, and not of the whole request.

    These are errors of single items in a response, pictures that the client cannot read, and rejections that
    name only items.
    """
    if error.status:
        return names(error, "/items/")
    return type(error) not in WHOLE


def concerns_some(error: ScoregateError) -> bool:
    """Return True if a request was rejected for its size, or for single items."""
    return isinstance(error, TooLarge) or names(error, "/items")


def names(error: ScoregateError, place: str) -> bool:
    """Return True if an error names places, and all of them begin with *place*."""
    return bool(error.errors) and all(each["pointer"].startswith(place) for each in error.errors)
