"""The service with a real vLLM behind it that serves a tiny random Qwen3-VL as an embedder."""

import base64
from itertools import product

import httpx
import pytest
import torch

from models.core.calls import ImageCall, TextCall
from models.families.openai import CLIP
from models.families.openai.clip import OpenAiClip
from models.images.image import Image
from tests.external.vllm.services import PIXELS, scored, server, service
from tests.support.tiny_qwen3_vl import embedding

PROMPTS = ["a red star", "two blue circles"]
RAW = {"use_activation": False}  # vLLM normalises otherwise


@pytest.fixture(scope="module")
def embedder():
    """The server."""
    with server("embedder") as found:
        yield found


@pytest.fixture(scope="module")
def client(embedder, tmp_path_factory):
    """Of a service whose CLIP is that embedder, whose vectors are not normalised there."""
    tables = f"""
        [models.clip]
        family = "openai_clip"
        base_url = "{embedder.base_url}"
        model = "m"
        timeout_s = 170
        extra_body = {{ use_activation = false }}
    """
    with service(tmp_path_factory.mktemp("with-embedder"), tables) as made:
        yield made


@pytest.mark.parametrize("name", ["m", "Qwen3-VL-Embedding-2B"])
def test_a_vector_is_the_state_that_transformers_computes(embedder, name):
    """Before a length of 1, by the request of the family: alone, or as the release has it, by its name."""
    table = CLIP.served.settings_of(name)
    for shown in (*PIXELS, *PROMPTS):
        vector = embedded(embedder, shown, table)
        expected = embedding(embedder.checkpoint, PIXELS.get(shown, shown), table.get("instruction", ""))

        assert vector == pytest.approx(expected.tolist(), abs=1e-4)


def embedded(embedder, shown, table):
    """The vector of vLLM's answer to the request for a picture or text, by the settings of *table*."""
    model = OpenAiClip("m", **{**table, "extra_body": {**table.get("extra_body", {}), **RAW}})
    sent = []

    async def post(path, body):
        sent.append((path, body))
        raise InterruptedError

    call = TextCall(shown) if isinstance(shown, str) else ImageCall(Image(shown))
    with pytest.raises(InterruptedError):
        model.answer(model.prepare(call), post).send(None)
    [(path, body)] = sent
    answer = httpx.post(f"{embedder.base_url}/{path}", json=body, timeout=60, trust_env=False)
    [row] = answer.json()["data"]
    return row["embedding"]


def test_scores_are_the_cosines_of_the_states_that_transformers_computes(client, embedder):
    """Of pictures and texts, and of two pictures, although vLLM's vectors have other lengths than 1."""
    of_pictures = {picture: embedding(embedder.checkpoint, rgb) for picture, rgb in PIXELS.items()}
    of_texts = {text: embedding(embedder.checkpoint, text) for text in PROMPTS}
    for (picture, one), (text, other) in product(of_pictures.items(), of_texts.items()):
        [result] = scored(client, [text], "clipscore", picture)

        assert result["details"]["clipscore"]["cosine"] == pytest.approx(cosine(one, other), abs=1e-4)
    first, second, _ = PIXELS
    reference = base64.b64encode(second).decode()
    [result] = scored(client, ["a star"], "clip_i", first, beside={"references": [reference]})

    expected = cosine(of_pictures[first], of_pictures[second])
    assert result["scores"]["clip_i"] == pytest.approx(expected, abs=1e-4)


def cosine(one, other):
    """That of two vectors."""
    return float(torch.cosine_similarity(one, other, dim=0))
