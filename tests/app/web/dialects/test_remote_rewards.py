"""OpenRLHF's and slime's remote reward models: the picture is in the label, the prompt or the response."""

import pytest

from tests.app.web.dialects.conftest import BROKEN, PICTURES, PROMPTS
from tests.support.pictures import b64

pytestmark = pytest.mark.anyio

URIS = [f"data:image/png;base64,{b64(picture)}" for picture in PICTURES]
ASK = "Describe it: "


def openrlhf(**more):
    """As its trainer builds it: the query is the decoded prompt with the response."""
    query = [f"{ASK}{prompt}</s>" for prompt in PROMPTS]
    return {"query": query, "prompts": [ASK] * 4, "labels": URIS, **more}


def slime(**more):
    return {"prompt": ASK, "response": PROMPTS[0], "label": URIS[0], **more}


@pytest.mark.shared
async def test_openrlhf_has_the_score_of_each_sample(dialects):
    """In the form of its own server of rewards, by the metric of the settings or of the path."""
    async with dialects() as apps:
        answer = await apps.private.post("/get_reward", json=openrlhf())
        named = await apps.private.post("/clipscore/get_reward", json=openrlhf())
        pairs = list(zip(PICTURES, PROMPTS, strict=True))
        expected = [await apps.score(*pair) for pair in pairs]
        of_clip = [await apps.score(*pair, "clipscore") for pair in pairs]

    logs = {"vqascore": expected}
    assert {"rewards": expected, "scores": expected, "extra_logs": logs} == answer.json()
    assert of_clip == named.json()["rewards"]


@pytest.mark.shared
async def test_slime_has_a_number(dialects):
    """Whichever of the three has the picture."""
    messages = [
        {"role": "user", "content": [{"type": "image", "image": URIS[0]}, {"type": "text", "text": ASK}]}
    ]
    bodies = [
        slime(),
        slime(prompt=messages, label="whatever"),
        slime(prompt=PROMPTS[0], response=URIS[0], label=None),
    ]
    async with dialects() as apps:
        answers = [await apps.private.post("/remote_rm", json=body) for body in bodies]
        named = await apps.private.post("/clipscore/remote_rm", json=slime())
        expected = await apps.score(PICTURES[0], PROMPTS[0])
        of_clip = await apps.score(PICTURES[0], PROMPTS[0], "clipscore")

    assert [expected] * 3 == [answer.json() for answer in answers]
    assert of_clip == named.json()


CUT = f"data:image/png;base64,{b64(BROKEN)}"
REFUSED = {
    "a broken picture": ("/get_reward", openrlhf(labels=[*URIS[:3], CUT]), "sample 3"),
    "no picture": ("/get_reward", openrlhf(labels=None), "0 pictures"),
    "a query without its prompt": ("/get_reward", openrlhf(prompts=["x"] * 4), "sample 0"),
    "labels of others": ("/get_reward", openrlhf(labels=URIS[:2]), "2 labels"),
    "nothing": ("/get_reward", {}, "/query"),
    "no such metric": ("/bleu/get_reward", openrlhf(), "no such metric"),
    "slime's broken picture": ("/remote_rm", slime(label=CUT), "sample 0"),
    "slime's missing picture": ("/remote_rm", slime(label="a label"), "0 pictures"),
    "slime's empty response": ("/remote_rm", slime(response=""), "empty"),
    "slime's metric": ("/bleu/remote_rm", slime(), "no such metric"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_has_no_score_is_an_error_and_no_number(dialects, name):
    """Both trainers raise for the status."""
    path, body, said = REFUSED[name]
    async with dialects() as apps:
        answer = await apps.private.post(path, json=body)

    assert answer.status_code in (404, 422)
    assert said in str(answer.json()["detail"])
    assert {"detail", "code"} == answer.json().keys()
