"""The models of one request, as a metric calls them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.core.calls import Call, DetectCall, ImageCall, LikelihoodCall, ReadCall, TextCall
from models.core.outcomes import Detections, Likelihood, Reading
from models.images.image import Image
from service.core.errors import Misread, ModelFault, NotReady, ScoregateError
from service.observability.notes import Code, Note
from service.questions.sets import QuestionSet
from service.questions.style import Style
from service.questions.writer import QuestionWriter
from service.serving.admission import Demand
from service.serving.context import CacheStatus, Context
from service.serving.handle import Handle

PROMPT_CUT_NOTE = Note(
    Code.PROMPT_TRUNCATED, "the prompt was cut at CLIP's context length, or at <|endoftext|> in it"
)


@dataclass(frozen=True, slots=True)
class ModelClient:
    """A model on behalf of one request."""

    _handle: Handle
    _context: Context


class Vqa(ModelClient):
    """A VQA model."""

    @property
    def question(self) -> str:
        """The model's template of the question if a text is visible, `{}`."""
        return self._handle.backend.info.question

    @property
    def choice_question(self) -> str:
        """The model's template for a question, `{}`, that has choices."""
        return self._handle.backend.info.choice_question

    async def ask(self, image: Image, questions: Sequence[str], answer: str) -> list[Likelihood]:
        """Return how likely *answer* is to each question.  Raises the first error, after all calls ended."""
        calls = [LikelihoodCall(image, question, answer) for question in questions]
        return results(await self._handle.call(calls, self._context))

    async def answer(self, calls: Sequence[Call]) -> list[Any]:
        """Return the results of *calls* of any kind.  Raises the first error, after all calls ended."""
        return results(await self._handle.call(calls, self._context))


class Ocr(ModelClient):
    """An OCR model."""

    async def read(self, image: Image) -> Reading:
        """Return the text in *image*."""
        [reading] = results(await self._handle.call([ReadCall(image)], self._context))
        text: Reading = reading
        return text


class Detector(ModelClient):
    """A detector."""

    @property
    def name(self) -> str:
        """Its name in the settings."""
        return self._handle.name

    @property
    def labels(self) -> Sequence[str]:
        """The only objects that it finds; empty for an open-vocabulary detector."""
        return self._handle.backend.info.labels

    @property
    def masks(self) -> bool:
        """True if it returns a mask of each object."""
        return self._handle.backend.info.masks

    async def find(self, image: Image, labels: Sequence[str], threshold: float) -> Detections:
        """Return objects that score above *threshold*: of its own labels, or of *labels* if it has none."""
        wanted = () if self.labels else tuple(labels)
        [found] = results(await self._handle.call([DetectCall(image, wanted, threshold)], self._context))
        detections: Detections = found
        return detections


class Clip(ModelClient):
    """A CLIP model."""

    async def cosine(self, image: Image, text: str) -> tuple[float, tuple[Note, ...]]:
        """Return the cosine of the embeddings of an image and a text, and warnings."""
        calls = [ImageCall(image), TextCall(text)]
        seen, read = results(await self._handle.call(calls, self._context))
        cut = (PROMPT_CUT_NOTE,) if read.truncated else ()
        return float(np.dot(seen.vector.astype(float), read.vector.astype(float))), cut

    @property
    def logit_scale(self) -> float:
        """The factor of cosines in the checkpoint's training.  Raises `ModelFault` if it is unknown."""
        scale = self._handle.backend.info.logit_scale
        if scale is None:
            raise ModelFault(f"the model {self._handle.name} has no logit scale")
        return scale


def cosine_demand(prompt: str, options: Any) -> Mapping[str, Demand]:
    """Return the demand of `Clip.cosine`: one call for the image and one for the text."""
    return {"clip": Demand(2, len(prompt))}


@dataclass(frozen=True, slots=True)
class Questions:
    """
    Question sets on behalf of one request.

    Attributes:
        style: that the request's options select; None for a metric without question sets.
    """

    _writer: QuestionWriter
    _llm: Handle | None
    _context: Context
    style: Style | None

    async def of(self, prompt: str, style: Style) -> tuple[QuestionSet, CacheStatus]:
        """Return the set for *prompt* and its cache status."""
        return await self._writer.of(prompt, style, self._llm, self._context)

    async def pinned(self, id: str) -> QuestionSet:
        """Return the stored set with that id."""
        return await self._writer.pinned(id)


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """
    The models of one metric of one request, by role.

    Attributes:
        _lookup: returns the model of a role, or None if none is configured.
        score: returns the results of other metrics for the same item, by name, given their options.  For
            composites.
        _style: of the metric's question sets, if it uses any.
    """

    _lookup: Callable[[str], Handle | None]
    _writer: QuestionWriter
    _context: Context
    score: Callable[..., Awaitable[dict[str, Any]]]
    _style: Style | None = None

    def has(self, role: str) -> bool:
        """Return True if a model is configured for *role*."""
        return self._lookup(role) is not None

    def _handle(self, role: str) -> Handle:
        """Return the model of *role*.  Raises `NotReady` if none is configured."""
        handle = self._lookup(role)
        if handle is None:
            raise NotReady(f"no {role} model is configured")
        return handle

    @property
    def clip(self) -> Clip:
        """The CLIP model."""
        return Clip(self._handle("clip"), self._context)

    @property
    def vqa(self) -> Vqa:
        """The VQA model."""
        return Vqa(self._handle("vqa"), self._context)

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
        return Questions(self._writer, self._lookup("questions"), self._context, self._style)

    def count_refused(self, call: Call, reason: Misread) -> None:
        """Count a written answer that was refused, once for all metrics of the request that read it."""
        refused = self._context.request.refused
        if (key := call.key(())) not in refused:
            refused.add(key)
            self._context.instruments.refused_answers.labels(reason).inc()

    async def ask(self, role: str, calls: Sequence[Call]) -> list[Any]:
        """Return the results of the model in a *role*, in order.  Raises the first error, after all ended."""
        return results(await self._handle(role).call(calls, self._context))


def results(results: Sequence[Any]) -> list[Any]:
    """Return the results of a group of calls.  Raises the first error among them."""
    for result in results:
        if isinstance(result, ScoregateError):
            raise result
    return list(results)
