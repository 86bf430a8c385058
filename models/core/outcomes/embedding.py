"""The embedding of an image or a text."""

from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from models.core.outcomes.contract import CallResult

FLOAT32 = np.dtype("<f4")
ROUNDING = 1e-5  # of a length of 1


@dataclass(frozen=True, eq=False, slots=True)
class Embedding(CallResult):
    """
    A read-only float32 vector of length 1; the cosine of two is `float(a.vector @ b.vector)`.

    Attributes:
        truncated: the text was cut at the model's length, or ended by a special token in it.
        unknown: the share of unknown tokens among those of the text, 0 to 1.
    """

    kind: ClassVar[str] = "embedding"

    vector: np.ndarray
    truncated: bool = False
    unknown: float = 0.0

    def is_finite(self) -> bool:
        return bool(np.isfinite(self.vector).all())

    def is_possible(self) -> bool:
        """Return True if the length is 1 but for rounding, so that cosines are between -1 and 1."""
        return bool(abs(np.linalg.norm(self.vector.astype(float)) - 1) <= ROUNDING)

    def to_json(self) -> dict[str, Any]:
        content = b64encode(self.vector.astype(FLOAT32, copy=False).tobytes()).decode()
        return {"vector": content, "truncated": self.truncated, "unknown": float(self.unknown)}

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        match written:
            case {
                "vector": str(content),
                "truncated": bool(truncated),
                "unknown": float(unknown),
            } if content:
                return cls(np.frombuffer(b64decode(content, validate=True), FLOAT32), truncated, unknown)
        raise ValueError("not an embedding")
