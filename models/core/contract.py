"""
The contract between a model and everything else.

A model is loaded, prepares one call on a CPU thread, and scores a list of prepared calls on its
device.  It knows no HTTP, no metric, no queue and no cache.  The way of a call:

**call** ``->`` *prepare* (CPU thread) ``->`` **prepared** ``->`` *score* (device thread) ``->`` **outcome**

`models.core.calls` and `models.outcomes` have the kinds of both.  Where a call failed, an exception takes the
outcome's place; a list of outcomes has the length and the order of the list of prepared calls.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

# VQAScore's own (Lin et al. 2024, section 3); `{}` is the prompt.
QUESTION = 'Does this figure show "{}"? Please answer yes or no.'
# How LLaVA 1.5's data, on which CLIP-FlanT5 was tuned too, asks for short answers; `{}` is the question.
CHOICE_QUESTION = "{} Answer the question using a single word or phrase."


class ModelError(Exception):
    """A call cannot be answered; its message names the call's fault and no content of it."""


class Temporary(Exception):
    """Why a start failed that may succeed later, with nothing changed."""


class CheckpointError(Exception):
    """A checkpoint cannot be loaded; raised before anything is served."""


class CheckpointAway(CheckpointError, Temporary):
    """A checkpoint cannot be loaded now: its hub is away, or there is no memory left for it."""


class UpstreamError(Exception):
    """
    A server did not answer a request, or not with what it should have.

    Attributes:
        status: of its answer; 0 where there was none.
    """

    def __init__(self, detail: str, status: int = 0) -> None:
        super().__init__(detail)
        self.status = status


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call made ready for the device: its share of a batch's *cost* (tokens) and its tensors."""

    cost: int
    data: Any


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """
    What `GET /models` tells, and what a score's provenance rests on.

    Attributes:
        vocabulary: the only words that the model was taught; others deserve a warning.  Empty: any word.
        logit_scale: what a CLIP's training multiplied cosines by.
        question: how a VQA model is best asked whether it sees a text, unless a request says otherwise.
        choice_question: how it is best asked a question that has choices, unless a request says otherwise.
        labels: the only objects that a detector finds; empty: any that a call names.
        masks: whether it says which pixels belong to an object.
        generates: a call takes as long as many batches, since the model writes text.  It gets a thread of
            its own on its device, and one call at a time.
        repeatable: the same call always gets the same outcome, so a bad one is not asked for again.
        reentrant: `score` may be called by several threads at once, and is on a CPU.
        recipe: a digest of all that an outcome depends on beside the call; set by the service.
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
    choice_question: str = CHOICE_QUESTION
    labels: tuple[str, ...] = ()
    masks: bool = False
    generates: bool = False
    repeatable: bool = False
    reentrant: bool = False
    recipe: str = ""

    @property
    def label(self) -> str:
        """The name a response carries: `id@revision`, or the id where there is no revision."""
        return f"{self.id}@{self.revision}" if self.revision else self.id

    @property
    def identity(self) -> tuple[str, ...]:
        """What tells apart models that may answer otherwise: part of every key of an answer."""
        return (self.label, self.dtype, *filter(None, [self.recipe]))


class Model(Protocol):
    """Loaded weights in one role."""

    info: ModelInfo

    def prepare(self, call: Any) -> Prepared:
        """
        Do the CPU work of one call; thread-safe.

        Raises:
            ModelError: the model cannot take this call.
            ImageError: its image cannot be decoded.
        """
        ...

    def score(self, batch: Sequence[Prepared]) -> list[Any]:
        """
        Answer *batch*: one outcome per call, same length, same order.

        Never called twice at once, but where `info` says that the model is *reentrant*.
        """
        ...

    def example(self) -> Any:
        """A call of ordinary size, scored before the service reports ready."""
        ...


Post = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Send a JSON body to a path under the server's base URL and get its JSON answer, or `UpstreamError`."""


class RemoteModel(ABC):
    """A model that another process serves: knows what to ask and how to read it, and sends nothing itself."""

    info: ModelInfo

    @abstractmethod
    def prepare(self, call: Any) -> Prepared:
        """Do the CPU work of one call; thread-safe.  Raises what `Model.prepare` raises."""

    @abstractmethod
    async def answer(self, prepared: Prepared, post: Post) -> Any:
        """
        The outcome of one call.

        Raises:
            ModelError: the call cannot be answered.
            UpstreamError: the server did not answer, or badly.
        """

    def opposites(self) -> tuple[Any, ...]:
        """
        Two calls about a known picture whose outcomes can't be the same, see `models.core.known`.

        They are made when the server comes up, and what fails is not served.  By default there are none.
        """
        return ()
