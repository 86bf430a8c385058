"""What holds of every store of question sets, in a file or in a Redis; and of services that share one."""

import asyncio
import sqlite3
from contextlib import asynccontextmanager

import pytest

from service.core.errors import NotReady
from service.core.redis import RedisClient
from service.questions.sets import Question, QuestionSet, to_json
from service.questions.stores.redis import PREFIX, RedisStore
from service.questions.stores.sqlite import SQLiteStore
from tests.app.questions.test_stores import KEY, MADE, dsg, score
from tests.support.pictures import item
from tests.support.redis_server import PATIENT_S

pytestmark = pytest.mark.anyio
OTHER = QuestionSet("a dog", "dsg", (Question(1, "Is there a dog?"),), {"llm": "y"})


class Sqlite:
    """Stores on one file."""

    def __init__(self, path):
        self.path = path

    def open(self):
        return SQLiteStore(self.path, in_memory=8)

    def spoil(self, **values):
        with sqlite3.connect(self.path) as connection:
            if "content" in values:
                connection.execute("UPDATE sets SET content = ?", (values["content"],))
            if "id" in values:
                connection.execute("UPDATE lookups SET id = ?", (values["id"].decode(errors="replace"),))
        connection.close()


class Redis:
    """Stores in one Redis."""

    def __init__(self, server):
        self.server = server

    @asynccontextmanager
    async def open(self):
        async with RedisClient("questions", self.server.url, timeout_s=PATIENT_S) as client:
            yield RedisStore(client, in_memory=8)

    def spoil(self, **values):
        if "content" in values:
            self.server.do("SET", PREFIX + MADE.id, values["content"])
        if "id" in values:
            self.server.do("SET", PREFIX + KEY, values["id"])


@pytest.fixture(params=["sqlite", "redis"])
def place(request, tmp_path):
    if request.param == "sqlite":
        return Sqlite(tmp_path / "sets.sqlite3")
    return Redis(request.getfixturevalue("redis"))


async def test_a_set_comes_back_as_it_was_stored(place):
    """By its lookup key and by its id, in another process, with who wrote it."""
    async with place.open() as store:
        assert (None, None) == (await store.find(KEY), await store.get(MADE.id))
        assert MADE is await store.put(KEY, MADE)
    async with place.open() as store:
        found = [await store.find(KEY), await store.get(MADE.id)]

    assert [MADE, MADE] == found
    assert [{"llm": "x"}] * 2 == [one.provenance for one in found]


async def test_the_first_set_stored_is_in_force_for_everyone(place):
    """Also for a process that wrote another one at the same time; both sets stay known by their ids."""
    async with place.open() as one, place.open() as two, place.open() as three:
        in_force = await asyncio.gather(one.put(KEY, MADE), two.put(KEY, OTHER))
        found = [await store.find(KEY) for store in (one, two, three)]
        late = await three.put(KEY, QuestionSet("a dog", "dsg", (Question(1, "Is it late?"),)))

    assert 1 == len({questions.id for questions in (*in_force, *found, late)})


@pytest.mark.parametrize(
    "spoilt",
    [
        {"content": to_json(MADE)[:-10]},
        {"content": b"\xff\x00"},
        {"content": b""},
        {"content": b"[1, 2]"},
        {"content": b'{"questions": [{"depends_on": 7}]}'},
        {"content": to_json(OTHER)},
        {"content": to_json(MADE).replace(b'{"llm":"x"}', b'"x"')},
        {"id": b"sha256:none"},
        {"id": b"\xff\xfe"},
    ],
)
async def test_what_is_no_set_counts_as_missing_and_is_replaced(place, spoilt):
    """Truncated, somebody else's, or another set: nothing of it is ever used."""
    async with place.open() as store:
        await store.put(KEY, MADE)
    place.spoil(**spoilt)
    async with place.open() as store:
        assert await store.find(KEY) is None
        assert OTHER is await store.put(KEY, OTHER)
    async with place.open() as store:
        assert OTHER == await store.find(KEY)
        assert OTHER == await store.put(KEY, MADE)


async def test_a_key_that_holds_no_string_is_an_error(redis):
    """Redis says so, and `NotReady` names its error."""
    redis.do("LPUSH", PREFIX + KEY, "somebody's")
    async with Redis(redis).open() as store:
        with pytest.raises(NotReady, match="the question store failed: ResponseError"):
            await store.find(KEY)


async def test_services_share_sets_and_the_llm_is_asked_once_for_all(serve, fakes, redis):
    """The second finds what the first had written; both score with the same questions."""
    shared = {"questions": redis.url}
    async with serve(cache=shared) as one, serve(cache=shared) as two:
        first, second = [await score(client, dsg(item("a red dog"))) for client in (one, two)]
        shown = await two.get(f"/questions/{first['details']['dsg']['question_set']}")

    assert ("miss", "hit") == (first["cache"]["dsg"], second["cache"]["dsg"])
    assert first["details"] == second["details"]
    assert 1 == len(fakes["questions"].calls)
    assert 200 == shown.status_code


async def test_a_prompt_is_asked_about_once_by_all_who_come_together(serve, fakes, redis):
    """Redis is asked by each of them, the LLM is not."""
    async with serve(cache={"questions": redis.url}) as client:
        answers = await asyncio.gather(*(score(client, dsg(item("a red dog"))) for _ in range(24)))

    assert 1 == len(fakes["questions"].calls)
    assert 1 == len({answer["scores"]["dsg"] for answer in answers})


async def test_without_its_redis_a_new_prompt_is_an_explicit_error_until_it_is_back(serve, own_redis):
    """503 where nothing else was asked for; sets in memory and other metrics are served all the while."""
    async with serve(cache={"questions": own_redis.url}) as client:
        known = await score(client, dsg(item("a red dog")))
        own_redis.kill()
        refused = await client.post("/score", json=dsg(item("a blue cat")))
        partial = await score(client, {**dsg(item("a blue cat")), "metrics": ["vqascore", "dsg"]})
        again = await score(client, dsg(item("a red dog")))
        ready = await client.get("/readyz")
        own_redis.start()
        while (await client.get("/readyz")).json()["caches"] != {"questions": "ready"}:
            await asyncio.sleep(0.01)
        served = await score(client, dsg(item("a blue cat")))

    detail = "the question store failed: ConnectionError"
    assert (503, "not_ready", detail) == (refused.status_code, *map(refused.json().get, ("code", "detail")))
    assert {"dsg": {"code": "not_ready", "detail": detail}} == partial["errors"]
    assert {"vqascore"} == partial["scores"].keys()
    assert known["scores"] == again["scores"]
    assert 200 == ready.status_code
    assert {"questions": "cannot be used: ConnectionError"} == ready.json()["caches"]
    assert {"dsg"} == served["scores"].keys()


async def test_a_service_starts_without_its_redis(serve, own_redis):
    """And finds it later, with no restart."""
    own_redis.kill()
    async with serve(cache={"questions": own_redis.url}) as client:
        refused = await client.post("/questions", json={"prompts": ["a red dog"]})
        own_redis.start()
        while (await client.get("/readyz")).json()["caches"] != {"questions": "ready"}:
            await asyncio.sleep(0.01)
        served = await client.post("/questions", json={"prompts": ["a red dog"]})

    assert [503, 200] == [refused.status_code, served.status_code]
