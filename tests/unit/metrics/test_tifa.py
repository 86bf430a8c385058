"""TIFA: choices fold into a score, and questions that the prompt does not confirm are left out."""

import numpy as np
import pytest

from service.metrics.tifa import choice_of, fold, plain
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
