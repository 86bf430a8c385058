"""`POST /models/{name}/load`, `/offload` and `/unload`: models come and go while others serve."""

import asyncio
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

from tests.support.app import service_of
from tests.support.fakes import FakeVqa, new_fakes
from tests.support.handles import until
from tests.support.pictures import item
from tests.support.revisions import OtherVqa, checkpoints, parts

__all__ = ["checkpoints", "parts"]

pytestmark = pytest.mark.anyio

STATES = {"offload": "offloaded", "unload": "unloaded", "load": "loaded"}


@contextmanager
def held(fake):
    """Its batches wait on the device while the context is open."""
    fake.hold.clear()
    try:
        yield
    finally:
        fake.hold.set()


@pytest.fixture
def fakes():
    return new_fakes()


@pytest.fixture
async def client(serve, request):
    async with serve(**getattr(request, "param", {})) as client:
        client._transport.app.state.operators = True
        yield client


async def reached(client, state):
    """Return when the model is in that state."""
    handles = service_of(client).runtime.handles
    await until(lambda: handles["vqa"].backend.presence.state == state)


async def change(client, action, status=200, **body):
    answer = await client.post(f"/models/vqa/{action}", json=body)
    assert status == answer.status_code, answer.text
    return answer.json()


async def score(client, prompt="a square", **more):
    answer = await client.post("/score", json={"items": [item(prompt)], "metrics": ["vqascore"], **more})
    found = answer.json()
    return found["results"][0] if "results" in found else found


def code_of(result):
    """The code of a request's only error."""
    return result["code"] if "code" in result else result["errors"]["vqascore"]["code"]


@pytest.mark.parametrize("action", ["offload", "unload"])
async def test_a_model_goes_and_comes_back(client, checkpoints, action):
    """Meanwhile its metric is not ready, with the reason; the others serve.  Twice is as once."""
    before = await score(client, "before")
    for _ in range(2):
        assert {"name": "vqa", "state": STATES[action]}.items() <= (await change(client, action)).items()

    away = await score(client, "away")
    ready = await client.get("/readyz")
    assert "not_ready" == code_of(away)
    assert f"models.vqa has been taken away ({STATES[action]})" in str(away)
    assert 503 == ready.status_code
    other = await client.post("/score", json={"items": [item("a square")], "metrics": ["clipscore"]})
    assert "clipscore" in other.json()["results"][0]["scores"]

    for _ in range(2):
        assert "loaded" == (await change(client, "load"))["state"]
    assert before["scores"] == (await score(client, "before"))["scores"]
    assert (await score(client, "away"))["scores"]


async def test_answers_say_the_memory_before_and_after(client, checkpoints):
    """In bytes; the fakes have no weights."""
    answer = await change(client, "offload")

    assert {"name", "state", "device_bytes_before", "device_bytes_after"} == answer.keys()


async def test_calls_that_have_begun_are_answered_first(client, checkpoints, fakes):
    """The change waits for them; calls that come later are rejected."""
    with held(fakes["vqa"]):
        begun = asyncio.create_task(score(client))
        await until(lambda: fakes["vqa"].held)
        going = asyncio.create_task(change(client, "offload"))
        await reached(client, "leaving")
        late = await score(client, "late")
        assert not going.done()
    assert "not_ready" == code_of(late)
    assert (await begun)["scores"]
    assert "offloaded" == (await going)["state"]


@pytest.mark.parametrize("action", ["offload", "unload"])
async def test_a_request_under_way_is_finished_first(client, checkpoints, fakes, action):
    """Most of its items have not begun when the model begins to leave; all get a score."""
    body = {"items": [item(f"{number} squares") for number in range(128)], "metrics": ["vqascore"]}
    with held(fakes["vqa"]):
        begun = asyncio.create_task(client.post("/score", json=body))
        await until(lambda: fakes["vqa"].held)
        going = asyncio.create_task(change(client, action))
        await reached(client, "leaving")
        late = await score(client, "late")
    results = (await begun).json()["results"]

    assert 128 == len([result for result in results if "vqascore" in result["scores"]])
    assert "not_ready" == code_of(late)
    assert STATES[action] == (await going)["state"]


async def test_the_second_stage_of_a_ranking_is_finished_first(client, checkpoints, fakes):
    """Its model begins to leave during the first stage."""
    body = {"prompt": "a square", "images": [item("")["image"]] * 2, "metric": "vqascore"}
    with held(fakes["clip"]):
        begun = asyncio.create_task(
            client.post("/rank", json=body | {"cascade": {"metric": "clipscore", "keep": 1}})
        )
        await until(lambda: fakes["clip"].held)
        going = asyncio.create_task(change(client, "offload"))
        await reached(client, "leaving")
    ranking = (await begun).json()["ranking"]

    assert "vqascore" in ranking[0]["scores"]
    assert "offloaded" == (await going)["state"]


async def test_questions_are_written_and_asked_first(client, checkpoints, fakes):
    """The VQA model begins to leave while the questions about it are written."""
    body = {"items": [item("a red square")], "metrics": ["dsg"]}
    with held(fakes["questions"]):
        begun = asyncio.create_task(client.post("/score", json=body))
        await until(lambda: fakes["questions"].held)
        going = asyncio.create_task(change(client, "offload"))
        await reached(client, "leaving")
    [result] = (await begun).json()["results"]

    assert "dsg" in result["scores"]
    assert "offloaded" == (await going)["state"]


@pytest.mark.parametrize("client", [{"queue": {"wait_for_models": True}}], indirect=True)
async def test_a_set_that_a_later_request_began_is_written_for_one_that_is_finished_first(
    client, checkpoints, fakes
):
    """The second stage of a ranking under way joins the writing that waits for the leaving LLM."""
    picture, service = item("")["image"], service_of(client)
    body = {"prompt": "a red square", "images": [picture] * 2, "metric": "dsg"}
    with held(fakes["vqa"]):
        begun = asyncio.create_task(
            client.post("/rank", json=body | {"cascade": {"metric": "vqascore", "keep": 1}})
        )
        await until(lambda: fakes["vqa"].held)
        going = asyncio.create_task(client.post("/models/questions/offload"))
        await until(lambda: service.runtime.handles["questions"].backend.presence.state == "leaving")
        later = {"items": [item("a red square")], "metrics": ["dsg"], "timeout_ms": 20_000}
        other = asyncio.create_task(client.post("/score", json=later))
        await until(lambda: len(service.questions._flights) == 1)
    ranked, gone = await begun, await going
    other.cancel()

    assert "dsg" in ranked.json()["ranking"][0]["scores"]
    assert "offloaded" == gone.json()["state"]


async def test_a_second_change_meanwhile_is_a_conflict(client, checkpoints, fakes):
    """409, and the first one goes on."""
    with held(fakes["vqa"]):
        begun = asyncio.create_task(score(client))
        await until(lambda: fakes["vqa"].held)
        going = asyncio.create_task(change(client, "offload"))
        await reached(client, "leaving")
        assert "conflict" == (await change(client, "unload", 409))["code"]
    await begun
    assert "offloaded" == (await going)["state"]


@pytest.mark.parametrize("client", [{"queue": {"wait_for_models": True}}], indirect=True)
async def test_calls_wait_for_a_model_if_the_settings_say_so(client, checkpoints):
    """Until it is back, or until their deadline."""
    await change(client, "offload")
    late = await score(client, "late", timeout_ms=50)
    waiting = asyncio.create_task(score(client, "waits"))
    await asyncio.sleep(0)
    await change(client, "load")

    assert "deadline_exceeded" == code_of(late)
    assert (await waiting)["scores"]


async def test_a_model_that_comes_back_with_other_numbers_does_not_serve(client, checkpoints):
    """As after a checkpoint was overwritten.  It can be tried again."""
    await change(client, "unload")
    checkpoints[""] = OtherVqa

    assert "other numbers" in (await change(client, "load", 500))["detail"]
    assert "not_ready" == code_of(await score(client))
    checkpoints[""] = FakeVqa
    assert "loaded" == (await change(client, "load"))["state"]


async def test_a_load_of_another_revision_puts_it_in_place(client, checkpoints):
    """Its scores are those of the new one, and no cached score of the old one.  Twice is as once."""
    checkpoints["newer"] = OtherVqa
    before = await score(client)

    for _ in range(2):
        assert "loaded" == (await change(client, "load", revision="newer"))["state"]
    after = await score(client)
    assert before["scores"] != after["scores"]
    assert "newer" in (await client.get("/models")).text


async def test_a_model_that_is_away_comes_back_in_another_revision(client, checkpoints):
    """The one before is not loaded meanwhile."""
    checkpoints["newer"] = OtherVqa
    await change(client, "unload")
    del checkpoints[""]
    await change(client, "load", revision="newer")

    assert (await score(client))["scores"]
    assert "newer" in (await client.get("/models")).text


async def test_a_request_under_way_is_finished_by_the_model_that_it_began_with(client, checkpoints, fakes):
    """Most of its items have not begun; requests that come later are rejected until the new one serves."""
    checkpoints["newer"] = OtherVqa
    body = {"items": [item(f"{number} squares") for number in range(128)], "metrics": ["vqascore"]}
    with held(fakes["vqa"]):
        begun = asyncio.create_task(client.post("/score", json=body))
        await until(lambda: fakes["vqa"].held)
        loading = asyncio.create_task(change(client, "load", revision="newer"))
        await reached(client, "leaving")
        late = await score(client, "late")
    content = (await begun).json()
    await loading

    assert "not_ready" == code_of(late)
    assert 128 == len([result for result in content["results"] if "vqascore" in result["scores"]])
    assert "newer" not in content["models"]["vqa"]
    assert content["results"][0]["scores"] != (await score(client, "0 squares"))["scores"]


async def test_files_that_were_overwritten_under_one_label_are_another_model(client, checkpoints):
    """As of a trainer that saves to one directory, and loads one label; no score is an old one."""
    found = []
    for files, fake in (("a", FakeVqa), ("b", OtherVqa), ("b", OtherVqa), ("a", FakeVqa)):
        checkpoints["latest"] = partial(of_files, fake, files)
        await change(client, "load", revision="latest")
        found.append(await score(client))

    assert [{"vqascore": "miss"}, {"vqascore": "miss"}] == [each["cache"] for each in found[:2]]
    assert [{"vqascore": "hit"}, {"vqascore": "hit"}] == [each["cache"] for each in found[2:]]
    first, second, third, fourth = (each["scores"] for each in found)
    assert first == fourth != second == third


def of_files(fake, files):
    """A model of a directory with these *files*, under the label of the settings."""
    model = fake()
    model.info = replace(model.info, revision="latest", files=files)
    return model


@pytest.mark.parametrize("client", [{"queue": {"wait_for_models": True}}], indirect=True)
async def test_a_request_that_waited_begins_under_the_new_name(client, checkpoints, fakes):
    """Its scores are those of the new revision."""

    checkpoints["newer"] = OtherVqa
    with held(fakes["vqa"]):
        begun = asyncio.create_task(score(client))
        await until(lambda: fakes["vqa"].held)
        loading = asyncio.create_task(change(client, "load", revision="newer"))
        await reached(client, "leaving")
        waiting = asyncio.create_task(
            client.post("/score", json={"items": [item("late")], "metrics": ["vqascore"]})
        )
        await asyncio.sleep(0)
    await asyncio.gather(begun, loading)
    content = (await waiting).json()

    assert "newer" in content["models"]["vqa"]
    assert content["results"][0]["scores"] == (await score(client, "late"))["scores"]


async def test_a_revision_that_cannot_be_loaded_leaves_the_old_one(client, checkpoints):
    """422 with the reason."""
    before = await score(client)

    assert "no revision none" in (await change(client, "load", 422, revision="none"))["detail"]
    assert before["scores"] == (await score(client))["scores"]


@pytest.mark.parametrize("revision", ["a\0", "a\n", "\x7f", ""])
async def test_a_revision_is_one_line(client, revision):
    """422 with the place."""
    answer = await client.post("/models/vqa/load", json={"revision": revision})

    assert 422 == answer.status_code
    assert "/revision" == answer.json()["errors"][0]["pointer"]


async def test_an_unknown_model_is_not_found(client):
    """With those that there are."""
    answer = await client.post("/models/none/load", json={})

    assert 404 == answer.status_code
    assert "vqa" in answer.json()["detail"]


async def test_a_key_without_the_right_is_refused(client):
    """On the public port."""
    client._transport.app.state.operators = False
    for action in ("load", "offload", "unload"):
        answer = await client.post(f"/models/vqa/{action}", json={"revision": "x"})
        assert 403 == answer.status_code
