"""What was written."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from models.core.outcomes.contract import CallResult


@dataclass(frozen=True, slots=True)
class Text(CallResult):
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
