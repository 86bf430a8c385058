"""Clients of rerankers, and vLLM's pairs."""

import re

import pytest

from tests.conftest import b64
from tests.dialects.conftest import BROKEN, PICTURES, PROMPTS

pytestmark = pytest.mark.anyio

URIS = [f"data:image/png;base64,{b64(picture)}" for picture in PICTURES]
DOCUMENTS = [
    URIS[0],
    b64(PICTURES[1]),
    {"image": URIS[2]},
    {"content": [{"type": "image_url", "image_url": {"url": URIS[3]}}]},
]
PROMPT = "a red square"


def asked(**more):
    return {"query": PROMPT, "documents": DOCUMENTS, **more}


async def scores(apps, prompts=(PROMPT,) * 4):
    return [await apps.score(*pair) for pair in zip(PICTURES, prompts, strict=True)]


async def test_pictures_come_best_first_with_their_index(dialects):
    async with dialects() as apps:
        answer = (await apps.private.post("/v1/rerank", json=asked(model="vqascore"))).json()
        expected = sorted(enumerate(await scores(apps)), key=lambda pair: -pair[1])

    assert expected == [(each["index"], each["relevance_score"]) for each in answer["results"]]
    assert {"id", "created", "model", "usage", "results"} == answer.keys()
    assert "vqascore" == answer["model"]


async def test_the_best_few_and_the_documents_are_there_if_asked_for(dialects):
    async with dialects() as apps:
        answer = (await apps.private.post("/v1/rerank", json=asked(top_n=2, return_documents=True))).json()

    assert 2 == len(answer["results"])
    assert all(DOCUMENTS[each["index"]] == each["document"] for each in answer["results"])


@pytest.mark.parametrize("broken", [b64(BROKEN), "a red square", {"image": "https://example.org/a.png"}])
async def test_a_picture_without_a_score_stands_under_errors(dialects, broken):
    """Broken, a text, or an address that the operator allows nobody to fetch; the others keep their index."""
    async with dialects() as apps:
        whole = (await apps.private.post("/v1/rerank", json=asked())).json()
        answer = (await apps.private.post("/v1/rerank", json=asked(documents=[*DOCUMENTS, broken]))).json()

    assert whole["results"] == answer["results"]
    [error] = answer["errors"]
    assert 4 == error["index"]
    assert error["code"] in ("image_undecodable", "not_base64", "url_not_allowed")


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"model": "jina-reranker-m0"}, "no such metric"),
        ({"query": ""}, "query: is empty"),
        ({"query": None}, "query: "),
        ({"documents": []}, "/documents"),
        ({"documents": [{"text": "a dog"}]}, "documents/0: a picture is"),
        ({"documents": [None]}, "documents/0: a picture is"),
        ({"documents": [{"content": URIS}]}, "has 4 parts"),
        ({"documents": [b64(BROKEN)]}, "truncated|cut|no image"),
        ({"documents": [URIS[0]] * 129}, "129 pictures"),
        ({"raw_scores": True}, "raw_scores"),
        ({"top_n": 0}, "/top_n"),
    ],
)
async def test_a_refusal_says_why_where_each_client_looks(dialects, more, text):
    async with dialects() as apps:
        answer = await apps.private.post("/v1/rerank", json=asked(**more))

    body = answer.json()
    assert 422 == answer.status_code
    assert body["error"]["message"] == body["message"] == body["detail"]
    assert "results" not in body

    assert re.search(text, body["detail"])


PAIRS = {
    "one text and pictures": ({"text_1": PROMPT, "data_2": URIS}, [PROMPT] * 4),
    "as many texts as pictures": ({"queries": PROMPTS, "documents": URIS}, PROMPTS),
    "pictures in one content": (
        {"data_1": PROMPT, "data_2": {"content": [{"image_url": {"url": uri}} for uri in URIS]}},
        [PROMPT] * 4,
    ),
    "pictures first": ({"queries": URIS, "items": PROMPTS}, PROMPTS),
    "a text in a content": (
        {"text_1": {"content": [{"type": "text", "text": PROMPT}]}, "text_2": URIS},
        [PROMPT] * 4,
    ),
}


@pytest.mark.parametrize("name", PAIRS)
async def test_each_pair_gets_the_score_that_the_service_gives(dialects, name):
    body, prompts = PAIRS[name]
    async with dialects() as apps:
        answer = (await apps.private.post("/v1/score", json={"model": "vqascore", **body})).json()
        expected = await scores(apps, prompts)

    assert expected == [each["score"] for each in answer["data"]]
    assert [0, 1, 2, 3] == [each["index"] for each in answer["data"]]
    assert {"id", "object", "created", "model", "data", "usage"} == answer.keys()


async def test_one_picture_may_have_many_texts(dialects):
    async with dialects() as apps:
        answer = (await apps.private.post("/v1/score", json={"text_1": PROMPTS, "text_2": URIS[0]})).json()
        expected = [await apps.score(PICTURES[0], prompt) for prompt in PROMPTS]

    assert expected == [each["score"] for each in answer["data"]]


async def test_a_pair_without_a_score_keeps_its_place_and_has_no_number(dialects):
    """Clients read the scores by position."""
    async with dialects() as apps:
        body = {"text_1": PROMPT, "text_2": [URIS[0], b64(BROKEN), URIS[2]]}
        answer = (await apps.private.post("/v1/score", json=body)).json()

    first, broken, last = answer["data"]
    assert broken["score"] is None
    assert "image_undecodable" == broken["error"]["code"]
    assert all(isinstance(each["score"], float) for each in (first, last))


@pytest.mark.parametrize(
    "body",
    [
        {"text_1": PROMPT},
        {"text_2": URIS},
        {"text_1": PROMPT, "data_1": PROMPT, "text_2": URIS},
        {"text_1": PROMPTS[:3], "text_2": URIS},
        {"text_1": [], "text_2": URIS},
        {"text_1": URIS, "text_2": URIS},
        {"text_1": {"content": []}, "text_2": URIS},
        {"text_1": PROMPT, "text_2": [{"content": []}]},
    ],
)
async def test_sides_that_make_no_pairs_are_refused(dialects, body):
    async with dialects() as apps:
        answer = await apps.private.post("/v1/score", json=body)

    assert 422 == answer.status_code


async def test_pictures_by_address_are_fetched_where_the_operator_allows_it(dialects):
    """Where no host answers, the picture has an error of its own."""
    images = {"allow_urls": True, "allowed_url_hosts": ["nowhere.invalid"]}
    async with dialects(images=images) as apps:
        documents = [*DOCUMENTS, {"url": "x", "image": "https://nowhere.invalid/a.png"}]
        answer = (await apps.private.post("/v1/rerank", json=asked(documents=documents))).json()

    assert ["url_failed"] == [error["code"] for error in answer["errors"]]
