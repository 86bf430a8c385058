"""UniRL's trainer: the roster, then scores with an error for each reward that is missing."""

import json
import math

import pytest

from service.web.dialects.scoring import DialectScoring
from service.web.dialects.unirl import Sample
from tests.app.web.dialects.conftest import BROKEN, PICTURES, PROMPTS, Flaky
from tests.support.fake_service import key_table
from tests.support.pictures import b64

pytestmark = pytest.mark.anyio

REWARDS = ["vqascore", "clipscore"]


def ask(picture, prompt, rewards=REWARDS, **more):
    """One entry, as its trainer builds it."""
    history = [{"text": prompt, "image_b64": b64(picture)}]
    return {"history": history, "required_rewards": rewards, "metadata": None, **more}


def asked():
    return [ask(*pair) for pair in zip(PICTURES, PROMPTS, strict=True)]


async def post(apps, requests, **more):
    return await apps.private.post("/unirl/score", json={"requests": requests, **more})


def accepted(answer, names):
    """What its trainer makes of an answer: a reward for each picture, or the texts of errors."""
    body, seen = answer.json(), []
    for result, errors in zip(body["results"], body["errors"], strict=True):
        missing = [name for name in names if name not in result]
        assert all(name in errors for name in missing)  # else it calls it a bug of the server
        for values in result.values():
            assert all(type(value) is float and math.isfinite(value) for value in values.values())
        seen.append({name: next(iter(values.values())) for name, values in result.items()} or errors)
    return seen


@pytest.mark.shared
async def test_the_roster_has_every_reward_that_is_ready(dialects):
    async with dialects() as apps:
        health = (await apps.private.get("/unirl/health")).json()
        rewards = (await apps.private.get("/unirl/rewards")).json()

    assert "ok" == health["status"]
    assert set(REWARDS) <= health["rewards"].keys()
    assert set(REWARDS) <= set(rewards["rewards"])


async def test_each_reward_of_each_picture_is_the_score_that_the_service_gives(dialects):
    async with dialects() as apps:
        answer = await post(apps, asked(), protocol_version="1")
        expected = [
            {name: await apps.score(*pair, name) for name in REWARDS}
            for pair in zip(PICTURES, PROMPTS, strict=True)
        ]

    assert 200 == answer.status_code
    assert expected == accepted(answer, REWARDS)
    assert [{}] * 4 == answer.json()["errors"]


async def test_pictures_may_ask_for_different_rewards(dialects):
    requests = [ask(PICTURES[0], PROMPTS[0], ["clipscore"]), ask(PICTURES[1], PROMPTS[1], ["vqascore"])]
    async with dialects() as apps:
        answer = await post(apps, requests)

    assert [["clipscore"], ["vqascore"]] == [list(result) for result in answer.json()["results"]]


BAD = {
    "a broken picture": ask(BROKEN, "a"),
    "no base64": {"history": [{"text": "a", "image_b64": "x y"}], "required_rewards": REWARDS},
    "no picture": {"history": [{"text": "a"}], "required_rewards": REWARDS},
    "a video": {"history": [{"text": "a", "video_b64": "x"}], "required_rewards": REWARDS},
    "an edit": {"history": 2 * [{"text": "a", "image_b64": b64(PICTURES[0])}], "required_rewards": REWARDS},
    "no prompt": ask(PICTURES[0], ""),
}


@pytest.mark.shared
@pytest.mark.parametrize("name", BAD)
async def test_a_picture_that_cannot_be_scored_has_errors_and_harms_no_other(dialects, name):
    async with dialects() as apps:
        alone = await post(apps, asked())
        answer = await post(apps, [*asked(), BAD[name]])

    *others, bad = accepted(answer, REWARDS)
    assert accepted(alone, REWARDS) == others
    assert {} == answer.json()["results"][4]
    assert set(REWARDS) == bad.keys()


async def test_one_broken_picture_of_128_harms_no_other(dialects):
    pictures = [BROKEN if number == 77 else PICTURES[number % 4] for number in range(128)]
    async with dialects() as apps:
        answer = await post(apps, [ask(picture, "a square", ["vqascore"]) for picture in pictures])

    errors = [number for number, found in enumerate(answer.json()["errors"]) if found]
    assert [77] == errors
    assert 127 == sum(bool(result) for result in answer.json()["results"])
    assert "image_undecodable" in answer.json()["errors"][77]["vqascore"]


@pytest.mark.shared
async def test_a_reward_that_is_not_there_is_an_error_and_the_others_have_scores(dialects):
    async with dialects() as apps:
        answer = await post(apps, [ask(PICTURES[0], PROMPTS[0], ["vqascore", "beauty"])])

    assert ["vqascore"] == list(answer.json()["results"][0])
    assert answer.json()["errors"][0]["beauty"].startswith("unknown_metric: ")


async def test_a_trainer_that_asks_for_its_identities_gets_them_back(dialects):
    identity = {
        **{"request_id": "r", "sample_id": "s", "group_id": 3, "source_rank": 1},
        **{"policy_version": 7, "scorer_version": None, "idempotency_key": "k"},
    }
    async with dialects() as apps:
        answer = await post(apps, [ask(PICTURES[0], PROMPTS[0], **identity)], protocol_version="1")

    assert [identity] == answer.json()["identities"]
    assert "1" == answer.json()["protocol_version"]


async def test_a_scorer_version_is_not_vouched_for(dialects):
    """A trainer that pins one is told that this is not it."""
    pinned = ask(PICTURES[0], PROMPTS[0], request_id="r", scorer_version="hpsv2@3")
    async with dialects() as apps:
        answer = await post(apps, [pinned])

    assert answer.json()["identities"][0]["scorer_version"] is None


@pytest.mark.shared
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"requests": []}, 422),
        ({"requests": [{"history": [], "required_rewards": ["vqascore"]}]}, 422),
        ({"requests": [{"history": [{"text": "a"}], "required_rewards": []}]}, 422),
        ({"protocol_version": "2", "requests": [ask(PICTURES[0], "a")]}, 422),
        ({"requests": [ask(PICTURES[0], "a")] * 1025}, 422),
        ({"requests": [ask(PICTURES[0], "a", [f"{n}" for n in range(64)])]}, 422),
        ({}, 422),
    ],
)
async def test_what_is_no_request_of_it_is_refused_as_a_whole(dialects, body, status):
    async with dialects() as apps:
        answer = await apps.private.post("/unirl/score", json=body)

    assert status == answer.status_code
    assert answer.json()["detail"]
    assert "retry-after" not in answer.headers


STRANGE = {
    "a number that JSON's writers refuse": b"1180591620717411303424",
    "half a character": b'"\\ud800"',
    "a dict": b'{"a": 1}',
    "a long text": b'"' + b"a" * 300 + b'"',
    "half a number": b"0.5",
}


@pytest.mark.shared
@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("field", ["request_id", "sample_id", "idempotency_key"])
async def test_what_cannot_be_said_again_is_refused_before_anything_is_scored(dialects, fakes, name, field):
    """A name of 2**70 was a fault of the service once all had been scored."""
    body = json.dumps({"requests": [ask(PICTURES[0], "a", request_id="r") | {field: "HERE"}]}).encode()
    async with dialects() as apps:
        content = body.replace(b'"HERE"', STRANGE[name])
        headers = {"content-type": "application/json"}
        answer = await apps.private.post("/unirl/score", content=content, headers=headers)

    assert 422 == answer.status_code
    assert field in answer.json()["detail"]
    assert [] == fakes["vqa"].calls


UNKNOWN = [f"{number:x}" for number in range(64)]


async def test_rewards_that_are_not_there_are_charged_like_others(dialects, tmp_path):
    """A key that may ask for five pairs a minute."""
    keys = tmp_path / "keys"
    keys.write_text(key_table("trainer", "k", "quota = 5"), "utf-8")
    headers = {"Authorization": "Bearer k"}
    async with dialects(server={"api_keys_file": str(keys)}) as apps:
        answers = [
            await apps.main.post(
                "/unirl/score", json={"requests": [ask(PICTURES[0], "a", names)]}, headers=headers
            )
            for names in (["vqascore", "beauty"], ["beauty", "truth", "wit"], ["beauty"])
        ]

    assert [200, 200, 503] == [answer.status_code for answer in answers]


async def test_many_unknown_rewards_are_counted_before_anything_is_made_of_them(dialects, monkeypatch):
    """2.8 MB of them were answered with 76 MB."""
    monkeypatch.setattr(Sample, "wanted", lambda *_: pytest.fail("an entry was looked at"))
    monkeypatch.setattr(DialectScoring, "absent", lambda *_: pytest.fail("a reward was looked at"))
    bodies = [[{"history": [{}], "required_rewards": UNKNOWN}] * count for count in (8600, 1025, 100)]
    async with dialects() as apps:
        answers = [await post(apps, requests) for requests in bodies]

    assert [422] * 3 == [answer.status_code for answer in answers]
    assert all(len(answer.content) < 1000 for answer in answers)


@pytest.mark.slow
@pytest.mark.parametrize("parts", [{"engine": Flaky}])
@pytest.mark.parametrize("count", [129, 1024])
async def test_a_shard_is_one_request_and_worked_on_in_windows(dialects, count):
    """129 pictures ended a training: the trainer sends its whole shard at once."""
    async with dialects() as apps:
        requests = [ask(PICTURES[n % 4], f"{PROMPTS[n % 4]} {n}", ["vqascore"]) for n in range(count)]
        answer = await post(apps, requests)
        expected = await apps.score(PICTURES[(count - 1) % 4], f"{PROMPTS[(count - 1) % 4]} {count - 1}")

    assert 200 == answer.status_code
    assert count == len(answer.json()["results"])
    assert {"vqascore": {"vqascore": expected}} == answer.json()["results"][-1]
    assert [128] * (count // 128) + [1] * (count % 128) == apps.service.engine.sizes[:-1]


async def test_the_setting_says_how_many_pictures_a_request_may_have(dialects):
    async with dialects({"max_pictures": 3}) as apps:
        answer = await post(apps, asked())

    assert 422 == answer.status_code
    assert "dialects.max_pictures" in answer.json()["detail"]
