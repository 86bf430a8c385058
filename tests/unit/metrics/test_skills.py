"""Skills: answers that are unsure leave the mean, skills have means, and text is read word by word."""

import pytest

from service.core.errors import Unanswered
from service.metrics.skills import by_skill, fold, is_text
from service.questions.sets import Question

QUESTIONS = [
    Question(1, "a", "entities/singular/presence"),
    Question(2, "b", "entities//presence"),
    Question(3, "c", "attributes/color/property"),
    Question(4, "d"),
]


def test_the_mean_is_that_of_the_questions_or_of_the_skills():
    """As the paper's tables have it; a question whose set names no skill has one of its own."""
    found = {1: 1.0, 2: 0.0, 3: 0.0, 4: 1.0}

    assert {"entities": 0.5, "attributes": 0.0, "other": 1.0} == by_skill(QUESTIONS, found)
    assert (0.5, 0.5) == (fold(QUESTIONS, found, "questions"), fold(QUESTIONS, found, "skills"))
    assert 1 / 3 == fold(QUESTIONS, {**found, 4: None}, "questions")
    assert 0.25 == fold(QUESTIONS, {**found, 4: None}, "skills")
    with pytest.raises(Unanswered, match=r'^all 4 questions are answered "unsure"$'):
        fold(QUESTIONS, dict.fromkeys(found), "skills")


@pytest.mark.parametrize(
    ("kind", "read"),
    [
        ("text_rendering/accuracy/property", True),
        ("text_rendering/style", False),
        ("style/text/property", False),
    ],
)
def test_text_is_read_unless_the_question_is_about_its_looks(kind, read):
    """OCR reads neither the style nor the position of a text."""
    assert read is is_text(Question(1, "a", kind, phrase="OPEN"))
