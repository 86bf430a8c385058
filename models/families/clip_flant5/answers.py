"""What CLIP-FlanT5 is asked of the answers to one question, and how its logits tell it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import isfinite

import torch

from models.core.calls import ChoiceCall, FirstTokenCall, LabelCall, LikelihoodCall
from models.core.contract import ModelError
from models.core.outcomes import CallResult, Choices, FirstToken, Likelihood
from models.families.clip_flant5.tokenizer import CONTEXT_LENGTH, Tokenizer

VqaCall = LikelihoodCall | ChoiceCall | FirstTokenCall | LabelCall


@dataclass(frozen=True, slots=True)
class AnswerQuery:
    """
    The answers to one question as tokens.

    Attributes:
        answers: token ids of each answer that is decoded.
        wanted: (place, token): the log-probability of that token at that place among all tokens of the
            answers, one answer after the other.
        outcome: made of those log-probabilities.
    """

    answers: tuple[tuple[int, ...], ...]
    wanted: tuple[tuple[int, int], ...]
    outcome: Callable[[Sequence[float]], CallResult]

    @property
    def tokens(self) -> int:
        """How many the decoder goes through."""
        return sum(map(len, self.answers))


class Answers:
    """Answers in the pieces of a *tokenizer*."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._yes, self._no = (tokenizer.encode(word)[0] for word in ("Yes", "No"))

    def of(self, call: VqaCall, *, truncated: bool) -> AnswerQuery:
        """
        What *call* asks.

        Raises:
            ModelError: an answer is empty, a label is not one token, or several images are shown.
        """
        match call:
            case LikelihoodCall():
                labels = self._tokens(call.answer)
                both = ((0, self._yes), (0, self._no))
                return AnswerQuery((labels,), (*enumerate(labels), *both), partial(likelihood, truncated))
            case ChoiceCall():
                answers = tuple(map(self._tokens, call.choices))
                every = tuple(enumerate(token for answer in answers for token in answer))
                return AnswerQuery(answers, every, partial(choices, truncated, [*map(len, answers)]))
            case FirstTokenCall():
                first = self._first(call.answers)
                wanted = tuple((0, token) for token in first)
                return AnswerQuery((first[:1],), wanted, partial(first_token, truncated, first))
            case LabelCall():
                if call.before:
                    raise ModelError("this model looks at one image, and is shown several")
                labels = self._labels(call.labels)
                wanted = tuple((0, token) for token in labels)
                return AnswerQuery((labels[:1],), wanted, partial(choices, truncated, [1] * len(labels)))

    def _first(self, answers: Sequence[str]) -> tuple[int, ...]:
        """The first tokens of *answers*, without a lone space: any other word may begin with that."""
        found = [self._tokens(answer)[0] for answer in answers]
        telling = tuple(token for token in found if token != self._tokenizer.space)
        if not telling:
            raise ModelError("no way of writing the answer begins with a token that tells it apart")
        return telling

    def _labels(self, labels: Sequence[str]) -> tuple[int, ...]:
        """The one token of each label."""
        found = []
        for number, label in enumerate(labels, 1):
            *tokens, _ = self._tokens(label)  # without </s>
            if len(tokens) != 1:
                said = f"label {number} of {len(labels)} has {len(tokens)} tokens in this model"
                raise ModelError(f"{said}; it must have one")
            found += tokens
        if len(set(found)) < len(found):
            raise ModelError("two labels are the same token of this model")
        return tuple(found)

    def _tokens(self, answer: str) -> tuple[int, ...]:
        if not answer.strip():
            raise ModelError("the answer is empty")
        return tuple(self._tokenizer.encode(answer)[:CONTEXT_LENGTH])


def likelihood(truncated: bool, log_probs: Sequence[float]) -> Likelihood:
    """Of an answer's tokens, then of "Yes" and "No" in the place of the first."""
    *tokens, yes, no = log_probs
    return Likelihood(tuple(tokens), yes, no, truncated)


def choices(truncated: bool, lengths: Sequence[int], log_probs: Sequence[float]) -> Choices:
    """Of the tokens of choices that have so many each."""
    rest = iter(log_probs)
    return Choices(tuple(tuple(islice(rest, length)) for length in lengths), truncated)


def first_token(truncated: bool, tokens: tuple[int, ...], log_probs: Sequence[float]) -> FirstToken:
    """Of each of *tokens* in the first place."""
    return FirstToken(tuple(log_probs), tokens, truncated)


def outcomes_of(logits: torch.Tensor, asked: Sequence[AnswerQuery]) -> Iterator[CallResult | ModelError]:
    """The outcomes of *asked*, from the logits (tokens of all their answers, vocabulary), in that order."""
    wanted, start = [], 0
    for one in asked:
        wanted += [(start + place, token) for place, token in one.wanted]
        start += one.tokens
    rows, tokens = torch.tensor(wanted).to(logits.device).unbind(1)
    log_probs = iter((logits[rows, tokens] - logits.logsumexp(-1)[rows]).tolist())
    for one in asked:
        numbers = list(islice(log_probs, len(one.wanted)))
        if all(map(isfinite, numbers)):
            yield one.outcome(numbers)
        else:
            yield ModelError("the model's output is not finite")
