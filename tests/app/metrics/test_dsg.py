"""DSG: yes and no fold into a score, and what is left of it without a question LLM."""

import json

import pytest

from models.core.calls import AnswerCall
from models.core.outcomes import Text
from tests.support.dsg import dsg, post
from tests.support.pictures import item

pytestmark = pytest.mark.anyio


async def test_soft_answers_are_the_mean_of_what_the_model_believes(serve):
    """Of two questions without parents, which the fake answers by a hash."""
    own = [{"id": 1, "text": "Is there a dog?"}, {"id": 2, "text": "Is there a cat?"}]
    async with serve() as client:
        body = dsg(item("a dog"), question_set=own, answers="soft")
        [result] = (await post(client, "/score", body)).json()["results"]
    asked = result["details"]["dsg"]["questions"]

    assert result["scores"]["dsg"] == pytest.approx(sum(q["probability"] for q in asked) / 2)
    assert [q["probability"] for q in asked] == pytest.approx([q["score"] for q in asked])
    assert all(0 < q["probability"] < 1 for q in asked)


async def test_generated_answers_are_yes_or_no_without_a_probability(serve, fakes):
    """As in the released code; a child of a "no" counts 0."""
    own = [
        {"id": 1, "text": "Is there a dog?"},
        {"id": 2, "text": "Is there a cat?"},
        {"id": 3, "text": "Is the cat red?", "depends_on": [2]},
    ]
    fakes["vqa"].answer = lambda call: Text("no" if "there a cat" in call.question else "Yes.")
    async with serve() as client:
        body = dsg(item("a dog"), question_set=own, answers="generated")
        [result] = (await post(client, "/score", body)).json()["results"]

    assert pytest.approx(1 / 3) == result["scores"]["dsg"]
    assert [("yes", 1.0, None, []), ("no", 0.0, None, []), ("yes", 0.0, None, [2])] == [
        tuple(asked[name] for name in ("answer", "score", "probability", "zeroed_by"))
        for asked in result["details"]["dsg"]["questions"]
    ]
    asked = [f"{question['text']} Please answer yes or no." for question in own]
    assert [(AnswerCall, text) for text in asked] == [
        (type(call), call.question) for call in fakes["vqa"].calls
    ]


TUPLES = [{"id": 1, "tuple": "entity - whole (dog)"}, {"id": 2, "tuple": "action (dog, runs)"}]
THREE_CALLS = {
    "dsg tuples": {"tuples": TUPLES},
    "dsg questions": {"questions": [{"id": 2, "text": "Does it run?"}, {"id": 1, "text": "Is there a dog?"}]},
    "dsg dependencies": {"dependencies": [{"id": 1, "depends_on": []}, {"id": 2, "depends_on": [1]}]},
}


@pytest.fixture
def steps(fakes):
    """What the LLM writes in each of the three calls, which may be changed; `asked` keeps their messages."""
    texts = {step: json.dumps(answer) for step, answer in THREE_CALLS.items()}
    asked = []

    def answer(call):
        asked.append(call.user)
        step = call.user.removeprefix("style: ").partition("\n")[0]
        return Text(texts.get(step, ""))

    fakes["questions"].answer = answer
    return texts, asked


async def test_a_set_may_be_written_in_the_three_calls_of_the_paper(serve, steps):
    """Tuples, then questions and dependencies of these; `POST /questions` writes it, too."""
    async with serve() as client:
        del steps[1][:]  # the warm-up
        body = {"prompts": ["a dog runs"], "options": {"dsg": {"generation": "three_calls"}}}
        [written] = (await post(client, "/questions", body)).json()["sets"]
        scored = await post(client, "/score", dsg(item("a dog runs"), generation="three_calls"))
        [result] = scored.json()["results"]
    first, *others = steps[1]

    assert [
        {"id": 1, "text": "Is there a dog?", "kind": "entity - whole", "depends_on": [], "expected": "yes"},
        {"id": 2, "text": "Does it run?", "kind": "action", "depends_on": [1], "expected": "yes"},
    ] == written["questions"]
    assert "hit" == result["cache"]["dsg"]
    assert "tuples: " not in first
    assert 2 == sum("1 entity - whole (dog); 2 action (dog, runs)" in user for user in others)


@pytest.mark.parametrize("step", THREE_CALLS)
@pytest.mark.parametrize("bad", ["", "{", "[]", '{"x": []}', '{"questions":[{"id":1,"text":"a"}]}'])
async def test_a_bad_answer_to_any_of_the_three_calls_is_an_error(serve, steps, step, bad):
    """A tuple without a question or without its parents is one, too."""
    steps[0][step] = bad
    async with serve() as client:
        answer = await post(client, "/score", dsg(item("a dog runs"), generation="three_calls"))

    assert "question_llm_failed" == answer.json()["results"][0]["errors"]["dsg"]["code"]


async def test_details_tell_the_score_of_each_word_of_the_prompt(serve):
    """And which words no question covers."""
    own = [{"id": 1, "text": "Is there a dog?"}, {"id": 2, "text": "Is it wet?", "phrase": "wet"}]
    async with serve() as client:
        body = dsg(item("glowing wet dogs"), question_set=own)
        [result] = (await post(client, "/score", body)).json()["results"]
    details = result["details"]["dsg"]
    dog, wet = (question["score"] for question in details["questions"])

    assert [
        {"word": "glowing", "score": None},
        {"word": "wet", "score": wet},
        {"word": "dogs", "score": dog},
    ] == details["words"]
    assert ["glowing"] == details["uncovered"]


async def test_without_a_question_llm_sets_brought_along_still_score(serve, fakes):
    """No LLM is needed where the questions are given; where they are not, dsg says what is missing."""
    del fakes["questions"]
    own = [{"id": 1, "text": "Is there a dog?"}]
    async with serve() as client:
        given = (await post(client, "/score", dsg(item("a dog"), question_set=own))).json()
        missing = await post(client, "/score", dsg(item("a dog")))

    assert "dsg" in given["results"][0]["scores"]
    assert (503, "not_ready") == (missing.status_code, missing.json()["code"])


async def test_a_failed_llm_fails_the_metric_and_nothing_else(serve, fakes):
    """vqascore of the same item is there; dsg is an entry, never 0."""
    fakes["questions"].texts = {"a red dog": "{"}
    async with serve() as client:
        body = {"items": [item("a red dog"), item("a blue cat")], "metrics": ["vqascore", "dsg"]}
        bad, good = (await post(client, "/score", body)).json()["results"]

    assert {"vqascore"} == bad["scores"].keys()
    assert "question_llm_failed" == bad["errors"]["dsg"]["code"]
    assert {"vqascore", "dsg"} == good["scores"].keys()
