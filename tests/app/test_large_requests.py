"""One large request among others: what it leaves to its neighbours."""

import asyncio

import pytest

from service.core.errors import DeadlineExceeded
from service.images.loader import ImageRef
from service.metrics.common.contract import Metric, Score
from service.scoring.plan import UnopenedItem
from tests.support.counted import Counted
from tests.support.handles import until
from tests.support.large_requests import BATCH, context, items_of
from tests.support.pictures import png

pytestmark = pytest.mark.anyio
AT_ONCE = 3 * BATCH


class Watched:
    """A metric that asks the VQA model one question, and counts how often it does so at the same time."""

    def __init__(self):
        self.now = self.most = self.done = 0
        self.metric = Metric("watched", self.score_of(), roles=("vqa",))

    def score_of(self):
        async def score(item, models, options):
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                [answer] = await models.vqa.ask(item.image, [item.prompt], "Yes")
            finally:
                self.now -= 1
            self.done += 1
            return Score(answer.probability, {"prompt": item.prompt})

        return score


async def test_a_large_request_is_worked_on_a_part_at_a_time(opened):
    """As many frames as three batches hold, which keeps batches full; all are scored, each in its place."""
    watched, items = Watched(), items_of(10, 20)
    async with opened(watched.metric) as service:
        report = await service.engine.score(items, ["watched"], context(service))

    assert AT_ONCE == watched.most
    assert 200 == watched.done
    assert not report.partial
    assert [item.prompt for item in items] == [
        scored.scores["watched"].details["frames"][0]["prompt"] for scored in report.items
    ]


async def test_a_neighbour_of_a_large_request_waits_for_what_is_under_way_of_it_and_no_more(opened, fakes):
    """Both are in one lane; the neighbour comes last, and is not the last to be served."""
    vqa = fakes["vqa"]
    async with opened() as service:
        vqa.hold.clear()
        large = asyncio.create_task(
            service.engine.score(items_of(10, 20), ["vqascore"], context(service, "interactive"))
        )
        await until(lambda: vqa.held)
        neighbour = UnopenedItem("neighbour", [ImageRef(png())])
        small = asyncio.create_task(
            service.engine.score([neighbour], ["vqascore"], context(service, "interactive"))
        )
        await until(lambda: service.runtime.handles["vqa"].under_way == AT_ONCE + 1)
        vqa.hold.set()
        reports = await asyncio.gather(large, small)

    assert not any(report.partial for report in reports)
    asked = [call.question.split('"')[1] for call in vqa.calls]
    assert asked.index("neighbour") <= AT_ONCE + BATCH


async def test_frames_that_had_not_begun_when_the_time_ran_out_are_not_even_opened(opened):
    """They say that they waited for their turn."""
    counted = Counted()
    watched, items = Watched(), items_of(10, 20, counted.kind)
    async with opened(watched.metric) as service:
        asked = context(service)

        async def score(item, models, options):
            asked.deadline = 0.0
            return await watched.score_of()(item, models, options)

        service.engine.catalog.configured["watched"] = Metric("watched", score, roles=("vqa",))
        report = await service.engine.score(items, ["watched"], asked)

    last = report.items[-1].errors["watched"]
    assert isinstance(last, DeadlineExceeded)
    assert "stage queue" in last.detail
    assert 0 < len(counted.images) <= AT_ONCE
