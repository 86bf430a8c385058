"""Models' answers in a Redis that services share: exact, bounded in time, and never a reason to fail."""

import asyncio
import logging
import math

import numpy as np
import orjson
import pytest

from models.core.calls import TextCall
from models.core.outcomes import (
    CallResult,
    Choices,
    Detection,
    Detections,
    Embedding,
    Entailment,
    FirstToken,
    Likelihood,
    Line,
    Reading,
    Reward,
)
from service.core.redis import RedisClient
from service.observability.instruments import Instruments
from service.serving.cache import OutcomeCache
from service.serving.redis_cache import RedisCache
from tests.support.pictures import item
from tests.support.redis_server import PATIENT_S

pytestmark = pytest.mark.anyio

SCORES = "scoregate:scores:"
SOUND = Likelihood((-0.25, -0.5), -0.25, -1.5)


@pytest.fixture
def shared(redis, tmp_path):
    """Settings that keep models' answers in the Redis, and question sets elsewhere."""
    return {"questions": f"sqlite:///{tmp_path}/q", "scores": redis.url}


async def score(client, *items, metrics=("vqascore", "clipscore")):
    body = {"items": list(items), "metrics": list(metrics)}
    answer = await client.post("/score", json=body)
    assert 200 == answer.status_code
    return answer.json()["results"]


def calls(fakes):
    return {name: len(fakes[name].calls) for name in ("vqa", "clip")}


async def test_a_pair_that_one_service_scored_reaches_no_model_of_another(serve, fakes, shared):
    """Same scores to the last bit, and each of them a hit."""
    async with serve(cache=shared) as one, serve(cache=shared) as two:
        [first] = await score(one, item())
        asked = calls(fakes)
        [second] = await score(two, item())

    assert first["scores"] == second["scores"]
    assert {"vqascore": "hit", "clipscore": "hit"} == second["cache"]
    assert {"vqa": 1, "clip": 2} == asked == calls(fakes)


async def test_answers_are_written_before_the_service_ends_and_expire(serve, shared, redis):
    """One key a call under `scoregate:scores:`, kept for `scores_ttl_s`."""
    async with serve(cache={**shared, "scores_ttl_s": 1000}) as client:
        await score(client, item())

    names = [name.decode() for name in redis.held()]
    assert 3 == len(names)
    assert all(name.startswith(SCORES) for name in names)
    assert all(900 < redis.do("TTL", name) <= 1000 for name in names)


async def test_all_calls_of_a_group_are_looked_up_in_one_trip(serve, shared, redis):
    """The questions about a picture, say; each has a key of its own."""
    questions = [{"id": n, "text": f"Is it {n}?"} for n in range(1, 9)]
    body = {"items": [item()], "metrics": ["dsg"], "options": {"dsg": {"question_set": questions}}}
    async with serve(cache=shared) as client:
        await client.post("/score", json=body)
    stats = redis.do("INFO", "commandstats")

    assert (1, 8) == (stats["cmdstat_mget"]["calls"], stats["cmdstat_set"]["calls"])
    assert 8 == len(redis.held())


async def test_what_is_no_answer_is_a_miss_and_replaced(serve, fakes, shared, redis):
    """The score is the right one whatever stands there."""
    async with serve(cache=shared) as client:
        [right] = await score(client, item())
    names = redis.held()
    for name in names:
        redis.do("SET", name, b'{"kind": "likelihood", "log_probs": [-0.1], "log_p_yes": -0.1, "log_p_no"')
    async with serve(cache=shared) as client:
        [again] = await score(client, item())

    assert right["scores"] == again["scores"]
    assert {"vqascore": "miss", "clipscore": "miss"} == again["cache"]
    assert names == redis.held()
    assert all(CallResult.loads(redis.do("GET", name)) is not None for name in names)


FORGED = [
    Likelihood((-0.1,), 5.0, -1.0),
    Likelihood((0.25,), -0.1, -1.0),
    Choices(((-1.0,), (-0.5, 0.5))),
    FirstToken((-1.0, 1e-6), (1, 2)),
    Embedding(np.full(512, 0.2, np.float32)),
    Embedding(np.zeros(512, np.float32)),
    Entailment(1.25),
    Reading((Line("a", ((0.0, 0.0),) * 4, 1.5),)),
    Detections((Detection("cat", 1.5, (0.0, 0.0, 1.0, 1.0)),)),
    Reward((math.inf,)),
]


@pytest.mark.parametrize("outcome", FORGED, ids=lambda each: each.kind)
async def test_a_value_beyond_its_range_is_a_miss_that_is_counted_and_logged(redis, caplog, outcome):
    """Whoever wrote it: no score may be made of it."""
    instruments, key = Instruments([]), TextCall("a").key(("vqa", "m@1", "float32"))
    redis.do("SET", SCORES + key.hex(), orjson.dumps({"kind": outcome.kind, **outcome.to_json()}))
    async with RedisClient("scores", redis.url, timeout_s=PATIENT_S) as client:
        cache = RedisCache(OutcomeCache(10**6), client, 60, instruments)
        found = await cache.find([key])
        again = cache._memory.get(key)

    assert ([None], None) == (found, again)
    assert 1 == instruments.registry.get_sample_value("scoregate_cache_errors_total", {"cache": "scores"})
    assert ["values in Redis under scoregate:scores: are no outcome of a model: 1"] == [
        record.getMessage() for record in caplog.records if record.name == "scoregate.cache"
    ]


async def test_a_forged_logarithm_gives_no_score_beyond_one(serve, shared, redis):
    """It gave a vqascore of 148.4."""
    async with serve(cache=shared) as client:
        [right] = await score(client, item(), metrics=["vqascore"])
    [name] = redis.held()
    redis.do("SET", name, Likelihood((5.0,), 5.0, -1.0).dumps())
    async with serve(cache=shared) as client:
        [again] = await score(client, item(), metrics=["vqascore"])

    assert right["scores"] == again["scores"]
    assert {"vqascore": "miss"} == again["cache"]


async def test_a_key_that_holds_no_string_is_a_miss(serve, shared, redis):
    """MGET says nothing of it, and SET replaces it."""
    async with serve(cache=shared) as client:
        [right] = await score(client, item())
    for name in redis.held():
        redis.do("DEL", name)
        redis.do("LPUSH", name, "somebody's")
    async with serve(cache=shared) as client:
        [again] = await score(client, item())

    assert right["scores"] == again["scores"]
    assert {b"string"} == {redis.do("TYPE", name) for name in redis.held()}


async def test_without_its_redis_the_model_answers(serve, fakes, own_redis, tmp_path, caplog):
    """No error, one line in the log, and what is in memory is still a hit."""
    cache = {"questions": f"sqlite:///{tmp_path}/q", "scores": own_redis.url}
    async with serve(cache=cache) as client:
        [before] = await score(client, item())
        own_redis.kill()
        [known] = await score(client, item())
        new = [(await score(client, item(f"a blue dog {n}")))[0] for n in range(5)]
        ready = (await client.get("/readyz")).json()
        metrics = (await client.get("/metrics")).text

    assert before["scores"] == known["scores"]
    assert {"vqascore": "hit", "clipscore": "hit"} == known["cache"]
    assert ["miss"] * 5 == [result["cache"]["vqascore"] for result in new]
    assert 1 + 5 == calls(fakes)["vqa"]
    assert (True, {"scores": "cannot be used: ConnectionError"}) == (ready["ready"], ready["caches"])
    assert 'scoregate_cache_errors_total{cache="questions"} 0.0' in metrics
    assert 'scoregate_cache_errors_total{cache="scores"} 0.0' not in metrics
    assert [logging.WARNING] == [r.levelno for r in caplog.records if r.name == "scoregate.redis"]


async def test_another_way_to_prepare_a_picture_is_another_answer(serve, fakes, shared):
    """Services share answers only where their models are set to give the same."""
    families = {"clip": "open_clip", "vqa": "clip_flant5", "questions": "transformers"}
    models = {name: {"family": family} for name, family in families.items()}
    other = {**models, "clip": {**models["clip"], "resize_mode": "squash"}}
    async with serve(cache=shared, models=models) as one, serve(cache=shared, models=other) as two:
        await score(one, item())
        [second] = await score(two, item())

    assert {"vqascore": "hit", "clipscore": "miss"} == second["cache"]


async def test_question_llms_answers_are_not_kept_here(serve, shared, redis):
    """Question sets have a store of their own."""
    async with serve(cache=shared) as client:
        await client.post("/questions", json={"prompts": ["a red dog"]})
    stats = redis.do("INFO", "commandstats")

    assert [] == redis.held()
    assert "cmdstat_mget" not in stats


class Slow:
    """A client of a Redis that holds nothing, and does what it is asked when it is let go."""

    def __init__(self, server):
        self.server, self.asked, self.go = server, asyncio.Event(), asyncio.Event()

    async def do(self, work):
        self.asked.set()
        await self.go.wait()
        async with RedisClient("scores", self.server.url, timeout_s=PATIENT_S) as client:
            return await client.do(work)


async def test_closing_waits_for_what_is_not_written_yet(redis):
    """A device's last batch is not lost."""
    slow = Slow(redis)
    cache = RedisCache(OutcomeCache(10**6), slow, 60, Instruments([]))
    cache.keep(b"key", SOUND)
    closing = asyncio.create_task(cache.aclose())
    await slow.asked.wait()
    slow.go.set()
    await closing

    assert [f"{SCORES}{b'key'.hex()}".encode()] == redis.held()


async def test_what_the_model_answers_while_redis_is_asked_is_found(redis):
    """So that an equal call is not begun again."""
    slow, key = Slow(redis), TextCall("a").key(("vqa", "m@1", "float32"))
    cache = RedisCache(OutcomeCache(10**6), slow, 60, Instruments([]))
    looking = asyncio.create_task(cache.find([key, b"other"]))
    await slow.asked.wait()
    cache._memory.keep(key, SOUND)
    slow.go.set()

    assert [SOUND, None] == await looking
