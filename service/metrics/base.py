"""What a metric is given, and what it gives."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from models.base import Image, ImageCall, Likelihood, LikelihoodCall, TextCall
from service.context import Context, Found
from service.errors import ModelFault, ScoregateError
from service.questions.sets import QuestionSet
from service.questions.writer import Questions
from service.serving.handle import Handle

Role = Literal["clip", "vqa", "questions"]


@dataclass(frozen=True, slots=True)
class Score:
    """
    A metric's value for one item, always finite.

    Attributes:
        value: the score.
        details: what it is made of, shown with `explain`.
        cache: how the question set was found, for metrics that ask for one; for others the engine
            says whether all their calls were in the cache.
        warnings: what the caller should know about this score.
    """

    value: float
    details: dict[str, Any]
    cache: Found | None = None
    warnings: tuple[str, ...] = ()


class Vqa:
    """A VQA model on behalf of one request."""

    def __init__(self, handle: Handle, context: Context) -> None:
        self._handle, self._context = handle, context

    @property
    def question(self) -> str:
        """How the model is best asked whether it sees a text, `{}`."""
        return self._handle.info.question

    async def ask(self, image: Image, questions: Sequence[str], answer: str) -> list[Likelihood]:
        """How likely *answer* is to each question.  Raises the first call's error, after all ended."""
        calls = [LikelihoodCall(image, question, answer) for question in questions]
        return results(await self._handle.ask(calls, self._context))


class ClipModel:
    """A CLIP model on behalf of one request."""

    def __init__(self, handle: Handle, context: Context) -> None:
        self._handle, self._context = handle, context

    async def cosine(self, image: Image, text: str) -> tuple[float, tuple[str, ...]]:
        """The cosine of an image's and a text's embedding, and what the caller should know about it."""
        calls = [ImageCall(image), TextCall(text)]
        seen, read = results(await self._handle.ask(calls, self._context))
        cut = ("the prompt was cut at CLIP's context length",) if read.truncated else ()
        return float(np.dot(seen.vector.astype(float), read.vector.astype(float))), cut

    @property
    def logit_scale(self) -> float:
        """What the checkpoint's training multiplied cosines by.  Raises `ModelFault` where it had none."""
        scale = self._handle.info.logit_scale
        if scale is None:
            raise ModelFault(f"the model {self._handle.name} has no logit scale")
        return scale


class QuestionWriter:
    """Question sets on behalf of one request."""

    def __init__(self, questions: Questions, context: Context) -> None:
        self._questions, self._context = questions, context

    async def of(self, prompt: str, style: str) -> tuple[QuestionSet, Found]:
        """The set for *prompt* and how it was found."""
        return await self._questions.of(prompt, style, self._context)

    async def pinned(self, id: str) -> QuestionSet:
        """The stored set with that id."""
        return await self._questions.pinned(id)


class Models:
    """The models of one request, by role; each is made when a metric first names it."""

    def __init__(self, handle: Callable[[str], Handle], questions: Questions, context: Context) -> None:
        self._handle, self._questions, self._context = handle, questions, context

    @property
    def clip(self) -> ClipModel:
        """The CLIP model."""
        return ClipModel(self._handle("clip"), self._context)

    @property
    def vqa(self) -> Vqa:
        """The VQA model."""
        return Vqa(self._handle("vqa"), self._context)

    @property
    def questions(self) -> QuestionWriter:
        """The question sets."""
        return QuestionWriter(self._questions, self._context)


@dataclass(frozen=True, slots=True)
class Item:
    """One decoded image with the prompt it is judged against."""

    image: Image
    prompt: str


@dataclass(frozen=True, slots=True)
class Metric:
    """One entry of the registry: the roles it can't do without, and those some options make needless."""

    name: str
    score: Callable[[Item, Models, Any], Awaitable[Score]]
    roles: tuple[Role, ...]
    range: tuple[float, float]
    paper: str
    direction: str = "higher is better"
    may_use: tuple[Role, ...] = ()


def results(outcomes: Sequence[Any]) -> list[Any]:
    """The answers of a group.  Raises the first error among them."""
    for outcome in outcomes:
        if isinstance(outcome, ScoregateError):
            raise outcome
    return list(outcomes)
