"""Requests to peers: they get the pictures and the words that the service gets."""

import base64
import io
import json
import pickle
from math import exp

import httpx
import numpy as np
import pytest

from demo.training.evaluation import cases
from loadtest.corpus import QUESTIONS
from loadtest.peers.scoring import Scorer
from loadtest.peers.servers.fastapi import create as bare
from loadtest.peers.servers.flask import Plain, create
from loadtest.wires import WIRES
from loadtest.workloads import Spec, plan
from models.checkpoints.locate import locate
from models.core.calls import ImageCall, LikelihoodCall, TextCall
from models.core.contract import QUESTION
from models.families.clip.model import Clip
from models.families.clip_flant5.model import ClipFlanT5
from models.images.image import Image


@pytest.fixture
def request_of_33(folder):
    """A request of ours, larger than what infinity takes at once."""
    spec = Spec("whole-64", scale=33 / 512, metric="clipscore")
    [arrival] = plan(spec, folder).arrivals
    return arrival.body


def test_a_peer_gets_the_same_pictures_and_the_same_words(request_of_33):
    """In JSON and as a pickle."""
    items = json.loads(request_of_33)["items"]
    texts = [[item["prompt"]] for item in items]
    [as_json], [pickled] = (WIRES[name].written(request_of_33) for name in ("json", "pickle"))

    assert {"images": [item["image"] for item in items], "texts": texts} == json.loads(as_json)
    files = [base64.b64decode(item["image"]) for item in items]
    assert {"images": files, "texts": texts} == pickle.loads(pickled)
    assert [request_of_33] == WIRES["scoregate"].written(request_of_33)


@pytest.mark.parametrize(
    ("spec", "texts"),
    [
        (Spec("one-by-one", rate=1, seconds=1), None),
        (Spec("one-by-one", rate=1, seconds=1, metric="dsg", questions=True), QUESTIONS),
    ],
)
def test_a_vqa_model_is_asked_in_full(spec, texts, folder):
    """The question around the prompt, or the eight questions as dsg asks them."""
    [arrival] = plan(spec, folder).arrivals
    [item] = json.loads(arrival.body)["items"]
    [body] = WIRES["json"].written(arrival.body)

    assert [texts or [QUESTION.replace("{}", item["prompt"])]] == json.loads(body)["texts"]


def test_infinity_is_asked_in_parts_and_its_caller_makes_the_cosines(request_of_33):
    """32 pictures, one picture, 33 texts; embeddings come back in that order."""
    *pictures, words = map(json.loads, WIRES["infinity"].written(request_of_33))
    seen, read = np.eye(3), np.array([[1, 0, 0], [0.6, 0.8, 0], [0, 0, -1]])
    answers = [
        json.dumps({"data": [{"embedding": list(row)} for row in rows]}).encode()
        for rows in (seen[:2], seen[2:], read)
    ]

    assert [32, 1] == [len(body["input"]) for body in pictures]
    assert ("text", 33) == (words["modality"], len(words["input"]))
    assert [[1.0], [0.8], [-1.0]] == [*WIRES["infinity"].read(200, answers).scores]


@pytest.mark.parametrize("name", ["json", "pickle", "infinity"])
def test_what_a_peer_refuses_is_no_score(name):
    """Whatever its error looks like."""
    answer = WIRES[name].read(500, [b"<html>"])

    assert ([], "refused") == ([*answer.scores], answer.failure)


@pytest.fixture(scope="module")
def asked():
    """Three pictures with a text each."""
    return [(case.image.encoded, case.right) for case in cases("presence", 3)]


@pytest.fixture(scope="module")
def scored(asked):
    """Two questions about each of the pictures, and the scores of the model that the service loads."""
    files, texts = zip(
        *((file, [QUESTION.replace("{}", text), "Is it red?"]) for file, text in asked), strict=True
    )
    model = ClipFlanT5(locate("demo:clip_flant5").directory, dtype="float32", device="cpu")
    calls = [
        LikelihoodCall(Image(file), text) for file, both in zip(files, texts, strict=True) for text in both
    ]
    said = model.score([model.prepare(call) for call in calls])
    return files, texts, pytest.approx([exp(sum(one.log_probs) / 2) for one in said], abs=1e-6)


def test_flask_gives_the_scores_of_the_model_that_the_service_loads(scored):
    """To 1e-6; one broken picture fails the request, as it does in the trainers' servers."""
    files, texts, expected = scored
    client = create("vqa").test_client()
    sent = {"images": files, "texts": texts}

    assert np.ravel(pickle.loads(client.post("/", data=pickle.dumps(sent)).data)["scores"]) == expected
    broken = sent | {"images": [files[0], files[1][:200], files[2]]}
    assert 500 == client.post("/", data=pickle.dumps(broken)).status_code


@pytest.mark.anyio
async def test_a_bare_fastapi_app_gives_the_same(scored):
    """It serves once its model is loaded."""
    files, texts, expected = scored
    sent = {"images": [base64.b64encode(file).decode() for file in files], "texts": texts}
    transport = httpx.ASGITransport(bare("vqa"))
    async with httpx.AsyncClient(transport=transport, base_url="http://peer") as client:
        answer = await client.post("/score", json=sent)

        assert 200 == (await client.get("/readyz")).status_code
        assert np.ravel(answer.json()["scores"]) == expected


def test_a_clip_gives_the_cosine_of_each_text(asked):
    """As the model's own embeddings have it."""
    scorer, model = Scorer("clip"), Clip("demo:clip", dtype="float32", device="cpu")
    [(file, text), *_] = asked
    image, right, other = (
        found.vector
        for found in model.score(
            [model.prepare(call) for call in (ImageCall(Image(file)), TextCall(text), TextCall("a star"))]
        )
    )

    [scores] = scorer.score([scorer.prepare(file, [text, "a star"])])
    assert [image @ right, image @ other] == pytest.approx(scores, abs=1e-6)


def test_flask_unpickles_nothing_but_plain_values():
    """A pickle that names a function is refused, whatever it is."""
    with pytest.raises(pickle.UnpicklingError, match="no plain value"):
        Plain(io.BytesIO(pickle.dumps(print))).load()
