"""The engine without HTTP: items in, a report out, and pictures opened once."""

import asyncio
import threading
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from service.core.errors import DeadlineExceeded, LaneFull, ModelChanged, ModelFault, UnknownMetric
from service.images import loader
from service.images.loader import Base64, ImageRef
from service.metrics.common.contract import Metric, Score
from service.metrics.common.registry import metrics
from service.observability.notes import Code
from service.scoring.plan import UnopenedItem
from service.serving.admission import Demand, WaitingRoom
from service.serving.context import Context
from tests.support.counted import Counted
from tests.support.pictures import png
from tests.support.services import running

pytestmark = pytest.mark.anyio


@pytest.fixture
def opened(fakes, tmp_path):
    """A service around the fakes, with metrics of a test's own beside the others."""

    @asynccontextmanager
    async def opened(*own):
        known = {**metrics(), **{metric.name: metric for metric in own}}
        tree = {
            "models": {name: {"family": "fake"} for name in fakes},
            "cache": {"questions": f"sqlite:///{tmp_path}/q"},
        }
        async with running(tree, fakes, metrics=lambda: known) as service:
            yield service

    return opened


def context(service, seconds=60.0, lane="interactive"):
    deadline = asyncio.get_running_loop().time() + seconds
    return Context("request", deadline, lane, service.instruments)


async def score(service, items, *names, **more):
    return await service.engine.score(items, names, context(service, **more))


async def test_a_picture_that_many_items_name_is_opened_and_decoded_once(opened):
    """Its header is read once, its pixels are decoded once, and its budget is counted once."""
    counted = Counted()
    picture = ImageRef(png("blue", size=(100, 100)), counted.kind)
    items = [UnopenedItem(f"a blue square {n}", [picture]) for n in range(20)]
    async with opened() as service:
        report = await score(service, items, "vqascore", "clipscore")
        assert 0 == service.images.pixels.held

    assert not report.partial
    assert (1, 1) == (len(counted.images), counted.times)


async def test_a_picture_is_opened_once_for_all_stages_that_look_at_it(opened):
    """A ranking's second metric finds it open; its pixels were let go in between."""
    counted = Counted()
    items = [UnopenedItem("a blue square", [ImageRef(png("blue"), counted.kind)])]
    async with opened() as service:
        cheap = await score(service, items, "clipscore")
        costly = await score(service, items, "vqascore")

    assert not cheap.partial
    assert not costly.partial
    assert 1 == len(counted.images)


async def test_a_broken_picture_is_looked_at_once(opened, monkeypatch):
    """Why it cannot be had is remembered."""
    looks, real = [], loader.encoded_of
    monkeypatch.setattr(loader, "encoded_of", lambda file, most: looks.append(file) or real(file, most))
    picture = ImageRef(Base64("not base64!"))
    async with opened() as service:
        report = await score(service, [UnopenedItem("a", [picture])] * 3, "vqascore")

    assert {"not_base64"} == {item.errors["vqascore"].code for item in report.items}
    assert 1 == len(looks)


async def test_a_report_tells_models_and_warnings(opened, fakes):
    """So that every way in says the same."""
    item = UnopenedItem("a dog", [ImageRef(png())])
    async with opened() as service:
        report = await score(service, [item], "clipscore")

    assert {"clip": "fake-clip@1"} == report.models
    assert [Code.DEMO_MODEL] == [warned.note.code for warned in report.warnings]


async def test_a_request_whose_time_ran_out_has_failed_as_a_whole(opened):
    """With the place of every item, for whoever has to answer it."""
    picture = ImageRef(png())
    async with opened() as service:
        items = [UnopenedItem("a dog", [picture], place=f"/items/{n}") for n in range(2)]
        report = await score(service, items, "vqascore", seconds=-1)
        with pytest.raises(DeadlineExceeded) as failed:
            report.raise_if_failed()

    assert ["/items/0", "/items/1"] == [fault.pointer for fault in failed.value.faults]


async def test_a_metric_that_is_not_served_is_refused(opened):
    """The message lists what is served."""
    async with opened() as service:
        with pytest.raises(
            UnknownMetric, match="this server has: vqascore, checklist, clip_i, clipscore, dsg"
        ):
            await score(service, [UnopenedItem("a", [ImageRef(png())])], "bleu")


async def brightness(item, models, options):
    """Computes by itself, and says where."""
    assert threading.current_thread() is not threading.main_thread()
    return Score(item.image.rgb.getpixel((0, 0))[0] / 255, {"thread": threading.current_thread().name})


@pytest.mark.parametrize("lane", ["interactive", "bulk"])
async def test_a_metric_without_roles_runs_on_a_cpu_thread_of_its_lane(opened, lane):
    """What it computes keeps the event loop from nobody."""
    item = UnopenedItem("a red square", [ImageRef(png("red"))])
    async with opened(Metric("brightness", brightness)) as service:
        report = await score(service, [item], "brightness", lane=lane)

    [scored] = report.items
    assert 1.0 == scored.scores["brightness"].value
    assert scored.scores["brightness"].details["thread"].startswith(f"cpu-{lane}")


async def sleepy(item, models, options):
    """Awaits something, although it has no role."""
    await asyncio.sleep(0)
    return Score(0.0, {})


async def infinite(item, models, options):
    return Score(float("inf"), {})


async def test_a_metric_that_breaks_its_contract_is_an_error_and_never_a_score(opened):
    """Awaiting without a role, or a number that is not finite; others are scored."""
    item = UnopenedItem("a red square", [ImageRef(png("red"))])
    own = Metric("sleepy", sleepy), Metric("infinite", infinite)
    async with opened(*own) as service:
        [scored] = (await score(service, [item], "sleepy", "infinite", "vqascore")).items

    assert {"sleepy", "infinite"} == scored.errors.keys()
    assert "internal" == scored.errors["sleepy"].code
    assert isinstance(scored.errors["infinite"], ModelFault)
    assert "vqascore" in scored.scores


async def test_a_picture_that_cannot_be_decoded_is_the_error_of_a_metric_that_looks_at_it_itself(opened):
    """As of one whose model looks."""
    data = png("red", size=(64, 64))
    item = UnopenedItem("a red square", [ImageRef(data[: len(data) // 2])])
    async with opened(Metric("brightness", brightness)) as service:
        [scored] = (await score(service, [item], "brightness", "vqascore")).items

    assert {"image_undecodable"} == {error.code for error in scored.errors.values()}
    assert {"brightness", "vqascore"} == scored.errors.keys()


class Replacing:
    """A metric whose model is replaced between two of its calls, in its first *times* runs."""

    def __init__(self, times):
        self.times, self.runs, self.service = times, 0, None

    async def score(self, item, models, options):
        handle = self.service.runtime.handles["vqa"]
        await models.vqa.ask(item.image, ["Is it red?"], "yes")
        self.runs += 1
        if self.runs <= self.times:
            handle.backend.info = replace(handle.info, revision=f"other {self.runs}")
        await models.vqa.ask(item.image, ["Is it blue?"], "yes")
        return Score(self.runs / 10, {})


@pytest.fixture
def red():
    return UnopenedItem("a red square", [ImageRef(png("red"))])


async def test_a_request_whose_model_was_replaced_is_repeated_once_as_a_whole(opened, red):
    """All of its scores are of the model that it names, and it is charged once."""
    replacing, charged = Replacing(1), []
    async with opened(Metric("twice", replacing.score, roles=("vqa",))) as service:
        replacing.service = service
        asked = context(service).charging(charged.append)
        report = await service.engine.score([red], ["twice"], asked)

    assert (2, [1]) == (replacing.runs, charged)
    assert {"twice": 0.2} == {name: each.value for name, each in report.items[0].scores.items()}
    assert "other 1" == report.infos["vqa"].revision


async def test_a_request_whose_model_is_replaced_again_ends_with_a_temporary_error(opened, red):
    """`model_changed`, of the whole request."""
    replacing = Replacing(2)
    async with opened(Metric("twice", replacing.score, roles=("vqa",))) as service:
        replacing.service = service
        with pytest.raises(ModelChanged) as changed:
            await service.engine.score([red], ["twice"], context(service))

    assert (503, "model_changed") == (changed.value.status, changed.value.code)


async def number(item, models, options):
    """Gives something else than a score."""
    return 0.5


async def test_a_metric_that_gives_something_else_than_a_score_fails_alone(opened):
    """The other metrics of the request are scored."""
    item = UnopenedItem("a red square", [ImageRef(png("red"))])
    async with opened(Metric("number", number)) as service:
        [scored] = (await score(service, [item], "number", "vqascore")).items

    assert {"number": "internal"} == {name: error.code for name, error in scored.errors.items()}
    assert "vqascore" in scored.scores


async def test_a_request_is_charged_for_once_the_models_have_room_for_it(opened):
    """Every item under every metric; one that is refused or only looked at costs nothing."""
    items, charged = [UnopenedItem("a", [ImageRef(png())])] * 3, []
    async with opened() as service:
        paying = context(service).charging(charged.append)
        await service.engine.score(items, ["vqascore", "clipscore"], paying)
        service.engine.admit(items, ["vqascore"], paying)
        fill(service, "vqascore")
        with pytest.raises(LaneFull):
            await service.engine.score(items, ["vqascore"], paying)

    assert [6] == charged


async def test_a_request_that_waits_for_room_keeps_no_model_from_leaving(opened):
    """It may wait for minutes; it uses the model once it is admitted."""
    item = UnopenedItem("a", [ImageRef(png())])
    async with opened() as service:
        handle = fill(service, "vqascore")
        with WaitingRoom(0).place(0, 1) as place:
            waits = asyncio.create_task(
                service.engine.score([item], ["vqascore"], replace(context(service), place=place))
            )
            while not place.taken:
                await asyncio.sleep(0)
            handle.backend.presence.change("leaving")
            await asyncio.wait_for(handle.idle(), 10)
            waited = not waits.done()
            waits.cancel()

    assert waited


def fill(service, metric):
    """Admit work that fills the lane of the model of *metric*, and return the model's handle."""
    [handle] = service.engine.catalog.handles([metric]).values()
    handle.backend.reserve("interactive", Demand(10**9), parts=1)
    return handle
