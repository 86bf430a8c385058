"""Questions with choices: one call each, and shares that add up to 1."""

import math

import pytest

from models.core.calls import ChoiceCall, LikelihoodCall
from models.core.outcomes import Choices, Likelihood, Text
from models.families.fake.model import GREY
from service.core.errors import Invalid, Unanswered
from service.metrics.common.answers import (
    YES_NO_QUESTION,
    Answered,
    answered,
    call,
    log_likelihoods,
    said_yes,
    written,
)
from service.questions.sets import Question

COLOUR = Question(1, "What color is it?", expected="red", choices=("red", "dark blue"))
THERE = Question(2, "Is it there?", expected="yes", choices=("no", "Yes"))


def test_all_choices_of_a_question_are_one_call():
    """In the template, and in the order of the set."""
    assert ChoiceCall(GREY, "Say: What color is it?", COLOUR.choices) == call(GREY, COLOUR, "Say: {}")


def test_the_case_of_choices_makes_no_difference_unless_it_is_to():
    """A capital would decide between "Green" and "red"."""
    mixed = Question(1, COLOUR.text, expected="Red", choices=(" Red", "DARK blue"))

    assert call(GREY, COLOUR, "Say: {}") == call(GREY, mixed, "Say: {}")
    assert mixed.choices == call(GREY, mixed, "Say: {}", cased=True).choices


def test_a_question_between_yes_and_no_is_the_call_that_dsg_makes():
    """Whatever the template for choices is, so that metrics share it."""
    asked = YES_NO_QUESTION.replace("{}", THERE.text)

    assert LikelihoodCall(GREY, asked, "Yes") == call(GREY, THERE, "Say: {}")


def test_yes_and_no_have_their_own_likelihoods_in_the_order_of_the_choices():
    """Without regard to case."""
    assert (-2.0, -0.5) == log_likelihoods(THERE, Likelihood((-0.5, -0.1), -0.5, -2.0), "sum")


def test_tokens_of_a_choice_are_pooled_by_their_mean_or_their_sum():
    """A sum favours short choices."""
    said = Choices(((-1.0, -0.5), (-1.0, -1.0, -0.4)))

    assert (-0.75, -0.8) == pytest.approx(log_likelihoods(COLOUR, said, "mean"))
    assert (-1.5, -2.4) == pytest.approx(log_likelihoods(COLOUR, said, "sum"))


def test_probabilities_are_shares_among_the_choices():
    """Also where every likelihood is too small for a float."""
    answered = Answered(COLOUR, (-2000.0, -2000.0 - math.log(3)), False)

    assert {"red": 0.75, "dark blue": 0.25} == pytest.approx(answered.probabilities)
    assert "red" == answered.answer


@pytest.mark.anyio
async def test_a_question_without_choices_is_refused_by_its_number():
    """Before any call."""
    with pytest.raises(Invalid, match=r"^question_set: question 3 has no choices$"):
        await answered(None, GREY, [THERE, Question(3, "What is it?")], None)


class Writer:
    """A VQA model whose texts are given."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    async def answer(self, calls):
        return [Text(text) for text in self.texts]


QUESTIONS = ["Is it red?", "Is it round?", "Is it there?"]


@pytest.mark.anyio
async def test_written_answers_have_no_spaces_around_them_and_begin_with_yes_or_no():
    """In any case, and after punctuation."""
    writer = Writer(" Yes, it is.\n", "NO", '"yes"')

    assert ["Yes, it is.", "NO", '"yes"'] == await written(writer, GREY, QUESTIONS)
    assert [True, False, True] == await said_yes(writer, GREY, QUESTIONS)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("texts", "error"),
    [
        (("yes", " ", "no"), "the answer to question 2 is empty"),
        (("yes", "no", ""), "the answer to question 3 is empty"),
        (("yes", "Maybe" * 50, "no"), f'the answer to question 2 is neither yes nor no: "{"Maybe" * 20}"'),
        (("yesterday", "no", "no"), 'the answer to question 1 is neither yes nor no: "yesterday"'),
    ],
)
async def test_an_answer_without_a_yes_or_no_is_an_error_that_counts_from_1(texts, error):
    """And has the beginning of the text."""
    with pytest.raises(Unanswered) as raised:
        await said_yes(Writer(*texts), GREY, QUESTIONS)

    assert error == str(raised.value)
