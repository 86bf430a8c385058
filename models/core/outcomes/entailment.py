"""Entailment between two texts."""

from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar, Self

from models.core.outcomes.contract import CallResult


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
