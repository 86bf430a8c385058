"""`POST /score`: what a caller sends, and what comes back."""

import asyncio
import math
from time import monotonic

import numpy as np
import pytest

from models.core.outcomes import Embedding
from models.families.fake.model import chance
from service.core.errors import ModelFault
from service.observability.instruments import STAGES
from service.scoring.plan import Workload
from service.web.routes import scoring as route
from tests.support.leaps import out_of_time
from tests.support.pictures import b64, item, png

pytestmark = pytest.mark.anyio

ROUNDED_MS = 0.01  # timings have two decimals


async def post(client, body, **more):
    return await client.post("/score", json=body, **more)


async def test_a_pair_gets_the_score_of_the_released_code(serve, fakes):
    """vqascore is the square root of P(Yes) * P(</s>|Yes)."""
    async with serve() as client:
        answer = (await post(client, {"items": [item(id="a")]})).json()

    [call] = fakes["vqa"].calls
    assert 'Does this figure show "a red square"? Please answer yes or no.' == call.question
    yes = chance(call.image.digest, call.question)
    assert "a" == answer["results"][0]["id"]
    assert math.sqrt(yes * 0.9) == pytest.approx(answer["results"][0]["scores"]["vqascore"])
    assert not answer["partial"]
    assert {"vqa": "fake-vqa@1"} == answer["models"]
    assert {*STAGES, "total"} == answer["timings_ms"].keys()


async def test_translation_and_admission_are_in_a_stage(serve, monkeypatch):
    """The body's translation ends `receive`, and admission begins `prepare`, so that the stages add up."""
    took_ms = {}

    def slow(stage, work):
        def repeated(*arguments):
            began = monotonic()
            found = [work(*arguments) for _ in range(500)]
            took_ms[stage] = 1000 * (monotonic() - began)
            return found[0]

        return repeated

    monkeypatch.setattr(route, "items_of", slow("receive", route.items_of))
    monkeypatch.setattr(Workload, "admit", slow("prepare", Workload.admit))
    async with serve() as client:
        timings = (await post(client, {"items": [item()]})).json()["timings_ms"]

    assert {"receive", "prepare"} == took_ms.keys()
    for stage, least in took_ms.items():
        assert least <= timings[stage] + ROUNDED_MS
    assert timings["receive"] + timings["prepare"] <= timings["total"] + 2 * ROUNDED_MS


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"normalization": "product"}, lambda yes: yes * 0.9),
        ({"normalization": "first_token"}, lambda yes: yes),
        ({"output": "logit"}, lambda yes: math.log(yes) - math.log(1 - yes)),
    ],
)
async def test_options_reach_the_other_forms_of_vqascore(serve, fakes, options, value):
    """Equation 3, P(Yes) alone, and the log-odds."""
    async with serve() as client:
        body = {"items": [item()], "options": {"vqascore": options}}
        answer = (await post(client, body)).json()

    [call] = fakes["vqa"].calls
    yes = chance(call.image.digest, call.question)
    assert value(yes) == pytest.approx(answer["results"][0]["scores"]["vqascore"])


@pytest.mark.shared
async def test_short_forms_score_like_the_long_one(serve):
    """An image may be a string, an object or a data: URI; one prompt may have many images."""
    data = b64(png())
    forms = [data, {"data": data}, f"data:image/png;base64,{data}"]
    async with serve() as client:
        long = (await post(client, {"items": [item(image=form) for form in forms]})).json()
        short = (await post(client, {"prompt": "a red square", "images": forms})).json()

    scores = {r["scores"]["vqascore"] for answer in (long, short) for r in answer["results"]}
    assert 1 == len(scores)
    assert [0, 1, 2] == [r["index"] for r in short["results"]]


@pytest.mark.shared
async def test_multipart_carries_images_as_bytes(serve):
    """The JSON stands in the part `request`; images are file parts, however large."""
    import json

    body = {"items": [item(image={"part": "one"}), item(image={"part": "two"})]}
    large = png("blue", (2000, 1500))
    async with serve() as client:
        files = {"one": ("a.png", png()), "two": ("b.png", large)}
        answer = await client.post("/score", data={"request": json.dumps(body)}, files=files)
        as_json = await post(client, {"items": [item(), item(image=b64(large))]})

    assert 200 == answer.status_code
    assert [r["scores"] for r in as_json.json()["results"]] == [r["scores"] for r in answer.json()["results"]]


@pytest.mark.shared
async def test_frames_of_one_item_are_averaged(serve):
    """A list of images is one item; its score is their mean."""
    frames = [b64(png("red")), b64(png("blue"))]
    async with serve() as client:
        apart = (await post(client, {"prompt": "a red square", "images": frames})).json()
        together = (await post(client, {"items": [item(image=frames)]})).json()

    alone = [r["scores"]["vqascore"] for r in apart["results"]]
    assert sum(alone) / 2 == pytest.approx(together["results"][0]["scores"]["vqascore"])


async def test_three_metrics_come_back_together_and_explained(serve, fakes):
    """`explain` shows what each number is made of."""
    async with serve() as client:
        body = {
            "items": [item("a red square and a blue circle")],
            "metrics": ["vqascore", "clipscore", "dsg"],
            "explain": True,
        }
        [entry] = (await post(client, body)).json()["results"]

    assert {"vqascore", "clipscore", "dsg"} == entry["scores"].keys()
    vqa = entry["details"]["vqascore"]
    assert vqa["p_yes"] + vqa["p_no"] == pytest.approx(vqa["label_mass"])
    assert math.log(vqa["p_yes"] / vqa["p_no"]) == pytest.approx(vqa["logit"])
    questions = entry["details"]["dsg"]["questions"]
    assert ["Is there a red square?", "Is there a blue circle?"] == [q["text"] for q in questions]
    assert sum(q["score"] for q in questions) / 2 == entry["scores"]["dsg"]
    assert entry["details"]["dsg"]["question_set"].startswith("sha256:")
    assert dict.fromkeys(("vqascore", "clipscore", "dsg"), "miss") == entry["cache"]


@pytest.mark.shared
@pytest.mark.parametrize(("scale", "factor"), [("hessel", 2.5), ("geneval", 100)])
async def test_a_scaled_clipscore_is_so_many_times_the_cosine(serve, scale, factor):
    """`scale: "hessel"` gives 2.5 * max(cos, 0), and `"geneval"` 100 * max(cos, 0)."""
    body = {"items": [item()], "metrics": ["clipscore"]}
    async with serve() as client:
        plain = (await post(client, body)).json()["results"][0]["scores"]["clipscore"]
        body["options"] = {"clipscore": {"scale": scale}}
        scaled = (await post(client, body)).json()["results"][0]["scores"]["clipscore"]

    assert factor * plain == pytest.approx(scaled)


async def test_requests_in_flight_share_the_next_batch(serve, fakes):
    """What arrives while the device is busy is the next batch, whoever sent it."""
    vqa = fakes["vqa"]
    async with serve() as client:
        vqa.hold.clear()
        tasks = [await running(vqa, client, item("a thing"))]
        tasks += [asyncio.create_task(post(client, {"items": [item(f"{n}")]})) for n in range(8)]
        await until(lambda: depth(client, 8))
        vqa.hold.set()
        await asyncio.gather(*tasks)

    assert [1, 8] == [len(batch) for batch in vqa.batches[2:]]  # after two of the warm-up


async def running(model, client, wanted):
    """A request whose batch the held model is working on."""
    task = asyncio.create_task(post(client, {"items": [wanted]}))
    await until(lambda: asyncio.sleep(0, model.held))
    return task


async def until(true):
    """Let others work until *true* says so; a test that hangs is worse than one that fails."""
    async with asyncio.timeout(100):
        while not await true():
            await asyncio.sleep(0.001)


async def depth(client, wanted):
    text = (await client.get("/metrics")).text
    return f'scoregate_queue_depth{{lane="interactive",model="vqa"}} {wanted:.1f}' in text


async def test_a_model_that_fails_on_one_call_scores_its_neighbours(serve, fakes):
    """A failing batch is halved until the bad call stands alone."""
    fakes["vqa"].fault = lambda call: RuntimeError("no") if "cursed" in call.question else None
    prompts = ["a dog", "a cursed dog", "a cat"]
    async with serve() as client:
        answer = (await post(client, {"items": [item(prompt) for prompt in prompts]})).json()

    assert answer["partial"]
    assert [True, False, True] == ["vqascore" in r["scores"] for r in answer["results"]]
    assert ModelFault.code == answer["results"][1]["errors"]["vqascore"]["code"]


async def test_the_deadline_is_504_when_nothing_has_a_score(serve, fakes):
    """A request whose time runs out says so and leaves the queue."""
    async with serve() as client:
        fakes["vqa"].hold.clear()
        answer = await out_of_time(
            post(client, {"items": [item()], "timeout_ms": 30_000}), lambda: fakes["vqa"].held
        )
        fakes["vqa"].hold.set()

    assert (504, "deadline_exceeded") == (answer.status_code, answer.json()["code"])
    assert "in the stage model" in answer.json()["detail"]


async def test_the_deadline_keeps_what_was_scored(serve, fakes):
    """200 with `deadline_exceeded` for what is missing."""
    async with serve() as client:
        fakes["questions"].hold.clear()
        body = {"items": [item()], "metrics": ["vqascore", "dsg"], "timeout_ms": 500}
        answer = await post(client, body)
        fakes["questions"].hold.set()

    [entry] = answer.json()["results"]
    assert 200 == answer.status_code
    assert "vqascore" in entry["scores"]
    assert "deadline_exceeded" == entry["errors"]["dsg"]["code"]


async def test_the_timeout_may_stand_in_a_header(serve, fakes):
    """X-Request-Timeout-Ms counts where the body has none; nonsense in it is refused in any case."""
    async with serve() as client:
        fakes["vqa"].hold.clear()
        late = await post(client, {"items": [item()]}, headers={"X-Request-Timeout-Ms": "30"})
        wrong = [
            await post(client, body, headers={"X-Request-Timeout-Ms": "soon"})
            for body in ({"items": [item()]}, {"items": [item()], "timeout_ms": 1000})
        ]
        fakes["vqa"].hold.set()

    assert [504, 422, 422] == [answer.status_code for answer in (late, *wrong)]


async def test_a_full_lane_is_429_with_the_time_to_wait(serve, fakes):
    """The queue is bounded by cost; the refusal says when to come back."""
    vqa = fakes["vqa"]
    async with serve(queue={"max_cost": 20}) as client:
        await post(client, {"items": [item()]})
        vqa.hold.clear()
        tasks = [await running(vqa, client, item("0"))]
        tasks += [asyncio.create_task(post(client, {"items": [item(f"{n}")]})) for n in (1, 2)]
        await until(lambda: depth(client, 2))
        refused = await post(client, {"items": [item()]})
        bulk = asyncio.create_task(post(client, {"items": [item()], "priority": "bulk"}))
        await asyncio.sleep(0)
        vqa.hold.set()
        answers = await asyncio.gather(*tasks, bulk)

    assert (429, "lane_full") == (refused.status_code, refused.json()["code"])
    assert refused.json()["retry_after_s"] >= 0
    assert int(refused.headers["Retry-After"]) >= 1
    assert [200] * 4 == [a.status_code for a in answers]


async def test_a_caller_who_leaves_takes_his_calls_along(serve, fakes):
    """Cancelled calls are dropped before the device sees them."""
    vqa = fakes["vqa"]
    async with serve() as client:
        vqa.hold.clear()
        first = await running(vqa, client, item("first"))
        gone = asyncio.create_task(post(client, {"items": [item("gone")]}))
        await until(lambda: depth(client, 1))
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        vqa.hold.set()
        assert 200 == (await first).status_code
        await post(client, {"items": [item("last")]})

    assert ["first", "last"] == [call.question.split('"')[1] for call in vqa.calls]


async def test_a_score_that_is_no_number_is_an_error(serve, fakes):
    """No NaN leaves the service, of a model that gave numbers at its start."""
    async with serve() as client:
        fakes["clip"].answer = lambda call: Embedding(np.array([math.nan, 1.0], "float32"))
        answer = (await post(client, {"items": [item()], "metrics": ["clipscore"]})).json()

    assert {} == answer["results"][0]["scores"]
    assert "model_fault" == answer["results"][0]["errors"]["clipscore"]["code"]
