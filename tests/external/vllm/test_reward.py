"""The service with a real vLLM behind it that serves a reward model: a tiny random LLaVA with two outputs."""

import base64
import io

import PIL.Image
import pytest

from demo.samples import FOLDER, listed
from tests.external.vllm.services import server, service
from tests.support.tiny_llava import rewards

PICTURES = [(FOLDER / sample["file"]).read_bytes() for sample in listed()[:3]]
PROMPTS = ["a red circle", "two blue stars", "a red circle left of a blue square"]


@pytest.fixture(scope="module")
def reward():
    """The server of the reward model."""
    with server("reward") as found:
        yield found


@pytest.fixture(scope="module")
def llava(reward):
    """The checkpoint's directory."""
    return reward.checkpoint


@pytest.fixture(scope="module")
def client(reward, tmp_path_factory):
    """Of a service whose one model is that reward model, as the docs have its command and its table."""
    tables = f"""
        [models.hps]
        role = "reward"
        family = "openai_reward"
        base_url = "{reward.base_url}"
        model = "m"
        template = "Rate this picture of {{}}."
        timeout_s = 170

        [metrics.reward_model]
        model = "hps"
    """
    with service(tmp_path_factory.mktemp("with-reward"), tables) as made:
        yield made


def test_a_reward_is_the_number_that_transformers_computes(client, llava):
    """Of three pictures and three prompts in one request, to 1e-4 in float32; no sigmoid, no softmax."""
    items = [
        {"prompt": prompt, "image": base64.b64encode(picture).decode()}
        for picture in PICTURES
        for prompt in PROMPTS
    ]
    body = {"items": items, "metrics": ["reward_model"], "explain": True, "timeout_ms": 170_000}
    answer = client.post("/score", json=body)
    assert 200 == answer.status_code, answer.text
    expected = [
        rewards(llava, PIL.Image.open(io.BytesIO(picture)).convert("RGB"), f"Rate this picture of {prompt}.")
        for picture in PICTURES
        for prompt in PROMPTS
    ]
    results = answer.json()["results"]

    assert 9 == len({round(mean, 3) for mean, _ in expected})
    for (mean, deviation), result in zip(expected, results, strict=True):
        assert result["scores"]["reward_model"] == pytest.approx(mean, abs=1e-4)
        assert result["details"]["reward_model"]["outputs"] == pytest.approx([mean, deviation], abs=1e-4)
