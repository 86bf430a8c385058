"""
The answers that a decoder VLM is called for: texts, whose log-probabilities make the result of a call.

Choices are listed below the question as "A. red", and the letters are their labels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_uppercase

from models.core.calls import ChoiceCall, FirstTokenCall, LabelCall, LikelihoodCall
from models.core.contract import ModelError
from models.core.outcomes import CallResult, Choices, FirstToken, Likelihood

VlmCall = LikelihoodCall | ChoiceCall | FirstTokenCall | LabelCall

LETTER_INSTRUCTION = "Answer with the option's letter from the given choices directly."

LogProbs = Sequence[float]
"""Natural log-probabilities of a label's tokens, each given the ones before."""

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Answers:
    """
    The answers to one question.

    Attributes:
        question: the text of the prompt.
        labels: texts whose log-probabilities as the beginning of an answer are needed.
        whole: all tokens of a label count; if False, its first one represents it.
        outcome: makes the result of the labels' log-probabilities and tokens.  A server may not return the
            latter.
        exclusive: no label may be the beginning of another one, since their probabilities are compared.
    """

    question: str
    labels: tuple[str, ...]
    whole: bool
    outcome: Callable[[Sequence[LogProbs], Sequence[Tokens | None]], CallResult]
    exclusive: bool = False

    def check(self, tokens: Sequence[Tokens | None]) -> None:
        """Raise `ModelError` if labels that must exclude each other do not, by their *tokens*."""
        known = sorted(each for each in tokens if each is not None)
        for first, second in pairwise(known if self.exclusive else ()):
            if first == second:
                raise ModelError("two labels are the same token of this model")
            if first == second[: len(first)]:
                raise ModelError("the tokens of one label are the beginning of another's in this model")


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
            letters = tuple(ascii_uppercase[: len(choices)])
            return Answers(lettered(question, choices), letters, True, labelled, exclusive=True)
        case FirstTokenCall(_, question, answers):
            filled(answers)
            return Answers(question, answers, False, first_token)
        case LabelCall(_, question, labels):
            filled(labels)
            return Answers(question, labels, True, labelled, exclusive=True)


def filled(answers: Sequence[str]) -> None:
    """Raise `ModelError` if one of *answers* is empty."""
    if not answers or not all(answer.strip() for answer in answers):
        raise ModelError("the answer is empty")


def lettered(question: str, choices: Sequence[str]) -> str:
    """Return a question with a line for each choice, and an instruction to answer by letter."""
    options = zip(ascii_uppercase, choices, strict=False)
    lines = [f"{letter}. {' '.join(choice.split())}" for letter, choice in options]
    return "\n".join([question, *lines, LETTER_INSTRUCTION])


def likelihood(log_probs: Sequence[LogProbs], tokens: Sequence[Tokens | None]) -> Likelihood:
    """Build a result from the answer, "Yes" and "No"."""
    answer, (yes, *_), (no, *_) = log_probs
    return Likelihood(tuple(answer), yes, no)


def labelled(log_probs: Sequence[LogProbs], tokens: Sequence[Tokens | None]) -> Choices:
    """Build a result from letters or labels."""
    return Choices(tuple(map(tuple, log_probs)))


def first_token(log_probs: Sequence[LogProbs], tokens: Sequence[Tokens | None]) -> FirstToken:
    """Build a result from the first token of each answer."""
    known = tuple(each[0] for each in tokens if each is not None)
    return FirstToken(tuple(first for first, *_ in log_probs), known)


# --- tokens -------------------------------------------------------------------------------------

SPACE_CHARACTERS = " \n\t▁ĠĊ"  # characters of a token that is only space


def visible(ids: Sequence[int], texts: Sequence[object]) -> int | None:
    """Return the first of *ids* that is more than a space by its text; None if none is."""
    pairs = zip(ids, texts, strict=True)
    return next((id for id, text in pairs if str(text).strip(SPACE_CHARACTERS)), None)
