"""Text: generated, and read in an image."""

from dataclasses import dataclass
from math import isfinite
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


@dataclass(frozen=True, slots=True)
class Line:
    """
    One line of text.

    Attributes:
        box: its four corners (x, y) in pixels from the top left of the image, clockwise from the top left of
            the text.
        confidence: of the text, 0 to 1.
    """

    text: str
    box: tuple[tuple[float, float], ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class Reading(CallResult):
    """Text lines from top to bottom; empty for an image without text."""

    kind: ClassVar[str] = "reading"

    lines: tuple[Line, ...]

    def is_finite(self) -> bool:
        return all(
            isfinite(line.confidence) and all(isfinite(n) for corner in line.box for n in corner)
            for line in self.lines
        )

    def is_possible(self) -> bool:
        return self.is_finite() and all(0 <= line.confidence <= 1 for line in self.lines)

    def to_json(self) -> dict[str, Any]:
        return {
            "lines": [
                [line.text, [[float(x), float(y)] for x, y in line.box], float(line.confidence)]
                for line in self.lines
            ]
        }

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        lines = []
        for text, corners, confidence in written["lines"]:
            if type(text) is not str or type(confidence) is not float or len(corners) != 4:
                raise ValueError("not a line of text")
            box = tuple((x, y) for x, y in corners)
            if any(type(number) is not float for corner in box for number in corner):
                raise ValueError("not the corners of a box")
            lines.append(Line(text, box, confidence))
        return cls(tuple(lines))
