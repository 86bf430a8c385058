"""Results that are numbers: embeddings, likelihoods, shares of choices, entailment, rewards."""

from abc import abstractmethod
from base64 import b64decode, b64encode
from dataclasses import dataclass
from math import exp, isfinite, tanh
from typing import Any, ClassVar, Self

import numpy as np

from models.core.outcomes.contract import CallResult

FLOAT32 = np.dtype("<f4")
LENGTH_TOLERANCE = 1e-5  # a length may differ from 1 by it


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class TokenisedResult(CallResult):
    """
    The result of a call whose texts a model reads as tokens.

    Attributes:
        truncated: a text was cut at the model's length, or ended by a special token in it.
        unknown: the share of unknown tokens among those of the texts, 0 to 1.
    """

    truncated: bool = False
    unknown: float = 0.0

    @abstractmethod
    def numbers_to_json(self) -> dict[str, Any]:
        """Return the numbers of this kind as JSON values."""

    @classmethod
    @abstractmethod
    def numbers_from_json(cls, written: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that `numbers_to_json` wrote.  Raises `ValueError` for anything else."""

    def to_json(self) -> dict[str, Any]:
        return {**self.numbers_to_json(), "truncated": self.truncated, "unknown": float(self.unknown)}

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        match written:
            case {"truncated": bool(truncated), "unknown": float(unknown)}:
                return cls(**cls.numbers_from_json(written), truncated=truncated, unknown=unknown)
        raise ValueError("does not say how its texts were read")


@dataclass(frozen=True, eq=False, slots=True)
class Embedding(TokenisedResult):
    """A read-only float32 vector of length 1; the cosine of two is `float(a.vector @ b.vector)`."""

    kind: ClassVar[str] = "embedding"

    vector: np.ndarray

    def is_finite(self) -> bool:
        return bool(np.isfinite(self.vector).all())

    def is_possible(self) -> bool:
        """Return True if the length is 1 but for rounding, so that cosines are between -1 and 1."""
        return bool(abs(np.linalg.norm(self.vector.astype(float)) - 1) <= LENGTH_TOLERANCE)

    def numbers_to_json(self) -> dict[str, Any]:
        return {"vector": b64encode(self.vector.astype(FLOAT32, copy=False).tobytes()).decode()}

    @classmethod
    def numbers_from_json(cls, written: dict[str, Any]) -> dict[str, Any]:
        match written:
            case {"vector": str(content)} if content:
                return {"vector": np.frombuffer(b64decode(content, validate=True), FLOAT32)}
        raise ValueError("not an embedding")


@dataclass(frozen=True, slots=True)
class Likelihood(TokenisedResult):
    """
    Natural log-probabilities of one answer of a VQA model, all finite.

    Attributes:
        log_probs: of each answer token given the ones before, `</s>` last.
        log_p_yes: of "Yes" as the first token, for any answer.
        log_p_no: of "No" as the first token.
    """

    kind: ClassVar[str] = "likelihood"

    log_probs: tuple[float, ...]
    log_p_yes: float
    log_p_no: float

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

    def numbers_to_json(self) -> dict[str, Any]:
        return {
            "log_probs": [*map(float, self.log_probs)],
            "log_p_yes": float(self.log_p_yes),
            "log_p_no": float(self.log_p_no),
        }

    @classmethod
    def numbers_from_json(cls, written: dict[str, Any]) -> dict[str, Any]:
        match written:
            case {"log_probs": list(log_probs), "log_p_yes": float(yes), "log_p_no": float(no)}:
                return {"log_probs": floats(log_probs), "log_p_yes": yes, "log_p_no": no}
        raise ValueError("not a likelihood")


@dataclass(frozen=True, slots=True)
class Choices(TokenisedResult):
    """
    Likelihoods of the choices of one question, in their order.

    Attributes:
        log_probs: natural log-probability of each token of each choice given the ones before, all finite.  A
            choice that the prompt names by a letter has the log-probability of the letter only.
    """

    kind: ClassVar[str] = "choices"

    log_probs: tuple[tuple[float, ...], ...]

    def is_finite(self) -> bool:
        return all(isfinite(number) for tokens in self.log_probs for number in tokens)

    def is_possible(self) -> bool:
        return self.is_finite() and all(number <= 0 for tokens in self.log_probs for number in tokens)

    def numbers_to_json(self) -> dict[str, Any]:
        return {"log_probs": [[*map(float, tokens)] for tokens in self.log_probs]}

    @classmethod
    def numbers_from_json(cls, written: dict[str, Any]) -> dict[str, Any]:
        match written:
            case {"log_probs": [[_, *_], *_] as log_probs}:
                return {"log_probs": tuple(map(floats, log_probs))}
        raise ValueError("not the likelihoods of choices")


@dataclass(frozen=True, slots=True)
class FirstToken(TokenisedResult):
    """
    Likelihoods that the answer of the model begins as each of several answers does.

    Attributes:
        log_probs: natural log-probability of each answer's first token, all finite.
        tokens: the ids of those tokens.  Several answers may begin with the same token.
    """

    kind: ClassVar[str] = "first_token"

    log_probs: tuple[float, ...]
    tokens: tuple[int, ...]

    @property
    def probability(self) -> float:
        """The sum of the probabilities of the distinct tokens."""
        return min(1.0, sum(map(exp, dict(zip(self.tokens, self.log_probs, strict=True)).values())))

    def is_finite(self) -> bool:
        return all(map(isfinite, self.log_probs))

    def is_possible(self) -> bool:
        return self.is_finite() and max(self.log_probs) <= 0

    def numbers_to_json(self) -> dict[str, Any]:
        return {"log_probs": [*map(float, self.log_probs)], "tokens": [*self.tokens]}

    @classmethod
    def numbers_from_json(cls, written: dict[str, Any]) -> dict[str, Any]:
        match written:
            case {"log_probs": list(log_probs), "tokens": list(tokens)} if len(tokens) == len(
                log_probs
            ) and all(type(token) is int for token in tokens):
                return {"log_probs": floats(log_probs), "tokens": tuple(tokens)}
        raise ValueError("not the likelihoods of first tokens")


@dataclass(frozen=True, slots=True)
class Entailment(TokenisedResult):
    """
    The result of an NLI model.

    Attributes:
        probability: that the hypothesis follows from the premise, 0 to 1.
    """

    kind: ClassVar[str] = "entailment"

    probability: float

    def is_finite(self) -> bool:
        return isfinite(self.probability)

    def is_possible(self) -> bool:
        return 0 <= self.probability <= 1

    def numbers_to_json(self) -> dict[str, Any]:
        return {"probability": float(self.probability)}

    @classmethod
    def numbers_from_json(cls, written: dict[str, Any]) -> dict[str, Any]:
        match written:
            case {"probability": float(probability)}:
                return {"probability": probability}
        raise ValueError("not an entailment")


@dataclass(frozen=True, slots=True)
class Reward(TokenisedResult):
    """
    The result of a reward model.

    Attributes:
        outputs: of the model's head, all finite and unbounded.
        index: the output that is the reward.
    """

    kind: ClassVar[str] = "reward"

    outputs: tuple[float, ...]
    index: int = 0

    @property
    def value(self) -> float:
        """The reward."""
        return self.outputs[self.index]

    def is_finite(self) -> bool:
        return all(map(isfinite, self.outputs))

    def numbers_to_json(self) -> dict[str, Any]:
        return {"outputs": [*map(float, self.outputs)], "index": self.index}

    @classmethod
    def numbers_from_json(cls, written: dict[str, Any]) -> dict[str, Any]:
        match written:
            case {"outputs": list(outputs), "index": int(index)} if 0 <= index < len(outputs):
                return {"outputs": floats(outputs), "index": index}
        raise ValueError("not a reward")


def floats(numbers: Any) -> tuple[float, ...]:
    """Return a list of floats from JSON.  Raises `ValueError` for an empty one, or anything else."""
    if not (isinstance(numbers, list) and numbers and all(type(number) is float for number in numbers)):
        raise ValueError("not a list of floats")
    return tuple(numbers)
