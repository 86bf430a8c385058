"""The likelihood of an answer."""

from dataclasses import dataclass
from math import exp, isfinite, tanh
from typing import Any, ClassVar, Self

from models.core.outcomes.contract import CallResult


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
