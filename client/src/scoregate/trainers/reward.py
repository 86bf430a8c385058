"""The reward that all adapters share: a score or an error for each picture and prompt."""

from __future__ import annotations

import asyncio
import warnings
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Literal

from scoregate.aio import AsyncClient
from scoregate.client import Client, Portal, Portals, asynchronous
from scoregate.connection import Transport, addresses_of, api_key_of
from scoregate.errors import ConflictError, NoScoreError, ScoregateError, UnknownMetricError
from scoregate.http import httpx
from scoregate.items import Item, Pairing, name_of, names_of
from scoregate.results import ScoregateWarning, lower_is_better, understood
from scoregate.text import hinted_keywords
from scoregate.trainers.figures import statistics
from scoregate.trainers.groups import Gather, groups_of, of_all_ranks
from scoregate.trainers.images import check_encode, in_batches, items_of
from scoregate.trainers.outcomes import (
    Rewards,
    Scored,
    ScoredOrError,
    WeightedSum,
    complete,
    filled,
    of_the_sample,
    weighted_sums,
    weights_of,
)
from scoregate.trainers.sending import Send, Sender, better, passing, pause_s
from scoregate.trainers.watch import Watch, Watcher

__all__ = ["NoScoreError", "Reward", "ScoredOrError"]

REQUESTS_AT_ONCE = 8  # requests of one call
ADVICE_S = 10.0  # the most that the first call waits for warnings about its metrics
MAX_RECENT_OUTCOMES = 8192  # most outcomes that wait for `statistics`
LOG_ODDS_METRICS = ("vqascore",)  # the metrics whose scores are probabilities that are log-odds on request


@hinted_keywords
@dataclass(eq=False)
class Reward:
    """
    Scores for trainers, for any number of threads, event loops and processes.

    Connections are opened by the first call, and by each process for itself.  So an instance can be created
    at import, before a fork, and can be pickled.

    Attributes:
        metric: one metric, or a composite of several that the service defines.
        metrics: several metrics, in one request, in place of *metric*; the reward is their weighted sum.
        weights: of the metrics, by name or in their order; 1 by default.
        by_domain: the weights of the metrics for the pictures of each domain, in place of the three above.
            Each call then names the domain of each picture.
        required: the metrics without which a picture has no reward; by default all of them.  Those with a
            negative weight must be among them.  Without another score, the positive weights that remain are
            scaled to the sum of all positive weights.
        group_by: "prompt" makes the rewards win rates: the pictures of a prompt in one call are compared in
            pairs by each metric.  With *gather* they may be those of several ranks.
        comparison: `schedule` and `noise` of the `scoregate.Pairing` of a group.
        gather: returns the entries of all ranks, given a list of this rank's own, as `gather_object` of
            `accelerate.utils` does.  Each rank then makes the same number of calls.
        watch: a `scoregate.trainers.watch.Watch`, its attributes as a mapping, or its metrics: they score a
            sample of the pictures in the background, for `statistics`.
        logit: log-odds in place of the probability of `vqascore`; *options* have precedence.
        encode: how pixels travel: `raw` and `png` without loss, `jpeg` with quality 95.  Files are sent
            unchanged.
        options: of *metric*; of *metrics* and of *by_domain*, by metric.
        base_url, api_key: as for `Client`.
        priority: the lane, `bulk` or `interactive`.
        timeout_s: of one call with its retries.
        batch_size: maximum pictures per request, which also has a limit of 16 MiB.
        strict: raise an error for a score with a warning, instead of a `ScoregateWarning` for the first of
            its kind.
        transport: as for `Client`.
        client: a `Client`, also of `scoregate.load`, in place of *base_url*, *api_key* and *transport*.
            It stays open when the reward is closed.

    Raises:
        ValueError: *weights* are not a finite number for each metric, or those of a domain are none,
            *required* names another metric or lacks one with a negative weight, *encode* is none of the
            above, `Client` would not take *base_url* or *api_key*, or *client* is given with one of them.
    """

    metric: str = "vqascore"
    logit: bool = True
    metrics: Sequence[str] = ()
    weights: Mapping[str, float] | Sequence[float] | None = None
    encode: str = "raw"
    options: Mapping[str, Any] = field(default_factory=dict)
    base_url: Sequence[str] | str | None = None
    api_key: str | None = field(default=None, repr=False)
    priority: str = "bulk"
    timeout_s: float = 300.0
    batch_size: int = 32
    strict: bool = False
    transport: Transport | httpx.AsyncBaseTransport | None = None
    client: Client | None = None
    by_domain: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    required: Sequence[str] | None = None
    watch: Watch | Mapping[str, Any] | Sequence[str] | None = None
    group_by: Literal["", "prompt"] = ""
    comparison: Mapping[str, Any] = field(default_factory=dict)
    gather: Gather | None = None

    def __post_init__(self) -> None:
        check_encode(self.encode)
        if self.base_url:  # the process that connects reads the environment's
            addresses_of(self.base_url)
        if self.api_key:
            api_key_of(self.api_key)
        if self.client and (self.base_url or self.api_key or self.transport):
            raise ValueError("client has an address, a key and a transport of its own")
        if self.group_by not in ("", "prompt") or (not self.group_by and (self.comparison or self.gather)):
            raise ValueError('comparison and gather need group_by="prompt"; there is no other group')
        if self.by_domain and (self.metrics or self.weights):
            raise ValueError("by_domain has the metrics and weights of each domain")
        one = weights_of(
            names_of(self.metrics) or [name_of(self.metric, "metrics= takes several")], self.weights
        )
        self._sums = weighted_sums(self.by_domain or {"": one}, self.required)
        self._pairs = Pairing(**{**self.comparison, "on_error": "fail"})
        self._portals = Portals()
        self._warned: Counter[str] = Counter()
        self._lower: bool | None = None  # None until the first request
        self._advised = False  # whether the warnings of `check` were given in this process
        self._recent: deque[tuple[str, ScoredOrError]] = deque(maxlen=MAX_RECENT_OUTCOMES)
        self._watcher = Watcher(Watch.of(self.watch), self._warned) if self.watch else None

    @property
    def names(self) -> list[str]:
        """The metrics of a request."""
        return list(dict.fromkeys(chain.from_iterable(each.weights for each in self._sums.values())))

    def _sums_of(self, domains: Sequence[str] | None, count: int) -> list[WeightedSum]:
        """Return the sum for each of *count* pictures.  Raises `ValueError`."""
        if not self.by_domain:
            if domains is not None:
                raise ValueError("these pictures have domains, and the reward has no by_domain")
            return [self._sums[""]] * count
        if domains is None or isinstance(domains, str) or len(domains) != count:
            raise ValueError(f"by_domain needs the domain of each of {count} pictures")
        if wrong := [name for name in domains if name not in self._sums]:
            raise ValueError(f"by_domain has no {wrong[0]!r}, but {', '.join(self.by_domain)}")
        return [self._sums[name] for name in domains]

    @property
    def warned(self) -> Mapping[str, int]:
        """The number of warnings in this process, by kind."""
        return dict(self._warned)

    def statistics(self) -> dict[str, float]:
        """
        Return figures of this process's pictures since the last such call, and of the newest 8,192 at most.

        Their groups are the prompts (`scoregate.trainers.figures.statistics`).  Those of the watch are of an
        earlier step.
        """
        recent, self._recent = list(self._recent), deque(maxlen=MAX_RECENT_OUTCOMES)
        figures = statistics([outcome for _, outcome in recent], [prompt for prompt, _ in recent])
        return figures | (self._watcher.figures() if self._watcher else {})

    def _noted(
        self, prompts: Sequence[str], items: Sequence[Item | ScoregateError], outcomes: list[ScoredOrError]
    ) -> list[ScoredOrError]:
        """Return *outcomes*, kept for `statistics` and watched."""
        self._recent.extend(zip(map(str, prompts), outcomes, strict=True))
        if self._watcher:
            self._watcher.observe(items, outcomes, self._sender(), self._here())
        return outcomes

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
        domains: Sequence[str] | None = None,
    ) -> Rewards:
        """
        Return the reward of each picture with its prompt, and as `parts` its scores by metric.

        Args:
            images, channels: as `scoregate.trainers.images.image_list` takes them.
            prompts: one for each.
            fill: the reward, and each part, of a picture that cannot be scored because of the picture or its
                prompt; an error by default.  It does not replace errors of a whole request.
            references: the references of each picture; the metric must use them.
            domains: the domain of each picture, for *by_domain*.

        Raises:
            NoScoreError: a picture has no score, and no *fill* applies.
            ValueError, TypeError: *images* are not pictures, or their number is not that of *prompts* or
                *domains*, or a domain is unknown.
        """
        outcomes = self.outcomes(images, prompts, channels=channels, references=references, domains=domains)
        if fill is not None:
            outcomes = [filled(fill, self.names) if of_the_sample(one) else one for one in outcomes]
        return Rewards(complete(outcomes), self.names)

    def outcomes(
        self,
        images: Any,
        prompts: Sequence[str],
        *,
        channels: int | None = None,
        references: Sequence[Any] | None = None,
        domains: Sequence[str] | None = None,
        trains: bool = True,
    ) -> list[ScoredOrError]:
        """
        Return for each picture its reward, a float with `parts`, or its error.

        Args:
            trains: the first call with a score gives the warnings of `check`; False where scores only choose
                among pictures.
        """
        sums = self._sums_of(domains, len(prompts))
        if self.group_by and references is not None:
            raise ValueError("pictures that are compared have no references")
        items = items_of(images, prompts, channels, references, self.encode)
        every, of_all, own = of_all_ranks(items, sums, self.gather)
        outcomes = self._here().run(self._trained(every, of_all) if trains else self._outcomes(every, of_all))
        return self._noted(prompts, items, [outcomes[place] for place in own])

    async def outcomes_soon(
        self, images: Any, prompts: Sequence[str], domains: Sequence[str] | None = None
    ) -> list[ScoredOrError]:
        """Return `outcomes`, awaited; the connections do not depend on the caller's event loop."""
        sums = self._sums_of(domains, len(prompts))
        items = await asyncio.to_thread(items_of, images, prompts, None, encode=self.encode)
        every, of_all, own = await asyncio.to_thread(of_all_ranks, items, sums, self.gather)
        outcomes = await asyncio.wrap_future(self._here().submit(self._trained(every, of_all)))
        return self._noted(prompts, items, [outcomes[place] for place in own])

    def check(self) -> dict[str, Mapping[str, Any]]:
        """
        Return the service's entries of the metrics.

        Raises:
            ScoregateError: the service does not serve one of them, or is unreachable.
        """
        served = self._served()
        for metric in self.names:
            if metric not in served:
                raise UnknownMetricError(
                    f"the service has no metric {metric!r}, but {', '.join(sorted(served))}"
                )
        self._advised = True
        for text in self._advice(served):
            warnings.warn(text, ScoregateWarning, stacklevel=2)
        return {metric: served[metric] for metric in self.names}

    def _advice(self, served: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Return what is wrong with the metrics for a trainer, by their entries; a missing one is sound."""
        entries = {metric: served.get(metric, {}) for metric in self.names}
        advice = [
            f"lower scores of {metric} are better, and trainers seek high rewards: give it a negative weight"
            for metric, entry in entries.items()
            if not self.group_by and lower_is_better(entry) and self._is_sought(metric)
        ]
        for domain, one in self._sums.items():
            if not any(entries[metric].get("reads_prompt", True) for metric in one.weights):
                advice.append(
                    f"{', '.join(one.weights)} read no prompt{f' in the domain {domain}' if domain else ''}:"
                    " pictures of any content can get this reward, and a generator that is trained by it"
                    " forgets prompts; add a metric that reads them"
                )
        return advice

    async def _advise(self) -> None:
        """Give the warnings of `check`, once in this process; none if the service does not answer."""
        self._advised = True
        try:
            models = await asyncio.wait_for(self._sender().client.models(), ADVICE_S)
            advice = self._advice(entries_of(models))
        except (ScoregateError, asyncio.TimeoutError):  # the scores are there
            return
        for text in advice:
            warnings.warn(text, ScoregateWarning, stacklevel=2)

    def _is_sought(self, metric: str) -> bool:
        """Return True if higher scores of *metric* raise some reward."""
        return any(each.weights.get(metric, 0) > 0 for each in self._sums.values())

    @contextmanager
    def awake(self, *models: str) -> Iterator[None]:
        """
        Load *models* at the service while the context is open, and offload them afterwards.

        For a trainer that shares its GPUs with the rewards.  The key needs the right `models`.  While another
        change of a model is under way, this one waits, for `timeout_s` at most.

        Args:
            models: by default all that the metrics use.

        Raises:
            ScoregateError: a model cannot be loaded; those that were are offloaded again.
        """
        here, client = self._here(), self._sender().client
        names = models or dict.fromkeys(chain(*(entry["models"] for entry in self.check().values())))

        def offload(name: str) -> None:
            here.run(self._changed(client.offload_model, name))

        with ExitStack() as loaded:
            for name in names:
                here.run(self._changed(client.load_model, name))
                loaded.callback(offload, name)
            yield

    async def _changed(self, change: Callable[[str], Awaitable[Any]], name: str) -> None:
        """Change the model *name*, after the change that is under way."""
        transport = self._sender().client.transport
        deadline, attempt = transport.time() + self.timeout_s, 0
        while True:
            attempt += 1
            try:
                await change(name)
                return
            except ConflictError as error:
                pause = pause_s([error], attempt)
                if transport.time() + pause > deadline:
                    raise
            await transport.pause(pause)

    def lower_is_better(self) -> bool:
        """Return True if lower rewards are better; one request.  Raises `ScoregateError`."""
        if self.group_by:
            return False  # higher win rates are better
        if self._lower is None:
            metric, *more = self.names
            alone = not more and self._is_sought(metric)
            self._lower = alone and lower_is_better(self._served().get(metric, {}))
        return self._lower

    def _served(self) -> dict[str, dict[str, Any]]:
        """Return the entries of `GET /models` by metric."""
        return entries_of(self._here().run(self._sender().client.models()))

    def close(self) -> None:
        """Close this process's connections, and stop its watch.  A later call opens new ones."""
        if self._watcher:
            self._watcher.close()
        self._portals.close()

    def _sender(self) -> Sender:
        made: Sender | None = self.__dict__.get("_made")
        if made is None:  # two concurrent threads both get the first one's
            client = self._client()
            sender = Sender(client, self.names, self._options(), self.priority, self.strict, self._warned)
            made = self.__dict__.setdefault("_made", sender)
            if self.client is None:
                self._portals.serve(self, made.client.close)
        return made

    def _client(self) -> AsyncClient:
        if self.client is not None:
            return asynchronous(self.client, strict=self.strict)
        return AsyncClient(
            self.base_url,
            api_key=self.api_key,
            timeout_s=self.timeout_s,
            strict=self.strict,
            transport=self.transport,
        )

    def _here(self) -> Portal:
        """Return the portal of this process: the client's, if there is one."""
        return (self._portals if self.client is None else self.client.portals).here()

    def _options(self) -> dict[str, dict[str, Any]]:
        """Return the options of a request, by metric."""
        given = self.options if self.metrics or self.by_domain else {self.metric: self.options}
        options = {metric: dict(each) for metric, each in given.items() if each}
        for metric in LOG_ODDS_METRICS if self.logit else ():
            if metric in self.names:
                options[metric] = {"output": "logit", **options.get(metric, {})}
        return options

    async def _trained(
        self, items: Sequence[Item | ScoregateError], sums: Sequence[WeightedSum]
    ) -> list[ScoredOrError]:
        """Return `_outcomes`, after the warnings about their metrics if these are the first with a score."""
        outcomes = await self._outcomes(items, sums)
        if not self._advised and any(isinstance(one, Scored) for one in outcomes):
            await self._advise()
        return outcomes

    async def _outcomes(
        self, items: Sequence[Item | ScoregateError], sums: Sequence[WeightedSum]
    ) -> list[ScoredOrError]:
        """Return the outcome of each item, with retries of temporary errors until the time is up."""
        if self.by_domain:
            items = [*map(with_metrics, items, sums)]
        transport = self._sender().client.transport
        deadline, places, attempt = transport.time() + self.timeout_s, asyncio.Semaphore(REQUESTS_AT_ONCE), 0
        outcomes: list[Any] = list(items)
        sent = {index: item for index, item in enumerate(items) if isinstance(item, Item)}
        left = list(sent)
        while True:
            attempt += 1
            if self.group_by:
                batches = groups_of(left, items, sums)
                send: Send = partial(self._sender().compared, pairs=self._pairs)
            else:
                batches, send = list(in_batches(left, items, self.batch_size)), self._sender().outcomes
            asked = (
                send([sent[n] for n in batch], [sums[n] for n in batch], deadline, places)
                for batch in batches
            )
            answers = await asyncio.gather(*asked)
            for index, outcome in zip(chain(*batches), chain(*answers), strict=True):
                outcomes[index] = better(outcomes[index], outcome)
            again = {index: errors for index in left if (errors := passing(outcomes[index], attempt))}
            left, pause = list(again), pause_s([*chain.from_iterable(again.values())], attempt)
            if not left or transport.time() + pause > deadline:
                return outcomes
            await transport.pause(pause)


def with_metrics(item: Item | ScoregateError, wanted: WeightedSum) -> Item | ScoregateError:
    """Return *item*, to be scored by the metrics of its domain alone; an error itself."""
    return replace(item, metrics=list(wanted.weights)) if isinstance(item, Item) else item


def entries_of(models: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the entry of each metric in the JSON of `GET /models`.  Raises `ScoregateError`."""
    return understood(lambda: {str(name): dict(entry) for name, entry in models["metrics"].items()})
