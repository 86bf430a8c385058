"""Likelihoods of several answers to one question."""

from dataclasses import dataclass
from math import exp, isfinite
from typing import Any, ClassVar, Self

from models.core.outcomes.contract import CallResult


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
