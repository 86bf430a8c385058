"""The service with a real vLLM behind it that serves a tiny random Qwen3-VL as a VLM."""

import pytest

from tests.external.vllm.services import PIXELS, scored, server, service
from tests.support.tiny_qwen3_vl import answer_probabilities

QUESTION = "Is this {}?"


def test_a_qwen3_vl_gives_the_probabilities_that_transformers_computes(tmp_path):
    """Of "Yes" and "No" as the first token, to 1e-4, and each to a thousandth of itself."""
    with server("qwen_vlm") as vlm:
        tables = f"""
            [models.vqa]
            family = "openai_vlm"
            base_url = "{vlm.base_url}"
            model = "m"
            question = "{QUESTION}"
            timeout_s = 170
        """
        with service(tmp_path, tables) as client:
            found = [scored(client, ["a red star"], "vqascore", picture)[0] for picture in PIXELS]
        exact = [answer_probabilities(vlm.checkpoint, rgb, "Is this a red star?") for rgb in PIXELS.values()]

    for (yes, no), result in zip(exact, found, strict=True):
        details = result["details"]["vqascore"]
        assert result["scores"]["vqascore"] == pytest.approx(yes, abs=1e-4)
        assert (details["p_yes"], details["p_no"]) == pytest.approx((yes, no), rel=1e-3)
    assert 3 == len({round(no, 5) for _, no in exact})
