"""The models of one request, as a metric asks them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import numpy as np

from models.core.calls import (
    Call,
    DetectCall,
    EntailmentCall,
    ImageCall,
    LikelihoodCall,
    ReadCall,
    TextCall,
)
from models.core.outcomes import Detections, Entailment, Likelihood, Reading
from models.images.image import Image
from service.core.errors import ModelFault, ScoregateError
from service.observability.notes import Code, Note
from service.questions.sets import QuestionSet
from service.questions.style import Style
from service.questions.writer import QuestionWriter
from service.serving.context import CacheStatus, Context
from service.serving.demand import Demand
from service.serving.handle import Handle

CUT = Note(Code.PROMPT_TRUNCATED, "the prompt was cut at CLIP's context length")


class Vqa:
    """A VQA model on behalf of one request."""

    def __init__(self, handle: Handle, context: Context) -> None:
        self._handle, self._context = handle, context

    @property
    def question(self) -> str:
        """How the model is best asked whether it sees a text, `{}`."""
        return self._handle.info.question

    @property
    def choice_question(self) -> str:
        """How the model is best asked a question, `{}`, that has choices."""
        return self._handle.info.choice_question

    async def ask(self, image: Image, questions: Sequence[str], answer: str) -> list[Likelihood]:
        """How likely *answer* is to each question.  Raises the first call's error, after all ended."""
        return await self.answer([LikelihoodCall(image, question, answer) for question in questions])

    async def answer(self, calls: Sequence[Call]) -> list[Any]:
        """The outcomes of *calls*, of any kind.  Raises the first call's error, after all ended."""
        return results(await self._handle.ask(calls, self._context))


class Nli:
    """An NLI model on behalf of one request: what follows from a text."""

    def __init__(self, handle: Handle, context: Context) -> None:
        self._handle, self._context = handle, context

    async def entailed(self, premise: str, hypotheses: Sequence[str]) -> list[Entailment]:
        """Whether each hypothesis follows from *premise*.  Raises the first call's error, after all ended."""
        calls = [EntailmentCall(premise, hypothesis) for hypothesis in hypotheses]
        return results(await self._handle.ask(calls, self._context))


class Ocr:
    """An OCR model on behalf of one request."""

    def __init__(self, handle: Handle, context: Context) -> None:
        self._handle, self._context = handle, context

    async def read(self, image: Image) -> Reading:
        """The text in *image*."""
        [reading] = results(await self._handle.ask([ReadCall(image)], self._context))
        found: Reading = reading
        return found


class Detector:
    """A detector on behalf of one request."""

    def __init__(self, handle: Handle, context: Context) -> None:
        self._handle, self._context = handle, context

    @property
    def name(self) -> str:
        """What the settings call it."""
        return self._handle.name

    @property
    def labels(self) -> Sequence[str]:
        """The only objects that it finds; empty: any that it is told to look for."""
        return self._handle.info.labels

    @property
    def masks(self) -> bool:
        """Whether it says which pixels belong to an object."""
        return self._handle.info.masks

    async def find(self, image: Image, labels: Sequence[str], threshold: float) -> Detections:
        """Objects that score more than *threshold*: of its own labels, or of *labels* where it has none."""
        wanted = () if self.labels else tuple(labels)
        [found] = results(await self._handle.ask([DetectCall(image, wanted, threshold)], self._context))
        detections: Detections = found
        return detections


class Clip:
    """A CLIP model on behalf of one request."""

    def __init__(self, handle: Handle, context: Context) -> None:
        self._handle, self._context = handle, context

    async def cosine(self, image: Image, text: str) -> tuple[float, tuple[Note, ...]]:
        """The cosine of an image's and a text's embedding, and what the caller should know about it."""
        calls = [ImageCall(image), TextCall(text)]
        seen, read = results(await self._handle.ask(calls, self._context))
        cut = (CUT,) if read.truncated else ()
        return float(np.dot(seen.vector.astype(float), read.vector.astype(float))), cut

    @property
    def logit_scale(self) -> float:
        """What the checkpoint's training multiplied cosines by.  Raises `ModelFault` where it is unknown."""
        scale = self._handle.info.logit_scale
        if scale is None:
            raise ModelFault(f"the model {self._handle.name} has no logit scale")
        return scale


def cosine_demand(prompt: str, options: Any) -> Mapping[str, Demand]:
    """What `Clip.cosine` asks: one call for the image and one for the text."""
    return {"clip": Demand(2, len(prompt))}


class Questions:
    """Question sets on behalf of one request."""

    def __init__(
        self,
        writer: QuestionWriter,
        handle: Callable[[str], Handle],
        has: Callable[[str], bool],
        context: Context,
    ) -> None:
        self._writer, self._handle, self._has, self._context = writer, handle, has, context

    async def of(self, prompt: str, style: Style) -> tuple[QuestionSet, CacheStatus]:
        """The set for *prompt* and how it was found."""
        llm = self._handle("questions") if self._has("questions") else None
        return await self._writer.of(prompt, style, llm, self._context)

    async def pinned(self, id: str) -> QuestionSet:
        """The stored set with that id."""
        return await self._writer.pinned(id)


class Models:
    """
    The models of one metric of one request, by role; each is looked up when the metric first names it.

    Attributes:
        score: what other metrics say of the same item, by name, a score or an error each; they are given
            their options, and ask their own models.  For composites.
        has: whether a model is configured for a role.
    """

    def __init__(
        self,
        handle: Callable[[str], Handle],
        writer: QuestionWriter,
        context: Context,
        score: Callable[..., Awaitable[dict[str, Any]]],
        has: Callable[[str], bool] = lambda role: True,
    ) -> None:
        self._handle, self._writer, self._context = handle, writer, context
        self.score, self.has = score, has

    @property
    def clip(self) -> Clip:
        """The CLIP model."""
        return Clip(self._handle("clip"), self._context)

    @property
    def vqa(self) -> Vqa:
        """The VQA model."""
        return Vqa(self._handle("vqa"), self._context)

    @property
    def nli(self) -> Nli | None:
        """The NLI model, or None where none is configured."""
        return Nli(self._handle("nli"), self._context) if self.has("nli") else None

    @property
    def ocr(self) -> Ocr:
        """The OCR model."""
        return Ocr(self._handle("ocr"), self._context)

    @property
    def detector(self) -> Detector:
        """The detector."""
        return Detector(self._handle("detector"), self._context)

    @property
    def questions(self) -> Questions:
        """The question sets."""
        return Questions(self._writer, self._handle, self.has, self._context)

    async def ask(self, role: str, calls: Sequence[Call]) -> list[Any]:
        """The answers of the model in a *role*, in order.  Raises the first error, after all ended."""
        return results(await self._handle(role).ask(calls, self._context))


def results(outcomes: Sequence[Any]) -> list[Any]:
    """The answers of a group.  Raises the first error among them."""
    for outcome in outcomes:
        if isinstance(outcome, ScoregateError):
            raise outcome
    return list(outcomes)
