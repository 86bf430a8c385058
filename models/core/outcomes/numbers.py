"""Results that are numbers: embeddings, likelihoods, shares of choices, entailment, rewards."""

from base64 import b64decode, b64encode
from dataclasses import dataclass
from math import exp, isfinite, tanh
from typing import Any, ClassVar, Self

import numpy as np

from models.core.outcomes.contract import CallResult

FLOAT32 = np.dtype("<f4")
ROUNDING = 1e-5  # of a length of 1


@dataclass(frozen=True, eq=False, slots=True)
class Embedding(CallResult):
    """
    A read-only float32 vector of length 1; the cosine of two is `float(a.vector @ b.vector)`.

    Attributes:
        truncated: the text was cut at the model's length, or ended by a special token in it.
        unknown: the share of unknown tokens among those of the text, 0 to 1.
    """

    kind: ClassVar[str] = "embedding"

    vector: np.ndarray
    truncated: bool = False
    unknown: float = 0.0

    def is_finite(self) -> bool:
        return bool(np.isfinite(self.vector).all())

    def is_possible(self) -> bool:
        """Return True if the length is 1 but for rounding, so that cosines are between -1 and 1."""
        return bool(abs(np.linalg.norm(self.vector.astype(float)) - 1) <= ROUNDING)

    def to_json(self) -> dict[str, Any]:
        content = b64encode(self.vector.astype(FLOAT32, copy=False).tobytes()).decode()
        return {"vector": content, "truncated": self.truncated, "unknown": float(self.unknown)}

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        match written:
            case {
                "vector": str(content),
                "truncated": bool(truncated),
                "unknown": float(unknown),
            } if content:
                return cls(np.frombuffer(b64decode(content, validate=True), FLOAT32), truncated, unknown)
        raise ValueError("not an embedding")


@dataclass(frozen=True, slots=True)
class Likelihood(CallResult):
    """
    Natural log-probabilities of one answer of a VQA model, all finite.

    Attributes:
        log_probs: of each answer token given the ones before, `</s>` last.
        log_p_yes: of "Yes" as the first token, for any answer.
        log_p_no: of "No" as the first token.
        truncated: the question was cut at the model's length.
        unknown: the share of unknown tokens among those of its texts, 0 to 1.
    """

    kind: ClassVar[str] = "likelihood"

    log_probs: tuple[float, ...]
    log_p_yes: float
    log_p_no: float
    truncated: bool = False
    unknown: float = 0.0

    @property
    def logit(self) -> float:
        """log p_yes - log p_no; always finite."""
        return self.log_p_yes - self.log_p_no

    @property
    def probability(self) -> float:
        """P("Yes" given "Yes" or "No"): the logistic function of the logit."""
        return 0.5 + 0.5 * tanh(self.logit / 2)

    @property
    def label_mass(self) -> float:
        """p_yes + p_no: the probability of either answer."""
        return exp(self.log_p_yes) + exp(self.log_p_no)

    def is_finite(self) -> bool:
        return all(map(isfinite, (*self.log_probs, self.log_p_yes, self.log_p_no)))

    def is_possible(self) -> bool:
        return self.is_finite() and max(*self.log_probs, self.log_p_yes, self.log_p_no) <= 0

    def to_json(self) -> dict[str, Any]:
        return {
            "log_probs": [*map(float, self.log_probs)],
            "log_p_yes": float(self.log_p_yes),
            "log_p_no": float(self.log_p_no),
            "truncated": self.truncated,
            "unknown": float(self.unknown),
        }

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        match written:
            case {
                "log_probs": [_, *_] as log_probs,
                "log_p_yes": float(yes),
                "log_p_no": float(no),
                "truncated": bool(truncated),
                "unknown": float(unknown),
            } if all(type(number) is float for number in log_probs):
                return cls(tuple(log_probs), yes, no, truncated, unknown)
        raise ValueError("not a likelihood")


@dataclass(frozen=True, slots=True)
class Choices(CallResult):
    """
    Likelihoods of the choices of one question, in their order.

    Attributes:
        log_probs: natural log-probability of each token of each choice given the ones before, all finite.  A
            choice that the prompt names by a letter has the letter's only.
        truncated: the question was cut at the model's length.
        unknown: the share of unknown tokens among those of its texts, 0 to 1.
    """

    kind: ClassVar[str] = "choices"

    log_probs: tuple[tuple[float, ...], ...]
    truncated: bool = False
    unknown: float = 0.0

    def is_finite(self) -> bool:
        return all(isfinite(number) for tokens in self.log_probs for number in tokens)

    def is_possible(self) -> bool:
        return self.is_finite() and all(number <= 0 for tokens in self.log_probs for number in tokens)

    def to_json(self) -> dict[str, Any]:
        return {
            "log_probs": [[*map(float, tokens)] for tokens in self.log_probs],
            "truncated": self.truncated,
            "unknown": float(self.unknown),
        }

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        match written:
            case {
                "log_probs": [[_, *_], *_] as log_probs,
                "truncated": bool(truncated),
                "unknown": float(unknown),
            } if all(type(number) is float for tokens in log_probs for number in tokens):
                return cls(tuple(tuple(tokens) for tokens in log_probs), truncated, unknown)
        raise ValueError("not the likelihoods of choices")


@dataclass(frozen=True, slots=True)
class FirstToken(CallResult):
    """
    Likelihoods of several answers as the beginning of the model's own.

    Attributes:
        log_probs: natural log-probability of each answer's first token, all finite.
        tokens: the ids of those tokens.  Several answers may begin with the same one.
        truncated: the question was cut at the model's length.
        unknown: the share of unknown tokens among those of its texts, 0 to 1.
    """

    kind: ClassVar[str] = "first_token"

    log_probs: tuple[float, ...]
    tokens: tuple[int, ...]
    truncated: bool = False
    unknown: float = 0.0

    @property
    def probability(self) -> float:
        """The probability of all these tokens together, each counted once."""
        return min(1.0, sum(map(exp, dict(zip(self.tokens, self.log_probs, strict=True)).values())))

    def is_finite(self) -> bool:
        return all(map(isfinite, self.log_probs))

    def is_possible(self) -> bool:
        return self.is_finite() and max(self.log_probs) <= 0

    def to_json(self) -> dict[str, Any]:
        return {
            "log_probs": [*map(float, self.log_probs)],
            "tokens": [*self.tokens],
            "truncated": self.truncated,
            "unknown": float(self.unknown),
        }

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        match written:
            case {
                "log_probs": [_, *_] as log_probs,
                "tokens": [_, *_] as tokens,
                "truncated": bool(truncated),
                "unknown": float(unknown),
            } if (
                len(tokens) == len(log_probs)
                and all(type(number) is float for number in log_probs)
                and all(type(token) is int for token in tokens)
            ):
                return cls(tuple(log_probs), tuple(tokens), truncated, unknown)
        raise ValueError("not the likelihoods of first tokens")


@dataclass(frozen=True, slots=True)
class Entailment(CallResult):
    """
    The result of an NLI model.

    Attributes:
        probability: that the hypothesis follows from the premise, 0 to 1.
        truncated: the texts were cut at the model's length.
        unknown: the share of unknown tokens among those of its texts, 0 to 1.
    """

    kind: ClassVar[str] = "entailment"

    probability: float
    truncated: bool = False
    unknown: float = 0.0

    def is_finite(self) -> bool:
        return isfinite(self.probability)

    def is_possible(self) -> bool:
        return 0 <= self.probability <= 1

    def to_json(self) -> dict[str, Any]:
        return {
            "probability": float(self.probability),
            "truncated": self.truncated,
            "unknown": float(self.unknown),
        }

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        match written:
            case {
                "probability": float(probability),
                "truncated": bool(truncated),
                "unknown": float(unknown),
            }:
                return cls(probability, truncated, unknown)
        raise ValueError("not an entailment")


@dataclass(frozen=True, slots=True)
class Reward(CallResult):
    """
    The result of a reward model.

    Attributes:
        outputs: of its head, all finite and unbounded.
        index: the output that is the reward.
        truncated: the prompt was cut at the model's length.
        unknown: the share of unknown tokens among those of the prompt, 0 to 1.
    """

    kind: ClassVar[str] = "reward"

    outputs: tuple[float, ...]
    index: int = 0
    truncated: bool = False
    unknown: float = 0.0

    @property
    def value(self) -> float:
        """The reward."""
        return self.outputs[self.index]

    def is_finite(self) -> bool:
        return all(map(isfinite, self.outputs))

    def to_json(self) -> dict[str, Any]:
        return {
            "outputs": [*map(float, self.outputs)],
            "index": self.index,
            "truncated": self.truncated,
            "unknown": float(self.unknown),
        }

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        match written:
            case {
                "outputs": [_, *_] as outputs,
                "index": int(index),
                "truncated": bool(truncated),
                "unknown": float(unknown),
            } if all(type(number) is float for number in outputs) and 0 <= index < len(outputs):
                return cls(tuple(outputs), index, truncated, unknown)
        raise ValueError("not a reward")
