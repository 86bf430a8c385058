"""
The contract between a model and everything else.

A model is loaded, prepares one call on a CPU thread, and scores a list of prepared calls on its device.  It
does not depend on HTTP, metrics, queues or caches.  The path of a call:

**call** ``->`` *prepare* (CPU thread) ``->`` **prepared** ``->`` *score* (device thread) ``->`` **result**

The kinds of calls are in `models.core.calls`, and those of results in `models.core.outcomes`.  A list of
results has the length and the order of the list of prepared calls; a failed call has an exception in it.
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


NOT_FINITE = "the model's output is not finite"  # the text of a `ModelError`


class Temporary(Exception):
    """Base class of errors at the start that may disappear without any change."""


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
    """
    A call that is ready for the device.

    Attributes:
        cost: in tokens, which limits batches.
        data: its tensors.
        shared: a key, and the part of the cost that a batch has once for all its calls with this key, such
            as that of a picture.
    """

    cost: int
    data: Any
    shared: tuple[str, int] | None = None


@dataclass(frozen=True)
class ModelInfo:
    """
    Public facts about a model: the content of `GET /models` and of a score's provenance.

    Attributes:
        vocabulary: the words that the model was trained on; other words cause a warning.  Empty: any word.
        logit_scale: factor of cosines in a CLIP's training.
        question: default template of a VQA model's question whether a picture shows a text.
        choice_question: default template of a question with choices.
        labels: the objects that a detector can find; empty: any object that a call names.
        masks: a detector returns masks.
        generates: the model writes text, so one call takes as long as many batches of other models.  Calls
            run one at a time, in a separate thread of the device.
        repeatable: the same call always has the same result, so a bad one is not retried.
        reentrant: on a CPU, `score` may run in several threads at the same time.
        files: a digest of the checkpoint's files, or their commit; empty for a model on another server.
            The settings can replace *revision*, but not this.
        recipe: a digest of all that a result depends on, except the call; set by the service.
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
        """The label, with the digest of the files if the revision is from the settings."""
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
        Return one result per call of *batch*, in the same order, or a `ModelError` in its place.

        Calls do not overlap, unless `info.reentrant` is true.
        """
        ...

    def example(self) -> Any:
        """Return a call of ordinary size, which is scored before the service reports ready."""
        ...


# The fault of a model that sees no picture, in words that follow its name.
SAME_ANSWERS = (
    "gives opposite questions about a known picture the same number; "
    "a vLLM with a reasoning parser does that, or one that drops pictures"
)


@dataclass(frozen=True, slots=True)
class Opposite:
    """
    A call whose result must differ from that of another one.

    Attributes:
        fault: if it does not, in words that follow the model's name.
        least: a difference up to which both results are equal.
    """

    call: Any
    fault: str = SAME_ANSWERS
    least: float = 0.0


@dataclass(frozen=True, slots=True)
class KnownCalls:
    """
    Calls whose results show whether a served model works; their images are in `models.core.examples`.

    Attributes:
        first: the result of each opposite must differ from that of this call.
        opposites: empty for no check.
        compared: what of the results is compared, and between which calls, in words.
        drift: how far the results of the first call and the first opposite, sent at the same time, may be
            from those of each alone; None for no such check.
    """

    first: Any = None
    opposites: tuple[Opposite, ...] = ()
    compared: str = ""
    drift: float | None = None

    @classmethod
    def of(cls, first: Any, second: Any, *, compared: str) -> "KnownCalls":
        """Return two calls whose results must not be equal."""
        return cls(first, (Opposite(second),), compared)

    @property
    def calls(self) -> tuple[Any, ...]:
        """All calls, the first one first; empty for no check."""
        return (self.first, *(each.call for each in self.opposites)) if self.opposites else ()


Post = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Send a JSON body to a path under the server's base URL; return the JSON, or raise `UpstreamError`."""


class RemoteModel(ABC):
    """
    A model in another process: builds requests and parses responses; *post* does the I/O.

    Attributes:
        most_together: maximum calls that share a request.
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
        """Return the key of calls that may share a request; by default empty: each has its own request."""
        return ""

    async def answer_all(self, prepared: Sequence[Prepared], post: Post) -> Sequence[Any]:
        """
        Return the results of calls whose `together` is equal; by default with one request for each.

        The result of a failed call is an exception.  Raises `UpstreamError` if all calls failed.
        """
        return [await self.answer(each, post) for each in prepared]

    def known_calls(self) -> KnownCalls:
        """
        Return calls about known pictures, which are sent when the server becomes reachable; by default none.

        A model that fails their check is not served.
        """
        return KnownCalls()


# Increase this version with every change of a model's result, even of a rounded digit: cache keys contain it.
# tests/models/test_arithmetic.py compares results of each family with those recorded for this version.
ARITHMETIC = 2
