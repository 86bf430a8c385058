"""TIFA: choices fold into a score, and questions that the prompt does not confirm are left out."""

from service.metrics.tifa import fold
from service.questions.sets import Question


def test_a_question_counts_1_where_its_answer_is_the_expected_one_and_0_elsewhere():
    """And the score is their mean."""
    asked = [Question(1, "a", expected="red"), Question(2, "b"), Question(3, "c"), Question(4, "d")]
    answers = {1: "red", 2: "yes", 3: "no", 4: "maybe"}

    assert (0.5, {1: 1.0, 2: 1.0, 3: 0.0, 4: 0.0}) == fold(asked, answers)
