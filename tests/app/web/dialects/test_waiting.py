"""A trainer that is refused may die of it: requests wait for room until their deadline."""

import asyncio
import pickle

import pytest

from service.core.errors import LaneFull, NotReady, Overloaded, UpstreamFailed
from service.web.dialects.scoring import MAX_RETRY_AFTER_S
from tests.app.web.dialects.conftest import PICTURES, PROMPTS, Flaky
from tests.support.fake_service import key_table
from tests.support.leaps import out_of_time
from tests.support.pictures import b64

pytestmark = pytest.mark.anyio

BODIES = {
    "/compute": {"prompt": PROMPTS, "image": [b64(picture) for picture in PICTURES]},
    "/unirl/score": {
        "requests": [
            {"history": [{"text": prompt, "image_b64": b64(picture)}], "required_rewards": ["vqascore"]}
            for prompt, picture in zip(PROMPTS, PICTURES, strict=True)
        ]
    },
    "/get_reward": {
        "query": [f"{prompt}</s>" for prompt in PROMPTS],
        "prompts": [""] * len(PROMPTS),
        "labels": [{"image": b64(picture)} for picture in PICTURES],
    },
    "/v1/rerank": {"query": PROMPTS[0], "documents": [b64(picture) for picture in PICTURES]},
    "/v1/score": {"text_1": PROMPTS, "text_2": [b64(picture) for picture in PICTURES]},
}
SOON = {"X-Request-Timeout-Ms": "30000"}
PICKLED = pickle.dumps({"images": PICTURES, "prompts": PROMPTS})


async def post(apps, path, **more):
    if path == "/":
        return await apps.pickled.post(path, content=PICKLED, **more)
    return await apps.private.post(path, json=BODIES[path], **more)


@pytest.fixture
def parts():
    return {"engine": Flaky}


REFUSALS = [Overloaded("full"), NotReady("away"), UpstreamFailed("away"), LaneFull("full", retry_after_s=60)]


@pytest.mark.parametrize("path", ["/", *BODIES])
async def test_what_is_refused_for_its_load_is_asked_again(dialects, path):
    """Whatever the refusal is."""
    async with dialects() as apps:
        expected = (await post(apps, path)).content
        engine = apps.service.engine
        engine.refusals = [*REFUSALS]
        answer = await post(apps, path)

    assert [4] * 6 == engine.sizes
    assert 200 == answer.status_code
    if path in ("/", "/compute", "/unirl/score"):  # the others have an id
        assert expected == answer.content


@pytest.mark.parametrize("path", ["/", *BODIES])
async def test_what_lacks_a_score_alone_is_asked_again(dialects, path):
    async with dialects() as apps:
        engine = apps.service.engine
        engine.refusals, engine.refused = [Overloaded("full"), NotReady("away")], ("vqascore",)
        answer = await post(apps, path)

    assert [4, 1, 1] == engine.sizes
    assert 200 == answer.status_code


async def test_a_score_that_is_there_is_not_asked_for_again(dialects):
    """Of two rewards, one is refused: its like alone is asked again, and the other keeps its score."""
    async with dialects() as apps:
        engine = apps.service.engine
        engine.refusals, engine.refused = [Overloaded("full")], ("clipscore",)
        rewards = ("vqascore", "clipscore")
        entries = [{**entry, "required_rewards": rewards} for entry in BODIES["/unirl/score"]["requests"]]
        answer = await apps.private.post("/unirl/score", json={"requests": entries})

    assert [(4, rewards), (1, ("clipscore",))] == engine.asked
    assert [set(rewards)] * 4 == [result.keys() for result in answer.json()["results"]]


@pytest.mark.parametrize("path", ["/", *BODIES])
async def test_after_the_deadline_the_answer_says_when_to_come_again(dialects, path):
    """503 with Retry-After, which urllib3 waits for, and nothing that could be taken for a score."""
    async with dialects() as apps:
        engine = apps.service.engine
        engine.refusals = [Overloaded("the lane is full")] * 1000
        answer = await out_of_time(post(apps, path, headers=SOON), lambda: len(engine.asked) > 2)

    assert 503 == answer.status_code
    assert 1 <= int(answer.headers["retry-after"]) <= 1.25 * MAX_RETRY_AFTER_S
    body = pickle.loads(answer.content) if path == "/" else answer.json()
    assert "the lane is full" in str(body)
    assert not body.keys() & {"scores", "outputs", "rewards", "results", "data"}


@pytest.mark.parametrize("path", ["/", "/compute", "/unirl/score"])
async def test_a_model_that_is_too_slow_is_no_504(dialects, fakes, path):
    """A bare 504 would end a rank."""
    async with dialects() as apps:
        fakes["vqa"].hold.clear()
        answer = await out_of_time(post(apps, path, headers=SOON), lambda: fakes["vqa"].held)
        fakes["vqa"].hold.set()

    assert 503 == answer.status_code
    assert "retry-after" in answer.headers


async def test_a_burst_of_more_than_the_lane_holds_is_answered(dialects, fakes):
    """40 requests where two can wait: none is shed, and each has its own score."""
    vqa = fakes["vqa"]
    bodies = [{"images": [PICTURES[n % 4]], "prompts": [f"a {n}"], "metadata": {}} for n in range(40)]
    async with dialects(queue={"max_cost": 20}) as apps:
        vqa.hold.clear()
        burst = [asyncio.create_task(apps.unpickled(body)) for body in bodies]
        while not vqa.held:
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)
        vqa.hold.set()
        answers = await asyncio.gather(*burst)
        expected = [await apps.score(body["images"][0], body["prompts"][0]) for body in bodies]
        refused = (await apps.main.get("/metrics")).text

    assert [(200, [score]) for score in expected] == [
        (status, answer["scores"]) for status, answer in answers
    ]
    assert 'scoregate_rejections_total{reason="overloaded"} 0.0' in refused  # nobody was sent away


async def test_what_waits_may_take_so_much_memory_and_no_more(dialects):
    """A body of the largest size always fits; what is beyond is told to come again."""
    size = 700_000
    body = {"images": [PICTURES[0] + bytes(size)], "prompts": ["a"]}
    async with dialects(server={"body_limit_mb": 1, "unfinished_bodies_mb": 1}) as apps:
        engine = apps.service.engine
        engine.refusals = [Overloaded("full")] * 100_000
        waits = asyncio.create_task(apps.pickled.post("/", content=pickle.dumps(body)))
        while len(engine.asked) < 2:
            await asyncio.sleep(0.001)
        refused = await apps.pickled.post("/", content=pickle.dumps(body))
        engine.refusals.clear()
        answered = await waits
        engine.refusals.append(Overloaded("full"))
        again = await apps.pickled.post("/", content=pickle.dumps(body))

    assert 503 == refused.status_code
    assert "retry-after" in refused.headers
    assert [200, 200] == [answered.status_code, again.status_code]


async def test_who_leaves_while_waiting_is_asked_for_no_more(dialects):
    async with dialects() as apps:
        engine = apps.service.engine
        engine.refusals = [Overloaded("full")] * 100_000
        waits = asyncio.create_task(post(apps, "/"))
        while len(engine.asked) < 3:
            await asyncio.sleep(0.001)
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)
        left = len(engine.asked)
        await asyncio.sleep(0.1)

    assert left == len(engine.asked)


async def test_what_is_asked_again_is_charged_to_a_quota_once(dialects, tmp_path):
    """Four pictures of a key that may have four, and one of them is asked for twice."""
    keys = tmp_path / "keys"
    keys.write_text(key_table("trainer", "k", "quota = 4"), "utf-8")
    async with dialects(server={"api_keys_file": str(keys)}) as apps:
        engine = apps.service.engine
        engine.refusals, engine.refused = [Overloaded("full")], ("vqascore",)
        headers = {"Authorization": "Bearer k", "X-Request-Timeout-Ms": "5000"}
        answer = await apps.main.post("/compute", json=BODIES["/compute"], headers=headers)

    assert [4, 1] == engine.sizes
    assert 4 == len(answer.json()["rewards"])


async def test_keys_hold_on_the_main_port_and_not_on_the_dialects_own(dialects, tmp_path):
    """Those clients send none.  Flow-Factory's would send again after a 401, so its error has 200."""
    keys = tmp_path / "keys"
    keys.write_text(key_table("a", "k"), "utf-8")
    async with dialects(server={"api_keys_file": str(keys)}) as apps:
        main = [await apps.main.post(path, json=body) for path, body in BODIES.items()]
        own = [(await post(apps, path)).status_code for path in ("/", *BODIES)]

    assert [200 if path == "/compute" else 401 for path in BODIES] == [each.status_code for each in main]
    assert all("no valid key" in each.text for each in main)
    assert {200} == {*own}


async def test_what_is_too_large_for_the_lane_is_refused_for_good(dialects):
    async with dialects(queue={"max_cost": 20}) as apps:
        await apps.unpickled({"images": PICTURES, "prompts": PROMPTS})  # what a token costs is known then
        large = {"images": PICTURES * 30, "prompts": [prompt * 100 for prompt in PROMPTS] * 30}
        answer = await apps.pickled.post("/", content=pickle.dumps(large))

    assert 413 == answer.status_code
    assert "retry-after" not in answer.headers
