"""Audits: a share of the items gets every metric of its policies, after the answer."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from pydantic import ValidationError

from service.core.settings.scoring import DecisionSettings
from service.decisions.audits import MAX_BYTES, Audits
from tests.support.app import depths, is_dear, service_of
from tests.support.fake_service import key_table
from tests.support.pictures import b64, png
from tests.support.web_server import this_machine

pytestmark = pytest.mark.anyio

COLOURS = ("red", "blue", "green")
ITEMS = [{"image": b64(png(colour)), "prompt": "a red square"} for colour in COLOURS]
EITHER = {"accept": "clipscore >= -0.999 or vqascore >= 0.5", "timeout_ms": 60_000}  # the first one decides


def apart(fakes):
    """The table of the models, of which one is on a device that another does not hold."""
    models = {name: {"family": "fake", "role": fake.role} for name, fake in fakes.items()}
    models["clip"]["device"] = "cuda:9"
    return models


class Place:
    """A file of decisions, with the tables of the settings for it."""

    def __init__(self, path):
        self.path = path

    def tables(self, share=1.0, **policies):
        return {
            "decisions": {"log": f"sqlite:///{self.path}", "audit": share},
            "policies": policies or {"show": EITHER},
        }

    def rows(self, columns="audit, scores"):
        query = f"SELECT {columns} FROM decisions ORDER BY rowid"
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(query).fetchall()

    def scores(self):
        return [json.loads(text) for (text,) in self.rows("scores")]

    def states(self):
        return [state for (state,) in self.rows("audit")]


class SteeredAudits(Audits):
    """
    Audits whose chance and moment a test sets.

    Attributes:
        drawn: the numbers by which items are chosen; then all are.
        after_start: called when audits have been started.
    """

    def __init__(self, *args):
        self.drawn, self.after_start = [], lambda: None
        super().__init__(*args, lambda: self.drawn.pop(0) if self.drawn else 0.0)

    def start(self, *args):
        super().start(*args)
        self.after_start()


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "decisions.sqlite3")


async def decide(client, items=ITEMS, policy="show", **more):
    answer = await client.post("/decide", json={"policy": policy, "items": items}, **more)
    assert 200 == answer.status_code, answer.text
    return answer.json()["decisions"]


async def ended(client):
    """Return when no audit runs."""
    await service_of(client).audits._tasks.wait()


def counted(client):
    """The number of audits by result."""
    [family] = service_of(client).instruments.audits.collect()
    return {each.labels["result"]: each.value for each in family.samples if each.name.endswith("_total")}


async def test_an_audited_item_has_every_metric_of_its_policy(serve, place):
    """Also one that the decision skipped; what the row says of the decision stays as it was."""
    async with serve(**place.tables()) as client:
        is_dear(client, "vqa")
        body = {"items": ITEMS, "metrics": ["clipscore", "vqascore"]}
        plain = [each["scores"] for each in (await client.post("/score", json=body)).json()["results"]]
        answered = await decide(client)
        await ended(client)
        results = counted(client)

    assert [["vqascore"]] * len(ITEMS) == [each["skipped"] for each in answered]
    assert ["complete"] * len(ITEMS) == place.states()
    assert plain == place.scores()
    assert [('["vqascore"]',)] * len(ITEMS) == place.rows("skipped")
    assert {"complete": len(ITEMS), "failed": 0, "dropped": 0} == results


async def test_items_are_chosen_by_chance_before_anything_is_decided(serve, place):
    """Whatever their scores are; the others are not marked."""
    async with serve(**place.tables(0.5)) as client:
        service_of(client).audits.drawn += [0.7, 0.49, 0.5]
        await decide(client)
        await ended(client)

    assert [None, "complete", None] == place.states()


@pytest.mark.parametrize(("share", "chosen"), [(0.5, {0, 2}), (0.1, {2}), (1.0, {0, 1, 2, 3})])
def test_the_share_of_the_items_is_that_of_the_numbers_below_it(share, chosen):
    """Each item has a number of its own."""
    drawn = iter([0.4, 0.6, 0.0, 0.99])

    assert chosen == Audits(None, None, share, None, lambda: next(drawn)).chosen(4)


async def test_each_policy_of_an_audited_item_has_its_own_metrics(serve, place):
    """The row of a policy has no score that only another one needs."""
    tables = place.tables(show=EITHER, fit={"accept": "vqascore >= 0.5", "timeout_ms": 60_000})
    async with serve(**tables) as client:
        await decide(client, ITEMS[:1], ["show", "fit"])
        await ended(client)

    assert [{"clipscore", "vqascore"}, {"vqascore"}] == [{*scores} for scores in place.scores()]


async def test_an_answer_waits_for_no_audit(serve, fakes, place):
    """The model of the audit hangs meanwhile, with the calls in the bulk lane."""
    async with serve(models=apart(fakes), **place.tables()) as client:
        is_dear(client, "vqa")
        fakes["vqa"].hold.clear()
        answered = [await decide(client, [item]) for item in ITEMS]
        lanes = depths(client, "vqa")
        fakes["vqa"].hold.set()
        await ended(client)

    assert ["accept"] * len(ITEMS) == [each["decision"] for [each] in answered]
    assert 0 == lanes["interactive"]
    assert ["complete"] * len(ITEMS) == place.states()


async def test_audits_that_run_at_the_shut_down_are_dropped_and_counted(serve, fakes, place):
    """The service ends without them, and their rows stay selected."""
    async with serve(models=apart(fakes), **place.tables()) as client:
        is_dear(client, "vqa")
        fakes["vqa"].hold.clear()
        await decide(client)
        instruments = service_of(client).instruments
        await service_of(client).audits.aclose()
        dropped = counted(client)["dropped"]
        fakes["vqa"].hold.set()

    assert len(ITEMS) == dropped
    assert len(ITEMS) == instruments.audits.labels("dropped")._value.get()
    assert ["selected"] * len(ITEMS) == place.states()
    assert [{"clipscore"}] * len(ITEMS) == [{*scores} for scores in place.scores()]


async def test_pictures_that_do_not_fit_into_the_memory_of_audits_are_dropped(serve, fakes, place):
    """They are counted, and their room is free again when the audits before them have ended."""
    one = len(png("red")) * 3 // 2  # bytes that hold one picture
    assert 256 * 2**20 == MAX_BYTES
    async with serve(models=apart(fakes), **place.tables()) as client:
        is_dear(client, "vqa")
        room = service_of(client).audits._room
        room.take(others := MAX_BYTES - one, 0)
        fakes["vqa"].hold.clear()
        await decide(client, ITEMS[:2])
        held = room._bytes - others
        before = counted(client)["dropped"]
        fakes["vqa"].hold.set()
        await ended(client)
        await decide(client, ITEMS[2:])
        await ended(client)
        left = room._bytes - others

    assert (1, 0) == (before, left)
    assert len(png("red")) == held
    assert ["complete", "selected", "complete"] == place.states()


async def test_an_audit_whose_model_fails_is_failed_and_keeps_the_other_scores(serve, fakes, place):
    """The answer was given before."""
    async with serve(**place.tables()) as client:
        is_dear(client, "vqa")
        fakes["vqa"].fault = lambda call: ValueError("broken")
        [answered] = await decide(client, ITEMS[:1])
        await ended(client)
        results = counted(client)

    assert "accept" == answered["decision"]
    assert [("failed", {"clipscore"})] == [(state, {*json.loads(text)}) for state, text in place.rows()]
    assert 1 == results["failed"]


async def test_an_audit_by_another_model_than_its_row_names_fails(serve, fakes, place):
    """The model is replaced after the answer; its score would stand beside those of the one before it."""
    async with serve(models=apart(fakes), **place.tables()) as client:
        is_dear(client, "vqa")
        backend = service_of(client).runtime.handles["vqa"].backend

        def replaced():
            backend.info = replace(backend.info, revision="2")

        service_of(client).audits.after_start = replaced
        await decide(client, ITEMS[:1])
        await ended(client)

    assert ["failed"] == place.states()
    assert [{"clipscore"}] == [{*scores} for scores in place.scores()]
    assert [("fake-vqa@1",)] == place.rows("models ->> 'vqa'")


async def test_a_metric_that_was_late_is_computed_again_by_the_audit(serve, fakes, place):
    """Without it the audits would have the easy items alone."""
    tables = place.tables(show={"accept": "vqascore >= 0.5", "timeout_ms": 100})
    async with serve(**tables) as client:
        fakes["vqa"].hold.clear()
        [answered] = await decide(client, ITEMS[:1])
        fakes["vqa"].hold.set()
        await ended(client)

    assert "deadline_exceeded" == answered["errors"]["vqascore"]["code"]
    assert ["complete"] == place.states()
    assert [{"vqascore"}] == [{*scores} for scores in place.scores()]
    assert [('{"vqascore":"deadline_exceeded"}',)] == place.rows("errors")


async def test_a_picture_that_cannot_be_read_fails_its_audit(serve, place):
    """Its neighbour is audited."""
    async with serve(**place.tables()) as client:
        await decide(client, [{**ITEMS[0], "image": "!"}, ITEMS[1]])
        await ended(client)

    assert ["failed", "complete"] == place.states()


@pytest.fixture
def parts():
    return {"network": this_machine(), "audits": SteeredAudits}


@pytest.fixture
def allowed(httpserver):
    """The table that allows the server's pictures."""
    return {"allow_urls": True, "allowed_url_hosts": [f"pictures.test:{httpserver.port}"]}


@pytest.mark.parametrize(("status", "state"), [(200, "complete"), (404, "failed")])
async def test_an_audit_downloads_nothing(serve, place, httpserver, allowed, status, state):
    """The address may have another picture by then; without the bytes of the first one it fails."""
    httpserver.expect_ordered_request("/a.png").respond_with_data(png("red"), status)
    httpserver.expect_ordered_request("/a.png").respond_with_data(png("blue"))
    url = f"http://pictures.test:{httpserver.port}/a.png"
    async with serve(images=allowed, **place.tables()) as client:
        is_dear(client, "vqa")
        await decide(client, [{**ITEMS[0], "image": {"url": url}}])
        await ended(client)

    assert [state] == place.states()
    assert 1 == len(httpserver.log)


async def test_an_audit_has_the_references_of_its_item(serve, place):
    """Each metric gets the pictures that it uses, as in `/score`; a stage before had none of them."""
    items = [{**ITEMS[0], "references": [b64(png(colour)) for colour in ("blue", "white")]}]
    either = {"accept": "vqascore >= 0.000001 or clip_i >= 0.5", "timeout_ms": 60_000}
    async with serve(**place.tables(show=either)) as client:
        is_dear(client, "clip")
        body = {"items": items, "metrics": ["vqascore", "clip_i"]}
        [plain] = (await client.post("/score", json=body)).json()["results"]
        [answered] = await decide(client, items)
        await ended(client)

    assert ["clip_i"] == answered["skipped"]
    assert ["complete"] == place.states()
    assert [plain["scores"]] == place.scores()


async def test_audits_use_no_quota(serve, place, tmp_path):
    """A key of two pairs a minute decides twice by one metric, whatever the audits compute."""
    keys = tmp_path / "keys"
    keys.write_text(key_table("app", "secret", "quota = 3"), "utf-8")
    async with serve(server={"api_keys_file": keys}, **place.tables()) as client:
        is_dear(client, "vqa")
        key = {"headers": {"X-API-Key": "secret"}}
        await decide(client, ITEMS[:1], **key)
        await ended(client)
        await decide(client, ITEMS[1:2], **key)
        await ended(client)

    assert ["complete", "complete"] == place.states()


async def test_without_a_share_nothing_is_audited(serve, place):
    """By default no metric is computed that no decision needs."""
    async with serve(**place.tables(0.0)) as client:
        await decide(client)
        assert service_of(client).audits is None

    assert [None] * len(ITEMS) == place.states()


def test_a_share_needs_a_log():
    """The scores would be nowhere."""
    with pytest.raises(ValidationError, match=r"audit needs decisions\.log"):
        DecisionSettings(audit=0.02)
