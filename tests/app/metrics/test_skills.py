"""Skills: answers that are unsure leave the mean, skills have means, and text is read word by word."""

import pytest

from models.core.calls import ReadCall
from models.core.outcomes import Choices, Likelihood, Line, Reading
from service.metrics.common.texts import about_gaps, about_words
from tests.support.fakes import FakeModel
from tests.support.pictures import item
from tests.support.questions import noted, scored, written

pytestmark = pytest.mark.anyio

PROMPT = 'a red dog beside a sign that says "OPEN 24 HOURS"'
DOG = {"id": 1, "text": "Is there a dog?", "kind": "entities/singular/presence", "phrase": "dog"}
RED = {
    "id": 2,
    "text": "Is the dog red?",
    "kind": "attributes/color/property",
    "phrase": "red",
    "depends_on": [1],
}
ONE = {
    "id": 3,
    "text": "Is there one dog?",
    "kind": "entities/count/property",
    "phrase": "a",
    "depends_on": [2],
}
SIGN = {
    "id": 4,
    "text": 'Does the sign say "OPEN 24 HOURS"?',
    "kind": "text_rendering/accuracy/property",
    "phrase": "OPEN 24 HOURS",
}
BOX = ((0.0, 0.0), (9.0, 0.0), (9.0, 9.0), (0.0, 9.0))


class FakeOcr(FakeModel):
    """Reads its `lines` in every image."""

    role = "ocr"
    lines = ("Open 24", "hours")

    def answer(self, call: ReadCall):
        return Reading(tuple(Line(text, BOX, 0.9) for text in self.lines))


@pytest.fixture
def ocr(fakes):
    fakes["ocr"] = FakeOcr()
    return fakes["ocr"]


@pytest.fixture
def say(fakes):
    """Have the VQA model answer questions, by a part of their text; "yes" to all others."""
    said = {}

    def answer(call):  # the warm-up is no question with choices
        word = next((word for text, word in said.items() if text in call.question), "Yes")
        return Choices(
            tuple((-0.1,) if choice == word else (-3.0,) for choice in getattr(call, "choices", ("",)))
        )

    fakes["vqa"].answer = answer
    return said


def scores(result):
    return {question["id"]: question["score"] for question in result["details"]["skills"]["questions"]}


async def test_unsure_leaves_the_mean_and_counts_in_the_rate(serve, fakes, say):
    """Each question is one call with the three answers, in the paper's words."""
    say.update({"Is the dog red?": "Unsure", "one dog": "No"})
    async with serve() as client:
        result = await scored(client, "skills", item(PROMPT), question_set=[DOG, RED, ONE])

    assert 0.5 == result["scores"]["skills"]
    assert {1: 1, 2: None, 3: 0} == scores(result)
    details = result["details"]["skills"]
    assert ["yes", "unsure", "no"] == [question["answer"] for question in details["questions"]]
    assert pytest.approx(1 / 3) == details["unsure_rate"]
    assert {"entities": 0.5, "attributes": None} == details["skills"]
    assert "red" in details["uncovered"]
    assert {("Yes", "No", "Unsure")} == {call.choices for call in fakes["vqa"].calls}
    assert "Is there a dog? Please answer yes, no or unsure." in {c.question for c in fakes["vqa"].calls}


async def test_where_all_answers_are_unsure_there_is_an_error_and_no_score(serve, say):
    """Never 0."""
    say[""] = "Unsure"
    async with serve() as client:
        result = await scored(client, "skills", item(PROMPT), question_set=[DOG, RED])

    assert {} == result["scores"]
    assert "unanswered" == result["errors"]["skills"]["code"]


async def test_the_likeliest_of_the_three_is_the_one_with_the_largest_sum_over_its_tokens(serve, fakes):
    """A word of several tokens has no advantage."""
    fakes["vqa"].answer = lambda call: Choices(((-0.7,), (-1.5,), (-1.6, -0.01, -0.01)))
    async with serve() as client:
        result = await scored(client, "skills", item(PROMPT), question_set=[DOG])

    [question] = result["details"]["skills"]["questions"]
    assert ("yes", ["no", "unsure", "yes"]) == (question["answer"], sorted(question["probabilities"]))
    assert pytest.approx(1) == sum(question["probabilities"].values())


@pytest.mark.parametrize(
    ("dependencies", "expected"),
    [("none", {1: 0, 2: 1, 3: 1}), ("direct", {1: 0, 2: 0, 3: 1}), ("transitive", {1: 0, 2: 0, 3: 0})],
)
async def test_children_of_a_no_count_0_only_where_that_is_asked_for(serve, say, dependencies, expected):
    """The released code zeroes nothing."""
    say["Is there a dog?"] = "No"
    async with serve() as client:
        asked = {"question_set": [DOG, RED, ONE], "dependencies": dependencies}
        result = await scored(client, "skills", item(PROMPT), **asked)

    assert expected == scores(result)
    zeroed = [question["zeroed_by"] for question in result["details"]["skills"]["questions"]]
    assert (
        zeroed == {"none": [[], [], []], "direct": [[], [1], []], "transitive": [[], [1], [2]]}[dependencies]
    )


async def test_an_unsure_parent_zeroes_nothing(serve, say):
    """It is no "no"."""
    say["Is there a dog?"] = "Unsure"
    async with serve() as client:
        asked = {"question_set": [DOG, RED], "dependencies": "direct"}
        result = await scored(client, "skills", item(PROMPT), **asked)

    assert {1: None, 2: 1} == scores(result)


async def test_text_is_read_and_not_asked_about_where_there_is_an_ocr_model(serve, fakes, ocr, say):
    """Its question counts the share of right words less wrong gaps."""
    ocr.lines = ("We open 24", "houres")
    async with serve() as client:
        result, warnings = await noted(client, "skills", item(PROMPT), question_set=[DOG, SIGN])

    assert pytest.approx((1 + 1 / 3) / 2) == result["scores"]["skills"]
    _, sign = result["details"]["skills"]["questions"]
    assert ("no", {}) == (sign["answer"], sign["probabilities"])
    assert {
        "wanted": ["open", "24", "hours"],
        "read": ["we", "open", "24", "houres"],
        "right": 2,
        "wrong_gaps": 1,
        "accuracy": pytest.approx(1 / 3),
    } == sign["reading"]
    assert SIGN["text"] == sign["text"]
    assert [] == warnings
    assert 1 == len(fakes["vqa"].calls)
    assert 1 == len(ocr.calls)


async def test_words_of_another_text_of_the_prompt_are_no_fault(serve, ocr, say):
    """A sign and a label in one image."""
    ocr.lines = ("EXIT", "Open 24", "hours")
    exit = {**SIGN, "id": 5, "text": 'Is there a label "EXIT"?', "phrase": '"EXIT"'}
    async with serve() as client:
        result = await scored(client, "skills", item(PROMPT), question_set=[SIGN, exit])

    assert {4: 1, 5: 1} == scores(result)
    assert "yes" == result["details"]["skills"]["questions"][0]["answer"]


@pytest.mark.parametrize("change", [{"kind": "text_rendering/style/property"}, {"phrase": "“ ”"}])
async def test_what_reading_cannot_tell_is_asked_of_the_vqa_model(serve, ocr, say, change):
    """The style of a text, its place, or a question that names no text."""
    async with serve() as client:
        result, warnings = await noted(client, "skills", item(PROMPT), question_set=[{**SIGN, **change}])

    assert {4: 1} == scores(result)
    assert (None, []) == (result["details"]["skills"]["questions"][0]["reading"], warnings)
    assert [] == ocr.calls


async def test_without_an_ocr_model_the_vqa_model_answers_and_a_warning_says_so(serve, say):
    """Sets without text need none, and say nothing."""
    async with serve() as client:
        result, warnings = await noted(client, "skills", item(PROMPT), question_set=[SIGN])
        _, silent = await noted(client, "skills", item(PROMPT), question_set=[DOG])

    assert {4: 1} == scores(result)
    assert ["no OCR model is configured: the VQA model judged the text in the image"] == warnings
    assert [] == silent


async def test_a_vlm_may_label_each_word_and_each_gap(serve, fakes, ocr):
    """Two of three words are right and one of four gaps is not: (2 - 1) / 3, without OCR and warnings."""
    yes = ('word 1 of it, "OPEN"', 'word 3 of it, "HOURS"', 'between "24" and "HOURS"')
    fakes["vqa"].answer = lambda call: Likelihood(
        (0,), *((0, -1) if any(y in call.question for y in yes) else (-1, 0))
    )
    async with serve() as client:
        result, warnings = await noted(client, "skills", item(PROMPT), question_set=[SIGN], text="vlm")

    [asked] = result["details"]["skills"]["questions"]
    assert 1 / 3 == pytest.approx(asked["score"])
    assert (["OPEN", "24", "HOURS"], ["OPEN", "HOURS"], 2, 1) == tuple(
        asked["reading"][name] for name in ("wanted", "read", "right", "wrong_gaps")
    )
    assert ("no", []) == (asked["answer"], warnings)
    questions = [call.question for call in fakes["vqa"].calls]
    assert 7 == len(questions) == len(set(questions))
    assert {"Yes"} == {call.answer for call in fakes["vqa"].calls}
    text = "OPEN 24 HOURS"
    assert [*about_words(text, text.split()), *about_gaps(text, text.split())] == questions
    assert [] == ocr.calls


async def test_a_word_that_is_as_likely_wrong_as_right_does_not_count(serve, fakes, ocr):
    """Nor does such a gap."""
    fakes["vqa"].answer = lambda call: Likelihood((0,), -1.0, -1.0)
    async with serve() as client:
        result, _ = await noted(client, "skills", item(PROMPT), question_set=[SIGN], text="vlm")

    reading = result["details"]["skills"]["questions"][0]["reading"]
    assert (0, 0, 0.0) == tuple(reading[name] for name in ("right", "wrong_gaps", "accuracy"))


async def test_one_question_about_a_singular_object_is_another_set(serve, fakes):
    """The LLM gets other instructions."""
    async with serve() as client:
        for options in ({}, {"skills": {"singular": "one_question"}}):
            await written(client, "skills", "a red dog", **options)

    systems = [call.system for call in fakes["questions"].calls]
    assert ["Is there a dog?" in system for system in systems] == [True, False]
    assert all("exactly one" in system for system in systems)


async def test_questions_are_written_with_skill_and_phrase(serve):
    """`POST /questions` shows them."""
    async with serve() as client:
        [made] = (await written(client, "skills", "a red dog")).json()["sets"]

    assert ("entities/object/presence", "red dog") == tuple(
        made["questions"][0][name] for name in ("kind", "phrase")
    )


async def test_the_mean_may_be_that_of_the_questions_and_each_names_its_skill(serve, say):
    """Two of three, where the skills' means are a half and 1."""
    say["Is there a dog?"] = "No"
    async with serve() as client:
        result = await scored(client, "skills", item(PROMPT), question_set=[DOG, RED, ONE], mean="questions")

    assert 2 / 3 == pytest.approx(result["scores"]["skills"])
    asked = result["details"]["skills"]["questions"]
    assert ["entities", "attributes", "entities"] == [question["skill"] for question in asked]


async def test_a_question_that_was_cut_and_text_that_nobody_reads_are_two_warnings(serve, fakes):
    """One does not hide the other."""
    fakes["vqa"].answer = lambda call: Choices(((-0.1,), (-2.0,), (-3.0,)), truncated=True)
    async with serve() as client:
        _, warnings = await noted(client, "skills", item(PROMPT), question_set=[SIGN])

    assert 2 == len(warnings)
