"""Who is let in where the operator has listed keys, and what is left of a key's quota."""

import asyncio
import hashlib
import os
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.errors import Forbidden, LargerThanQuota, QuotaExceeded
from service.core.settings import SettingsError
from service.web import keys
from service.web.keys import Key, KeyFile, Keys, Quotas
from tests.support.clocks import Clock
from tests.support.handles import until
from tests.support.leaps import leap

pytestmark = pytest.mark.anyio


def table(name, rights=""):
    """A table of the file, for a key that is its name."""
    return f'["{name}"]\nsha256 = "{hashlib.sha256(name.encode()).hexdigest()}"\n{rights}\n'


def test_the_hash_of_an_empty_key_is_refused_at_the_start(tmp_path):
    """A script writes it where its variable is not set; the error says whose it is."""
    keys = tmp_path / "keys.toml"
    keys.write_text(f'{table("other")}[trainer]\nsha256 = "{hashlib.sha256(b"").hexdigest()}"\n')

    with pytest.raises(SettingsError, match=r"api_keys_file: .*the key of trainer is empty"):
        Keys.read(keys)


def test_an_absent_key_matches_no_hash():
    """Nor does an empty one, whatever the hashes are."""
    keys = Keys([Key("trainer", hashlib.sha256(b"").digest())])

    for headers in ({}, {"x-api-key": ""}, {"authorization": "Bearer"}, {"authorization": "Bearer  "}):
        assert keys.of(headers) is None


def test_a_table_gives_a_key_its_name_and_its_rights(tmp_path):
    """In TOML; without a right, a key may change no model."""
    digests = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("trainer", "guest")}
    (tmp_path / "keys.toml").write_text(
        f'[trainer]\nsha256 = "{digests["trainer"]}"\nlanes = ["bulk"]\nquota = 5\nmodels = true\n'
        f'[guest]\nsha256 = "{digests["guest"]}"\n'
    )
    keys = Keys.read(tmp_path / "keys.toml")

    trainer, guest = (keys.of({"authorization": f"Bearer {name}"}) for name in digests)
    assert Key("trainer", bytes.fromhex(digests["trainer"]), ("bulk",), 5, models=True) == trainer
    assert Key("guest", bytes.fromhex(digests["guest"])) == guest


@pytest.mark.parametrize(
    ("endpoints", "allowed"),
    [
        (None, {"/score", "/decide", "/policies", "/decisions/one", "/nothing"}),
        (("decide",), {"/decide", "/policies"}),
        (("label",), {"/decisions/one/label"}),
        (("decide", "label"), {"/decide", "/policies", "/decisions/one/label"}),
    ],
)
def test_a_key_of_some_endpoints_may_use_no_other_path(endpoints, allowed):
    """Without endpoints it may use every path but labels, which have to be named."""
    paths = {"/score", "/decide", "/policies", "/decisions/one", "/decisions/one/label", "/nothing"}
    key = Key("app", b"", endpoints=endpoints)

    for path in paths:
        with nullcontext() if path in allowed else pytest.raises(Forbidden, match="the key app may not"):
            key.check_path(path)


def test_an_error_in_a_table_names_the_key_and_the_field():
    """Never a value."""
    with pytest.raises(ValueError, match=r"^trainer\.sha256: ") as refused:
        Keys.of_tables({"trainer": {"sha256": "secret"}})
    assert "secret" not in str(refused.value)
    with pytest.raises(ValueError, match=r"^keys: "):
        Keys.of_tables({})


async def test_the_file_is_read_again_a_second_after_it_was(tmp_path):
    """Not at every request."""
    now = [0.0]
    file = tmp_path / "keys"
    file.write_text(table("old"))
    watched = KeyFile(file, lambda: now[0])
    file.write_text(table("new"))

    now[0] = keys.RECHECK_S / 2
    assert (await watched.keys()).of({"x-api-key": "old"})
    now[0] = keys.RECHECK_S
    assert (await watched.keys()).of({"x-api-key": "new"})
    assert not (await watched.keys()).of({"x-api-key": "old"})


@pytest.mark.parametrize(
    "broken", [b"", b'k = "secret"', b"\xff", None], ids=["empty", "in the clear", "bytes", "gone"]
)
async def test_a_file_that_became_wrong_keeps_the_keys_and_is_one_line_in_the_log(tmp_path, caplog, broken):
    """However often it is read; nothing of it is in the line."""
    now = [0.0]
    file = tmp_path / "keys"
    file.write_text(table("k"))
    watched = KeyFile(file, lambda: now[0])
    file.write_bytes(broken) if broken is not None else file.unlink()
    for _ in range(3):
        now[0] += keys.RECHECK_S
        assert (await watched.keys()).of({"x-api-key": "k"})

    [record] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "api_keys_file" in record.message
    assert "secret" not in caplog.text
    file.write_text(table("mended"))
    now[0] += keys.RECHECK_S
    assert (await watched.keys()).of({"x-api-key": "mended"})


async def test_the_file_is_read_off_the_event_loop_and_once_for_all_who_come(tmp_path):
    """Others are served meanwhile; one that hangs keeps nobody for longer than it may."""
    now, reads, held = [0.0], [], threading.Event()
    file = tmp_path / "keys"
    file.write_text(table("old"))
    held.set()

    def read(path):
        reads.append(threading.current_thread())
        assert held.wait(10)
        return Keys.read(path)

    watched = KeyFile(file, lambda: now[0], read)
    file.write_text(table("new"))
    held.clear()
    reads.clear()
    now[0] = keys.RECHECK_S
    late = asyncio.gather(*(watched.keys() for _ in range(5)))
    await until(lambda: reads)
    leap(keys.READ_S)
    met = await late
    held.set()
    now[0] = 2 * keys.RECHECK_S
    after = await watched.keys()

    assert all(each.of({"x-api-key": "old"}) for each in met)
    assert after.of({"x-api-key": "new"})
    assert threading.main_thread() not in reads
    assert len(reads) <= 2


def fifo(path):
    os.mkfifo(path)


def large(path):
    path.write_text("# much\n" * (keys.MAX_BYTES // 7 + 1))


def deep(path):
    """Make a file of lists in each other."""
    path.write_text(f"a = {50_000 * '['}")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (fifo, "not a regular file"),
        (large, "larger than 1 MiB"),
        (Path.mkdir, "Is a dir"),
        (deep, "maximum recursion depth"),
    ],
)
async def test_what_is_no_file_of_keys_is_neither_waited_for_nor_read_whole(tmp_path, make, told, caplog):
    """At the start it is an error; later the keys that were read before stay."""
    file, now = tmp_path / "keys", [0.0]
    file.write_text(table("k"))
    watched = KeyFile(file, lambda: now[0])
    file.unlink()
    make(file)
    now[0] = keys.RECHECK_S

    assert (await watched.keys()).of({"x-api-key": "k"})
    assert told in caplog.text
    with pytest.raises(SettingsError, match=rf"api_keys_file: .*{told}"):
        Keys.read(file)


@pytest.mark.parametrize(
    "content",
    [
        "",
        'k = "secret"',
        "k:secret",
        '[k]\nsha256 = "secret"',
        table("k") * 2,
        *(
            table("k", right)
            for right in (
                'lanes = ["fast"]',
                "lanes = []",
                "quota = 0",
                "quota = -1",
                "quota = 1.5",
                'quota = "1"',
            )
        ),
        *(table("k", right) for right in ("quota = true", "admin = true")),
        table("a/b"),
    ],
)
def test_a_table_that_is_wrong_is_refused_at_the_start(tmp_path, content):
    """The error says which one, and quotes no value."""
    (tmp_path / "keys.toml").write_text(content)

    with pytest.raises(SettingsError, match="api_keys_file") as wrong:
        Keys.read(tmp_path / "keys.toml")
    assert "secret" not in str(wrong.value)


async def test_a_file_that_has_not_changed_is_not_read_again(tmp_path):
    """Its size and time are looked at; a file that changed just now may do so again at the same time."""
    now, reads = [0.0], []
    file = tmp_path / "keys.toml"
    file.write_text(table("k"))
    watched = KeyFile(file, lambda: now[0], lambda path: reads.append(path) or Keys.read(path))

    async def looks(times):
        reads.clear()
        for _ in range(times):
            now[0] += keys.RECHECK_S
            assert await watched.keys()
        return len(reads)

    assert 3 == await looks(3)
    os.utime(file, (1, 1))
    assert 1 == await looks(3)
    assert 0 == await looks(3)


def key(quota, name="k"):
    return Key(name, b"", quota=quota)


def test_the_wait_is_exact():
    """Who comes a moment before is refused, who comes then is not."""
    clock = Clock()
    quotas = Quotas(clock)
    quotas.charge(key(60), 60)
    with pytest.raises(QuotaExceeded) as refused:
        quotas.charge(key(60), 7)

    assert 7.0 == refused.value.retry_after_s
    clock.set(6.9)
    with pytest.raises(QuotaExceeded):
        quotas.charge(key(60), 7)
    clock.set(7.0)
    quotas.charge(key(60), 7)


def test_more_than_the_bucket_holds_is_refused_without_a_wait():
    """It would never fit; nothing is taken for it."""
    quotas = Quotas(Clock())
    with pytest.raises(LargerThanQuota) as refused:
        quotas.charge(key(60), 61)

    assert refused.value.retry_after_s is None
    quotas.charge(key(60), 60)


def test_keys_do_not_share_a_bucket_and_some_need_none():
    """A key without a quota is never refused."""
    quotas = Quotas(Clock())
    for name in "ab":
        quotas.charge(key(1, name), 1)
    for _ in range(3):
        quotas.charge(key(None), 1000)


def test_a_changed_quota_counts_from_now_on():
    """The smaller bucket holds no more than it can."""
    clock = Clock()
    quotas = Quotas(clock)
    quotas.charge(key(600), 1)
    quotas.charge(key(6), 6)

    with pytest.raises(QuotaExceeded):
        quotas.charge(key(6), 1)


@pytest.mark.slow
@settings(derandomize=True, max_examples=300, database=None)
@given(st.integers(1, 50), st.lists(st.tuples(st.floats(0, 100), st.integers(1, 60))))
def test_no_minute_lets_more_through_than_a_bucket_and_what_it_fills_with(quota, requests):
    """Whatever is asked when; and a refused request that waits as told is let in."""
    clock, taken = Clock(), 0
    quotas = Quotas(clock)
    for pause, pairs in requests:
        clock.advance(pause)
        try:
            quotas.charge(key(quota), pairs)
        except LargerThanQuota:
            assert pairs > quota
            continue
        except QuotaExceeded as error:
            clock.advance(error.retry_after_s or 0)
            quotas.charge(key(quota), pairs)
        taken += pairs
        assert taken <= quota + clock.now * quota / 60 + 1e-3
