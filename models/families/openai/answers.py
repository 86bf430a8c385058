"""The answers to one question, as labels for a VLM and from log-probabilities of its first token."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from models.core.calls import ChoiceCall, FirstTokenCall, LabelCall, LikelihoodCall
from models.core.contract import ModelError
from models.core.outcomes import CallResult, Choices, FirstToken, Likelihood

VlmCall = LikelihoodCall | ChoiceCall | FirstTokenCall | LabelCall

BY_LETTER = "Answer with the option's letter from the given choices directly."


@dataclass(frozen=True, slots=True)
class Answers:
    """
    The answers to one question.

    Attributes:
        question: the text of the prompt.
        labels: texts whose log-probabilities as the first token are needed.
        whole: each label must be one token; if False, its first one represents it.
        outcome: makes the result of the labels' log-probabilities and tokens.
    """

    question: str
    labels: tuple[str, ...]
    whole: bool
    outcome: Callable[[Sequence[float], Sequence[int | None]], CallResult]


def answers_of(call: VlmCall) -> Answers:
    """Translate *call*.  Raises `ModelError` for an empty answer, or more choices than letters."""
    match call:
        case LikelihoodCall(_, question, answer):
            filled([answer])
            return Answers(question, (answer, "Yes", "No"), True, likelihood)
        case ChoiceCall(_, question, choices):
            filled(choices)
            if len(choices) > len(ascii_uppercase):
                raise ModelError(f"{len(choices)} choices; there are {len(ascii_uppercase)} letters")
            return Answers(
                lettered(question, choices), tuple(ascii_uppercase[: len(choices)]), True, one_token_each
            )
        case FirstTokenCall(_, question, answers):
            filled(answers)
            return Answers(question, answers, False, first_token)
        case LabelCall(_, question, labels):
            filled(labels)
            return Answers(question, labels, True, one_token_each)


def filled(answers: Sequence[str]) -> None:
    """Raise `ModelError` if one of *answers* is empty."""
    if not answers or not all(answer.strip() for answer in answers):
        raise ModelError("the answer is empty")


def lettered(question: str, choices: Sequence[str]) -> str:
    """Return a question with a line for each choice, and an instruction to answer by letter."""
    options = zip(ascii_uppercase, choices, strict=False)
    lines = [f"{letter}. {' '.join(choice.split())}" for letter, choice in options]
    return "\n".join([question, *lines, BY_LETTER])


def likelihood(log_probs: Sequence[float], tokens: Sequence[int | None]) -> Likelihood:
    """Build a result from the answer, "Yes" and "No"."""
    answer, yes, no = log_probs
    return Likelihood((answer,), yes, no)


def one_token_each(log_probs: Sequence[float], tokens: Sequence[int | None]) -> Choices:
    """Build a result from letters or labels.  Raises `ModelError` if two are the same token."""
    known = [token for token in tokens if token is not None]
    if len(set(known)) < len(known):
        raise ModelError("two labels are the same token of this model")
    return Choices(tuple((log_prob,) for log_prob in log_probs))


def first_token(log_probs: Sequence[float], tokens: Sequence[int | None]) -> FirstToken:
    """Build a result from the first token of each answer."""
    return FirstToken(tuple(log_probs), tuple(token for token in tokens if token is not None))
