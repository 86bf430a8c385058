"""
Decisions about items within a deadline: scores in stages, the cheapest first, until no policy needs more.

What fails, or is not there in time, is unknown, and the policy decides from what is known.
"""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf
from time import time
from typing import Protocol
from uuid import uuid4

from models.core.contract import ModelInfo
from models.images.image import Image
from service.core.concurrency.tasks import Tasks, side_by_side
from service.core.errors import ScoregateError
from service.core.expression import Known, NoValueError
from service.core.policy import UNREADABLE, PolicyOutcome, Verdict
from service.images.loader import ImageRef, Source, Url
from service.metrics.common.contract import Score
from service.observability.notes import Note
from service.scoring.catalog import MetricCatalog
from service.scoring.engine import Engine, error_of, infos_of
from service.scoring.plan import Plan, UnopenedItem, demands_of
from service.scoring.policies import ServedPolicy, together
from service.scoring.report import ItemReport, MetricResult, Report, count_refused, demo_notes
from service.serving.context import Context, free
from service.serving.handle import CAUTION_FACTOR, Handle, used


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """
    One decision of one policy about one item, as a log keeps it.

    Attributes:
        decision_id: unique, in the response too.
        time: when it was made, in seconds since 1970.
        request_id: of its request.
        caller_id: the caller's `id` of the item, if it has one.
        key: the name of the caller's API key, if keys are configured.
        policy: the policy's id, such as `show@3f2a90c1d4e5`.
        reason: `expression`, an error's code, `unreadable` or `group`.
        because: the reason as a sentence for people.
        scores: by metric.
        errors: the code of each failed metric's error.
        skipped: metrics of the policy that were not started.
        models: the label (`id@revision`) of each model that the policy may use, by configured name.
        image: the SHA-256 of its encoded bytes, in hexadecimal; of several, that of their digests in order.
            Empty if its bytes could not be read, or are a video's from a URL.
        prompt: empty if the item has none.
        milliseconds: from the request's first byte to the decision.
        audited: it was chosen for an audit.
    """

    decision_id: str
    time: float
    request_id: str
    caller_id: str | None
    key: str | None
    policy: str
    decision: Verdict
    reason: str
    because: str
    scores: Mapping[str, float]
    errors: Mapping[str, str]
    skipped: Sequence[str]
    models: Mapping[str, str]
    image: str
    prompt: str
    milliseconds: float
    audited: bool = False


class DecisionSink(Protocol):
    """What `Service.decisions` is, if decisions are logged."""

    def record(self, records: Sequence[DecisionRecord]) -> None:
        """Take the records of one answered request; return at once, and raise nothing."""


@dataclass(frozen=True, slots=True)
class Decision:
    """
    The decision of one policy about one item.

    Attributes:
        skipped: metrics on which it could depend and that were not started.
        id: unique.
    """

    outcome: PolicyOutcome
    skipped: Sequence[str]
    id: str


@dataclass(frozen=True, slots=True)
class Decided:
    """
    The decisions of a request.

    Attributes:
        report: an entry for each item, in request order.
        policies: the policies' ids, by name.
        decisions: of each item, by policy.
        images: of each item, see `DecisionRecord`.
        milliseconds: of each item, until its last score.
        audited: the items that were chosen for an audit, by index, with the bytes of their pictures.
    """

    report: Report
    policies: Mapping[str, str]
    decisions: Sequence[Mapping[str, Decision]]
    images: Sequence[str]
    milliseconds: Sequence[float]
    audited: Mapping[int, UnopenedItem] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Candidates:
    """
    Items that are decided together.

    Attributes:
        groups: the group of each item, or None.
        policies: decide about each item, from the same scores.
        keep: the most items of a group that are accepted.
        audited: the indices of items that were chosen for an audit.
    """

    items: Sequence[UnopenedItem]
    groups: Sequence[str | None]
    policies: Sequence[ServedPolicy]
    keep: int = 1
    audited: Collection[int] = ()


@dataclass(eq=False, slots=True)
class Candidate:
    """
    One item while it is scored.

    Attributes:
        started: the metrics that were started.
        report: of its stages so far.
        picture, milliseconds: see `Decided`.
        copy: of the item, with the bytes of its pictures, if it is audited.
    """

    item: UnopenedItem
    group: str | None
    policies: Sequence[ServedPolicy]
    audited: bool = False
    started: set[str] = field(default_factory=set)
    report: ItemReport = field(init=False)
    image: str = ""
    milliseconds: float = 0.0
    copy: UnopenedItem | None = None

    def __post_init__(self) -> None:
        """Begin with the report of no metric."""
        self.report = ItemReport(self.item, {})

    @property
    def results(self) -> Mapping[str, MetricResult]:
        """The results that there are, by metric."""
        return self.report.results

    def known(self, policy: ServedPolicy) -> Known:
        """Return the scores of a policy's metrics, or their ranges."""
        found = {name: self.results.get(name) for name in policy.ranges}
        return {
            name: each.value if isinstance(each, Score) else policy.ranges[name]
            for name, each in found.items()
        }

    @property
    def codes(self) -> dict[str, str]:
        """The code of each error, by metric."""
        return {name: each.code for name, each in self.results.items() if isinstance(each, ScoregateError)}

    def outcome(self, policy: ServedPolicy) -> PolicyOutcome:
        """Return the decision of a policy from what is known now."""
        return policy.rules.decide(self.known(policy), self.codes)

    def wanted(self) -> list[str]:
        """Return the metrics that may still change a decision and were not started; none of a bad picture."""
        if not UNREADABLE.isdisjoint(self.codes.values()):
            return []
        return [*dict.fromkeys(chain.from_iterable(map(self._wanted_by, self.policies)))]

    def _wanted_by(self, policy: ServedPolicy) -> list[str]:
        """Return the metrics that a policy still needs: of `accept`, then `review`, then those that rank."""
        for names in policy.rules.open(self.known(policy)):
            if coming := [name for name in names if name not in self.started]:
                return coming
        if self.group is None or self.outcome(policy).decision != "accept":
            return []
        return [name for name in policy.rules.ranking if name not in self.started]

    def skipped(self, policy: ServedPolicy) -> list[str]:
        """Return the metrics of a policy that were not started."""
        names = policy.rules.deciding if self.group is None else policy.rules.metrics
        return [name for name in names if name not in self.started]

    def rank(self, policy: ServedPolicy) -> float:
        """Return its place in a group, larger for better; the least if that is not known."""
        formula = policy.rules.rank_by
        scores = {name: each.value for name, each in self.results.items() if isinstance(each, Score)}
        if formula is None or not scores.keys() >= {*policy.rules.ranking}:
            return -inf
        try:
            return formula.value(scores)
        except NoValueError:
            return -inf

    async def score(self, engine: Engine, context: Context) -> None:
        """Score it in stages until no policy needs more, or until the deadline; raise nothing."""
        loop, tasks = asyncio.get_running_loop(), Tasks()
        async with AsyncExitStack() as held:
            await self._download(engine, context, held)
            try:
                while (wanted := self.wanted()) and loop.time() < context.deadline:
                    stage, alone_until = next_stage(self.item, wanted, engine.catalog, context)
                    if len(stage) == len(wanted) or loop.time() >= alone_until:
                        await self._run(wanted, engine, context)
                        continue
                    first = tasks.start(self._run(stage, engine, context))
                    done, _ = await asyncio.wait([first], timeout=alone_until - loop.time())
                    if not done and (rest := self.wanted()) and loop.time() < context.deadline:
                        await self._run(rest, engine, context)
                    await first
            finally:
                await tasks.cancel()
            self.end(context)

    def end(self, context: Context) -> None:
        """Note its pictures, whose bytes are still there, and the time."""
        self.image, self.milliseconds = digest_of(self.item.frames), 1000 * context.elapsed()
        self.copy = with_bytes(self.item) if self.audited else None

    def add(self, results: Mapping[str, MetricResult], notes: Sequence[Note] = ()) -> None:
        """Add the results of a stage, with the warnings about the prompt."""
        self.report = self.report.joined(ItemReport(self.item, results, notes))

    async def _download(self, engine: Engine, context: Context, held: AsyncExitStack) -> None:
        """Hold its pictures by URL for all stages; errors are raised again by the first stage."""
        if fetched := {ref: "" for ref in images_of(self.item) if is_url(ref) and not ref.video}:
            with suppress(ScoregateError, TimeoutError):
                async with asyncio.timeout_at(context.deadline):
                    await engine.images.read_together(fetched, held, context, {})

    async def _run(self, names: Sequence[str], engine: Engine, context: Context) -> None:
        """Score it by the metrics *names*, at the same time."""
        self.started.update(names)
        item = only_used(self.item, names, engine.catalog)
        try:
            report = await engine.score_once([item], names, context.charging(free), counted=False)
        except Exception as exc:  # the admission may fail, for example
            self.add(dict.fromkeys(names, error_of(exc, names[0])))
        else:
            self.add(report.items[0].results, report.items[0].notes)


async def score_together(each: Sequence[Candidate], name: str, engine: Engine, context: Context) -> None:
    """Score items by the only metric of their policies; if that is refused, some may be admitted alone."""
    items = [only_used(one.item, [name], engine.catalog) for one in each]
    try:
        report = await engine.score_once(items, [name], context.charging(free), counted=False)
    except ScoregateError:
        return
    for one, scored in zip(each, report.items, strict=True):
        one.started.add(name)
        one.add(scored.results, scored.notes)
        one.end(context)


def next_stage(
    item: UnopenedItem, wanted: Sequence[str], catalog: MetricCatalog, context: Context
) -> tuple[list[str], float]:
    """
    Return the metrics of the next stage, and until when, on the loop's clock, it may run alone.

    Outputs of one metric are one stage.  After that time the others would miss the deadline in sequence.
    """
    stages = defaultdict[str, list[str]](list)
    for name in wanted:
        stages[name.partition(".")[0]].append(name)
    if len(stages) == 1:
        return [*wanted], context.deadline
    needs = {whole: predicted(item, names, catalog, context.lane) for whole, names in stages.items()}
    first = min(needs, key=lambda whole: needs[whole][0])  # the first of equals
    rest_s = sum(seconds for whole, (_, seconds) in needs.items() if whole != first)
    alone_until = context.deadline - CAUTION_FACTOR * rest_s
    late = asyncio.get_running_loop().time() + CAUTION_FACTOR * needs[first][1] > alone_until
    return stages[first], -inf if late else alone_until


def predicted(
    item: UnopenedItem, names: Sequence[str], catalog: MetricCatalog, lane: str
) -> tuple[float, float]:
    """Return the models' time for metrics of an item, and the seconds until they are scored."""
    cost = seconds = 0.0
    for name in names:
        metric, options = catalog.known[name], item.options.get(name) or catalog.defaults[name]
        for handle, demand in demands_of(metric, options, item.prompt, catalog):
            forecast = handle.backend.forecast(lane, demand)
            cost += handle.backend.estimate(demand).seconds
            seconds = max(seconds, forecast.wait_s + forecast.run_s)
    return cost, seconds


def only_used(item: UnopenedItem, names: Sequence[str], catalog: MetricCatalog) -> UnopenedItem:
    """Return *item* without the pictures that none of these metrics uses: another stage's does."""
    if not item.references and item.source is None:
        return item
    uses = {use for name in names for use in catalog.known[name].uses_of(item.options.get(name))}
    return replace(
        item,
        references=item.references if "references" in uses else (),
        source=item.source if "source" in uses else None,
    )


def images_of(item: UnopenedItem) -> list[ImageRef]:
    """Return all pictures of an item."""
    return [*item.frames, *item.references, *([item.source] if item.source else [])]


def is_url(ref: ImageRef) -> bool:
    """Return True if a picture is downloaded."""
    return isinstance(ref.source, Url)


def is_fetched(item: UnopenedItem) -> bool:
    """Return True if a picture of an item is downloaded."""
    return any(map(is_url, images_of(item)))


def with_bytes(item: UnopenedItem) -> UnopenedItem:
    """Return a copy of an item that shares the bytes of its pictures alone, also of downloaded ones."""
    copies = {ref: ImageRef(bytes_of(ref), ref.kind, ref.orient) for ref in images_of(item)}
    return replace(
        item,
        frames=[copies[ref] for ref in item.frames],
        references=[copies[ref] for ref in item.references],
        source=copies[item.source] if item.source else None,
    )


def bytes_of(ref: ImageRef) -> Source:
    """Return the bytes of a picture if they are there, else what stands for them."""
    return ref.image.encoded if isinstance(ref.image, Image) else ref.source


def digest_of(refs: Sequence[ImageRef]) -> str:
    """Return the digest of an item's pictures, see `DecisionRecord`."""
    digests = [*map(file_digest, refs)]
    if len(digests) == 1 or not all(digests):
        return digests[0] if len(digests) == 1 else ""
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def file_digest(ref: ImageRef) -> str:
    """Return the SHA-256 of a picture's bytes; empty if they are not there."""
    images = [each.image for each in (ref, ref.film) if each]
    image = next((each for each in images if isinstance(each, Image)), None)
    if image is None:
        return ""
    return image.digest if image.orientation == 1 else hashlib.sha256(image.encoded).hexdigest()


async def decided(engine: Engine, candidates: Candidates, context: Context) -> Decided:
    """
    Decide about items, each by itself; an error of a metric, a model or a picture is the item's.

    The caller is charged for all metrics of the policies first, and gets those back that were not started.

    Raises:
        Invalid: an item has images that no metric uses.
        QuotaExceeded, LargerThanQuota: the request exceeds the caller's quota.
    """
    policies, names = candidates.policies, [*together(candidates.policies)]
    if any(item.references or item.source for item in candidates.items):
        served = [name for name in names if engine.catalog.serves(name)]
        Plan(candidates.items, served, engine.catalog, context.lane)  # raises `Invalid`
    most = len(candidates.items) * len(names)
    context.account.charge(most)
    handles = handles_of(names, engine.catalog)
    each = [
        Candidate(item, group, policies, index in candidates.audited)
        for index, (item, group) in enumerate(zip(candidates.items, candidates.groups, strict=True))
    ]
    try:
        with used(handles.values(), context):
            if len(names) == 1 and not any(map(is_fetched, candidates.items)):
                await score_together(each, names[0], engine, context)
            await side_by_side(one.score(engine, context) for one in each if not one.started)
    finally:
        context.account.charge(sum(len(one.started) for one in each) - most)
    infos = infos_of(handles, context)
    report = Report([one.report for one in each], infos, demo_notes(infos, engine.demo))
    report.count(context.instruments)
    if report.failure():  # `count` counted no rejections, since a response of that status would
        count_refused((error for item in report.items for error in item.errors.items()), context.instruments)
    decisions: list[dict[str, Decision]] = [{} for _ in each]
    for policy in policies:
        for index, outcome in enumerate(outcomes(each, policy, candidates.keep)):
            decisions[index][policy.name] = Decision(outcome, each[index].skipped(policy), uuid4().hex)
            context.instruments.count_decision(
                policy.name, outcome.decision, outcome.reason, each[index].milliseconds / 1000
            )
    ids = {policy.name: policy.id(models_of(policy, engine.catalog, infos)) for policy in policies}
    images, times = [one.image for one in each], [one.milliseconds for one in each]
    audited = {index: one.copy for index, one in enumerate(each) if one.copy is not None}
    return Decided(report, ids, decisions, images, times, audited)


def handles_of(names: Sequence[str], catalog: MetricCatalog) -> dict[str, Handle]:
    """Return the handles of the models that metrics may use, by name, whether they are served now or not."""
    return {handle.name: handle for name in names for handle in catalog.used[name]}


def models_of(
    policy: ServedPolicy, catalog: MetricCatalog, infos: Mapping[str, ModelInfo]
) -> dict[str, ModelInfo]:
    """Return the models that a policy may use, by configured name."""
    return {name: infos[name] for name in handles_of(policy.rules.metrics, catalog)}


def outcomes(each: Sequence[Candidate], policy: ServedPolicy, keep: int) -> list[PolicyOutcome]:
    """Return the decisions of a policy, at most *keep* of a group accepted: the best, of equals the first."""
    found = [one.outcome(policy) for one in each]
    groups = defaultdict[str, list[int]](list)
    for index, one in enumerate(each):
        if one.group is not None and found[index].decision == "accept":
            groups[one.group].append(index)
    for members in groups.values():
        best = sorted(members, key=lambda index: -each[index].rank(policy))  # a stable sort
        for index in best[keep:]:
            rank_by = policy.rules.rank_by
            said = f"group: {keep} accepted before it, by {rank_by.text if rank_by else 'their order'}"
            found[index] = PolicyOutcome("reject", "group", said)
    return found


def records(
    outcome: Decided, candidates: Candidates, catalog: MetricCatalog, context: Context
) -> Iterator[DecisionRecord]:
    """Yield the records of all decisions of a request, for a log."""
    now = time()
    for policy in candidates.policies:
        models = models_of(policy, catalog, outcome.report.infos)
        labels = {name: info.label for name, info in models.items()}
        for index, item in enumerate(outcome.report.items):
            made = outcome.decisions[index][policy.name]
            yield DecisionRecord(
                decision_id=made.id,
                time=now,
                request_id=context.request_id,
                caller_id=item.item.id,
                key=context.account.name,
                policy=outcome.policies[policy.name],
                decision=made.outcome.decision,
                reason=made.outcome.reason,
                because=made.outcome.because,
                scores={name: each.value for name, each in item.scores.items() if name in policy.ranges},
                errors={name: each.code for name, each in item.errors.items() if name in policy.ranges},
                skipped=made.skipped,
                models=labels,
                image=outcome.images[index],
                prompt=item.item.prompt,
                milliseconds=outcome.milliseconds[index],
                audited=index in outcome.audited,
            )
