"""FastVideo PromptRL's reward service: videos in groups; pictures stand for videos of one frame."""

import asyncio

import pytest

from tests.app.web.dialects.conftest import BROKEN, PICTURES

pytestmark = pytest.mark.anyio

PATH = "/v1/rewards:score"


def form(sample="s0", size=1, prompt="a red square", request="r", group="g", **more):
    """The fields that the client sends."""
    return {
        "group_id": group,
        "request_id": request,
        "sample_id": sample,
        "expected_group_size": str(size),
        "original_prompt": prompt,
        "reward_tag": "",
        "fps": "16",
        **more,
    }


async def sent(client, video=PICTURES[0], **fields):
    files = {"video": ("sample.mp4", video, "video/mp4")}
    return await client.post(PATH, data=form(**fields), files=files)


async def test_a_sample_has_the_score_of_the_api(dialects):
    """By the metric of the settings, or the one that the tag names; any other tag is the trainer's own."""
    async with dialects() as apps:
        expected = [await apps.score(PICTURES[0], "a red square", name) for name in ("vqascore", "clipscore")]
        answers = [
            await sent(apps.main, request=f"r{number}", reward_tag=tag)
            for number, tag in enumerate(("", "clipscore", "videos"))
        ]

    scores = [expected[0], expected[1], expected[0]]
    names = ["vqascore", "clipscore", "vqascore"]
    assert [200] * 3 == [answer.status_code for answer in answers]
    assert [
        {"request_id": f"r{number}", "sample_id": "s0", "score": score, "details": {name: score}}
        for number, (score, name) in enumerate(zip(scores, names, strict=True))
    ] == [answer.json() for answer in answers]


async def test_a_group_is_answered_when_all_of_it_is_scored(dialects):
    """The first waits for the last."""
    async with dialects() as apps:
        first = asyncio.create_task(sent(apps.main, PICTURES[0], size=2, sample="s0"))
        while not (group := apps.groups.get(("g", "r"))) or "s0" not in group.outcomes:
            await asyncio.sleep(0)
        assert not first.done()
        last = await sent(apps.main, PICTURES[1], size=2, sample="s1")
        answers = [(await first).json(), last.json()]

    assert ["s0", "s1"] == [answer["sample_id"] for answer in answers]
    assert answers[0]["score"] != answers[1]["score"]


async def test_a_retry_has_the_answer_that_was_given(dialects):
    """Without scoring anything again."""
    async with dialects() as apps:
        first, again = [await sent(apps.main) for _ in range(2)]
        late = await sent(apps.main, sample="s1")

    assert first.json() == again.json()
    assert 409 == late.status_code  # the request was complete without it


async def test_a_request_id_belongs_to_its_group(dialects):
    """With another group it is another one, with other videos."""
    async with dialects() as apps:
        first = await sent(apps.main, PICTURES[0], group="g")
        other = await sent(apps.main, PICTURES[1], group="h")

    assert [200, 200] == [first.status_code, other.status_code]
    assert first.json()["score"] != other.json()["score"]


async def test_a_restarted_training_uses_its_ids_again(dialects):
    """As soon as the finished group is forgotten; until then other videos are 409."""
    async with dialects() as apps:
        early = [await sent(apps.main, PICTURES[n]) for n in (0, 1)]
    async with dialects({"promptrl_kept_s": 0}) as apps:
        late = [await sent(apps.main, PICTURES[n]) for n in (0, 1)]

    assert [200, 409] == [answer.status_code for answer in early]
    assert [200, 200] == [answer.status_code for answer in late]
    assert late[0].json()["score"] != late[1].json()["score"]


async def test_one_failed_sample_fails_its_group_and_a_retry_scores_it_again(dialects):
    """So every rank fails the step, and none goes on with half a group."""
    async with dialects() as apps:
        answers = await asyncio.gather(
            sent(apps.main, BROKEN, size=2, sample="s0"), sent(apps.main, PICTURES[0], size=2, sample="s1")
        )
        again = await asyncio.gather(
            *(sent(apps.main, PICTURES[n], size=2, sample=f"s{n}") for n in range(2))
        )

    assert [400, 400] == [answer.status_code for answer in answers]
    assert 1 == len({answer.json()["detail"] for answer in answers})
    assert [200, 200] == [answer.status_code for answer in again]


async def test_a_group_that_stays_incomplete_ends_with_its_timeout(dialects):
    """With 503 and the number of its samples, and it is forgotten."""
    async with dialects({"timeouts_s": {"promptrl": 0.2}}) as apps:
        answer = await sent(apps.main, size=2)
        groups = dict(apps.groups)

    assert 503 == answer.status_code
    assert "1 of 2 samples" in answer.json()["detail"]
    assert {} == groups


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"expected_group_size": "3"}, 400, "expected_group_size: 3, and 2 for others of the group"),
        ({"prompt": "a dog"}, 409, "sample_id 's0' was sent with other content"),
        ({"expected_group_size": "0", "request": "x"}, 400, "/expected_group_size: "),
        ({"expected_group_size": "many", "request": "x"}, 400, "/expected_group_size: "),
        ({"prompt": "", "request": "x"}, 400, "/original_prompt: is empty"),
        ({"video": b"", "request": "x"}, 400, "video: "),
    ],
)
async def test_a_form_that_does_not_fit_is_refused(dialects, fields, status, said):
    """With its field, while the group waits for others."""
    async with dialects() as apps:
        waiting = asyncio.create_task(sent(apps.main, PICTURES[0], size=2))
        while not apps.groups.get(("g", "r")):
            await asyncio.sleep(0)
        answer = await sent(apps.main, fields.pop("video", PICTURES[0]), **{"size": 2, **fields})
        waiting.cancel()

    assert (status, True) == (answer.status_code, said in answer.json()["detail"]), answer.text


async def test_another_type_of_content_is_refused(dialects):
    """As unsupported."""
    async with dialects() as apps:
        answer = await apps.main.post(PATH, json=form())

    assert 415 == answer.status_code


async def test_its_health_is_that_of_the_metric(dialects):
    """Ready when the model is."""
    async with dialects() as apps:
        answer = await apps.private.get("/healthz")

    assert (200, {"status": "ok"}) == (answer.status_code, answer.json())
