"""What all metrics with question sets share: the details of a set, and a style that expects "yes"."""

import pytest

from service.core.errors import Invalid
from service.metrics.common.question_sets import all_details, yes_expected
from service.questions.sets import Question, QuestionSet


def test_details_have_the_set_its_words_and_each_question_with_its_score():
    """And what a metric adds to a question; one that was left out has no score and covers no word."""
    asked = QuestionSet(
        "red dog",
        "dsg",
        (
            Question(1, "Is there a dog?", kind="entity - whole (dog)", phrase="dog"),
            Question(
                2, "Is the dog red?", kind="attribute - color (dog, red)", depends_on=(1,), phrase="red"
            ),
        ),
        {"model": "llm"},
    )

    found = all_details(asked, {1: 0.5, 2: None}, {1: {"answer": "yes"}, 2: {"answer": "no"}})

    assert {
        "question_set": asked.id,
        "provenance": {"model": "llm"},
        "uncovered": ["red"],
        "questions": [
            {
                "id": 1,
                "text": "Is there a dog?",
                "kind": "entity - whole (dog)",
                "depends_on": (),
                "expected": "yes",
                "score": 0.5,
                "answer": "yes",
            },
            {
                "id": 2,
                "text": "Is the dog red?",
                "kind": "attribute - color (dog, red)",
                "depends_on": (1,),
                "expected": "yes",
                "score": None,
                "answer": "no",
            },
        ],
    } == {name: value for name, value in found.items() if name != "words"}
    assert [("red", None), ("dog", 0.5)] == [(word["word"], word["score"]) for word in found["words"]]


def test_a_question_that_expects_no_is_refused_where_all_expect_yes():
    """By its number."""
    sets = [
        QuestionSet("a dog", "dsg", (Question(1, "a"), Question(4, "b", expected=expected)))
        for expected in ("yes", "no")
    ]

    assert sets[0] is yes_expected(sets[0])
    with pytest.raises(Invalid, match=r'^question_set: question 4 must expect "yes", as all of this style$'):
        yes_expected(sets[1])
