"""Calls: one input for one model each, the unit that is cached, shared, queued and batched."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

from models.images.image import Image


@dataclass(frozen=True)
class Call(ABC):
    """
    One input for one model.

    Attributes:
        cacheable: the result may be cached for later requests.
    """

    __slots__ = ()

    cacheable: ClassVar[bool] = True

    @property
    def images(self) -> Sequence[Image]:
        """The images of the input, each in a field or in a tuple of one."""
        image = getattr(self, "image", None)
        return () if image is None else (image,)

    def with_images(self, other: Callable[[Image], Image]) -> Self:
        """Return the call with the image that *other* returns in place of each."""

        def replaced(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(map(replaced, value))
            return other(value) if isinstance(value, Image) else value

        if not self.images:
            return self
        return replace(self, **{each.name: replaced(getattr(self, each.name)) for each in fields(self)})

    @abstractmethod
    def content(self) -> tuple[Any, ...]:
        """Return all that the result depends on, except the model; an image is represented by its digest."""

    def key(self, model: tuple[str, ...]) -> bytes:
        """Return the cache key, a sha256; *model* identifies the model and its weights."""
        return hashlib.sha256(repr((model, self.content())).encode()).digest()


def images_of(shown: Sequence[str | Image]) -> list[Image]:
    """Return the images among texts and images."""
    return [each for each in shown if isinstance(each, Image)]


def digests(shown: Sequence[str | Image]) -> tuple[Any, ...]:
    """Return texts and images as a key has them."""
    return tuple(("image", each.digest) if isinstance(each, Image) else each for each in shown)


@dataclass(frozen=True, slots=True)
class ImageCall(Call):
    """Embed one image.  Returns an `Embedding`."""

    image: Image

    def content(self) -> tuple[Any, ...]:
        return ("image", self.image.digest)


@dataclass(frozen=True, slots=True)
class TextCall(Call):
    """Embed one text.  Returns an `Embedding`."""

    text: str

    def content(self) -> tuple[Any, ...]:
        return ("text", self.text)


@dataclass(frozen=True, slots=True)
class LikelihoodCall(Call):
    """Compute the likelihood of *answer* to *question* about *image*.  Returns a `Likelihood`."""

    image: Image
    question: str
    answer: str = "Yes"

    def content(self) -> tuple[Any, ...]:
        return ("likelihood", self.image.digest, self.question, self.answer)


@dataclass(frozen=True, slots=True)
class ChoiceCall(Call):
    """Compare *choices* as answers to *question* about *image*.  Returns `Choices`."""

    image: Image
    question: str
    choices: tuple[str, ...]

    def content(self) -> tuple[Any, ...]:
        return ("choice", self.image.digest, self.question, self.choices)


@dataclass(frozen=True, slots=True)
class AnswerCall(Call):
    """
    Answer *question* about *image* in words.  Returns a `Text`.

    Attributes:
        before: texts and other images of the prompt that come before the image.
        max_tokens: of the answer; a longer one is an error.
        schema: JSON schema that the text must follow, where the server supports it; None allows any text.
        temperature: 0 takes the likeliest tokens.
        seed: of the samples at a temperature above 0, and for servers whose answers vary at 0.
        rubric: the digest of the rubric that the question is from.
    """

    image: Image
    question: str
    before: tuple[str | Image, ...] = ()
    max_tokens: int = 64
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    temperature: float = 0.0
    seed: int = 0
    rubric: str = ""

    @property
    def images(self) -> Sequence[Image]:
        """The image of the question, and the images before it."""
        return (self.image, *images_of(self.before))

    def content(self) -> tuple[Any, ...]:
        how = (self.max_tokens, repr(self.schema), self.temperature, self.seed, self.rubric)
        return ("answer", self.image.digest, self.question, digests(self.before), *how)


@dataclass(frozen=True, slots=True)
class FirstTokenCall(Call):
    """Compute how likely the answer to *question* begins as one of *answers*.  Returns a `FirstToken`."""

    image: Image
    question: str
    answers: tuple[str, ...]

    def content(self) -> tuple[Any, ...]:
        return ("first token", self.image.digest, self.question, self.answers)


@dataclass(frozen=True, slots=True)
class LabelCall(Call):
    """
    Compute how likely each of *labels* is the answer to *question* about *image*.  Returns `Choices`.

    All labels must differ.  A model may require that each is one token.

    Attributes:
        before: texts and other images of the prompt that come before the image.
        rubric: the digest of the rubric that the question is from; empty without one.
    """

    image: Image
    question: str
    labels: tuple[str, ...]
    before: tuple[str | Image, ...] = ()
    rubric: str = ""

    @property
    def images(self) -> Sequence[Image]:
        """The image of the question, and the images before it."""
        return (self.image, *images_of(self.before))

    def content(self) -> tuple[Any, ...]:
        before = digests(self.before)
        return ("label", self.image.digest, self.question, self.labels, before, self.rubric)


@dataclass(frozen=True, slots=True)
class EntailmentCall(Call):
    """Compute the probability that *hypothesis* follows from *premise*.  Returns an `Entailment`."""

    premise: str
    hypothesis: str

    def content(self) -> tuple[Any, ...]:
        return ("entailment", self.premise, self.hypothesis)


@dataclass(frozen=True, slots=True)
class ReadCall(Call):
    """Read the text in an image.  Returns a `Reading`."""

    image: Image

    def content(self) -> tuple[Any, ...]:
        return ("read", self.image.digest)


@dataclass(frozen=True, slots=True)
class DetectCall(Call):
    """
    Find objects in an image.  Returns `Detections`.

    Attributes:
        labels: objects to find; empty for a model with a fixed set of labels.
        threshold: lowest score of an object, exclusive.
    """

    image: Image
    labels: tuple[str, ...] = ()
    threshold: float = 0.3

    def content(self) -> tuple[Any, ...]:
        return ("detect", self.image.digest, self.labels, self.threshold)


@dataclass(frozen=True, slots=True)
class RewardCall(Call):
    """Rate *image* for *prompt*, or by itself if the prompt is empty.  Returns a `Reward`."""

    image: Image
    prompt: str = ""

    def content(self) -> tuple[Any, ...]:
        return ("reward", self.image.digest, self.prompt)


@dataclass(frozen=True, slots=True)
class RerankCall(Call):
    """
    Rate how well *image* and *prompt* fit, by a reranker.  Returns a `Reward`.

    Attributes:
        activated: the score is between 0 and 1; otherwise it is the model's logit.
        instructed: the model gets its instruction, if it has one.
    """

    image: Image
    prompt: str
    activated: bool = True
    instructed: bool = True

    def content(self) -> tuple[Any, ...]:
        return ("rerank", self.image.digest, self.prompt, self.activated, self.instructed)


@dataclass(frozen=True, slots=True)
class ProgressCall(Call):
    """
    Rate *image* for *prompt*.  Returns a `Reward`.

    Attributes:
        progress: of the training of the image's generator by rewards, 0 to 1.
    """

    image: Image
    prompt: str
    progress: float = 0.0

    def content(self) -> tuple[Any, ...]:
        return ("progress", self.image.digest, self.prompt, self.progress)


@dataclass(frozen=True, slots=True)
class EditCall(Call):
    """Rate *image* as the edit of *source* that *prompt* describes.  Returns a `Reward`."""

    image: Image
    prompt: str
    source: Image

    @property
    def images(self) -> Sequence[Image]:
        """The image and its source."""
        return (self.image, self.source)

    def content(self) -> tuple[Any, ...]:
        return ("edit", self.image.digest, self.prompt, self.source.digest)


@dataclass(frozen=True, slots=True)
class VideoCall(Call):
    """
    Rate a video for *prompt*.  Returns a `Reward`.

    Attributes:
        frames: of the video, in order.
    """

    frames: tuple[Image, ...]
    prompt: str

    @property
    def images(self) -> Sequence[Image]:
        """The frames."""
        return self.frames

    def content(self) -> tuple[Any, ...]:
        return ("video", *(frame.digest for frame in self.frames), self.prompt)


@dataclass(frozen=True, slots=True)
class ContrastCall(Call):
    """
    Compare the embeddings of *image* and *prompt*, and match both.

    Returns a `Reward`, whose outputs are the cosine and the logits of no match and of a match.
    """

    image: Image
    prompt: str

    def content(self) -> tuple[Any, ...]:
        return ("contrast", self.image.digest, self.prompt)


@dataclass(frozen=True, slots=True)
class GenerateCall(Call):
    """
    Answer a chat of one system and one user message.  Returns a `Text`.

    An empty system message is not sent.  The result is not cached, since question sets have their own store.

    Attributes:
        schema: JSON schema that the text must follow; None allows any text.
        seed: for servers whose answers vary at temperature 0.
    """

    cacheable: ClassVar[bool] = False

    system: str
    user: str
    max_tokens: int = 4096
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    seed: int = 0

    @property
    def messages(self) -> list[dict[str, str]]:
        """The messages of the chat, each with its role and content."""
        messages = [{"role": "system", "content": self.system}, {"role": "user", "content": self.user}]
        return messages if self.system else messages[1:]

    def content(self) -> tuple[Any, ...]:
        return ("generate", self.system, self.user, self.max_tokens, repr(self.schema), self.seed)


VqaCall = AnswerCall | LikelihoodCall | ChoiceCall | FirstTokenCall | LabelCall


@contextmanager
def images_in_use(calls: Sequence[Call]) -> Iterator[None]:
    """Keep the pixels of *calls*, and the memory reserved for them, while the context is open."""
    with ExitStack() as stack:
        for image in {image for call in calls for image in call.images}:
            stack.enter_context(image.in_use())
        yield


def decoding_s(calls: Sequence[Call], since: float) -> float:
    """Return the seconds from *since*, by `time.monotonic`, in which the images of *calls* were decoded."""
    times = [file.decode_time for file in {image.file for call in calls for image in call.images}]
    return sum(max(0.0, time.began + time.seconds - max(since, time.began)) for time in times)
