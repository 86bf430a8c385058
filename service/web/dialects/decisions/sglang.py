"""SGLang's body of `POST /v1/decisions`."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, model_validator

from service.core.errors import Invalid
from service.core.fields import Whole, branch
from service.web.dialects.questions import (
    MAX_LEVELS,
    MAX_PARTS,
    Option,
    Reading,
    TypedQuestion,
    as_text,
    with_input,
)
from service.web.dialects.wire import Loose

MAX_QUESTIONS = 400
MAX_OPTIONS = 26
TextOrJson = str | dict[str, Any] | list[Any]
FORMAT_VERSION = 0  # SGLang's own versions count from 1
UNSUPPORTED_FIELDS = ("chat_template_kwargs", "prompt_format_version", "return_prompt_token_ids")


class NamedOption(Loose):
    """
    One option of a choice.

    Attributes:
        name: the text that is answered.
        description: what it means.
    """

    name: str
    description: TextOrJson | None = None


class SglangQuestion(Loose):
    """
    The fields of all questions.

    Attributes:
        id: returned with the answer.
        question: its text.
        type: `yes_no`, `choice` or `score`.
    """

    id: Annotated[str, Field(min_length=1)]
    question: TextOrJson


class SglangYesNoQuestion(SglangQuestion):
    """
    Yes or no?

    Attributes:
        yes, no: what these answers mean.
    """

    type: Literal["yes_no"]
    yes: TextOrJson | None = None
    no: TextOrJson | None = None

    @property
    def named(self) -> list[Option]:
        """The options."""
        return [Option("Yes", as_text(self.yes)), Option("No", as_text(self.no))]


class SglangChoiceQuestion(SglangQuestion):
    """
    Which option?

    Attributes:
        options: those that can be answered.
    """

    type: Literal["choice"]
    options: Annotated[list[NamedOption], Field(min_length=2, max_length=MAX_OPTIONS, fail_fast=True)]

    @property
    def named(self) -> list[Option]:
        """The options."""
        return [Option(each.name, as_text(each.description)) for each in self.options]


class SglangScoreQuestion(SglangQuestion):
    """
    Which level?

    Attributes:
        levels: the lowest first; the score is the mean level, from 0.
    """

    type: Literal["score"]
    levels: Annotated[list[TextOrJson], Field(min_length=2, max_length=MAX_LEVELS, fail_fast=True)]

    @property
    def named(self) -> list[Option]:
        """The options."""
        return [Option(as_text(each)) for each in self.levels]


def kind(value: Any) -> str | None:
    """Return the branch of a question."""
    given = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    known = {"yes_no", "choice", "score"}
    return f"an SGLang {given}" if isinstance(given, str) and given in known else None


AnySglangQuestion = Annotated[
    Annotated[SglangYesNoQuestion, branch("an SGLang yes_no")]
    | Annotated[SglangChoiceQuestion, branch("an SGLang choice")]
    | Annotated[SglangScoreQuestion, branch("an SGLang score")],
    Discriminator(
        kind, custom_error_type="question_type", custom_error_message="type must be yes_no, choice or score"
    ),
]


class SglangImage(Loose):
    """
    A picture of the body.

    Attributes:
        url: a `data:` URI, or an address if allowed.
    """

    url: str


class SglangRequest(Loose):
    """
    The body.

    Attributes:
        model: a VQA model of the settings; by default the first.
        input: the text before each question.
        images: exactly one picture.
        questions: each is answered.
        temperature: 1, or left out.
        chat_template_kwargs, prompt_format_version, return_prompt_token_ids: rejected if set.
    """

    model: str | None = None
    input: TextOrJson
    images: Annotated[list[SglangImage], Field(max_length=MAX_PARTS, fail_fast=True)] | None = None
    questions: Annotated[
        list[AnySglangQuestion],
        Field(min_length=1, max_length=MAX_QUESTIONS, fail_fast=True),
    ]
    temperature: float | int | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    prompt_format_version: Whole | None = None
    return_prompt_token_ids: bool = False

    @model_validator(mode="after")
    def _can_be_answered(self) -> Self:
        if len({each.id for each in self.questions}) < len(self.questions):
            raise ValueError("two questions have one id")
        if self.temperature not in (None, 1):
            raise ValueError("temperature must be 1: probabilities are those of the model")
        for field in UNSUPPORTED_FIELDS:
            if getattr(self, field):
                raise ValueError(f"{field} is not supported: the service renders questions its own way")
        return self

    def image_sources(self) -> list[tuple[str, str]]:
        """Return each picture with its place."""
        return [(f"/images/{number}/url", each.url) for number, each in enumerate(self.images or [])]

    def asked(self) -> Iterator[TypedQuestion]:
        """Yield the questions, each after the text of the input.  Raises `Invalid`."""
        state = as_text(self.input)
        for number, each in enumerate(self.questions):
            place, said = f"/questions/{number}", as_text(each.question)
            if not said.strip():
                raise Invalid(f"{place}/question: is empty")
            if isinstance(each, SglangYesNoQuestion):
                said = f"Is the following true? {said}"
            yield TypedQuestion(place, each.type, with_input(state, said), each.named)

    def answer(self, readings: Sequence[Reading], model: str, request_id: str) -> dict[str, Any]:
        """Return the response."""
        pairs = zip(self.questions, readings, strict=True)
        return {
            "model": model,
            "answers": {question.id: answer_to(question, reading) for question, reading in pairs},
            "usage": {"prompt_tokens": 0, "total_tokens": 0},
            "prompt_format_version": FORMAT_VERSION,
        }


def answer_to(question: AnySglangQuestion, reading: Reading) -> dict[str, Any]:
    """Return the answer to a question."""
    value: dict[str, Any] = {}
    if isinstance(question, SglangYesNoQuestion):
        names = ["yes", "no"]
    elif isinstance(question, SglangChoiceQuestion):
        names = [option.name for option in question.options]
        value = {"choice": names[reading.best]}
    else:
        names, value = [str(number) for number in range(len(question.levels))], {"score": reading.level}
    return {
        "type": question.type,
        **value,
        "probabilities": dict(zip(names, reading.probabilities, strict=True)),
        "label_mass": reading.label_mass,
    }
