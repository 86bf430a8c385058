"""An embedder of images and texts behind an OpenAI-compatible API, in the role of a CLIP."""

import json

import pytest

from models.families.openai.clip import SAME_IMAGES
from service.serving.backends.trust import OTHERS_BESIDE
from tests.support.fake_openai import KNOWN
from tests.support.pictures import b64, item, png
from tests.support.questions import scored

pytestmark = pytest.mark.anyio

PICTURE, TEXT = [3.0, 4.0, 0.0], [0.0, 2.0, 0.0]


def embedded(*vectors):
    """An answer with those embeddings."""
    return {"data": [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]}


def sound(body):
    """An embedder that sees pictures."""
    return 200, embedded([1.0, 0.5, 0.0] if KNOWN in json.dumps(body) else [0.0, 0.5, 1.0])


def seen(body):
    """Embeddings of another picture, or of texts."""
    inputs = body.get("input", [])
    if "messages" in body or body.get("modality") == "image" or "image" in str(inputs):
        return 200, embedded(PICTURE)
    return 200, embedded(*[TEXT] * len(inputs))


@pytest.fixture
def embedder(server):
    """A sound one."""
    server.known, server.embed = sound, seen
    return server


async def clipscore(client):
    """The result of one picture."""
    return await scored(client, "clipscore", item("a red dog"))


async def test_the_cosine_is_of_vectors_that_are_normalised_here(with_clip, embedder):
    """A picture is a chat of its own, and a text is in a list."""
    async with with_clip() as client:
        result = await clipscore(client)

    by_field = {"messages" if "messages" in body else "input": body for body in embedder.bodies}
    [part] = by_field["messages"]["messages"][0]["content"]
    assert {"clipscore": pytest.approx(0.8)} == result["scores"]
    assert ("image_url", ["a red dog"]) == (part["type"], by_field["input"]["input"])
    assert {"float"} == {body["encoding_format"] for body in embedder.bodies}


async def test_texts_of_a_moment_share_a_request(with_clip, embedder):
    """Each gets its own vector."""
    async with with_clip() as client:
        body = {"items": [item(f"a dog of {n}") for n in range(5)], "metrics": ["clipscore"]}
        results = (await client.post("/score", json=body)).json()["results"]

    [texts] = [each["input"] for each in embedder.bodies if "input" in each]
    assert {f"a dog of {n}" for n in range(5)} == {*texts}
    assert [pytest.approx(0.8)] * 5 == [result["scores"]["clipscore"] for result in results]


@pytest.mark.parametrize("body", ["infinity", "jina"])
async def test_infinity_and_jina_have_pictures_in_their_input(with_clip, embedder, body):
    """A `data:` URI with a modality, or an object with base64."""
    async with with_clip(body=body) as client:
        result = await clipscore(client)

    inputs = {json.dumps(each["input"][0])[:40]: each for each in embedder.bodies}
    [picture] = [each for each in inputs.values() if "red dog" not in str(each["input"])]
    [text] = [each for each in inputs.values() if "red dog" in str(each["input"])]
    assert {"clipscore": pytest.approx(0.8)} == result["scores"]
    if body == "infinity":
        assert ("image", "text") == (picture["modality"], text["modality"])
        assert picture["input"][0].startswith("data:image/png;base64,")
        assert ["a red dog"] == text["input"]
    else:
        assert not picture["input"][0]["image"].startswith("data:")
        assert [{"text": "a red dog"}] == text["input"]


async def test_a_text_may_be_a_chat(with_clip, server):
    """For a model whose template has an instruction for texts, too."""
    server.known = sound
    server.embed = lambda body: (200, embedded(TEXT if "red dog" in json.dumps(body) else PICTURE))
    async with with_clip(texts_as_chats=True) as client:
        result = await clipscore(client)

    assert {"clipscore": pytest.approx(0.8)} == result["scores"]
    assert all("messages" in body for body in server.bodies)


async def test_an_instruction_is_the_first_message_of_each_chat(with_clip, server):
    """Of pictures and texts, at the check too."""
    server.known = sound
    server.embed = lambda body: (200, embedded(TEXT if "red dog" in json.dumps(body) else PICTURE))
    async with with_clip(texts_as_chats=True, instruction="Represent it.") as client:
        await clipscore(client)

    first = {"role": "system", "content": [{"type": "text", "text": "Represent it."}]}
    assert [first] * 2 == [body["messages"][0] for body in server.bodies]
    assert server.checks
    assert all(body["messages"][0] == first for body in server.checks)


async def test_metrics_of_references_work_with_it(with_clip, embedder):
    """The cosine of two pictures, and with both texts and references."""
    async with with_clip() as client:
        alike = await scored(client, "clip_i", item(references=[b64(png("blue"))]))
        both = await scored(client, "refclipscore", item("a red dog"), reference_texts=["a dog"], prefix=None)

    assert {"clip_i": pytest.approx(1.0)} == alike["scores"]
    assert {"refclipscore": pytest.approx(4 / 3)} == both["scores"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({}, "returned no embeddings"),
        (embedded(), "returned 0 embeddings, not 1"),
        (embedded(TEXT, TEXT), "returned 2 embeddings, not 1"),
        (embedded([0.0, 0.0, 0.0]), "without a direction"),
        (embedded([1.0, 2.0]), "of 2 numbers after one of 3"),
        (embedded(["1", 2.0, 3.0]), "not a list of numbers"),
        ({"data": [{"index": 1, "embedding": TEXT}]}, "not those of the request"),
    ],
    ids=["nothing", "none", "two", "zero", "narrow", "text", "another's"],
)
async def test_an_answer_that_is_no_vector_is_an_error(with_clip, embedder, answer, told):
    """Or one of another width than before."""
    embedder.embed = lambda body: (200, answer)
    async with with_clip() as client:
        result = await clipscore(client)

    assert {} == result["scores"]
    assert told in result["errors"]["clipscore"]["detail"]


async def test_vectors_are_taken_by_their_index(with_clip, server):
    """A server may return them in any order."""

    def answered(body):
        if "messages" in body:
            return 200, embedded(PICTURE)
        rows = embedded(*[TEXT if "red" in each else PICTURE for each in body["input"]])["data"]
        return 200, {"data": rows[::-1]}

    server.known, server.embed = sound, answered
    async with with_clip() as client:
        body = {"items": [item("a red dog"), item("a blue cat")], "metrics": ["clipscore"]}
        results = (await client.post("/score", json=body)).json()["results"]

    assert [pytest.approx(0.8), pytest.approx(1.0)] == [each["scores"]["clipscore"] for each in results]


class Together:
    """A server whose vectors depend on the number of requests before."""

    def __init__(self):
        self.requests = 0

    def __call__(self, body):
        self.requests += 1
        _, answer = sound(body)
        answer["data"][0]["embedding"][1] += 0.01 if self.requests > 3 else 0.0
        return 200, answer


@pytest.mark.parametrize(
    ("known", "fault"),
    [(lambda body: (200, embedded([1.0, 1e-4, 0.0])), SAME_IMAGES), (Together(), OTHERS_BESIDE)],
    ids=["dropped pictures", "a batch that matters"],
)
async def test_an_embedder_that_fails_its_check_is_not_served(with_clip, embedder, known, fault):
    """With the sentence that says why."""
    embedder.known = known
    async with with_clip() as client:
        answer = await client.post("/score", json={"items": [item()], "metrics": ["clipscore"]})

    assert 503 == answer.status_code
    assert fault in answer.json()["detail"]
