"""cosmos-rl's trainer and its clients: enqueue an array, and pull the scores of each reward."""

import json
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from service.core.errors import Overloaded
from service.images.arrays import bmp
from service.web.dialects.wire import MAX_FORM
from tests.app.web.dialects.conftest import PROMPTS, Flaky
from tests.support.fake_service import key_table
from tests.support.handles import until
from tests.support.leaps import out_of_time

pytestmark = pytest.mark.anyio

COLOURS = ("red", "green", "blue", "white")
OCTETS = {"Content-Type": "application/octet-stream"}
WEIGHTS = {"vqascore": 1.0}


def pixels(size=8):
    """A square of each colour, of shape (pictures, height, width, 3)."""
    return np.stack([np.asarray(Image.new("RGB", (size, size), colour)) for colour in COLOURS])


def npy(array):
    """What its trainer sends."""
    file = BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def body_of(array=None, media=b"", **more):
    task = {"prompts": PROMPTS, "reward_fn": WEIGHTS, "media_type": "image", **more}
    return json.dumps(task).encode() + b"\n" + (media if array is None else npy(array))


async def enqueue(client, body, **more):
    return await client.post("/api/reward/enqueue", content=body, headers=OCTETS | more)


async def pull(client, uuid, reward="vqascore", **headers):
    return await client.post("/api/reward/pull", data={"uuid": uuid, "type": reward}, headers=headers)


async def scored(apps, body, reward="vqascore"):
    """The answer to the pull when the work is done."""
    answer = await enqueue(apps.private, body)
    assert 200 == answer.status_code, answer.text
    await apps.service.outbox._tasks.wait()
    return await pull(apps.private, answer.json()["uuid"], reward)


@pytest.mark.shared
async def test_each_picture_gets_the_score_that_the_service_gives(dialects):
    """For each reward with a positive weight, without the weight; the clients apply it."""
    async with dialects() as apps:
        body = body_of(pixels(), reward_fn={"vqascore": 2.0, "clipscore": 0.5, "dsg": 0})
        answer = await enqueue(apps.private, body)
        await apps.service.outbox._tasks.wait()
        answers = {
            name: (await pull(apps.private, answer.json()["uuid"], name)).json()
            for name in ("vqascore", "clipscore", "dsg")
        }
        expected = {
            name: [
                await apps.score(bmp(each), prompt, name)
                for each, prompt in zip(pixels(), PROMPTS, strict=True)
            ]
            for name in ("vqascore", "clipscore")
        }

    assert expected == {name: answers[name]["scores"][name] for name in expected}
    assert "vqascore" == answers["vqascore"]["type"]
    assert answers["dsg"]["scores"] is None


async def test_a_pull_is_400_until_the_scores_are_there(dialects, fakes):
    """Its clients take any other status for an end."""
    async with dialects() as apps:
        fakes["vqa"].hold.clear()
        uuid = (await enqueue(apps.private, body_of(pixels()))).json()["uuid"]
        before = await pull(apps.private, uuid)
        fakes["vqa"].hold.set()
        await apps.service.outbox._tasks.wait()
        after = [await pull(apps.private, uuid) for _ in range(2)]

    assert 400 == before.status_code
    assert [200, 200] == [each.status_code for each in after]
    assert after[0].content == after[1].content


async def test_scores_are_for_the_key_that_enqueued_them(dialects, tmp_path):
    """For another key, and on the port without keys, there are none."""
    keys = tmp_path / "keys.toml"
    keys.write_text(key_table("a", "ka") + key_table("b", "kb"), "utf-8")
    async with dialects(server={"api_keys_file": str(keys)}) as apps:
        mine, other = ({"Authorization": f"Bearer {key}"} for key in ("ka", "kb"))
        without = await enqueue(apps.main, body_of(pixels()))
        uuid = (await enqueue(apps.main, body_of(pixels()), **mine)).json()["uuid"]
        await apps.service.outbox._tasks.wait()
        own = await pull(apps.main, uuid, **mine)
        others = [await pull(apps.main, uuid, **other), await pull(apps.private, uuid)]

    assert 401 == without.status_code
    assert 4 == len(own.json()["scores"]["vqascore"])
    assert [None, None] == [each.json()["scores"] for each in others]


async def test_a_video_of_pixels_has_the_mean_of_its_frames(dialects):
    """Channels come before the frames, as its trainer's tensors have them."""
    video = pixels().transpose(3, 0, 1, 2)[None]  # one video, whose frames are the four squares
    async with dialects() as apps:
        answer = await scored(apps, body_of(video, media_type="video", prompts=PROMPTS[:1]))
        frames = [await apps.score(bmp(each), PROMPTS[0]) for each in pixels()]

    assert [pytest.approx(sum(frames) / 4)] == answer.json()["scores"]["vqascore"]


UNSCORED = {
    "a picture too few": (body_of(pixels()[:3]), "there are 3 pictures"),
    "a prompt that is empty": (body_of(pixels(), prompts=[*PROMPTS[:3], ""]), "/prompts/3"),
    "a metric that is not served": (body_of(pixels(), reward_fn={"hpsv2": 1.0}), "hpsv2"),
    "latents": (body_of(pixels(), media_type="latent"), "decoder"),
    "the default, which is latents": (body_of(pixels(), media_type="LATENT"), "decoder"),
    "floats": (body_of(pixels().astype(np.float16)), "float16"),
    "no array": (body_of(media=b"x" * 99), ".npy"),
    "no array at all": (body_of(media=b""), ".npy"),
    "one picture": (body_of(pixels()[0]), "shape"),
    "too many pictures": (body_of(pixels(), prompts=["a"] * 1025), "1025 pictures"),
    "no rewards": (body_of(pixels(), reward_fn={}), "/reward_fn"),
    "no weight above 0": (body_of(pixels(), reward_fn={"vqascore": 0}), "positive weight"),
    "a weight that is no number": (body_of(pixels(), reward_fn={"vqascore": "1"}), "/reward_fn"),
}


@pytest.mark.parametrize("name", UNSCORED)
async def test_what_is_wrong_with_the_content_is_the_answer_of_the_pull(dialects, name):
    """After another status its trainer tries for most of an hour, or a client has zeros."""
    body, said = UNSCORED[name]
    async with dialects() as apps:
        reward = next(iter(json.loads(body.partition(b"\n")[0])["reward_fn"]), "vqascore")
        answer = await scored(apps, body, reward)

    assert 200 == answer.status_code
    assert answer.json()["scores"] is None
    assert said in answer.json()["error"]


async def test_one_reward_that_is_not_served_leaves_the_others(dialects):
    async with dialects() as apps:
        uuid = (await enqueue(apps.private, body_of(pixels(), reward_fn={"vqascore": 1, "hpsv2": 1}))).json()[
            "uuid"
        ]
        await apps.service.outbox._tasks.wait()
        ours, theirs = [await pull(apps.private, uuid, name) for name in ("vqascore", "hpsv2")]

    assert 4 == len(ours.json()["scores"]["vqascore"])
    assert "unknown_metric" in theirs.json()["error"]


@pytest.mark.parametrize("body", [b"", b"{}", b"{\n" + bytes(9), b"\xff\n"])
async def test_a_body_of_another_form_is_refused_at_once(dialects, body):
    async with dialects() as apps:
        answer = await enqueue(apps.private, body)

    assert 400 == answer.status_code
    assert answer.json()["detail"]


@pytest.mark.parametrize("form", [{}, {"uuid": "x"}, {"uuid": "x" * 2 * MAX_FORM}, {"type": "vqascore"}])
async def test_an_unknown_id_has_no_scores(dialects, form):
    """400 would mean that they come."""
    async with dialects() as apps:
        answer = await apps.private.post("/api/reward/pull", data=form)

    assert 200 == answer.status_code
    assert answer.json()["scores"] is None
    assert "not_found" in answer.json()["error"]


async def test_a_ping_is_answered(dialects):
    async with dialects() as apps:
        answer = await apps.private.post("/api/reward/ping", data={"info_data": "{}"})

    assert {"message": "Ping request received"} == answer.json()


@pytest.mark.slow
@pytest.mark.parametrize("parts", [{"engine": Flaky}])
async def test_what_waits_too_long_is_an_error(dialects):
    """Scores that are not there at the deadline.  The rejection counts once, although each pull is 200."""
    async with dialects() as apps:
        engine = apps.service.engine
        engine.refusals = [Overloaded("the lane is full")] * 1000
        answer = await out_of_time(scored(apps, body_of(pixels())), lambda: len(engine.asked) > 2)
        counted = apps.service.instruments.exposition().decode()

    assert answer.json()["scores"] is None
    assert "the lane is full" in answer.json()["error"]
    assert 'scoregate_rejections_total{reason="overloaded"} 1.0' in counted


async def test_pictures_hold_memory_of_the_requests_until_they_are_scored(dialects, fakes):
    async with dialects() as apps:
        fakes["vqa"].hold.clear()
        body = body_of(pixels())
        await enqueue(apps.private, body)
        await until(lambda: fakes["vqa"].held)
        during = apps.service.memory.held
        fakes["vqa"].hold.set()
        await apps.service.outbox._tasks.wait()

    assert 2 * len(body) == during
    assert 0 == apps.service.memory.held
