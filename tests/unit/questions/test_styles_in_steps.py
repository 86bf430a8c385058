"""Styles of keywords and of skills: what the LLM is asked, and how its answers become questions."""

import json

import pytest

from models.families.question_llm import user_message
from service.questions.sets import Question, QuestionSet, check, from_json, to_json
from service.questions.styles.gecko import GECKO
from service.questions.styles.skills import SKILLS, STYLE

pytestmark = pytest.mark.anyio

PROMPT = "a red dog, my friend"
KEYWORDS = [
    {"id": 1, "text": "red", "type": "attribute - color", "groundable": True},
    {"id": 2, "text": "dog", "type": "entity", "groundable": True},
    {"id": 3, "text": "my friend", "type": "other", "groundable": False},
]
RED = {"id": 1, "text": "What color is the dog?", "choices": ["red", "blue"], "answer": "red"}
DOG = {"id": 2, "text": "Is there a dog?", "choices": ["yes", "no"], "answer": "yes"}
ANNOTATION = {
    "id": 1,
    "skill": "entities",
    "subskill": "singular",
    "phrase": "dog",
    "question": "Is there a dog?",
    "node_type": "presence",
    "depends_on": [],
}


def answering(*answers):
    """What an LLM is asked, and a function that has it answer in turn."""
    calls, rest = [], iter(answers)

    async def ask(call):
        calls.append(call)
        return next(rest)

    return calls, ask


def keywords(*entries):
    return json.dumps({"keywords": [*entries]})


def questions(*entries):
    return json.dumps({"questions": [*entries]})


async def test_keywords_are_numbered_first_and_then_asked_about():
    """In two calls; the second names those that an image can show, and questions have their numbers."""
    calls, ask = answering(keywords(*KEYWORDS), questions(RED, DOG))
    written = await GECKO.write(ask, PROMPT)

    first, second = calls
    assert user_message("gecko", PROMPT) == first.user
    assert user_message("gecko questions", PROMPT) + "\nkeywords: 1 red, 2 dog" == second.user
    assert first.system != second.system
    assert () == written.unasked
    assert (
        Question(1, RED["text"], "attribute - color", (), "red", ("red", "blue"), "red"),
        Question(2, DOG["text"], "entity", (), "yes", ("yes", "no"), "dog"),
    ) == written.questions


async def test_a_keyword_without_a_question_is_reported_with_the_set_and_stays_with_it():
    """The store keeps it; a set that leaves nothing unasked has the id that it had before."""
    _, ask = answering(keywords(*KEYWORDS), questions(DOG))
    written = await GECKO.write(ask, PROMPT)
    made = QuestionSet(PROMPT, "gecko", written.questions, {}, written.unasked)
    whole = QuestionSet(PROMPT, "gecko", written.questions)

    assert ("red",) == written.unasked
    assert made == from_json(to_json(made), made.id)
    assert made.id != whole.id
    assert b"unasked" not in to_json(whole)


async def test_a_prompt_without_keywords_needs_no_second_call():
    """Nor does one of which nothing can be seen."""
    for entries in ((), KEYWORDS[2:]):
        calls, ask = answering(keywords(*entries))

        assert ((), ()) == await GECKO.write(ask, PROMPT)
        assert 1 == len(calls)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (keywords(*KEYWORDS, KEYWORDS[0]), "", "two keywords have the same id"),
        (keywords({**KEYWORDS[0], "groundable": "yes"}), "", "neither true nor false"),
        (keywords({**KEYWORDS[0], "id": "1"}), "", "an id is not an integer"),
        (keywords(*({**KEYWORDS[0], "id": n} for n in range(500))), "", "500 entries in keywords"),
        (keywords(*KEYWORDS), questions({**DOG, "id": 3}), "question 3 is about no keyword"),
        (keywords(*KEYWORDS), questions({**DOG, "id": 7}), "question 7 is about no keyword"),
        (keywords(*KEYWORDS), questions(DOG, RED, {**DOG, "text": "a"}), "two questions have the same id"),
        (keywords(*KEYWORDS), questions({**DOG, "choices": []}), "a question has no choices"),
        (keywords(*KEYWORDS), questions({**RED, "answer": "green"}), "is not among its choices"),
        (keywords(*KEYWORDS), questions(*[DOG] * 500), "500 entries in questions"),
    ],
)
async def test_keywords_and_questions_that_do_not_fit_are_refused(first, second, reason):
    """With a sentence that says which."""
    _, ask = answering(first, second)
    with pytest.raises(ValueError, match=reason):
        check((await GECKO.write(ask, PROMPT)).questions)


def test_all_that_the_llm_is_told_is_in_the_hash():
    """Both instructions, both schemas and both names of the steps."""
    told = json.dumps(GECKO.identity())

    assert all(text in told for text in ("list its keywords", "under the\\nnumber", "gecko questions"))
    assert told.count('"additionalProperties": false') == 4


def test_an_annotation_becomes_a_question_with_its_skill_and_phrase():
    """The kind is skill, sub-skill and type of the node."""
    wet = {**ANNOTATION, "id": 2, "question": "Is it wet?", "node_type": "property", "depends_on": [1]}
    first, second = STYLE.parse(json.dumps({"annotations": [ANNOTATION, {**wet, "subskill": ""}]}))

    assert Question(1, "Is there a dog?", "entities/singular/presence", phrase="dog") == first
    assert ("entities//property", (1,)) == (second.kind, second.depends_on)


def test_sixteen_skills_ask_questions():
    """Those of the paper's table but artifacts and aesthetic quality; the LLM is told of each."""
    assert 16 == len(set(SKILLS))
    assert {"artifacts", "aesthetic_quality"}.isdisjoint(SKILLS)
    assert [] == [skill for skill in SKILLS if skill not in STYLE.instructions]


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([{**ANNOTATION, "skill": "artifacts"}], "not one of the sixteen"),
        ([{**ANNOTATION, "node_type": "edge"}], "a node is not one of presence, property, relation"),
        ([{**ANNOTATION, "depends_on": [9]}], "depends on 9, which does not exist"),
        ([{**ANNOTATION, "depends_on": [1]}], "form a cycle"),
        ([ANNOTATION] * 500, "500 entries in annotations"),
        ([{**ANNOTATION, "phrase": None}], "a text is not a string"),
    ],
)
def test_annotations_that_do_not_fit_are_refused(entries, reason):
    """With a sentence that says which."""
    with pytest.raises(ValueError, match=reason):
        check(STYLE.parse(json.dumps({"annotations": entries})))


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"annotations": 1}', '{"annotations": [{"id": 1'])
def test_what_is_no_list_of_annotations_is_refused(text):
    """Empty, another shape, or truncated; `ValueError`, `KeyError` and `TypeError` all mean a bad answer."""
    with pytest.raises((ValueError, KeyError, TypeError)):
        STYLE.parse(text)


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"keywords": 1}', '{"keywords": [{"id": 1'])
async def test_what_is_no_list_of_keywords_is_refused(text):
    """The same in the first call of two, and in the second."""
    for answers in ((text,), (keywords(*KEYWORDS), text.replace("keywords", "questions"))):
        _, ask = answering(*answers)
        with pytest.raises((ValueError, KeyError, TypeError)):
            await GECKO.write(ask, PROMPT)
