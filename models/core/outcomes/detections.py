"""Objects in an image."""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar, Self

import numpy as np

from models.core.outcomes.contract import CallResult

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Detection:
    """
    One object.

    Attributes:
        score: confidence of the model, 0 to 1.
        box: left, top, right and bottom in pixels from the top left of the image.
        mask: the object's pixels within the box, packed (see `packed`); None if the model returns no masks.
    """

    label: str
    score: float
    box: Box
    mask: bytes | None = None

    @property
    def pixels(self) -> np.ndarray | None:
        """The mask as booleans (height, width) of the box; None without a mask.  Raises `ValueError`."""
        return None if self.mask is None else unpacked(self.mask, *size_of(self.box))

    def is_finite(self) -> bool:
        return all(map(isfinite, (self.score, *self.box)))

    def to_json(self) -> list[Any]:
        mask = None if self.mask is None else b64encode(self.mask).decode()
        return [self.label, float(self.score), [*map(float, self.box)], mask]

    @classmethod
    def from_json(cls, written: Sequence[Any]) -> Self:
        match written:
            case [
                str(label),
                float(score),
                [float(), float(), float(), float()] as box,
                None | str() as mask,
            ]:
                left, top, right, bottom = box
                packed = None if mask is None else b64decode(mask, validate=True)
                found = cls(label, score, (left, top, right, bottom), packed)
                if 0 <= score <= 1 and left <= right and top <= bottom and found.is_finite():
                    found.pixels  # noqa: B018  # raises for a broken one
                    return found
        raise ValueError("not a detection")


@dataclass(frozen=True, slots=True)
class Detections(CallResult):
    """Detected objects, the highest score first; empty for an image without such objects."""

    kind: ClassVar[str] = "detections"

    found: tuple[Detection, ...]

    def is_finite(self) -> bool:
        return all(each.is_finite() for each in self.found)

    def to_json(self) -> dict[str, Any]:
        return {"found": [each.to_json() for each in self.found]}

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        return cls(tuple(map(Detection.from_json, written["found"])))


def size_of(box: Box) -> tuple[int, int]:
    """Return height and width of a box in whole pixels."""
    left, top, right, bottom = map(round, box)
    return bottom - top, right - left


def packed(mask: np.ndarray) -> bytes:
    """Compress a mask (height, width) of booleans as bits, row by row."""
    return zlib.compress(np.packbits(mask).tobytes())


def unpacked(mask: bytes, height: int, width: int) -> np.ndarray:
    """Decompress what `packed` returned.  Raises `ValueError` if the bytes are no mask of that size."""
    size = (height * width + 7) // 8
    reader = zlib.decompressobj()
    try:
        bits = reader.decompress(mask, size + 1)
    except zlib.error as exc:
        raise ValueError("not a mask") from exc
    if len(bits) != size or not reader.eof:
        raise ValueError("not a mask of that size")
    found = np.unpackbits(np.frombuffer(bits, np.uint8), count=height * width)
    return found.reshape(height, width).astype(bool)
