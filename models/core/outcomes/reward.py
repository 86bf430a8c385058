"""The reward of an image for a prompt."""

from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar, Self

from models.core.outcomes.contract import CallResult


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
