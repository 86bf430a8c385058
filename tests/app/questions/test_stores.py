"""A store of question sets in a file: bounded in memory, locked by others, corrupt."""

import asyncio
import contextlib
import sqlite3

import pytest

from service.core.errors import NotReady
from service.core.settings import SettingsError
from service.questions.sets import Question, QuestionSet, from_json, to_json
from service.questions.stores.contract import Store
from service.questions.stores.sqlite import SQLiteStore
from tests.support.dsg import CHAIN
from tests.support.pictures import item

pytestmark = pytest.mark.anyio
MADE = QuestionSet("a dog", "dsg", (Question(1, "a"), Question(2, "b", depends_on=(1,))), {"llm": "x"})
KEY = "lookup:1"


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
        yield SQLiteStore(path, in_memory=8, timeout_s=WAIT_S, start_s=WAIT_S), other


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


async def test_the_clock_is_read_while_no_other_process_can_write(tmp_path):
    """A lease that another process took during the wait for the lock would end after it began, not before."""
    path, read = tmp_path / "sets.sqlite3", []
    other = None

    def now():
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        read.append(1000.0)
        return 1000.0

    async with SQLiteStore(path, in_memory=2, now=now) as store:
        other = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        token = await store.claim(KEY)
        await store.renew(KEY, token)
        await store.put(KEY, MADE, token)
        await store.release(KEY, token)
        other.close()

    assert token
    assert read


async def test_a_store_that_fails_is_not_ready(serve, tmp_path):
    """A set that cannot be stored is no set; a metric that needs none is scored."""
    async with serve() as client:
        with contextlib.closing(sqlite3.connect(tmp_path / "questions.sqlite3")) as other:
            other.execute("ALTER TABLE sets RENAME TO away")
            refused = await client.post("/score", json=dsg(item("a red dog")))
            partial = await score(client, {**dsg(item("a red dog")), "metrics": ["vqascore", "dsg"]})
            other.execute("ALTER TABLE away RENAME TO sets")
        served = await score(client, dsg(item("a red dog")))

    assert (503, "not_ready") == (refused.status_code, refused.json()["code"])
    assert {"vqascore"} == partial["scores"].keys()
    assert {"dsg"} == served["scores"].keys()


async def test_a_store_that_stays_locked_ends_the_start_with_the_setting(locked):
    """As any other reason why it cannot be used."""
    store, other = locked
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


async def test_a_corrupt_question_store_is_moved_aside_and_the_service_serves(serve, tmp_path, caplog):
    """The log says where it is now."""
    (tmp_path / "questions.sqlite3").write_bytes(b"no database, " * 1000)
    async with serve() as client:
        asked = await client.post("/score", json=dsg(item("a red square")))
        [aside] = tmp_path.glob("questions.sqlite3.corrupt-*Z")

    assert 200 == asked.status_code
    assert b"no database, " * 1000 == aside.read_bytes()
    assert any(aside.name in line for line in caplog.messages)
