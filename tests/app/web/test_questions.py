"""`POST /questions` and `GET /questions/{id}`: sets written ahead, and shown."""

import pytest

from tests.support.dsg import post

pytestmark = pytest.mark.anyio


async def test_questions_are_written_ahead_and_read_by_id(serve):
    """POST /questions warms the store; GET /questions/{id} shows the set and who wrote it."""
    async with serve() as client:
        body = {"prompts": ["a red dog", "nothing"]}
        made = (await post(client, "/questions", body)).json()["sets"]
        again = (await post(client, "/questions", body)).json()["sets"]
        shown = (await client.get(f"/questions/{made[0]['id']}")).json()
        missing = await client.get("/questions/sha256:" + "0" * 64)

    assert (False, True) == (made[0]["cached"], again[0]["cached"])
    assert "no_questions" == made[1]["error"]["code"]
    assert made[0]["questions"] == shown["questions"]
    assert "fake-questions@1" == shown["provenance"]["llm"]
    assert (404, "unknown_question_set") == (missing.status_code, missing.json()["code"])


async def test_questions_that_all_fail_are_502(serve, fakes):
    """502 only when nothing was produced."""
    fakes["questions"].texts = {"bad": "no JSON"}
    async with serve() as client:
        all_bad = await post(client, "/questions", {"prompts": ["bad"]})
        one_bad = await post(client, "/questions", {"prompts": ["bad", "a red dog"]})

    assert (502, "question_llm_failed") == (all_bad.status_code, all_bad.json()["code"])
    assert (200, "question_llm_failed") == (
        one_bad.status_code,
        one_bad.json()["sets"][0]["error"]["code"],
    )
