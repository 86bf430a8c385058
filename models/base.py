"""
The contract between a model and everything else.

A model is loaded, prepares one call on a CPU thread, and scores a list of prepared calls on its
device.  It knows no HTTP, no metric, no queue and no cache.  The way of a call:

**call** ``->`` *prepare* (CPU thread) ``->`` **prepared** ``->`` *score* (device thread) ``->`` **outcome**

An outcome is an answer or the exception that took its place; a list of outcomes has the length and
the order of the list of prepared calls.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, isfinite, tanh
from threading import RLock
from typing import Any, Protocol

import numpy as np
import PIL.Image

# VQAScore's own (Lin et al. 2024, section 3); `{}` is the prompt.
QUESTION = 'Does this figure show "{}"? Please answer yes or no.'


class ModelError(Exception):
    """A call cannot be answered; its message names the call's fault and no content of it."""


class CheckpointError(Exception):
    """A checkpoint cannot be loaded; raised before anything is served."""


class UpstreamError(Exception):
    """
    A server did not answer a request, or not with what it should have.

    Attributes:
        status: of its answer; 0 where there was none.
    """

    def __init__(self, detail: str, status: int = 0) -> None:
        super().__init__(detail)
        self.status = status


class Image:
    """
    A picture, which the threads that prepare its calls share.

    A call that was answered before needs the digest alone, so pixels are decoded when a model first
    looks at them.

    Args:
        rgb: the RGB pixels, or what decodes them.
        digest: the sha256 of the encoded bytes that they come from.
    """

    def __init__(self, rgb: PIL.Image.Image | Callable[[], PIL.Image.Image], digest: str) -> None:
        self.digest = digest
        self._rgb = rgb
        self._made: dict[Any, Any] = {}
        self._lock = RLock()

    @property
    def rgb(self) -> PIL.Image.Image:
        """The pixels.  Raises what decoding them raises."""
        with self._lock:
            if not isinstance(self._rgb, PIL.Image.Image):
                self._rgb = self._rgb()
            return self._rgb

    def once(self, key: Any, make: Callable[[PIL.Image.Image], Any]) -> Any:
        """What *make* makes of the pixels, kept with the image under *key*: many calls share it."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make(self.rgb)
            return self._made[key]


@dataclass(frozen=True, slots=True)
class ImageCall:
    """Embed one image."""

    image: Image


@dataclass(frozen=True, slots=True)
class TextCall:
    """Embed one text."""

    text: str


@dataclass(frozen=True, slots=True)
class LikelihoodCall:
    """How likely is *answer* to *question* about *image*?"""

    image: Image
    question: str
    answer: str = "Yes"


@dataclass(frozen=True, slots=True)
class GenerateCall:
    """
    Answer a chat of one system and one user message; the outcome is the model's raw text.

    Attributes:
        schema: JSON schema that the text must follow; none: any text.
        seed: of what little chance decoding at temperature 0 leaves.
    """

    system: str
    user: str
    max_tokens: int = 1024
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Likelihood:
    """
    What a VQA model says of one answer; natural-log probabilities, all finite.

    Attributes:
        log_probs: of each answer token given the ones before, `</s>` last.
        log_p_yes: of "Yes" as the first token, whatever the answer asked for.
        log_p_no: of "No" as the first token.
        truncated: the question was cut at the model's length.
    """

    log_probs: tuple[float, ...]
    log_p_yes: float
    log_p_no: float
    truncated: bool = False

    @property
    def logit(self) -> float:
        """log p_yes - log p_no, finite however sure the model is."""
        return self.log_p_yes - self.log_p_no

    @property
    def probability(self) -> float:
        """P("Yes" given "Yes" or "No"): the logistic function of the logit."""
        return 0.5 + 0.5 * tanh(self.logit / 2)

    @property
    def label_mass(self) -> float:
        """p_yes + p_no: how much of the model's answer is an answer at all."""
        return exp(self.log_p_yes) + exp(self.log_p_no)


@dataclass(frozen=True, eq=False, slots=True)
class Embedding:
    """A read-only float32 vector of length 1; the cosine of two is `float(a.vector @ b.vector)`."""

    vector: np.ndarray
    truncated: bool = False  # the text was cut at the model's length


def is_finite(outcome: object) -> bool:
    """Whether all numbers of a model's outcome are; what holds none is."""
    match outcome:
        case Likelihood():
            return all(map(isfinite, (*outcome.log_probs, outcome.log_p_yes, outcome.log_p_no)))
        case Embedding():
            return bool(np.isfinite(outcome.vector).all())
    return True


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call made ready for the device: its share of a batch's *cost* (tokens) and its tensors."""

    cost: int
    data: Any


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """
    What `GET /models` tells, and what a score's provenance rests on.

    A model with a *vocabulary* was taught these words only; others deserve a warning.  *question* is how
    a VQA model is best asked whether it sees a text, unless a request says otherwise.  A CLIP was trained
    on cosines times its *logit_scale*.
    """

    role: str
    family: str
    id: str
    revision: str
    dtype: str
    device: str
    vocabulary: frozenset[str] = frozenset()
    logit_scale: float | None = None
    question: str = QUESTION

    @property
    def label(self) -> str:
        """The name a response carries: `id@revision`, or the id where there is no revision."""
        return f"{self.id}@{self.revision}" if self.revision else self.id


class Model(Protocol):
    """Loaded weights in one role."""

    info: ModelInfo

    def prepare(self, call: Any) -> Prepared:
        """Do the CPU work of one call; thread-safe.  Raises `ModelError` for a call it can't take."""
        ...

    def score(self, batch: Sequence[Prepared]) -> list[Any]:
        """Answer *batch*: one outcome per call, same length, same order; never called twice at once."""
        ...

    def example(self) -> Any:
        """A call of ordinary size, scored once before the service reports ready."""
        ...


Post = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Send a JSON body to a path under the server's base URL and get its JSON answer, or `UpstreamError`."""


class RemoteModel(Protocol):
    """A model that another process serves: knows what to ask and how to read it, and sends nothing itself."""

    info: ModelInfo

    def prepare(self, call: Any) -> Prepared:
        """Do the CPU work of one call; thread-safe.  Raises `ModelError` for a call it can't take."""
        ...

    async def answer(self, prepared: Prepared, post: Post) -> Any:
        """
        The answer to one call.

        Raises:
            ModelError: the call cannot be answered.
            UpstreamError: the server did not answer, or badly.
        """
        ...
