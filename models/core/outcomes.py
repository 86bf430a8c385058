"""
Outcomes: results of calls.

Each kind is a class that can check its numbers, and write and read itself without loss.  Outcomes are never
pickled.
"""

import zlib
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, isfinite, tanh
from typing import Any, ClassVar, Self

import numpy as np
import orjson


class CallResult(ABC):
    """
    The result of one call.

    Attributes:
        kind: name of the class in stored results.
    """

    __slots__ = ()

    kind: ClassVar[str]
    _kinds: ClassVar[dict[str, type["CallResult"]]] = {}

    def __init_subclass__(cls) -> None:
        """Register the kind for `loads`; a base class of several kinds has none."""
        if hasattr(cls, "kind"):
            CallResult._kinds[cls.kind] = cls

    @abstractmethod
    def is_finite(self) -> bool:
        """Return True if all numbers are finite."""

    def is_possible(self) -> bool:
        """Return True if all numbers are finite and within the range of their kind."""
        return self.is_finite()

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return all fields as JSON values."""

    @classmethod
    @abstractmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        """Build a result from the values of `to_json`.  Raises `KeyError`, `TypeError` or `ValueError`."""

    def dumps(self) -> bytes:
        """Encode the result as JSON for a store, without rounding."""
        return orjson.dumps({"kind": self.kind, **self.to_json()})

    @staticmethod
    def loads(value: bytes) -> "CallResult | None":
        """Decode a result of `dumps`; None if the bytes are incomplete, or not those of a possible result."""
        try:
            written = orjson.loads(value)
            outcome = CallResult._kinds[written.pop("kind")].from_json(written)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
        return outcome if outcome.is_possible() else None


# --- numbers ------------------------------------------------------------------------------------

FLOAT32 = np.dtype("<f4")
LENGTH_TOLERANCE = 1e-5  # a length may differ from 1 by it


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class TokenisedResult(CallResult):
    """
    The result of a call whose texts a model reads as tokens.

    Attributes:
        truncated: a text was cut at the model's length, or ended by a special token in it.
        unknown: the share of unknown tokens among those of the texts, 0 to 1.
    """

    truncated: bool = False
    unknown: float = 0.0

    @abstractmethod
    def numbers_to_json(self) -> dict[str, Any]:
        """Return the numbers of this kind as JSON values."""

    @classmethod
    @abstractmethod
    def numbers_from_json(cls, written: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that `numbers_to_json` wrote.  Raises `ValueError` for anything else."""

    def to_json(self) -> dict[str, Any]:
        return {**self.numbers_to_json(), "truncated": self.truncated, "unknown": float(self.unknown)}

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Self:
        match written:
            case {"truncated": bool(truncated), "unknown": float(unknown)}:
                return cls(**cls.numbers_from_json(written), truncated=truncated, unknown=unknown)
        raise ValueError("does not say how its texts were read")


@dataclass(frozen=True, eq=False, slots=True)
class Embedding(TokenisedResult):
    """A read-only float32 vector of length 1; the cosine of two is `float(a.vector @ b.vector)`."""

    kind: ClassVar[str] = "embedding"

    vector: np.ndarray

    def is_finite(self) -> bool:
        return bool(np.isfinite(self.vector).all())

    def is_possible(self) -> bool:
        """Return True if the length is 1 but for rounding, so that cosines are between -1 and 1."""
        return bool(abs(np.linalg.norm(self.vector.astype(float)) - 1) <= LENGTH_TOLERANCE)

    def numbers_to_json(self) -> dict[str, Any]:
        return {"vector": b64encode(self.vector.astype(FLOAT32, copy=False).tobytes()).decode()}

    @classmethod
    def numbers_from_json(cls, written: dict[str, Any]) -> dict[str, Any]:
        match written:
            case {"vector": str(content)} if content:
                return {"vector": np.frombuffer(b64decode(content, validate=True), FLOAT32)}
        raise ValueError("not an embedding")


@dataclass(frozen=True, slots=True)
class Likelihood(TokenisedResult):
    """
    Natural log-probabilities of one answer of a VQA model, all finite.

    Attributes:
        log_probs: of each answer token given the ones before, `</s>` last.
        log_p_yes: of "Yes" as the first token, for any answer.
        log_p_no: of "No" as the first token.
    """

    kind: ClassVar[str] = "likelihood"

    log_probs: tuple[float, ...]
    log_p_yes: float
    log_p_no: float

    def normalized(self, normalization: str) -> float:
        """Return exp of the mean ("reference"), the sum ("product") or the first log-probability."""
        if normalization == "first_token":
            return exp(self.log_probs[0])
        return exp(sum(self.log_probs) / (len(self.log_probs) if normalization == "reference" else 1))

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

    def numbers_to_json(self) -> dict[str, Any]:
        return {
            "log_probs": [*map(float, self.log_probs)],
            "log_p_yes": float(self.log_p_yes),
            "log_p_no": float(self.log_p_no),
        }

    @classmethod
    def numbers_from_json(cls, written: dict[str, Any]) -> dict[str, Any]:
        match written:
            case {"log_probs": list(log_probs), "log_p_yes": float(yes), "log_p_no": float(no)}:
                return {"log_probs": floats(log_probs), "log_p_yes": yes, "log_p_no": no}
        raise ValueError("not a likelihood")


@dataclass(frozen=True, slots=True)
class Choices(TokenisedResult):
    """
    Likelihoods of the choices of one question, in their order.

    Attributes:
        log_probs: natural log-probability of each token of each choice given the ones before, all finite.  A
            choice that the prompt names by a letter has the log-probability of the letter only.
    """

    kind: ClassVar[str] = "choices"

    log_probs: tuple[tuple[float, ...], ...]

    def is_finite(self) -> bool:
        return all(isfinite(number) for tokens in self.log_probs for number in tokens)

    def is_possible(self) -> bool:
        return self.is_finite() and all(number <= 0 for tokens in self.log_probs for number in tokens)

    def numbers_to_json(self) -> dict[str, Any]:
        return {"log_probs": [[*map(float, tokens)] for tokens in self.log_probs]}

    @classmethod
    def numbers_from_json(cls, written: dict[str, Any]) -> dict[str, Any]:
        match written:
            case {"log_probs": [[_, *_], *_] as log_probs}:
                return {"log_probs": tuple(map(floats, log_probs))}
        raise ValueError("not the likelihoods of choices")


@dataclass(frozen=True, slots=True)
class FirstToken(TokenisedResult):
    """
    Likelihoods that the answer of the model begins as each of several answers does.

    Attributes:
        log_probs: natural log-probability of each answer's first token, all finite.
        tokens: the ids of those tokens.  Several answers may begin with the same token.
    """

    kind: ClassVar[str] = "first_token"

    log_probs: tuple[float, ...]
    tokens: tuple[int, ...]

    @property
    def probability(self) -> float:
        """The sum of the probabilities of the distinct tokens."""
        return min(1.0, sum(map(exp, dict(zip(self.tokens, self.log_probs, strict=True)).values())))

    def is_finite(self) -> bool:
        return all(map(isfinite, self.log_probs))

    def is_possible(self) -> bool:
        return self.is_finite() and max(self.log_probs) <= 0

    def numbers_to_json(self) -> dict[str, Any]:
        return {"log_probs": [*map(float, self.log_probs)], "tokens": [*self.tokens]}

    @classmethod
    def numbers_from_json(cls, written: dict[str, Any]) -> dict[str, Any]:
        match written:
            case {"log_probs": list(log_probs), "tokens": list(tokens)} if len(tokens) == len(
                log_probs
            ) and all(type(token) is int for token in tokens):
                return {"log_probs": floats(log_probs), "tokens": tuple(tokens)}
        raise ValueError("not the likelihoods of first tokens")


@dataclass(frozen=True, slots=True)
class Entailment(TokenisedResult):
    """
    The result of an NLI model.

    Attributes:
        probability: that the hypothesis follows from the premise, 0 to 1.
    """

    kind: ClassVar[str] = "entailment"

    probability: float

    def is_finite(self) -> bool:
        return isfinite(self.probability)

    def is_possible(self) -> bool:
        return 0 <= self.probability <= 1

    def numbers_to_json(self) -> dict[str, Any]:
        return {"probability": float(self.probability)}

    @classmethod
    def numbers_from_json(cls, written: dict[str, Any]) -> dict[str, Any]:
        match written:
            case {"probability": float(probability)}:
                return {"probability": probability}
        raise ValueError("not an entailment")


@dataclass(frozen=True, slots=True)
class Reward(TokenisedResult):
    """
    The result of a reward model.

    Attributes:
        outputs: of the model's head, all finite and unbounded.
        index: the output that is the reward.
    """

    kind: ClassVar[str] = "reward"

    outputs: tuple[float, ...]
    index: int = 0

    @property
    def value(self) -> float:
        """The reward."""
        return self.outputs[self.index]

    def is_finite(self) -> bool:
        return all(map(isfinite, self.outputs))

    def numbers_to_json(self) -> dict[str, Any]:
        return {"outputs": [*map(float, self.outputs)], "index": self.index}

    @classmethod
    def numbers_from_json(cls, written: dict[str, Any]) -> dict[str, Any]:
        match written:
            case {"outputs": list(outputs), "index": int(index)} if 0 <= index < len(outputs):
                return {"outputs": floats(outputs), "index": index}
        raise ValueError("not a reward")


def floats(numbers: Any) -> tuple[float, ...]:
    """Return a list of floats from JSON.  Raises `ValueError` for an empty one, or anything else."""
    if not (isinstance(numbers, list) and numbers and all(type(number) is float for number in numbers)):
        raise ValueError("not a list of floats")
    return tuple(numbers)


# --- text: generated, and read in an image ------------------------------------------------------


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


# --- objects in an image ------------------------------------------------------------------------

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
