"""The service with a real vLLM behind it that serves a tiny random Qwen3-VL as a reranker."""

import pytest

from models.families.openai.rerank import sigmoid
from tests.external.vllm.services import PIXELS, scored, server, service
from tests.support.tiny_qwen3_vl import INSTRUCTION, relevance

PROMPTS = ["a red star", "two blue circles"]
OTHER_INSTRUCTION = "Find captions."


@pytest.fixture(scope="module")
def reranker():
    """The server."""
    with server("reranker") as found:
        yield found


@pytest.mark.parametrize(
    ("query", "instruction"), [("text", ""), ("text", OTHER_INSTRUCTION), ("image", OTHER_INSTRUCTION)]
)
def test_a_score_is_the_probability_that_transformers_computes(reranker, tmp_path, query, instruction):
    """P("yes") of three pictures and two prompts, as a logit too, by the template's instruction or ours."""
    tables = f"""
        [models.reranker]
        family = "openai_rerank"
        base_url = "{reranker.base_url}"
        model = "m"
        query = "{query}"
        instruction = "{instruction}"
        timeout_s = 170
    """
    said = instruction or INSTRUCTION
    seen = set()
    with service(tmp_path, tables) as client:
        for picture, rgb in PIXELS.items():
            results = scored(client, PROMPTS, "rerankscore", picture)
            logits = scored(client, PROMPTS, "rerankscore", picture, output="logit")
            for prompt, result, logit in zip(PROMPTS, results, logits, strict=True):
                pair = (prompt, rgb) if query == "text" else (rgb, prompt)
                expected = relevance(reranker.checkpoint, *pair, said)
                seen.add(round(expected, 3))

                assert result["scores"]["rerankscore"] == pytest.approx(expected, abs=1e-4)
                assert sigmoid(logit["scores"]["rerankscore"]) == pytest.approx(expected, abs=1e-4)
    assert len(seen) > 3
