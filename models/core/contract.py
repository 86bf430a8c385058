"""
The contract between a model and everything else.

A model is loaded, prepares one call on a CPU thread, and scores a list of prepared calls on its device.  It
does not depend on HTTP, metrics, queues or caches.  The path of a call:

**call** ``->`` *prepare* (CPU thread) ``->`` **prepared** ``->`` *score* (device thread) ``->`` **result**

The kinds of both are in `models.core.calls` and `models.core.outcomes`.  A list of results has the length and
the order of the list of prepared calls; the result of a failed call is an exception.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

# VQAScore's own (Lin et al. 2024, section 3); `{}` is the prompt.
QUESTION = 'Does this figure show "{}"? Please answer yes or no.'
# The prompt for short answers in the training data of LLaVA 1.5 and CLIP-FlanT5; `{}` is the question.
CHOICE_QUESTION = "{} Answer the question using a single word or phrase."


class ModelError(Exception):
    """A call cannot be answered.  The message describes the fault of the call, without its content."""


class Temporary(Exception):
    """A failed start may succeed later without any change."""


class CheckpointError(Exception):
    """A checkpoint cannot be loaded.  Raised at the start."""


class CheckpointAway(CheckpointError, Temporary):
    """A checkpoint cannot be loaded now: the hub is unreachable, or memory is short."""


class UpstreamError(Exception):
    """
    A remote server did not answer a request, or its response is not usable.

    Attributes:
        status: HTTP status of the response; 0 if there was none.
    """

    def __init__(self, detail: str, status: int = 0) -> None:
        super().__init__(detail)
        self.status = status


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that is ready for the device: its *cost* in tokens, which limits batches, and its tensors."""

    cost: int
    data: Any


@dataclass(frozen=True)
class ModelInfo:
    """
    Public facts about a model: the content of `GET /models` and of a score's provenance.

    Attributes:
        vocabulary: the only words that the model was trained on, others cause a warning.  Empty: any word.
        logit_scale: factor of cosines in a CLIP's training.
        question: default template of a VQA model to check whether it sees a text.
        choice_question: default template of a question with choices.
        labels: the only objects that a detector finds; empty: any that a call names.
        masks: a detector returns masks.
        generates: the model writes text, so a call takes as long as many batches.  It gets a thread of its
            own on its device, and one call at a time.
        repeatable: the same call always has the same result, so a bad one is not retried.
        reentrant: `score` may run in several threads simultaneously, and is on a CPU.
        files: a digest of the checkpoint's files, or the commit that they are of; empty for a model behind a
            server.  Unlike *revision*, it is never a label of the settings.
        recipe: a digest of all that a result depends on except the call; set by the service.
        hardware: the name of the GPU; set by the service.
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
    files: str = ""
    recipe: str = ""
    hardware: str = ""

    @cached_property
    def label(self) -> str:
        """The model's name in a response: `id@revision`, or the id if there is no revision."""
        return f"{self.id}@{self.revision}" if self.revision else self.id

    @property
    def content(self) -> str:
        """The label; with the digest of the files if the revision is a label of the settings."""
        return self.label if self.files in ("", self.revision) else f"{self.label}+{self.files}"

    @cached_property
    def identity(self) -> tuple[str, ...]:
        """The model's part of cache keys: models with different results have different ones."""
        return (self.content, self.dtype, *filter(None, [self.recipe]))


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
        Return one result per call of *batch*, in the same order.

        Not called concurrently, unless `info` has *reentrant*.
        """
        ...

    def example(self) -> Any:
        """Return a call of ordinary size, which is scored before the service reports ready."""
        ...


Post = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Send a JSON body to a path under the server's base URL and get its JSON answer, or `UpstreamError`."""


class RemoteModel(ABC):
    """
    A model in another process: builds requests and reads responses, without I/O of its own.

    Attributes:
        most_together: calls that one request may answer.
    """

    info: ModelInfo
    most_together: int = 1

    @abstractmethod
    def prepare(self, call: Any) -> Prepared:
        """Do the CPU work of one call; thread-safe.  Raises what `Model.prepare` raises."""

    @abstractmethod
    async def answer(self, prepared: Prepared, post: Post) -> Any:
        """
        Return the result of one call.

        Raises:
            ModelError: the call cannot be answered.
            UpstreamError: the server did not answer, or not correctly.
        """

    def together(self, prepared: Prepared) -> str:
        """Return what calls have in common that one request answers; by default empty, for none."""
        return ""

    async def answer_all(self, prepared: Sequence[Prepared], post: Post) -> Sequence[Any]:
        """
        Return the results of calls with one `together`, by default one by one.

        The result of a failed call is an exception.  Raises `UpstreamError` if all of them failed.
        """
        return [await self.answer(each, post) for each in prepared]

    def opposites(self) -> tuple[Any, ...]:
        """
        Return calls about known pictures whose results must differ, see `models.core.examples`; by default
        none.

        They are sent when the server becomes reachable.  If they fail, the model is not served.
        """
        return ()


# Raise it with every change of a model's result, even of a rounded digit: it is part of the cache keys.
# tests/models/test_arithmetic.py compares results of each family with those recorded for this version.
ARITHMETIC = 2
