"""OpenAI's body of `POST /v1/decisions`."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field

from service.core.errors import Invalid
from service.core.fields import branch
from service.images.loader import ImageRef
from service.web.dialects.questions import (
    MAX_CHOICES,
    MAX_LEVELS,
    MAX_PARTS,
    Option,
    Reading,
    TypedQuestion,
    as_text,
    with_input,
)
from service.web.dialects.wire import Loose, source_of

MAX_QUESTIONS = 400
MAX_IMAGES = 64  # pictures of all questions
NO_TOKENS = {  # typed clients need the fields; no tokens are counted
    "input_tokens": 0,
    "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 0,
}


class Choice(Loose):
    """
    One choice; a model reads a boolean as its text.

    Attributes:
        value: the text that is answered.
        description: what it means.
    """

    value: str | bool
    description: str | None = None


class Level(Loose):
    """
    One level of a score.

    Attributes:
        label: the text that is answered.
        description: what it means.
    """

    label: str
    description: str | None = None


class OpenAiQuestion(Loose):
    """
    The fields of all questions.

    Attributes:
        name: returned with the answer.
        instructions: the question, or a list of texts and pictures.
        type: `predicate`, `choice` or `score`.
    """

    name: str | None = None
    instructions: Any


class Predicate(OpenAiQuestion):
    """Is a statement true?"""

    type: Literal["predicate"]


class OpenAiChoiceQuestion(OpenAiQuestion):
    """
    Which choice?

    Attributes:
        choices: those that can be answered.
    """

    type: Literal["choice"]
    choices: Annotated[list[Choice], Field(min_length=2, max_length=MAX_CHOICES, fail_fast=True)]


class OpenAiScoreQuestion(OpenAiQuestion):
    """
    Which level?

    Attributes:
        levels: the lowest first; the score is the mean level, from 0.
    """

    type: Literal["score"]
    levels: Annotated[list[Level], Field(min_length=2, max_length=MAX_LEVELS, fail_fast=True)]


def kind(value: Any) -> str | None:
    """Return the branch of a question."""
    given = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    known = {"predicate", "choice", "score"}
    return f"an OpenAI {given}" if isinstance(given, str) and given in known else None


AnyOpenAiQuestion = Annotated[
    Annotated[Predicate, branch("an OpenAI predicate")]
    | Annotated[OpenAiChoiceQuestion, branch("an OpenAI choice")]
    | Annotated[OpenAiScoreQuestion, branch("an OpenAI score")],
    Discriminator(
        kind,
        custom_error_type="question_type",
        custom_error_message="type must be predicate, choice or score",
    ),
]


class OpenAiRequest(Loose):
    """
    The body.

    Attributes:
        model: a VQA model of the settings; by default the first.
        input: texts, and the picture.
        questions: each is answered.
    """

    model: str | None = None
    input: Any
    questions: Annotated[
        list[AnyOpenAiQuestion],
        Field(min_length=1, max_length=MAX_QUESTIONS, fail_fast=True),
    ]

    def image_sources(self) -> list[tuple[str, str]]:
        """Return each picture of the input with its place."""
        return [(place, content) for place, is_image, content in self._parts() if is_image]

    def asked(self) -> Iterator[TypedQuestion]:
        """Yield the questions, each after the text of the input.  Raises `Invalid`."""
        state = "\n".join(content for _, is_image, content in self._parts() if not is_image)
        seen: dict[str, ImageRef] = {}
        for number, each in enumerate(self.questions):
            yield question_of(each, state, f"/questions/{number}", seen)
            if len(seen) > MAX_IMAGES:
                raise Invalid(f"/questions: have more than {MAX_IMAGES} different pictures")

    def answer(self, readings: Sequence[Reading], model: str, request_id: str) -> dict[str, Any]:
        """Return the response."""
        pairs = zip(self.questions, readings, strict=True)
        return {
            "answers": [answer_to(question, reading) for question, reading in pairs],
            "model": model,
            "usage": NO_TOKENS,
        }

    def _parts(self) -> Iterator[tuple[str, bool, str]]:
        """Yield each part of the input: its place, whether it is a picture, and the content."""
        if isinstance(self.input, str):
            yield "/input", False, self.input
            return
        if not isinstance(self.input, list):
            raise Invalid("/input: must be a text or a list of messages")
        if len(self.input) > MAX_PARTS:
            raise Invalid(f"/input: has {len(self.input)} messages; at most {MAX_PARTS} are read")
        for number, message in enumerate(self.input):
            place = f"/input/{number}"
            if not isinstance(message, dict) or message.get("type", "message") != "message":
                raise Invalid(f"{place}: only messages are supported here")
            yield from parts(message.get("content"), f"{place}/content")


def parts(content: Any, place: str) -> Iterator[tuple[str, bool, str]]:
    """Yield the parts of a text or of a list of parts.  Raises `Invalid`."""
    if isinstance(content, str):
        yield place, False, content
        return
    if not isinstance(content, list):
        raise Invalid(f"{place}: must be a text or a list of parts")
    if len(content) > MAX_PARTS:
        raise Invalid(f"{place}: has {len(content)} parts; at most {MAX_PARTS} are read")
    for number, part in enumerate(content):
        where = f"{place}/{number}"
        match part:
            case {"type": "input_text" | "output_text", "text": str(text)}:
                yield where, False, text
            case {"type": "input_json", "data": dict() | list() as data}:
                yield where, False, as_text(data)
            case {"type": "input_image", "image_url": str(address)}:
                yield f"{where}/image_url", True, address
            case _:
                raise Invalid(f"{where}: must be an input_text, an input_json or an input_image")


def question_of(asked: AnyOpenAiQuestion, state: str, place: str, seen: dict[str, ImageRef]) -> TypedQuestion:
    """
    Return a question of the wire after the text of the input.

    Args:
        seen: the pictures of questions by address; equal ones are opened once.

    Raises:
        Invalid: the question cannot be read.
    """
    texts, own_images = [], []
    for _, is_image, content in parts(asked.instructions, f"{place}/instructions"):
        if is_image:
            own_images.append(seen.setdefault(content, ImageRef(source_of(content))))
        else:
            texts.append(content)
    said = "\n".join(texts)
    if not said.strip():
        raise Invalid(f"{place}/instructions: is empty")
    if isinstance(asked, Predicate):
        statement = f"Is the following true? {said}"
        return TypedQuestion(place, "yes_no", with_input(state, statement), own_images=own_images)
    if isinstance(asked, OpenAiChoiceQuestion):
        choices = [Option(value_text(each.value), each.description or "") for each in asked.choices]
        return TypedQuestion(place, "choice", with_input(state, said), choices, own_images=own_images)
    levels = [Option(each.label, each.description or "") for each in asked.levels]
    return TypedQuestion(place, "score", with_input(state, said), levels, own_images=own_images)


def value_text(value: str | bool) -> str:
    """Return a choice as the model reads it."""
    return value if isinstance(value, str) else str(value).lower()


def answer_to(question: AnyOpenAiQuestion, reading: Reading) -> dict[str, Any]:
    """Return the answer to a question."""
    common = {"type": question.type, "name": question.name}
    shares = reading.probabilities
    if isinstance(question, Predicate):
        return {**common, "probability": shares[0]}
    if isinstance(question, OpenAiChoiceQuestion):
        values = [each.value for each in question.choices]
        return {
            **common,
            "choice": values[reading.best],
            "confidence": reading.confidence,
            "probabilities": [
                {"value": value, "probability": share} for value, share in zip(values, shares, strict=True)
            ],
        }
    levels = [
        {"value": number, "label": level.label, "probability": share}
        for number, (level, share) in enumerate(zip(question.levels, shares, strict=True))
    ]
    return {**common, "score": reading.level, "confidence": reading.confidence, "probabilities": levels}
