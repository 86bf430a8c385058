"""Answers of a VQA model: likelihoods of choices, or text, and questions that a "no" makes moot."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Literal

from models.core.calls import AnswerCall, Call, ChoiceCall, LikelihoodCall
from models.core.outcomes import Choices, Likelihood
from models.images.image import Image
from service.core.errors import Invalid, Unanswered
from service.metrics.common.model_calls import Vqa
from service.questions.sets import Question

YES_NO_QUESTION = "{} Please answer yes or no."  # all metrics share it, so that equal questions are one call

Pooling = Literal["mean", "sum"]


@dataclass(frozen=True, slots=True)
class Answered:
    """
    A question with the likelihoods of its choices.

    Attributes:
        log_likelihoods: of each choice in order, natural logarithms, not normalised.
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
    def correct(self) -> bool:
        """True if that is the expected one."""
        return self.answer == self.question.expected

    @property
    def share(self) -> float:
        """The share of the expected choice."""
        return self.probabilities[self.question.expected]

    @property
    def probabilities(self) -> dict[str, float]:
        """The share of each choice, s_i / Σ s."""
        most = max(self.log_likelihoods)
        shares = [exp(log - most) for log in self.log_likelihoods]
        return {
            choice: share / sum(shares) for choice, share in zip(self.question.choices, shares, strict=True)
        }


async def answered(
    vqa: Vqa,
    image: Image,
    questions: Sequence[Question],
    template: str | None,
    pooling: Pooling = "mean",
    *,
    cased: bool = False,
) -> list[Answered]:
    """
    Return the likelihood of each choice of each question, with one call per question.

    Yes-no questions have the same template for all metrics, so that they share one call.

    Args:
        template: of questions with choices; None for the model's own.
        pooling: of the log-probabilities of a choice's tokens.
        cased: score choices as they are written.  By default they are in lower case: "Green" next to "red"
            would be unlikely because of its capital alone.

    Raises:
        Invalid: a question has no choices, as in sets that were imported for another metric of their style.
    """
    with_choices(questions)
    template = template or vqa.choice_question
    results = await vqa.answer([call(image, question, template, cased) for question in questions])
    return [
        Answered(question, log_likelihoods(question, result, pooling), result.truncated)
        for question, result in zip(questions, results, strict=True)
    ]


def with_choices(questions: Sequence[Question]) -> None:
    """Raise `Invalid` if a question has no choices, as in sets that were imported for another metric."""
    for question in questions:
        if not question.choices:
            raise Invalid(f"question_set: question {question.id} has no choices")


def call(image: Image, question: Question, template: str, cased: bool = False) -> Call:
    """Return the call of a question, with its choices in lower case unless *cased*."""
    if is_yes_no(question):
        return LikelihoodCall(image, YES_NO_QUESTION.replace("{}", question.text))
    choices = question.choices if cased else tuple(map(folded, question.choices))
    return ChoiceCall(image, template.replace("{}", question.text), choices)


def folded(choice: str) -> str:
    """Return a choice without surrounding spaces, in lower case; those of a set stay different."""
    return choice.strip().lower()


def is_yes_no(question: Question) -> bool:
    """Return True if the choices are yes and no."""
    return {folded(choice) for choice in question.choices} == {"yes", "no"}


def log_likelihoods(question: Question, result: Likelihood | Choices, pooling: Pooling) -> tuple[float, ...]:
    """Return the mean or the sum over the tokens of each choice; "Yes" and "No" are one token each."""
    if isinstance(result, Likelihood):
        by_word = {"yes": result.log_p_yes, "no": result.log_p_no}
        return tuple(by_word[folded(choice)] for choice in question.choices)
    return tuple(sum(log) / (len(log) if pooling == "mean" else 1) for log in result.log_probs)


YES_OR_NO = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)
MAX_SHOWN_CHARACTERS = 100  # characters of an answer in an error


async def written(vqa: Vqa, image: Image, questions: Sequence[str]) -> list[str]:
    """Return the VQA model's text for each question, without spaces around it.  Raises `Unanswered`."""
    answers = await vqa.answer([AnswerCall(image, question) for question in questions])
    texts = [answer.text.strip() for answer in answers]
    if not all(texts):
        raise Unanswered(f"the answer to question {texts.index('') + 1} is empty")
    return texts


async def said_yes(vqa: Vqa, image: Image, questions: Sequence[str]) -> list[bool]:
    """Return whether each text begins with "yes".  Raises `Unanswered` if one begins with neither."""
    said = []
    for number, text in enumerate(await written(vqa, image, questions), 1):
        word = YES_OR_NO.match(text)
        if word is None:
            raise Unanswered(
                f'the answer to question {number} is neither yes nor no: "{text[:MAX_SHOWN_CHARACTERS]}"'
            )
        said.append(word[1].casefold() == "yes")
    return said


Dependencies = Literal["direct", "transitive", "none"]


def moot(
    questions: Sequence[Question], yes: Mapping[int, bool], dependencies: Dependencies
) -> dict[int, list[int]]:
    """
    Return the questions that count 0 because of a parent, with the parents that decided it.

    The order of the questions does not matter, and published sets with cycles work like all others.
    """
    if dependencies == "none":
        return {}
    no = {id for id, answer in yes.items() if not answer}
    while True:
        deciding = {q.id: [parent for parent in q.depends_on if parent in no] for q in questions}
        zeroed = {id: parents for id, parents in deciding.items() if parents}
        if dependencies == "direct" or zeroed.keys() <= no:
            return zeroed
        no |= zeroed.keys()
