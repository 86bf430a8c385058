"""`/models/{name}/shadow`: a second model scores a share of the traffic, and no caller notices."""

import asyncio
import json
from dataclasses import replace

import pytest

from models.families import fake
from service.core.errors import Overloaded
from service.scoring.shadows import shadow
from tests.support.app import service_of
from tests.support.fakes import new_fakes
from tests.support.pictures import b64, item, png
from tests.support.refusals import refused
from tests.support.revisions import OtherVqa
from tests.support.service import value_of

pytestmark = pytest.mark.anyio

ITEMS = [item(f"a square {number}") for number in range(40)]


@pytest.fixture
def fakes():
    return {**new_fakes(), "newer": OtherVqa()}


@pytest.fixture
async def client(serve):
    async with serve() as client:
        client._transport.app.state.operators = True
        yield client


async def start(client, **body):
    answer = await client.post("/models/vqa/shadow", json={"revision": "newer", "share": 1, **body})
    assert 200 == answer.status_code, answer.text
    return answer.json()


async def score(client, items=ITEMS, metrics=("vqascore",), **more):
    body = {"items": items, "metrics": metrics, **more}
    answer = await client.post("/score", json=body, headers={"X-Request-Id": "same"})
    assert 200 == answer.status_code, answer.text
    return {**answer.json(), "timings_ms": None}


async def compared(client, query=""):
    """The comparison, once nothing is pending."""
    running = service_of(client).shadows.of("vqa")
    await running._tasks.wait()
    return (await client.get(f"/models/vqa/shadow{query}")).json()


async def test_a_shadow_compares_the_scores_of_both_models(client, fakes):
    """A model that answers otherwise: as many pairs as items, and the threshold that passes as many."""
    await start(client)
    scores = [each["scores"]["vqascore"] for each in (await score(client))["results"]]
    answer = await compared(client, "?threshold=0.5")

    assert {"ok": 40, "dropped": 0, "failed": 0} == answer["counts"]
    figures = answer["metrics"]["vqascore"]["figures"]
    again = [
        (fake.chance(call.image.digest, f"{call.question} Really?") * 0.9) ** 0.5
        for call in fakes["vqa"].calls
    ]
    assert sum(scores) / 40 == pytest.approx(figures["served"]["mean"])
    assert sum(again) / 40 == pytest.approx(figures["shadow"]["mean"])
    [threshold] = figures["thresholds"]
    assert sum(each >= 0.5 for each in scores) == sum(each >= threshold["shadow"] - 1e-9 for each in again)


async def test_answers_are_the_same_with_a_shadow_and_without(client):
    """Every field but the timings; the shadow's calls are in the bulk lane of its own model."""
    asked = {"metrics": ["vqascore", "dsg", "clipscore"], "explain": True}
    cached = (await score(client, **asked), await score(client, **asked))[1]
    await start(client)
    with_shadow = await score(client, **asked)
    answer = await compared(client)

    assert json.dumps(cached) == json.dumps(with_shadow)
    assert {"vqascore", "dsg"} == answer["metrics"].keys()
    shown = (await client.get("/metrics")).text
    assert 0 < value_of(shown, 'scoregate_calls_total{lane="bulk",model="newer",result="ok"}')
    assert 0 == value_of(shown, 'scoregate_calls_total{lane="interactive",model="newer",result="ok"}')
    assert 0 == value_of(shown, 'scoregate_stage_duration_seconds_count{lane="bulk",stage="model"}')


async def test_a_share_of_the_inputs_is_scored_again(client, fakes):
    """A quarter of 40."""
    await start(client, share=0.25)
    await score(client)

    assert 10 == (await compared(client))["counts"]["ok"] == len(fakes["newer"].calls)


async def test_inputs_that_failed_are_not_scored_again(client, fakes):
    """A picture that cannot be decoded, and a model that fails."""
    await start(client)
    fakes["vqa"].fault = lambda call: ValueError("broken") if "bad" in call.question else None
    await score(client, [item("a good one"), item("a bad one"), item(image=b64(b"no picture"))])

    assert {"ok": 1, "dropped": 0, "failed": 0} == (await compared(client))["counts"]


async def test_a_shadow_that_fails_is_counted_and_no_caller_notices(client, fakes):
    """The served model answers."""
    await start(client)
    fakes["newer"].fault = lambda call: ValueError("broken") if "bad" in call.question else None
    report = await score(client, [item("a bad one"), item("a good one")])

    assert not report["partial"]
    assert {"ok": 1, "dropped": 0, "failed": 1} == (await compared(client))["counts"]


async def test_a_full_lane_drops_the_shadow_and_not_the_callers(client, monkeypatch):
    """The bulk lane of the new model takes nothing."""

    def full(lane, deadline, demand=None):
        raise Overloaded("full")

    await start(client)
    monkeypatch.setattr(service_of(client).runtime.handles["newer"].backend, "admit", full)
    report = await score(client)

    assert not report["partial"]
    assert {"ok": 0, "dropped": 40, "failed": 0} == (await compared(client))["counts"]


@pytest.mark.parametrize(("method", "failed"), [("take", 0), ("_rescored", 1)])
async def test_a_defect_of_the_shadow_is_logged_and_no_caller_notices(
    client, monkeypatch, caplog, method, failed
):
    """Whether it is in the request or in the background."""

    def defect(*_):
        raise TypeError("a defect")

    monkeypatch.setattr(shadow.Shadow, method, defect)
    await start(client)
    report = await score(client, ITEMS[:1])

    assert not report["partial"]
    assert failed == (await compared(client))["counts"]["failed"]
    assert "shadow failed" in caplog.messages


@pytest.mark.parametrize(("limit", "value"), [("MAX_PENDING", 0), ("PART", 2**60)])
async def test_no_more_inputs_wait_than_there_is_room_for(client, monkeypatch, limit, value):
    """By their number and by their bytes; the others are dropped."""
    monkeypatch.setattr(shadow, limit, value)
    await start(client)
    report = await score(client, ITEMS[:2])

    assert not report["partial"]
    assert {"ok": 0, "dropped": 2, "failed": 0} == (await compared(client))["counts"]


async def test_all_memory_is_given_back(client):
    """Of pixels and of the files' bytes."""
    await start(client)
    await score(client, ITEMS[:3])
    await compared(client)

    assert (0, 0) == (service_of(client).memory.held, service_of(client).pictures.pixels.held)


async def test_frames_and_grids_are_scored_again(client, fakes):
    """Each frame is an input, and so is a grid of two."""
    await start(client)
    frames = {"prompt": "a square", "image": [b64(png("red")), b64(png("blue"))]}
    await score(client, [frames])
    await score(client, [frames], options={"vqascore": {"frames": "grid"}})
    digests = {call.image.digest for call in fakes["vqa"].calls}

    assert 3 == (await compared(client))["counts"]["ok"]
    assert digests == {call.image.digest for call in fakes["newer"].calls}


async def test_the_end_of_a_shadow_drops_what_waits(client, monkeypatch):
    """Nothing is pending afterwards, and there is nothing to read."""

    async def forever(*_):
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(shadow.Shadow, "_rescored", forever)
    await start(client)
    await score(client, ITEMS[:2])
    running = service_of(client).shadows.of("vqa")
    pending = running.pending
    ended = await client.delete("/models/vqa/shadow")

    assert (2, 0, 0) == (pending, running.pending, ended.json()["pending"])
    assert 0 == service_of(client).memory.held
    refused(await client.get("/models/vqa/shadow"), 404, "not_found")


async def test_starting_it_again_changes_the_share_and_keeps_the_pairs(client):
    """A request that is sent twice does no harm."""
    await start(client)
    await score(client, ITEMS[:3])
    await compared(client)
    again = await start(client, share=0.5)

    assert (0.5, 3) == (again["share"], again["counts"]["ok"])


async def test_no_pairs_are_added_once_a_model_was_replaced(client):
    """They would mix two models."""
    await start(client)
    backend = service_of(client).runtime.handles["newer"].backend
    backend.info = replace(backend.info, revision="2")
    await score(client, ITEMS[:3])
    answer = await compared(client)

    assert (True, 0) == (answer["outdated"], sum(answer["counts"].values()))
    assert not (await start(client))["outdated"]


async def test_the_page_shows_the_figures_without_scripts(client):
    """Its policy allows its own style sheet only."""
    await start(client)
    await score(client)
    await compared(client)
    page = await client.get("/models/vqa/shadow", headers={"Accept": "text/html,*/*"})

    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert "<svg" in page.text
    assert "<script" not in page.text
    assert "40 ok, 0 dropped, 0 failed" in page.text


async def test_the_figures_are_prometheus_metrics(client):
    """Quantiles of both models, the difference and the correlations."""
    await start(client)
    await score(client)
    figures = (await compared(client))["metrics"]["vqascore"]["figures"]
    shown = (await client.get("/metrics")).text
    labels = 'metric="vqascore",model="vqa"'

    assert figures["shadow"]["quantiles"]["0.9"] == value_of(
        shown, f'scoregate_shadow_score{{{labels},quantile="0.9",revision="shadow"}}'
    )
    assert figures["difference"]["sd"] == value_of(
        shown, f'scoregate_shadow_difference{{figure="sd",{labels}}}'
    )
    assert figures["spearman"] == value_of(
        shown, f'scoregate_shadow_correlation{{method="spearman",{labels}}}'
    )
    assert 40 == value_of(shown, 'scoregate_shadow_scores_total{model="vqa",result="ok"}')


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/models/nothing/shadow", {"revision": "newer"}, 404, "not_found"),
        ("/models/vqa/shadow", {"revision": "clip"}, 422, "invalid"),
        ("/models/vqa/shadow", {"revision": "vqa"}, 422, "invalid"),
        ("/models/questions/shadow", {"revision": "newer"}, 422, "invalid"),
        ("/models/vqa/shadow", {"revision": "newer", "share": 0}, 422, "invalid"),
    ],
)
async def test_what_cannot_be_a_shadow_is_refused(client, path, body, status, code):
    """Another role, the model itself, the question LLM, and no share at all."""
    refused(await client.post(path, json=body), status, code)


@pytest.mark.parametrize("query", ["threshold=high", "threshold=nan", "format=xml"])
async def test_a_wrong_query_is_refused_by_its_name(client, query):
    """422."""
    await start(client)
    answer = await client.get(f"/models/vqa/shadow?{query}")

    assert query.partition("=")[0] in refused(answer, 422, "invalid")["detail"]


async def test_callers_may_not_start_one(serve):
    """It needs the operator's port, or a key with that right."""
    async with serve() as client:
        answer = await client.post("/models/vqa/shadow", json={"revision": "newer"})

    refused(answer, 403, "forbidden")
