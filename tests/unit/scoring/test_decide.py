"""What of a decision needs no model: groups, stages, digests, and what an item still needs."""

import asyncio
import hashlib
from dataclasses import replace
from math import inf
from time import monotonic
from types import SimpleNamespace

import pytest

from models.images.frame_stack import FrameStack
from models.images.image import Image
from service.core.errors import ImageUndecodable, ModelFault, NotReady
from service.core.expression import Condition, Formula, Interval
from service.core.policy import Policy
from service.images.loader import ImageRef, Url
from service.metrics.common.contract import Metric, MetricOptions, Score
from service.scoring.decide import (
    Candidate,
    digest_of,
    images_of,
    next_stage,
    only_used,
    outcomes,
    predicted,
    score_together,
    with_bytes,
)
from service.scoring.plan import UnopenedItem
from service.scoring.policies import ServedPolicy
from service.scoring.report import ItemReport
from service.serving.admission import AdmissionForecast, Demand, WorkEstimate
from service.serving.context import Context, RequestRecord
from service.serving.handle import CAUTION_FACTOR

RANGES = dict.fromkeys(("a", "b", "c.one", "c.two"), Interval(0.0, 1.0))
ITEM = UnopenedItem("a cat", [])


def policy(accept="a >= 0.5", rank_by=None, **more):
    rules = Policy(Condition.of(accept), rank_by=rank_by and Formula.of(rank_by), **more)
    return ServedPolicy("show", rules, 1000, {}, RANGES)


def candidate(by, group=None, **results):
    """An item with these scores or errors by metric."""
    found = Candidate(ITEM, group, [by])
    found.add(
        {name: each if isinstance(each, Exception) else Score(each, {}) for name, each in results.items()}
    )
    found.started.update(results)
    return found


def test_of_a_group_the_best_are_accepted_and_of_equals_the_first():
    """Those that are not accepted by the policy take no place, and items without a group are not counted."""
    by = policy(rank_by="b")
    each = [
        candidate(by, "x", a=0.9, b=0.2),
        candidate(by, "x", a=0.1, b=0.9),
        candidate(by, "x", a=0.9, b=0.4),
        candidate(by, "x", a=0.9, b=0.4),
        candidate(by, "y", a=0.9, b=0.1),
        candidate(by, None, a=0.9),
    ]
    one, two = ([found.decision for found in outcomes(each, by, keep)] for keep in (1, 2))

    assert ["reject", "reject", "accept", "reject", "accept", "accept"] == one
    assert ["reject", "reject", "accept", "accept", "accept", "accept"] == two
    [first, low, *_] = outcomes(each, by, 1)
    assert ("group", "group: 1 accepted before it, by b") == (first.reason, first.because)
    assert "expression" == low.reason


def test_a_group_that_nothing_ranks_is_accepted_in_the_order_of_the_request():
    """And `because` names that order."""
    by = policy()
    first, second = outcomes([candidate(by, "x", a=0.6), candidate(by, "x", a=0.9)], by, 1)

    assert "accept" == first.decision
    assert ("reject", "group: 1 accepted before it, by their order") == (second.decision, second.because)


def test_an_item_that_cannot_be_ranked_is_the_last_of_its_group():
    """Its score failed, or the formula has no value."""
    by = policy(rank_by="a / b")
    each = [
        candidate(by, "x", a=0.9, b=ModelFault()),
        candidate(by, "x", a=0.9, b=0.0),
        candidate(by, "x", a=0.5, b=1.0),
    ]

    assert [-inf, -inf, 0.5] == [one.rank(by) for one in each]
    assert ["reject", "reject", "accept"] == [found.decision for found in outcomes(each, by, 1)]


def test_an_item_needs_what_may_change_a_decision_and_then_what_ranks_it():
    """Only an item of a group that would be accepted is ranked."""
    by = policy("a >= 0.5 and b >= 0.5", rank_by="c.one")

    assert ["a", "b"] == candidate(by, "x").wanted()
    assert ["b"] == candidate(by, "x", a=0.7).wanted()
    assert ["c.one"] == candidate(by, "x", a=0.7, b=0.7).wanted()
    assert [] == candidate(by, None, a=0.7, b=0.7).wanted()
    assert [] == candidate(by, "x", a=0.1).wanted()
    assert [] == candidate(by, "x", a=0.7, b=0.7, **{"c.one": NotReady()}).wanted()


def test_a_metric_that_failed_does_not_keep_others_from_deciding():
    by = policy("a >= 0.5 and b >= 0.5")

    assert ["b"] == candidate(by, a=ModelFault()).wanted()
    assert ("reject", "expression") == (
        candidate(by, a=ModelFault(), b=0.1).outcome(by).decision,
        candidate(by, a=ModelFault(), b=0.1).outcome(by).reason,
    )


def test_a_picture_that_cannot_be_read_needs_nothing_more():
    by = policy("a >= 0.5 or b >= 0.5")
    broken = candidate(by, a=ImageUndecodable("broken"))

    assert [] == broken.wanted()
    assert ["b"] == broken.skipped(by)
    assert "unreadable" == broken.outcome(by).reason


def test_metrics_that_only_rank_are_skipped_in_a_group_alone():
    """Others need none of them."""
    by = policy(rank_by="b")

    assert [] == candidate(by, None, a=0.1).skipped(by)
    assert ["b"] == candidate(by, "x", a=0.1).skipped(by)


def catalog(**seconds):
    """A catalog of metrics whose model takes so long for an item."""

    async def score(item, models, options):
        raise AssertionError

    def backend(cost_s):
        return SimpleNamespace(
            estimate=lambda demand: WorkEstimate(cost_s, 1.0),
            forecast=lambda lane, demand: AdmissionForecast(False, 1.0, cost_s, 0.0),
        )

    known = {
        name.replace("__", "."): Metric(name.replace("__", "."), score, roles=("m",)) for name in seconds
    }
    models = {
        name.replace("__", "."): {"m": SimpleNamespace(backend=backend(cost_s))}
        for name, cost_s in seconds.items()
    }
    return SimpleNamespace(known=known, models=models, defaults=dict.fromkeys(known, MetricOptions()))


@pytest.mark.anyio
async def test_the_cheapest_metric_is_the_first_stage_with_all_of_its_outputs():
    """It may run alone until the others would be late one after the other."""
    served = catalog(a=3.0, b=2.0, c__one=0.5, c__two=0.5)
    now = asyncio.get_running_loop().time()
    context = SimpleNamespace(lane="interactive", deadline=now + 100)

    stage, alone_until = next_stage(ITEM, ["a", "c.one", "b", "c.two"], served, context)

    assert ["c.one", "c.two"] == stage
    assert context.deadline - CAUTION_FACTOR * (4 + 3) == pytest.approx(alone_until)


@pytest.mark.anyio
async def test_stages_that_would_be_late_in_sequence_start_together():
    served = catalog(a=3.0, b=2.0)
    now = asyncio.get_running_loop().time()

    def alone(seconds):
        context = SimpleNamespace(lane="interactive", deadline=now + seconds)
        return next_stage(ITEM, ["a", "b"], served, context)

    assert (["b"], -inf) == alone(CAUTION_FACTOR * 7 - 0.1)
    assert -inf < alone(CAUTION_FACTOR * 7 + 60)[1]


@pytest.mark.anyio
async def test_a_single_stage_needs_no_prediction():
    """Its models are not even looked up."""
    context = SimpleNamespace(lane="interactive", deadline=5.0)

    assert (["c.one", "c.two"], 5.0) == next_stage(ITEM, ["c.one", "c.two"], None, context)


def test_a_stage_gets_the_pictures_that_its_metrics_use():
    """Others belong to another stage, and would be refused here."""
    served = catalog(a=1.0, b=1.0)
    served.known["a"] = replace(served.known["a"], uses=("source",))
    item = UnopenedItem("a cat", [], source=ImageRef(b""), references=[ImageRef(b"")])

    assert (item.source, ()) == (
        only_used(item, ["a"], served).source,
        only_used(item, ["a"], served).references,
    )
    assert only_used(item, ["b"], served).source is None


def test_each_stage_has_its_own_pictures_of_an_item():
    """By the options of the item; an item without further pictures is the same item."""
    served, given = catalog(a=1.0, b=1.0), []
    uses = {"a": ("source",), "b": ("references",)}
    served.known = {
        name: SimpleNamespace(uses_of=lambda options, name=name: given.append(options) or uses[name])
        for name in uses
    }
    source, reference, options = ImageRef(b""), ImageRef(b""), MetricOptions()
    whole = UnopenedItem("a cat", [], source=source, references=[reference], options={"b": options})

    def left(item, *names):
        found = only_used(item, names, served)
        return found.source, [*found.references]

    assert (source, []) == left(whole, "a")
    assert (None, [reference]) == left(whole, "b")
    assert (source, [reference]) == left(whole, "a", "b")
    assert (None, []) == left(replace(whole, references=[]), "b")
    assert (None, []) == left(replace(whole, source=None), "a")
    assert given[0] is None
    assert given[1] is options
    assert only_used(ITEM, ["a"], served) is ITEM
    assert [source] == images_of(replace(whole, references=[]))
    assert [reference] == images_of(replace(whole, source=None))


def test_the_digest_is_that_of_the_pictures_bytes():
    """However it is turned; of several pictures that of their digests, and of one that was not read none."""
    refs = [ImageRef(b"one"), ImageRef(b"two"), ImageRef(b"three")]
    refs[0].image, refs[1].image = Image(b"one"), Image(b"two", "turned", 2)
    one, two = (hashlib.sha256(each).hexdigest() for each in (b"one", b"two"))

    assert one == digest_of(refs[:1])
    assert two == digest_of(refs[1:2])
    assert hashlib.sha256((one + two).encode()).hexdigest() == digest_of(refs[:2])
    assert "" == digest_of(refs) == digest_of(refs[2:])


def test_the_copy_for_an_audit_has_the_bytes_of_every_image_and_how_it_is_read():
    """An opened image is not part of it; where bytes are gone, the address stands for them."""
    read, gone = ImageRef(Url("http://a/a.png"), orient="exif"), ImageRef(Url("http://a/b.png"))
    film, source = ImageRef(b"film", FrameStack), ImageRef(b"source", orient="as_stored")
    read.image = Image(b"read")
    item = UnopenedItem("a cat", [read, film], references=[gone], source=source)
    copy = with_bytes(item)

    assert not {*images_of(item)} & {*images_of(copy)}
    assert [b"read", b"film", gone.source, b"source"] == [ref.source for ref in images_of(copy)]
    assert [Image, FrameStack, Image, Image] == [ref.kind for ref in images_of(copy)]
    assert ["exif", None, None, "as_stored"] == [ref.orient for ref in images_of(copy)]
    assert [None] * 4 == [ref.image for ref in images_of(copy)]
    assert with_bytes(replace(ITEM, frames=[film])).source is None


def test_a_demand_is_what_the_catalog_says():
    """So that the predictions above are those of one call."""
    assert {"m": Demand(1, 5)} == catalog(a=1.0).known["a"].demand("a cat", MetricOptions())


def test_the_cost_of_a_stage_is_the_sum_of_its_models_and_its_time_that_of_the_last():
    """With the options of the item, else those of the settings."""
    served, found = catalog(a=3.0, b=2.0), []

    def asks(options):
        found.append(options)
        return {"a": options}

    own, usual = MetricOptions(), MetricOptions()
    served.known = dict.fromkeys(
        ("a", "b"), SimpleNamespace(asks=asks, demand=lambda *_: {"m": Demand(1, 5)})
    )
    served.defaults = {"a": usual, "b": usual}

    assert (6.0, 4.0) == predicted(replace(ITEM, options={"b": own}), ["a", "b"], served, "interactive")
    assert found[0] is usual
    assert found[1] is own


class Scorer:
    """
    An engine that scores by a table, and counts downloads.

    Attributes:
        stages: the metrics of each call.
        sources: of the items of each call.
        fetched: the pictures of each download, which does what `download` does.
    """

    def __init__(self, served, download=None, **scores):
        self.catalog, self.scores, self.download = served, scores, download
        self.images, self.stages, self.sources, self.fetched = self, [], [], []

    async def read_together(self, refs, held, context, spans):
        assert isinstance(context, Context)
        assert {} == spans
        self.fetched.append(refs)
        if self.download:
            await self.download()

    async def score_once(self, items, names, context, counted):
        assert counted is False  # the request is counted as a whole
        self.stages.append([*names])
        self.sources.append([item.source for item in items])
        results = {name: Score(self.scores[name.replace(".", "__")], {}) for name in names}
        return SimpleNamespace(items=[ItemReport(item, results, ["a note"]) for item in items])


async def staged(engine, by, item=ITEM, group=None, seconds=60.0, began=0.0):
    """A candidate after all of its stages, of a request that *began* then."""
    found, deadline = Candidate(item, group, [by]), asyncio.get_running_loop().time() + seconds
    request = RequestRecord(began=began)
    await found.score(engine, Context("r", deadline, "interactive", None, request=request))
    return found


@pytest.mark.anyio
async def test_stages_go_on_until_nothing_is_wanted():
    """The last of `accept` is followed by what ranks the group."""
    engine = Scorer(catalog(a=1.0, b=2.0, c__one=1.0), a=0.9, b=0.8, c__one=0.5)
    by = policy("a >= 0.5 and b >= 0.5", rank_by="c.one")
    found = await staged(engine, by, group="x")

    assert [["a"], ["b"], ["c.one"]] == engine.stages
    assert 0.5 == found.rank(by)
    assert [] == found.skipped(by)
    assert {"a note"} == {*found.report.notes}


@pytest.mark.anyio
async def test_stages_that_have_no_time_one_after_the_other_are_scored_in_one_call():
    """Their pictures are opened once."""
    engine = Scorer(catalog(a=30.0, b=40.0), a=0.9, b=0.8)
    await staged(engine, policy("a >= 0.5 and b >= 0.5"))

    assert [["a", "b"]] == engine.stages


@pytest.mark.anyio
async def test_a_stage_that_raises_is_the_error_of_its_metrics_and_logged_with_the_first(caplog):
    """The decision is made without their scores."""
    engine = Scorer(catalog(c__one=1.0, c__two=1.0))
    by = policy("c.one >= 0.5 and c.two >= 0.5")
    found = await staged(engine, by)

    assert {"c.one": "internal", "c.two": "internal"} == found.codes
    assert ["c.one"] == [record.metric for record in caplog.records]
    assert "internal" == found.outcome(by).reason


@pytest.mark.anyio
async def test_a_candidate_has_the_time_until_its_last_score():
    """In milliseconds, from the first byte of the request."""
    began = monotonic() - 0.25
    found = await staged(Scorer(catalog(a=1.0), a=0.9), policy(), began=began)

    assert 250 <= found.milliseconds <= 1000 * (monotonic() - began)


@pytest.mark.anyio
async def test_after_the_deadline_nothing_is_started():
    """The metric is late, and it is skipped."""
    engine = Scorer(catalog(a=1.0), a=0.9)
    found = await staged(engine, policy(), seconds=-1.0)

    assert [] == engine.stages
    assert "deadline_exceeded" == found.outcome(policy()).reason
    assert ["a"] == found.skipped(policy())


def hanging():
    """A download that never ends."""
    return asyncio.get_running_loop().create_future()


async def refused():
    """A download that fails."""
    raise NotReady("the host does not answer")


@pytest.mark.anyio
@pytest.mark.parametrize("download", [None, refused])
async def test_pictures_by_url_are_held_for_all_stages(download):
    """Those of a video are not; an error is that of the first stage, which reads them again."""
    url, video, there = ImageRef(Url("http://a/a.png")), ImageRef(Url("http://a/a.mp4")), ImageRef(b"there")
    video.video = True
    engine = Scorer(catalog(a=1.0), download, a=0.9)
    found = await staged(engine, policy(), replace(ITEM, frames=[url, video, there]))

    assert [{url: ""}] == engine.fetched
    assert [["a"]] == engine.stages
    assert "accept" == found.outcome(policy()).decision


@pytest.mark.anyio
async def test_a_download_that_never_ends_ends_at_the_deadline():
    """With a decision in place of an error."""
    item = replace(ITEM, frames=[ImageRef(Url("http://a/a.png"))])
    engine = Scorer(catalog(a=1.0), hanging, a=0.9)
    found = await staged(engine, policy(), item, seconds=0.05)

    assert [] == engine.stages
    assert "deadline_exceeded" == found.outcome(policy()).reason


@pytest.mark.anyio
async def test_a_stage_is_scored_with_its_own_pictures():
    """The source of an edit goes to the metric that uses it."""
    served = catalog(a=1.0, b=2.0)
    served.known["b"] = replace(served.known["b"], uses=("source",))
    item = replace(ITEM, source=ImageRef(b""))
    engine = Scorer(served, a=0.9, b=0.9)
    await staged(engine, policy("a >= 0.5 and b >= 0.5"), item)

    assert [["a"], ["b"]] == engine.stages
    assert [[None], [item.source]] == engine.sources


@pytest.mark.anyio
async def test_items_of_one_metric_are_scored_in_one_call_with_their_notes():
    """Each with the pictures that the metric uses."""
    served = catalog(a=1.0)
    served.known["a"] = replace(served.known["a"], uses=("source",))
    items = [replace(ITEM, source=ImageRef(b"")), replace(ITEM, source=ImageRef(b"", orient="exif"))]
    each, engine = [Candidate(item, None, [policy()]) for item in items], Scorer(served, a=0.9)
    await score_together(each, "a", engine, Context("r", 0.0, "interactive", None))

    assert [["a"]] == engine.stages
    assert [[item.source for item in items]] == engine.sources
    assert [({"a"}, ["a note"], "accept")] * 2 == [
        (one.started, [*one.report.notes], one.outcome(policy()).decision) for one in each
    ]
