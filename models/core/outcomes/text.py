"""Generated text."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from models.core.outcomes.contract import CallResult


@dataclass(frozen=True, slots=True)
class Text(CallResult):
    """The text of a language model, unchanged."""

    kind: ClassVar[str] = "text"

    text: str

    def is_finite(self) -> bool:
        return True

    def to_json(self) -> dict[str, Any]:
        return {"text": self.text}

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        match written:
            case {"text": str(text)}:
                return cls(text)
        raise ValueError("not a text")
