"""`/models/{name}/shadow` with a revision of the model's own checkpoint, which is loaded as well."""

import asyncio
import gc
import threading
import weakref

import pytest

from service.serving.backends.local import LocalBackend
from service.serving.contract import Backend
from tests.support.app import service_of
from tests.support.fakes import FakeVqa, new_fakes
from tests.support.handles import until
from tests.support.pictures import item
from tests.support.refusals import refused
from tests.support.revisions import OtherVqa, checkpoints
from tests.support.service import value_of

__all__ = ["checkpoints"]

pytestmark = pytest.mark.anyio

ITEMS = [item(f"a square {number}") for number in range(40)]


@pytest.fixture
def fakes():
    """With another model of the role in the profile."""
    return {**new_fakes(), "second": FakeVqa()}


@pytest.fixture
async def client(serve):
    async with serve() as client:
        client._transport.app.state.operators = True
        yield client


@pytest.fixture
def loaded(checkpoints):
    """The models that were loaded for shadows, which hold no weights without a reference."""
    models = weakref.WeakSet()

    def revision(name):
        def load():
            model = OtherVqa(name)
            models.add(model)
            return model

        return load

    checkpoints |= {name: revision(name) for name in ("newer", "newest")}
    return models


def residents(client):
    """The names of the models that all pools serve."""
    return [each.name for pool in service_of(client).runtime.pools for each in pool.residents]


async def start(client, revision="newer", **more):
    answer = await client.post("/models/vqa/shadow", json={"revision": revision, "share": 1, **more})
    assert 200 == answer.status_code, answer.text
    return answer.json()


async def refuses(client, revision, status, code):
    return refused(await client.post("/models/vqa/shadow", json={"revision": revision}), status, code)


async def score(client, items=ITEMS):
    answer = await client.post("/score", json={"items": items, "metrics": ["vqascore"]})
    assert 200 == answer.status_code, answer.text
    return [each["scores"]["vqascore"] for each in answer.json()["results"]]


async def compared(client):
    """The comparison, once nothing is pending."""
    await service_of(client).shadows.of("vqa")._tasks.wait()
    return (await client.get("/models/vqa/shadow")).json()


async def change(client, action, **body):
    answer = await client.post(f"/models/vqa/{action}", **({"json": body} if body else {}))
    assert 200 == answer.status_code, answer.text


async def left_alone(client):
    """Only the models of the profile are served and shown."""
    assert ["clip", "vqa", "second", "questions"] == residents(client)
    assert "vqa@" not in (await client.get("/metrics")).text


async def all_freed(client, loaded):
    """Nothing refers to a model that was loaded for a shadow."""

    def left():
        gc.collect()
        return list(loaded)

    await until(lambda: not left())  # a device's thread may still return from its last batch
    await left_alone(client)


async def test_a_revision_is_loaded_and_compared(client, loaded):
    """As another model of the profile is; callers get the scores of the one that serves."""
    before = await score(client, ITEMS[:1])
    answer = await start(client)
    again, compares = await score(client), await compared(client)
    shown = (await client.get("/metrics")).text

    assert ("newer", "fake-vqa@1", "fake-vqa@newer") == tuple(
        answer[field] for field in ("revision", "served", "shadow")
    )
    assert before == again[:1]
    assert {"ok": 40, "dropped": 0, "failed": 0} == compares["counts"]
    assert compares["metrics"]["vqascore"]["figures"]["difference"]["sd"]
    assert 40 == value_of(shown, 'scoregate_calls_total{lane="bulk",model="vqa@newer",result="ok"}')
    assert "newer" not in (await client.get("/models")).text


async def test_the_end_of_the_shadow_frees_the_revision(client, loaded):
    """Inputs wait for it, and the model serves on."""
    await start(client)
    await score(client)
    await compared(client)
    await score(client)
    ended = (await client.delete("/models/vqa/shadow")).json()

    assert 40 <= ended["counts"]["ok"]
    assert (0, False) == (ended["pending"], ended["outdated"])
    await all_freed(client, loaded)
    assert await score(client)


async def test_the_same_revision_again_changes_the_share(client, loaded):
    """It is loaded once, and the pairs are kept."""
    await start(client)
    await score(client)
    await compared(client)
    answer = await start(client, share=0.5)

    assert (0.5, 40) == (answer["share"], answer["counts"]["ok"])
    assert 1 == len(loaded)


async def test_another_revision_is_loaded_when_the_first_is_freed(client, loaded, checkpoints):
    """There is never memory for three models."""
    at_load, load = [], checkpoints["newest"]
    checkpoints["newest"] = lambda: at_load.append(residents(client)) or load()
    await start(client)
    await score(client)
    answer = await start(client, "newest")

    assert [["clip", "vqa", "second", "questions"]] == at_load
    assert ("newest", 0) == (answer["revision"], answer["counts"]["ok"])
    assert "vqa@newest" in residents(client)[3]


async def test_a_model_of_the_profile_takes_a_revisions_place(client, loaded):
    """And the other way round; the model of the profile stays."""
    await start(client)
    assert "fake-vqa@1" == (await start(client, "second"))["shadow"]
    await all_freed(client, loaded)
    assert "fake-vqa@newer" == (await start(client))["shadow"]
    assert ["clip", "vqa", "second", "vqa@newer", "questions"] == residents(client)


async def test_a_revision_that_there_is_not_is_refused_with_the_reason(client, loaded):
    """At its field, with the models of the profile; the running shadow of one of them goes on."""
    await start(client, "second")
    problem = await refuses(client, "secon", 422, "invalid")
    [fault] = problem["errors"]

    assert "/revision" == fault["pointer"]
    assert "models.vqa: no revision secon" in fault["detail"]
    assert (["second"], "second") == (fault["valid"], fault["did_you_mean"])
    assert not (await compared(client))["outdated"]


@pytest.mark.parametrize("revision", ["1", "main"])
async def test_the_revision_that_serves_is_refused(client, loaded, checkpoints, revision):
    """By its name, and by another name of it."""
    checkpoints["main"] = FakeVqa
    problem = await refuses(client, revision, 422, "invalid")

    assert "fake-vqa@1 serves already" in problem["detail"]
    await all_freed(client, loaded)


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [(MemoryError("full"), 503, "not_ready"), (None, 503, "not_ready"), (TypeError("no"), 500, "internal")],
)
async def test_a_revision_that_fails_leaves_nothing_behind(client, loaded, checkpoints, fault, status, code):
    """Too little memory for the weights or for the example, or a defect; it can be tried again."""

    def broken():
        if not fault:
            raise MemoryError("full")
        model = OtherVqa()
        model.fault = lambda call: fault
        return model

    works, checkpoints["newer"] = checkpoints["newer"], broken
    problem = await refuses(client, "newer", status, code)
    assert status == 500 or "too little free memory: models.vqa" in problem["detail"]
    await left_alone(client)
    refused(await client.get("/models/vqa/shadow"), 404, "not_found")
    checkpoints["newer"] = works
    await start(client)


async def test_a_revision_that_breaks_fails_alone(client, loaded):
    """Even its example fails; the model on the same device serves all callers."""
    await start(client)
    [model] = loaded
    model.fault = lambda call: RuntimeError("device-side assert")
    assert await score(client)
    assert {"ok": 0, "dropped": 0, "failed": 40} == (await compared(client))["counts"]
    assert 200 == (await client.get("/readyz")).status_code
    await client.delete("/models/vqa/shadow")
    await left_alone(client)


@pytest.mark.parametrize(
    ("action", "body"), [("offload", {}), ("unload", {}), ("swap", {"revision": "newest"})]
)
async def test_a_change_of_the_model_frees_the_revision_and_keeps_the_figures(client, loaded, action, body):
    """The change needs the memory.  Afterwards the shadow can be started again."""
    await start(client)
    await score(client)
    await compared(client)
    await change(client, action, **body)
    answer = (await client.get("/models/vqa/shadow")).json()

    assert (True, 40) == (answer["outdated"], answer["counts"]["ok"])
    assert "vqa@newer" not in residents(client)
    await change(client, "load")
    assert not (await start(client))["outdated"]


async def test_a_model_that_is_away_is_not_served_in_another_revision(client, loaded):
    """It is loaded first."""
    await change(client, "offload")

    assert "load it first" in (await refuses(client, "newer", 409, "conflict"))["detail"]


async def test_a_model_on_a_server_is_served_in_one_revision_only(client, loaded, monkeypatch):
    """Nor has one on Ray: name a model of the profile."""
    monkeypatch.setattr(LocalBackend, "add_revision", Backend.add_revision)
    problem = await refuses(client, "newer", 422, "invalid")

    assert "a model of this kind is served in one revision only" in problem["detail"]
    assert ["second"] == problem["errors"][0]["valid"]


async def test_a_change_during_the_load_is_a_conflict(client, loaded, checkpoints):
    """One at a time; the shadow starts although its caller has disconnected."""
    may_load, load = threading.Event(), checkpoints["newer"]
    checkpoints["newer"] = lambda: may_load.wait(100) and load()
    starting = asyncio.create_task(start(client))
    await until(lambda: service_of(client).lifecycle._under_way)
    answers = [await refuses(client, "newest", 409, "conflict")]
    answers += [refused(await client.post("/models/vqa/offload"), 409, "conflict")]
    starting.cancel()
    may_load.set()
    await until(lambda: not service_of(client).lifecycle._under_way)

    assert ["models.vqa: shadow is under way"] * 2 == [answer["detail"] for answer in answers]
    assert "newer" == (await compared(client))["revision"]


async def test_the_end_of_the_service_frees_the_revision(serve, loaded):
    """While inputs wait."""
    async with serve() as client:
        client._transport.app.state.operators = True
        await start(client)
        await score(client)
        service = service_of(client)
    assert not [each for pool in service.runtime.pools for each in pool.residents if each.optional]
    assert b"vqa@" not in service.instruments.exposition()
