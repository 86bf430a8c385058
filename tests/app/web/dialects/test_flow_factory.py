"""Flow-Factory's client: `/health` when training starts, then `/compute`."""

import pytest

from service.core.errors import ModelFault
from tests.app.web.dialects.conftest import BROKEN, PICTURES, PROMPTS
from tests.support.pictures import b64

pytestmark = pytest.mark.anyio

NOTHING = {"video": None, "condition_images": None, "condition_videos": None, "kwargs": None}


def asked(**more):
    """As its client builds it."""
    return {"prompt": PROMPTS, "image": [b64(picture) for picture in PICTURES], **NOTHING, **more}


@pytest.mark.shared
async def test_each_picture_gets_the_score_that_the_service_gives(dialects):
    """On the port of its own as on the main one."""
    async with dialects() as apps:
        answers = [await client.post("/compute", json=asked()) for client in (apps.main, apps.private)]
        expected = [await apps.score(*pair) for pair in zip(PICTURES, PROMPTS, strict=True)]

    assert [{"rewards": expected}] * 2 == [answer.json() for answer in answers]


async def test_training_starts_where_the_service_is_up(dialects):
    async with dialects() as apps:
        assert [200, 200] == [
            (await client.get("/health")).status_code for client in (apps.main, apps.private)
        ]


async def test_several_rewards_have_several_addresses(dialects):
    """Each is configured with a `server_url`, to which the client adds its two paths."""
    async with dialects() as apps:
        health = await apps.private.get("/clipscore/health")
        answer = await apps.private.post("/clipscore/compute", json=asked())
        expected = [await apps.score(*pair, "clipscore") for pair in zip(PICTURES, PROMPTS, strict=True)]
        unknown = await apps.private.get("/pickscore/health")

    assert 200 == health.status_code
    assert expected == answer.json()["rewards"]
    assert 404 == unknown.status_code


async def test_training_does_not_start_for_a_metric_whose_model_does_not_serve(dialects):
    async with dialects() as apps:
        apps.service.runtime.handles["clip"].backend.presence.change("unloaded")
        health = await apps.private.get("/clipscore/health")

    assert 503 == health.status_code


REFUSED = {
    "a broken picture": ({"image": [*map(b64, PICTURES[:3]), b64(BROKEN)]}, "image 3: "),
    "no base64": ({"image": ["x y", *map(b64, PICTURES[:3])]}, "image 0: "),
    "no pictures": ({"image": None}, "0 pictures for 4 prompts"),
    "too few pictures": ({"image": [b64(PICTURES[0])]}, "1 pictures for 4 prompts"),
    "a video": ({"video": [["x"]]}, "video: "),
    "pictures to edit": ({"condition_images": [["x"]]}, "condition_images: "),
    "an empty prompt": ({"prompt": ["", *PROMPTS[1:]]}, "/prompt/0"),
    "no prompts": ({"prompt": []}, "/prompt"),
    "too many": ({"prompt": ["a"] * 1025, "image": [b64(PICTURES[0])] * 1025}, "1025 pictures"),
}


@pytest.mark.shared
@pytest.mark.parametrize("name", REFUSED)
async def test_what_cannot_be_scored_is_an_error_that_the_client_raises(dialects, name):
    """With another status than 200 it would send the same twice more and not show the text."""
    more, text = REFUSED[name]
    async with dialects() as apps:
        answer = await apps.private.post("/compute", json=asked(**more))

    assert 200 == answer.status_code
    assert text in answer.json()["error"]
    assert "rewards" not in answer.json()


async def test_more_pictures_than_score_takes_are_worked_on_in_windows(dialects):
    """And the rewards are in order."""
    prompts = [f"a square {number}" for number in range(130)]
    async with dialects() as apps:
        answer = await apps.private.post(
            "/compute", json=asked(prompt=prompts, image=[b64(PICTURES[0])] * 130)
        )
        expected = [await apps.score(PICTURES[0], prompts[n]) for n in (0, 127, 128, 129)]

    assert expected == [answer.json()["rewards"][n] for n in (0, 127, 128, 129)]


async def test_lists_that_are_too_long_are_not_read_to_their_end(dialects):
    """290,000 entries held the service for a quarter of a second."""
    body = asked(prompt=["a"] * 5000 + [""], image=[b64(PICTURES[0])] * 5001)
    async with dialects() as apps:
        answer = await apps.private.post("/compute", json=body)

    assert "at most 4096" in answer.json()["error"]


async def test_a_fault_is_a_status_after_which_the_client_tries_again(dialects, fakes):
    async with dialects() as apps:
        vqa, example = fakes["vqa"], fakes["vqa"].example()  # which works, or the device would be broken
        vqa.fault = lambda call: None if call == example else ModelFault("broken")
        answer = await apps.private.post("/compute", json=asked())

    assert 500 == answer.status_code
    assert "rewards" not in answer.json()


async def test_a_dialect_that_is_not_listed_is_not_there(dialects):
    async with dialects({"enabled": ["rerank"]}) as apps:
        for client in (apps.main, apps.private):
            for path in ("/compute", "/vqascore/compute", "/unirl/score"):
                assert 404 == (await client.post(path, json=asked())).status_code


async def test_nothing_is_there_by_default(serve):
    async with serve() as client:
        for path in ("/compute", "/vqascore/compute", "/unirl/score", "/v1/rerank", "/v1/score"):
            assert 404 == (await client.post(path, json=asked())).status_code
