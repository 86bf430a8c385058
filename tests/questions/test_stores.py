"""What holds of every store of question sets, in a file or in a Redis; and of services that share one."""

import asyncio
import contextlib
import sqlite3
from contextlib import asynccontextmanager

import pytest

from service.errors import NotReady
from service.questions.sets import Question, QuestionSet
from service.questions.stores import file
from service.questions.stores.contract import Store, from_json, to_json
from service.questions.stores.redis import PREFIX, RedisStore
from service.questions.stores.sqlite import SQLiteStore
from service.redis.client import RedisClient
from service.settings import SettingsError
from service.telemetry import Instruments
from tests.conftest import item
from tests.support.dsg import CHAIN

pytestmark = pytest.mark.anyio

MADE = QuestionSet("a dog", "dsg", (Question(1, "a"), Question(2, "b", depends_on=(1,))), {"llm": "x"})
OTHER = QuestionSet("a dog", "dsg", (Question(1, "Is there a dog?"),), {"llm": "y"})
KEY = "lookup:1"


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
        async with RedisClient("questions", self.server.url, Instruments([])) as client:
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


async def test_the_memory_in_front_of_the_store_is_bounded(tmp_path):
    """The least recently used sets leave memory and are found on disk."""
    sets = [QuestionSet(f"prompt {n}", "dsg", CHAIN, {"llm": "x"}) for n in range(5)]
    async with SQLiteStore(tmp_path / "sets.sqlite3", in_memory=2) as store:
        for n, made in enumerate(sets):
            await store.put(f"key {n}", made)
        found = [await store.find(f"key {n}") for n in range(5)]

    assert sets == found
    assert {"llm": "x"} == found[0].provenance
    assert 2 == len(store._recent)


class Slow(Store):
    """A store that finds nothing, when it is let go."""

    def __init__(self):
        super().__init__(in_memory=8)
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def _find(self, key):
        self.asked.set()
        await self.go.wait()

    async def _get(self, id):
        raise AssertionError("nobody asks for an id")

    async def _put(self, key, questions, token):
        return questions

    claim = renew = release = sets = None  # nobody asks for these either


async def test_a_set_that_was_put_while_it_was_looked_for_is_found():
    """So that its prompt is not asked about again."""
    store = Slow()
    looking = asyncio.create_task(store.find(KEY))
    await store.asked.wait()
    await store.put(KEY, MADE)
    store.go.set()

    assert MADE is await looking


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


def test_only_the_whole_set_is_a_set():
    """Each shorter part of the bytes is nothing."""
    content = to_json(MADE)

    assert MADE == from_json(content, MADE.id)
    assert {None} == {from_json(content[:n], MADE.id) for n in range(len(content))}


WAIT_S = 0.1


@pytest.fixture
def locked(tmp_path):
    """A store that another process keeps from writing."""
    path = tmp_path / "sets.sqlite3"
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        yield SQLiteStore(path, in_memory=8, timeout_s=WAIT_S), other


async def test_a_locked_store_keeps_nobody_waiting_longer_than_its_timeout(locked):
    """Also where many wait, one behind the other: together they take no longer than one does."""
    store, other = locked
    async with store:
        other.execute("BEGIN IMMEDIATE")
        loop = asyncio.get_running_loop()
        began = loop.time()
        outcomes = await asyncio.gather(*(store.put(KEY, MADE) for _ in range(50)), return_exceptions=True)
        took = loop.time() - began
        other.rollback()

        assert {NotReady} == {type(outcome) for outcome in outcomes}
        assert took < 50 * WAIT_S / 4
        assert MADE == await store.put(KEY, MADE)


async def test_a_locked_store_is_not_ready(serve, tmp_path):
    """A set that cannot be stored is no set; a metric that needs none is scored."""
    async with serve() as client:
        with contextlib.closing(sqlite3.connect(tmp_path / "questions.sqlite3")) as other:
            other.execute("BEGIN IMMEDIATE")
            refused = await client.post("/score", json=dsg(item("a red dog")))
            partial = await score(client, {**dsg(item("a red dog")), "metrics": ["vqascore", "dsg"]})
            other.rollback()
        served = await score(client, dsg(item("a red dog")))

    assert (503, "not_ready") == (refused.status_code, refused.json()["code"])
    assert {"vqascore"} == partial["scores"].keys()
    assert {"dsg"} == served["scores"].keys()


async def test_a_store_that_stays_locked_ends_the_start_with_the_setting(locked, monkeypatch):
    """As any other reason why it cannot be used."""
    store, other = locked
    monkeypatch.setattr(file, "START_S", WAIT_S)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(SettingsError, match=r"cache\.questions: .*sets\.sqlite3: database is locked"):
        await store.__aenter__()


CORRUPT = {
    "no database": lambda content: b"no database" * 1000,
    "cut": lambda content: content[: len(content) // 2],
    "a page of zeros": lambda content: content[:4096] + bytes(4096) + content[8192:],
}


@pytest.mark.parametrize("spoil", CORRUPT.values(), ids=CORRUPT)
async def test_a_corrupt_store_is_moved_aside_once_by_all_who_open_it(tmp_path, spoil, caplog):
    """Nothing of it is lost, and the new one is everybody's."""
    path = tmp_path / "sets.sqlite3"
    async with SQLiteStore(path, in_memory=8) as store:
        for n in range(100):
            await store.put(f"key {n}", QuestionSet(f"prompt {n}", "dsg", CHAIN))
    path.write_bytes(spoilt := spoil(path.read_bytes()))
    async with contextlib.AsyncExitStack() as opened:
        stores = await asyncio.gather(
            *(opened.enter_async_context(SQLiteStore(path, in_memory=8)) for _ in range(4))
        )
        await stores[0].put(KEY, MADE)
        found = [await store.find(KEY) for store in stores]
        [aside] = tmp_path.glob("sets.sqlite3.corrupt-*Z")

    assert [MADE] * 4 == found
    assert spoilt == aside.read_bytes()
    assert [aside.name in line for line in caplog.messages] == [True]


@pytest.mark.parametrize("table", ["sets (id, other)", "lookups (other)"])
async def test_a_database_of_something_else_is_left_alone(tmp_path, table):
    """It is no corrupt store, so the start ends and names the setting."""
    path = tmp_path / "sets.sqlite3"
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute(f"CREATE TABLE {table}")

    with pytest.raises(SettingsError, match=r"cache\.questions: .*sets\.sqlite3: .* column"):
        await SQLiteStore(path, in_memory=8).__aenter__()
    assert [path.name] == [each.name for each in tmp_path.glob("*.sqlite3")]


def dsg(*items):
    return {"items": list(items), "metrics": ["dsg"], "explain": True}


async def score(client, body):
    return (await client.post("/score", json=body)).json()["results"][0]


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


async def test_without_its_redis_a_new_prompt_is_an_explicit_error_until_it_is_back(serve, redis):
    """503 where nothing else was asked for; sets in memory and other metrics are served all the while."""
    async with serve(cache={"questions": redis.url}) as client:
        known = await score(client, dsg(item("a red dog")))
        redis.kill()
        refused = await client.post("/score", json=dsg(item("a blue cat")))
        partial = await score(client, {**dsg(item("a blue cat")), "metrics": ["vqascore", "dsg"]})
        again = await score(client, dsg(item("a red dog")))
        ready = await client.get("/readyz")
        redis.start()
        while (await client.get("/readyz")).json()["caches"] != {"questions": "ready"}:
            await asyncio.sleep(0.01)
        served = await score(client, dsg(item("a blue cat")))

    detail = "the question store failed: ConnectionError"
    assert (503, "not_ready", detail) == (refused.status_code, *map(refused.json().get, ("code", "detail")))
    assert {"dsg": {"code": "not_ready", "detail": detail}} == partial["errors"]
    assert {"vqascore"} == partial["scores"].keys()
    assert known["scores"] == again["scores"]
    assert 200 == ready.status_code
    assert {"questions": "cannot be asked: ConnectionError"} == ready.json()["caches"]
    assert {"dsg"} == served["scores"].keys()


async def test_a_service_starts_without_its_redis(serve, redis):
    """And finds it later, with no restart."""
    redis.kill()
    async with serve(cache={"questions": redis.url}) as client:
        refused = await client.post("/questions", json={"prompts": ["a red dog"]})
        redis.start()
        while (await client.get("/readyz")).json()["caches"] != {"questions": "ready"}:
            await asyncio.sleep(0.01)
        served = await client.post("/questions", json={"prompts": ["a red dog"]})

    assert [503, 200] == [refused.status_code, served.status_code]
