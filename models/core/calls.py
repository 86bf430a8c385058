"""Calls: one question to one model each, the unit that is cached, shared, queued and batched."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from models.images.image import Image


class Call(ABC):
    """
    One question to one model.

    Attributes:
        cacheable: whether its outcome may be kept for whoever makes the same call later.
    """

    __slots__ = ()

    cacheable: ClassVar[bool] = True

    @abstractmethod
    def content(self) -> tuple[Any, ...]:
        """Everything that the outcome depends on beside the model; images by their digest."""

    def key(self, model: tuple[str, ...]) -> bytes:
        """The sha256 of everything that the outcome depends on; *model* names the model and its weights."""
        return hashlib.sha256(repr((model, self.content())).encode()).digest()


@dataclass(frozen=True, slots=True)
class ImageCall(Call):
    """Embed one image.  The outcome is an `Embedding`."""

    image: Image

    def content(self) -> tuple[Any, ...]:
        """The image's digest."""
        return ("image", self.image.digest)


@dataclass(frozen=True, slots=True)
class TextCall(Call):
    """Embed one text.  The outcome is an `Embedding`."""

    text: str

    def content(self) -> tuple[Any, ...]:
        """The text."""
        return ("text", self.text)


@dataclass(frozen=True, slots=True)
class LikelihoodCall(Call):
    """How likely is *answer* to *question* about *image*?  The outcome is a `Likelihood`."""

    image: Image
    question: str
    answer: str = "Yes"

    def content(self) -> tuple[Any, ...]:
        """The image's digest and both texts."""
        return ("likelihood", self.image.digest, self.question, self.answer)


@dataclass(frozen=True, slots=True)
class ChoiceCall(Call):
    """Which of *choices* answers *question* about *image*?  The outcome is a `Choices`."""

    image: Image
    question: str
    choices: tuple[str, ...]

    def content(self) -> tuple[Any, ...]:
        """The image's digest and all texts."""
        return ("choice", self.image.digest, self.question, self.choices)


@dataclass(frozen=True, slots=True)
class FirstTokenCall(Call):
    """How likely is the answer to *question* to begin as one of *answers*?  The outcome is a `FirstToken`."""

    image: Image
    question: str
    answers: tuple[str, ...]

    def content(self) -> tuple[Any, ...]:
        """The image's digest and all texts."""
        return ("first token", self.image.digest, self.question, self.answers)


@dataclass(frozen=True, slots=True)
class LabelCall(Call):
    """
    How likely is each of *labels* to be the answer to *question* about *image*?  The outcome is a `Choices`.

    Each label must be one token of the model's, and no two the same.

    Attributes:
        before: texts and other images that the model is shown before the image, in this order.
    """

    image: Image
    question: str
    labels: tuple[str, ...]
    before: tuple[str | Image, ...] = ()

    def content(self) -> tuple[Any, ...]:
        """The digests of all images and all texts."""
        before = tuple(("image", each.digest) if isinstance(each, Image) else each for each in self.before)
        return ("label", self.image.digest, self.question, self.labels, before)


@dataclass(frozen=True, slots=True)
class EntailmentCall(Call):
    """Does *hypothesis* follow from *premise*?  The outcome is an `Entailment`."""

    premise: str
    hypothesis: str

    def content(self) -> tuple[Any, ...]:
        """Both texts."""
        return ("entailment", self.premise, self.hypothesis)


@dataclass(frozen=True, slots=True)
class ReadCall(Call):
    """Read the text in an image.  The outcome is a `Reading`."""

    image: Image

    def content(self) -> tuple[Any, ...]:
        """The image's digest."""
        return ("read", self.image.digest)


@dataclass(frozen=True, slots=True)
class DetectCall(Call):
    """
    Find objects in an image.  The outcome is a `Detections`.

    Attributes:
        labels: what to look for.  A model that knows certain labels only is given none, and looks for all.
        threshold: an object counts as found if its score is larger.
    """

    image: Image
    labels: tuple[str, ...] = ()
    threshold: float = 0.3

    def content(self) -> tuple[Any, ...]:
        """The image's digest, the labels and the threshold."""
        return ("detect", self.image.digest, self.labels, self.threshold)


@dataclass(frozen=True, slots=True)
class RewardCall(Call):
    """How good is *image* for *prompt*, or by itself where that is empty?  The outcome is a `Reward`."""

    image: Image
    prompt: str = ""

    def content(self) -> tuple[Any, ...]:
        """The image's digest and the prompt."""
        return ("reward", self.image.digest, self.prompt)


@dataclass(frozen=True, slots=True)
class GenerateCall(Call):
    """
    Answer a chat of one system and one user message.  The outcome is the model's `Text`.

    Question sets have a store of their own, so these outcomes are not cached.

    Attributes:
        schema: JSON schema that the text must follow; None allows any text.
        seed: of what little chance decoding at temperature 0 leaves.
    """

    cacheable: ClassVar[bool] = False

    system: str
    user: str
    max_tokens: int = 4096
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    seed: int = 0

    def content(self) -> tuple[Any, ...]:
        """Every field."""
        return ("generate", self.system, self.user, self.max_tokens, repr(self.schema), self.seed)
