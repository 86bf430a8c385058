"""A question and its answers as tokens, and the answers from logits."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice
from math import isfinite
from pathlib import Path
from typing import Protocol

import sentencepiece
import torch

from models.checkpoints.pretrained import Unknown
from models.core.calls import AnswerCall, ChoiceCall, FirstTokenCall, LabelCall, LikelihoodCall, VqaCall
from models.core.contract import NOT_FINITE, CheckpointError, ModelError
from models.core.outcomes import CallResult, Choices, FirstToken, Likelihood

SYSTEM = (
    "A chat between a curious user and an artificial intelligence assistant. The assistant gives"
    " helpful, detailed, and polite answers to the user's questions."
)
CONTEXT_LENGTH = 2048  # text tokens, counted before the image is spliced in
PAD, EOS, IGNORE = 0, 1, -100
CACHED_TEXTS = 1024

SplitText = tuple[Sequence[int], Sequence[int]]  # token ids before and after the image


class T5Tokenizer:
    """
    T5's pieces of the text around the image slot.

    SentencePiece is used directly: `</s>`, `<pad>` or `<image>` in a prompt remain text.

    Raises:
        CheckpointError: *path* holds no pieces, or those of another kind of model.
    """

    def __init__(self, path: Path, extra_ids: int = 100) -> None:
        if not path.is_file():
            raise CheckpointError(f"{path}: missing")
        try:
            self._pieces = sentencepiece.SentencePieceProcessor(model_file=str(path))
        except (OSError, RuntimeError) as exc:
            raise CheckpointError(f"{path}: not a SentencePiece model") from exc
        if (self._pieces.pad_id(), self._pieces.eos_id()) != (PAD, EOS):
            raise CheckpointError(
                f"{path}: not a T5 tokenizer: <pad> must be piece {PAD} and </s> piece {EOS}"
            )
        first = [self._pieces.encode(word)[0] for word in ("Yes", "No")]
        if self._pieces.unk_id() in first or first[0] == first[1]:
            raise CheckpointError(f'{path}: the tokens "Yes" and "No" begin with the same piece')
        self._encoded = lru_cache(CACHED_TEXTS)(self._pieces.encode)  # many pictures have the same prompt
        self.space: int | None = self._pieces.piece_to_id(
            "\u2581"
        )  # it stands alone before a word without a piece of its own
        self.unknown = Unknown(self._pieces.unk_id(), frozenset((PAD, EOS)))
        self.size: int = self._pieces.vocab_size() + extra_ids

    def encode(self, text: str) -> list[int]:
        """Return ids of *text* with the `</s>` that the reference puts after every chunk."""
        return [*self._encoded(text), EOS]

    def around_image(self, question: str) -> tuple[list[int], list[int]]:
        """
        Return ids before and after the image slot, cut at the context length with the slot as one token.
        """
        before = self.encode(f"{SYSTEM} USER: ")
        after = self.encode(f"\n{question} ASSISTANT: ")
        return before, after[: CONTEXT_LENGTH - len(before) - 1]


# --- answers ---


@dataclass(frozen=True, slots=True)
class AnswerQuery:
    """
    The answers to one question as tokens.

    Attributes:
        answers: token ids of each answer that is decoded.
        wanted: (position, token) of the log-probabilities for *outcome*; positions count the tokens of all
            answers in order.
        outcome: makes the result of those log-probabilities.
    """

    answers: tuple[tuple[int, ...], ...]
    wanted: tuple[tuple[int, int], ...]
    outcome: Callable[[Sequence[float]], CallResult]

    @property
    def tokens(self) -> int:
        """The number of tokens to decode."""
        return sum(map(len, self.answers))


class AnswerTokenizer(Protocol):
    """
    A tokenizer of answers.

    Attributes:
        space: the token of a space alone, before a word without a token of its own; None without one.
    """

    unknown: Unknown
    space: int | None

    def encode(self, text: str) -> list[int]:
        """Return ids of *text*, with the one that ends an answer."""
        ...


class AnswerEncoder:
    """Translates calls into tokens of a *tokenizer*; *words* are the model's own for yes and no."""

    def __init__(self, tokenizer: AnswerTokenizer, words: tuple[str, str] = ("Yes", "No")) -> None:
        self._tokenizer = tokenizer
        self._yes, self._no = (tokenizer.encode(word)[0] for word in words)

    def unknown(self, call: VqaCall) -> float:
        """Return the share of unknown tokens in the question and the answers of *call*."""
        ids = [self._tokenizer.encode(text) for text in (call.question, *answers_of(call))]
        return self._tokenizer.unknown.share(chain.from_iterable(ids))

    def encode(self, call: VqaCall, *, truncated: bool, unknown: float) -> AnswerQuery:
        """
        Translate *call*; the result has *truncated* and *unknown*.

        Raises:
            ModelError: an answer is empty, a label is not one token, or there are several images.
        """
        match call:
            case AnswerCall():
                raise ModelError("this model writes no answers; a VLM behind a server does")
            case LikelihoodCall():
                labels = self._tokens(call.answer)
                both = ((0, self._yes), (0, self._no))
                return AnswerQuery(
                    (labels,), (*enumerate(labels), *both), partial(likelihood, truncated, unknown)
                )
            case ChoiceCall():
                answers = tuple(map(self._tokens, call.choices))
                every = tuple(enumerate(token for answer in answers for token in answer))
                return AnswerQuery(answers, every, partial(choices, truncated, unknown, [*map(len, answers)]))
            case FirstTokenCall():
                first = self._first(call.answers)
                wanted = tuple((0, token) for token in first)
                return AnswerQuery((first[:1],), wanted, partial(first_token, truncated, unknown, first))
            case LabelCall():
                if call.before:
                    raise ModelError("this model takes one image, and the call has several")
                labels = self._labels(call.labels)
                wanted = tuple((0, token) for token in labels)
                return AnswerQuery(
                    (labels[:1],), wanted, partial(choices, truncated, unknown, [1] * len(labels))
                )

    def _first(self, answers: Sequence[str]) -> tuple[int, ...]:
        """Return the first tokens of *answers*, without a lone space, which could begin any other word."""
        found = [self._tokens(answer)[0] for answer in answers]
        distinct = tuple(token for token in found if token != self._tokenizer.space)
        if not distinct:
            raise ModelError("no spelling of the answer begins with a distinctive token")
        return distinct

    def _labels(self, labels: Sequence[str]) -> tuple[int, ...]:
        """Return the one token of each label."""
        found = []
        for number, label in enumerate(labels, 1):
            *tokens, _ = self._tokens(label)  # </s> is dropped
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


def answers_of(call: VqaCall) -> Sequence[str]:
    """Return the texts of the answers that a call is about."""
    match call:
        case LikelihoodCall():
            return (call.answer,)
        case ChoiceCall():
            return call.choices
        case FirstTokenCall():
            return call.answers
        case LabelCall():
            return call.labels
    return ()


def likelihood(truncated: bool, unknown: float, log_probs: Sequence[float]) -> Likelihood:
    """Build a result from the tokens of an answer, then "Yes" and "No" as the first token."""
    *tokens, yes, no = log_probs
    return Likelihood(tuple(tokens), yes, no, truncated=truncated, unknown=unknown)


def choices(truncated: bool, unknown: float, lengths: Sequence[int], log_probs: Sequence[float]) -> Choices:
    """Build a result from the tokens of choices of these *lengths*."""
    rest = iter(log_probs)
    each = tuple(tuple(islice(rest, length)) for length in lengths)
    return Choices(each, truncated=truncated, unknown=unknown)


def first_token(
    truncated: bool, unknown: float, tokens: tuple[int, ...], log_probs: Sequence[float]
) -> FirstToken:
    """Build a result from *tokens* in the first position."""
    return FirstToken(tuple(log_probs), tokens, truncated=truncated, unknown=unknown)


def outcomes_of(logits: torch.Tensor, queries: Sequence[AnswerQuery]) -> Iterator[CallResult | ModelError]:
    """Yield the results of *queries*, from logits (tokens of all their answers, vocabulary) in that order."""
    wanted, start = [], 0
    for query in queries:
        wanted += [(start + place, token) for place, token in query.wanted]
        start += query.tokens
    rows, tokens = torch.tensor(wanted).to(logits.device).unbind(1)
    log_probs = iter((logits[rows, tokens] - logits.logsumexp(-1)[rows]).tolist())
    for query in queries:
        numbers = list(islice(log_probs, len(query.wanted)))
        if all(map(isfinite, numbers)):
            yield query.outcome(numbers)
        else:
            yield ModelError(NOT_FINITE)
