"""TIFA: choices fold into a score, and questions that the prompt does not confirm are left out."""

import numpy as np
import pytest

from service.metrics.tifa import MIN_LEAD, Said, choice_of, fold, plain, unclear
from service.observability.notes import Code
from service.questions.sets import Question


def test_a_question_counts_1_where_its_answer_is_the_expected_one_and_0_elsewhere():
    """And the score is their mean."""
    asked = [Question(1, "a", expected="red"), Question(2, "b"), Question(3, "c"), Question(4, "d")]
    answers = {1: "red", 2: "yes", 3: "no", 4: "maybe"}

    assert (0.5, {1: 1.0, 2: 1.0, 3: 0.0, 4: 0.0}) == fold(asked, answers)


@pytest.mark.parametrize(
    ("text", "choice"), [("crimson", "red"), ("Blue.", "blue"), ("navy", "blue"), ("violet", "red")]
)
def test_a_text_is_the_choice_that_it_is_whatever_is_nearest_to_it(text, choice):
    """Otherwise the nearest one, the first of two that are as near."""
    vectors = {"red": (1, 0), "blue": (0, 1), "crimson": (0.9, 0.1), "Blue.": (1, 0), "navy": (0.1, 0.9)}
    found = {name: np.array(vector) for name, vector in {**vectors, "violet": (0.5, 0.5)}.items()}
    question = Question(1, "Which color?", choices=("red", "blue"), expected="red")

    assert choice == choice_of(question, text, found).answer


@pytest.mark.parametrize("text", ["BOX X", " box x. ", "Box X..", "box x"])
def test_case_spaces_around_and_a_full_stop_do_not_distinguish_answers(text):
    """All else does."""
    assert "box x" == plain(text)
    assert {".box", "a. b", "no!"} == {plain(other) for other in (".box", "a. b", "no!")}


def test_the_lead_of_the_nearest_choice_is_over_the_next_one():
    """A text that is a choice has none, nor has the only choice of a question."""
    vectors = {"red": (1, 0), "blue": (0, 1), "green": (-1, 0), "navy": (0.25, 0.75)}
    found = {name: np.array(vector, float) for name, vector in vectors.items()}
    question = Question(1, "Which color?", choices=("red", "blue", "green"), expected="red")
    only = Question(1, "Which color?", choices=("red",), expected="red")

    assert Said("blue", written="navy", lead=0.5) == choice_of(question, "navy", found)
    assert Said("blue", written="Blue.") == choice_of(question, "Blue.", found)
    assert Said("red", written="navy") == choice_of(only, "navy", found)


def test_a_lead_below_the_least_is_a_warning():
    """The least one itself is none."""
    question = Question(7, "Which color?", choices=("red", "blue"), expected="red")
    leads = (MIN_LEAD / 2, MIN_LEAD, None)
    found = [[*unclear([question], {7: Said("red", written="navy", lead=lead)})] for lead in leads]

    assert [1, 0, 0] == [*map(len, found)]
    [[note], *_] = found
    assert Code.CHOICE_UNCLEAR == note.code
    assert note.text == (
        f"question 7: the answer 'navy' is no choice, and red is nearest by {MIN_LEAD / 2:.2g} only:"
        " the score may be by chance"
    )
