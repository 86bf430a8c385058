"""Imported question sets in the service: they score without a question LLM, and change no score."""

import pytest

from service.questions.exchange import jsonl
from service.questions.sets import Question, QuestionSet
from service.questions.stores.sqlite import SQLiteStore
from tests.app.questions.test_exchange import SETS, lines
from tests.support.dsg import dsg as asked
from tests.support.dsg import post
from tests.support.pictures import item

pytestmark = pytest.mark.anyio


async def imported(tmp_path, *sets):
    """The sets in the store of `serve`."""
    from service.questions.exchange.files import import_sets

    file = tmp_path / "sets.jsonl"
    file.write_bytes(lines(*sets))
    async with SQLiteStore(tmp_path / "questions.sqlite3", 8) as store:
        await import_sets(store, file, jsonl.format, "", ["dsg", "tifa"])


async def test_an_imported_set_scores_its_prompt_without_a_question_llm(serve, fakes, tmp_path):
    """Another prompt is refused, and the reason says what is missing."""
    del fakes["questions"]
    await imported(tmp_path, SETS[1])
    async with serve() as client:
        found = (await client.post("/score", json=asked(item("a red fox")))).json()["results"][0]
        missing = await client.post("/score", json=asked(item("a cat")))

    assert (SETS[1].id, "hit") == (found["details"]["dsg"]["question_set"], found["cache"]["dsg"])
    assert (503, "not_ready") == (missing.status_code, missing.json()["code"])
    assert "no question set of this prompt was imported" in missing.json()["detail"]


async def test_an_imported_set_goes_before_a_new_one_and_not_before_one_that_was_written(
    serve, fakes, tmp_path
):
    """So no import changes the score of a prompt under the LLM that was asked about it already."""
    async with serve() as client:
        before = (await client.post("/score", json=asked(item("a red fox")))).json()
    written = before["results"][0]["details"]["dsg"]["question_set"]
    await imported(tmp_path, *SETS[:2])
    async with serve() as client:
        answers = [await client.post("/score", json=asked(item(one.prompt))) for one in SETS[:2]]
    used = [answer.json()["results"][0]["details"]["dsg"]["question_set"] for answer in answers]

    assert [SETS[0].id, written] == used
    assert 1 == len(fakes["questions"].calls)


async def test_a_set_without_choices_scores_where_none_are_needed(serve, fakes, tmp_path):
    """And is an error of the metric that needs them, never a 0."""
    del fakes["questions"]
    await imported(tmp_path, QuestionSet("four dogs", "tifa", (Question(1, "How many?", expected="four"),)))
    async with serve() as client:
        body = {"items": [item("four dogs")], "metrics": ["tifa", "soft_tifa"]}
        result = (await client.post("/score", json=body)).json()["results"][0]

    assert {"soft_tifa"} == result["scores"].keys()
    error = {"code": "invalid", "detail": "question_set: question 1 has no choices"}
    assert {"tifa": error} == result["errors"]


async def test_questions_are_found_without_an_llm_where_they_were_imported(serve, fakes, tmp_path):
    """A prompt without a set says what is missing."""
    del fakes["questions"]
    await imported(tmp_path, SETS[1])
    async with serve() as client:
        answer = (await post(client, "/questions", {"prompts": ["a red fox", "a cat"]})).json()
    found, missing = answer["sets"]

    assert (SETS[1].id, True, {}) == (found["id"], found["cached"], answer["models"])
    assert "not_ready" == missing["error"]["code"]


async def test_a_set_that_expects_a_no_is_an_error_of_metrics_that_ask_for_yes(serve, tmp_path):
    """And never scored as if it expected a yes."""
    denial = QuestionSet("a fox", "dsg", (Question(3, "Is there a dog?", expected="no"),))
    await imported(tmp_path, denial)
    async with serve() as client:
        body = asked(item("a fox"), question_set=denial.id)
        [scored] = (await post(client, "/score", body)).json()["results"]

    assert "invalid" == scored["errors"]["dsg"]["code"]
    assert "question 3 must expect" in scored["errors"]["dsg"]["detail"]
