"""
Outcomes: what a model says of one call.

Each kind is one class, which knows whether its numbers are finite and how it is written down and read
again, to the last bit.  Outcomes are never pickled.
"""

from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from dataclasses import dataclass
from math import exp, isfinite, tanh
from typing import Any, ClassVar, Self

import numpy as np
import orjson

FLOAT32 = np.dtype("<f4")


class Outcome(ABC):
    """
    What a model says of one call.

    Attributes:
        kind: the name under which stored outcomes of this class are found again.
    """

    __slots__ = ()

    kind: ClassVar[str]
    _kinds: ClassVar[dict[str, type["Outcome"]]] = {}

    def __init_subclass__(cls) -> None:
        """Make the kind known to `loads`."""
        Outcome._kinds[cls.kind] = cls

    @abstractmethod
    def is_finite(self) -> bool:
        """Whether all its numbers are."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """All of it as values that JSON has."""

    @classmethod
    @abstractmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        """What `to_json` wrote.  Raises `KeyError`, `TypeError` or `ValueError` for anything else."""

    def dumps(self) -> bytes:
        """As stores keep it: JSON, floats in as many digits as tell them apart."""
        return orjson.dumps({"kind": self.kind, **self.to_json()})

    @staticmethod
    def loads(value: bytes) -> "Outcome | None":
        """What `dumps` wrote; None where the bytes are something else, a part of it, or not finite."""
        try:
            written = orjson.loads(value)
            outcome = Outcome._kinds[written.pop("kind")].from_json(written)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
        return outcome if outcome.is_finite() else None


@dataclass(frozen=True, slots=True)
class Likelihood(Outcome):
    """
    What a VQA model says of one answer; natural-log probabilities, all finite.

    Attributes:
        log_probs: of each answer token given the ones before, `</s>` last.
        log_p_yes: of "Yes" as the first token, whatever the answer asked for.
        log_p_no: of "No" as the first token.
        truncated: the question was cut at the model's length.
    """

    kind: ClassVar[str] = "likelihood"

    log_probs: tuple[float, ...]
    log_p_yes: float
    log_p_no: float
    truncated: bool = False

    @property
    def logit(self) -> float:
        """log p_yes - log p_no, finite however sure the model is."""
        return self.log_p_yes - self.log_p_no

    @property
    def probability(self) -> float:
        """P("Yes" given "Yes" or "No"): the logistic function of the logit."""
        return 0.5 + 0.5 * tanh(self.logit / 2)

    @property
    def label_mass(self) -> float:
        """p_yes + p_no: how much of the model's answer is an answer at all."""
        return exp(self.log_p_yes) + exp(self.log_p_no)

    def is_finite(self) -> bool:
        """Whether all log-probabilities are."""
        return all(map(isfinite, (*self.log_probs, self.log_p_yes, self.log_p_no)))

    def to_json(self) -> dict[str, Any]:
        """Every number as a float."""
        return {
            "log_probs": [*map(float, self.log_probs)],
            "log_p_yes": float(self.log_p_yes),
            "log_p_no": float(self.log_p_no),
            "truncated": self.truncated,
        }

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        """What `to_json` wrote."""
        match written:
            case {
                "log_probs": [_, *_] as log_probs,
                "log_p_yes": float(yes),
                "log_p_no": float(no),
                "truncated": bool(truncated),
            } if all(type(number) is float for number in log_probs):
                return cls(tuple(log_probs), yes, no, truncated)
        raise ValueError("not a likelihood")


@dataclass(frozen=True, eq=False, slots=True)
class Embedding(Outcome):
    """A read-only float32 vector of length 1; the cosine of two is `float(a.vector @ b.vector)`."""

    kind: ClassVar[str] = "embedding"

    vector: np.ndarray
    truncated: bool = False  # the text was cut at the model's length

    def is_finite(self) -> bool:
        """Whether all numbers of the vector are."""
        return bool(np.isfinite(self.vector).all())

    def to_json(self) -> dict[str, Any]:
        """The vector's bytes as base64."""
        content = b64encode(self.vector.astype(FLOAT32, copy=False).tobytes()).decode()
        return {"vector": content, "truncated": self.truncated}

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        """What `to_json` wrote."""
        match written:
            case {"vector": str(content), "truncated": bool(truncated)} if content:
                return cls(np.frombuffer(b64decode(content, validate=True), FLOAT32), truncated)
        raise ValueError("not an embedding")


@dataclass(frozen=True, slots=True)
class Text(Outcome):
    """What a language model wrote, as it wrote it."""

    kind: ClassVar[str] = "text"

    text: str

    def is_finite(self) -> bool:
        """It holds no number."""
        return True

    def to_json(self) -> dict[str, Any]:
        """The text."""
        return {"text": self.text}

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        """What `to_json` wrote."""
        match written:
            case {"text": str(text)}:
                return cls(text)
        raise ValueError("not a text")
