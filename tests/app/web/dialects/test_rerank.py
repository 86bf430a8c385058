"""Clients of rerankers, and vLLM's pairs."""

import json
import re

import pytest

from models.families.fake.model import FakeModel
from tests.app.web.dialects.conftest import BROKEN, PICTURES, PROMPTS
from tests.support.pictures import b64
from tests.support.refusals import JSON

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


@pytest.mark.shared
async def test_pictures_come_best_first_with_their_index(dialects):
    async with dialects() as apps:
        answer = (await apps.private.post("/v1/rerank", json=asked(model="vqascore"))).json()
        expected = sorted(enumerate(await scores(apps)), key=lambda pair: -pair[1])

    assert expected == [(each["index"], each["relevance_score"]) for each in answer["results"]]
    assert {"id", "created", "model", "usage", "results"} == answer.keys()
    assert "vqascore" == answer["model"]


@pytest.mark.shared
@pytest.mark.parametrize("path", ["/v2/rerank", "/rerank"])
@pytest.mark.parametrize("port", ["main", "private"])
async def test_other_clients_find_the_same_under_their_paths(dialects, path, port):
    """Cohere's second version, and vLLM."""
    async with dialects() as apps:
        first = (await apps.main.post("/v1/rerank", json=asked())).json()
        other = (await getattr(apps, port).post(path, json=asked())).json()

    assert first["results"] == other["results"]
    assert first.keys() == other.keys()


@pytest.mark.shared
async def test_the_best_few_and_the_documents_are_there_if_asked_for(dialects):
    """With a text in each, which typed clients need."""
    async with dialects() as apps:
        answer = (await apps.private.post("/v1/rerank", json=asked(return_documents=True))).json()
        best = (await apps.private.post("/v1/rerank", json=asked(top_n=2))).json()

    returned = {each["index"]: each.pop("document") for each in answer["results"]}
    sent = [{"text": each} if isinstance(each, str) else {"text": "", **each} for each in DOCUMENTS]
    assert sent == [returned[number] for number in range(4)]
    assert answer["results"][:2] == best["results"]


@pytest.mark.shared
async def test_pictures_in_one_content_are_documents_each(dialects):
    """As vLLM's examples send them; so is a text that holds a picture."""
    parts = [{"type": "image_url", "image_url": {"url": uri}} for uri in URIS[:3]]
    async with dialects() as apps:
        listed = (await apps.private.post("/rerank", json=asked(documents=URIS))).json()
        content = {"content": [*parts, {"type": "text", "text": URIS[3]}]}
        answer = (await apps.private.post("/rerank", json=asked(documents=content))).json()

    assert listed["results"] == answer["results"]


TEI = {"query": PROMPT, "raw_scores": False, "truncate": False}


@pytest.mark.shared
async def test_texts_are_answered_with_a_bare_list(dialects):
    """As text-embeddings-inference does, with the texts where they are wanted."""
    async with dialects() as apps:
        expected = (await apps.private.post("/v1/rerank", json=asked(documents=URIS))).json()["results"]
        answer = (await apps.private.post("/rerank", json={**TEI, "texts": URIS})).json()
        body = {**TEI, "texts": URIS, "return_text": True}
        with_texts = (await apps.private.post("/rerank", json=body)).json()

    assert [{"index": each["index"], "score": each["relevance_score"]} for each in expected] == answer
    assert [{**each, "text": URIS[each["index"]]} for each in answer] == with_texts


@pytest.mark.shared
async def test_texts_without_a_score_are_an_error_of_all(dialects):
    """A bare list has no place for one."""
    async with dialects() as apps:
        answer = await apps.private.post("/rerank", json={**TEI, "texts": [*URIS, b64(BROKEN)]})

    assert 422 == answer.status_code
    assert answer.json()["detail"].startswith("texts/4: ")


async def test_the_metrics_are_listed_as_models(dialects):
    """The one of the settings first, since examples take the first."""
    async with dialects({"metric": "clipscore"}) as apps:
        answers = [(await app.get("/v1/models")).json() for app in (apps.main, apps.private)]
        served = list(apps.service.engine.metrics)

    for answer in answers:
        names = [model["id"] for model in answer["data"]]
        assert "list" == answer["object"]
        assert {"model"} == {model["object"] for model in answer["data"]}
        assert "clipscore" == names[0]
        assert sorted(served) == sorted(names)


async def test_a_reranker_of_another_server_is_named_as_any_metric(dialects, fakes):
    """The scores and their order are those of `rerankscore`."""
    fakes["reranker"] = FakeModel("reranker")
    async with dialects() as apps:
        answer = (await apps.private.post("/v1/rerank", json=asked(model="rerankscore"))).json()
        scores = [await apps.score(picture, PROMPT, "rerankscore") for picture in PICTURES]

    assert sorted(enumerate(scores), key=lambda pair: -pair[1]) == [
        (each["index"], each["relevance_score"]) for each in answer["results"]
    ]


async def test_the_public_score_is_not_shadowed(dialects):
    """`POST /score` has pairs on the port of the dialects alone."""
    body = {"text_1": PROMPT, "text_2": URIS}
    async with dialects() as apps:
        own = await apps.private.post("/score", json=body)
        pairs = await apps.main.post("/v1/score", json=body)
        public = await apps.main.post("/score", json=body)

    assert pairs.json()["data"] == own.json()["data"]
    assert 422 == public.status_code


@pytest.mark.shared
@pytest.mark.parametrize("value", ["1180591620717411303424", '"\\ud800"', '{"\\udfff": 1}'])
async def test_what_cannot_be_returned_is_refused_before_anything_is_scored(dialects, fakes, value):
    """And it does no harm where nothing is to be returned."""
    body = '{"query": "a", "documents": ["a", {"image": "%s", "n": %s}], "return_documents": %s}'
    async with dialects() as apps:
        content = [body % (URIS[0], value, wanted) for wanted in ("true", "false")]
        refused = await apps.private.post("/v1/rerank", content=content[0], headers=JSON)
        calls = list(fakes["vqa"].calls)
        taken = await apps.private.post("/v1/rerank", content=content[1], headers=JSON)

    assert 422 == refused.status_code
    assert "documents/1 cannot be returned" in refused.json()["detail"]
    assert [] == calls
    assert [1] == [each["index"] for each in taken.json()["results"]]


MANY = [None] * 129


@pytest.mark.shared
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/rerank", {"query": "", "documents": MANY}),
        ("/v1/rerank", {"query": "", "documents": {"content": MANY}}),
        ("/rerank", {"query": "", "texts": [""] * 129}),
        ("/v1/score", {"text_1": "", "text_2": MANY}),
        ("/v1/score", {"text_1": MANY, "text_2": MANY}),
        ("/v1/score", {"text_1": MANY, "text_2": [None]}),
    ],
)
async def test_entries_are_counted_before_any_is_looked_at(dialects, path, body):
    """So that a body of a million is refused as fast as it is read."""
    async with dialects() as apps:
        answer = await apps.private.post(path, content=json.dumps(body), headers=JSON)

    assert 422 == answer.status_code
    assert "129 pictures; from 1 to 128" in answer.json()["detail"]


@pytest.mark.shared
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


@pytest.mark.shared
@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"model": "jina-reranker-m0"}, "no such metric"),
        ({"query": ""}, "query: is empty"),
        ({"query": None}, "query: "),
        ({"documents": []}, "0 pictures"),
        ({"documents": None}, "either documents or texts"),
        ({"texts": URIS}, "either documents or texts"),
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


@pytest.mark.shared
@pytest.mark.parametrize("name", PAIRS)
async def test_each_pair_gets_the_score_that_the_service_gives(dialects, name):
    body, prompts = PAIRS[name]
    async with dialects() as apps:
        answer = (await apps.private.post("/v1/score", json={"model": "vqascore", **body})).json()
        expected = await scores(apps, prompts)

    assert expected == [each["score"] for each in answer["data"]]
    assert [0, 1, 2, 3] == [each["index"] for each in answer["data"]]
    assert {"id", "object", "created", "model", "data", "usage"} == answer.keys()


@pytest.mark.shared
async def test_one_picture_may_have_many_texts(dialects):
    async with dialects() as apps:
        answer = (await apps.private.post("/v1/score", json={"text_1": PROMPTS, "text_2": URIS[0]})).json()
        expected = [await apps.score(PICTURES[0], prompt) for prompt in PROMPTS]

    assert expected == [each["score"] for each in answer["data"]]


@pytest.mark.shared
async def test_a_pair_without_a_score_keeps_its_place_and_has_no_number(dialects):
    """Clients read the scores by position."""
    async with dialects() as apps:
        body = {"text_1": PROMPT, "text_2": [URIS[0], b64(BROKEN), URIS[2]]}
        answer = (await apps.private.post("/v1/score", json=body)).json()

    first, broken, last = answer["data"]
    assert broken["score"] is None
    assert "image_undecodable" == broken["error"]["code"]
    assert all(isinstance(each["score"], float) for each in (first, last))


@pytest.mark.shared
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
