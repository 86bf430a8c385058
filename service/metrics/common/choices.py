"""Questions with choices, answered by how likely each choice is."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Literal

from models.core.calls import Call, ChoiceCall, LikelihoodCall
from models.core.outcomes import Choices, Likelihood
from models.images.image import Image
from service.core.errors import Invalid
from service.metrics.common.model_calls import Vqa
from service.questions.sets import Question

YES_NO_QUESTION = (
    "{} Please answer yes or no."  # the same for all metrics, so that equal questions are asked once
)

Pooling = Literal["mean", "sum"]


@dataclass(frozen=True, slots=True)
class Answered:
    """
    What the VQA model says of a question's choices.

    Attributes:
        log_likelihoods: of each choice in its order, natural logarithms, not normalised.
    """

    question: Question
    log_likelihoods: tuple[float, ...]
    truncated: bool

    @property
    def answer(self) -> str:
        """The likeliest choice."""
        best = max(range(len(self.log_likelihoods)), key=self.log_likelihoods.__getitem__)
        return self.question.choices[best]

    @property
    def probabilities(self) -> dict[str, float]:
        """Of each choice among all of them: s_i / Σ s."""
        most = max(self.log_likelihoods)
        shares = [exp(log - most) for log in self.log_likelihoods]
        return {
            choice: share / sum(shares) for choice, share in zip(self.question.choices, shares, strict=True)
        }


async def answered(
    vqa: Vqa, image: Image, questions: Sequence[Question], template: str | None, pooling: Pooling = "mean"
) -> list[Answered]:
    """
    The likelihood of each choice of each question; all are asked at once.

    A question between yes and no is asked in words that all metrics share, so that it is one call for all
    of them.  Any other is one call, too, with all its choices.

    Args:
        template: how questions with choices are asked; None for the model's own way.
        pooling: of the log-probabilities of a choice's tokens.

    Raises:
        Invalid: a question has no choices, as in sets that were imported for another metric of their style.
    """
    for question in questions:
        if not question.choices:
            raise Invalid(f"question_set: question {question.id} has no choices")
    ask = template or vqa.choice_question
    outcomes = await vqa.answer([call(image, question, ask) for question in questions])
    return [
        Answered(question, log_likelihoods(question, outcome, pooling), outcome.truncated)
        for question, outcome in zip(questions, outcomes, strict=True)
    ]


def call(image: Image, question: Question, template: str) -> Call:
    """The one call that a question is."""
    if is_yes_no(question):
        return LikelihoodCall(image, YES_NO_QUESTION.replace("{}", question.text))
    return ChoiceCall(image, template.replace("{}", question.text), question.choices)


def is_yes_no(question: Question) -> bool:
    """Whether its choices are yes and no."""
    return {choice.casefold() for choice in question.choices} == {"yes", "no"}


def log_likelihoods(question: Question, outcome: Likelihood | Choices, pooling: Pooling) -> tuple[float, ...]:
    """Of each choice: the mean or the sum over its tokens; "Yes" and "No" are one token each."""
    if isinstance(outcome, Likelihood):
        by_word = {"yes": outcome.log_p_yes, "no": outcome.log_p_no}
        return tuple(by_word[choice.casefold()] for choice in question.choices)
    return tuple(sum(log) / (len(log) if pooling == "mean" else 1) for log in outcome.log_probs)
