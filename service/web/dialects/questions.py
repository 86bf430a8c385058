"""
Typed questions about one picture, put to a VQA model as calls, and read from its outcomes as probabilities.

Their endpoints have errors in the form of OpenAI's servers.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, fsum
from string import ascii_uppercase
from typing import Any, Literal

from fastapi import Request, Response

from models.core.calls import Call, ChoiceCall, LabelCall, LikelihoodCall
from models.core.contract import ModelInfo
from models.core.outcomes import Choices, Likelihood
from models.images.image import Image
from service.core.concurrency.tasks import while_connected
from service.core.errors import CallRefused, Invalid, NotFound, ScoregateError
from service.core.fields import PLACEHOLDER
from service.core.lanes import BULK
from service.images.loader import ImageRef
from service.metrics.common.answers import YES_NO_QUESTION
from service.serving.admission import Demand
from service.serving.handle import Handle
from service.web.endpoints import context_of, header_timeout, json_response, service_of
from service.web.problems import headers_of

MAX_TEXT = 16_000  # characters of one question, with the text of the request's input
MAX_TEXTS = 512_000  # characters of all questions; 128 prompts of `/score` may have as many
MAX_PARTS = 256  # parts of a message's content, or of a request's input
MAX_CHOICES = 255
MAX_LEVELS = 10
MAX_OWN_IMAGES = 3  # pictures of one question

COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Option:
    """A choice, a level, or one of yes and no."""

    name: str
    description: str = ""

    @property
    def line(self) -> str:
        """The option as the model reads it."""
        return f"{self.name}: {self.description}" if self.description else self.name


YES_NO = (Option("Yes"), Option("No"))


@dataclass(frozen=True, slots=True)
class TypedQuestion:
    """
    One question.

    Attributes:
        place: JSON pointer to it in the request.
        text: of the question, after that of the request's input.
        yes_no_template: what a model reads of a question of yes or no.
        own_images: of this question alone, which follow that of the request.
        characters: of its texts.
    """

    place: str
    kind: Literal["yes_no", "choice", "score"]
    text: str
    options: Sequence[Option] = YES_NO
    yes_no_template: str = YES_NO_QUESTION
    own_images: Sequence[ImageRef] = ()
    characters: int = field(init=False)

    def __post_init__(self) -> None:
        """Raise `Invalid` for texts that no model can read."""
        names = [option.name for option in self.options]
        texts = [self.text, *(option.line for option in self.options)]
        object.__setattr__(self, "characters", sum(map(len, texts)))
        if self.characters > MAX_TEXT:
            raise Invalid(f"{self.place}: has more than {MAX_TEXT} characters, with the text of the input")
        if not self.text.strip() or not all(name.strip() for name in names):
            raise Invalid(f"{self.place}: a text is empty")
        if any("\0" in text or not is_unicode(text) for text in texts):
            raise Invalid(f"{self.place}: contains a NUL character or a lone surrogate")
        if self.kind == "choice" and len(set(names)) < len(names):
            raise Invalid(f"{self.place}: two choices have the same text")
        if len(self.own_images) > MAX_OWN_IMAGES:
            count = len(self.own_images)
            raise Invalid(f"{self.place}: has {count} pictures of its own; at most {MAX_OWN_IMAGES} are read")
        if self.own_images and len(names) > len(ascii_uppercase):
            raise Invalid(f"{self.place}: has {len(names)} choices; with pictures of its own 26 are read")

    def call(self, images: Sequence[Image], model: ModelInfo) -> Call:
        """
        Return the call: yes or no by likelihood, a choice by its text, a level by its letter.

        About several images, all of them are read by labels.
        """
        *before, image = images
        described = [option.line for option in self.options if option.description]
        match self.kind:
            case "yes_no":
                text = self.yes_no_template.replace(PLACEHOLDER, "\n".join([self.text, *described]))
                labels = tuple(option.name for option in YES_NO)
                return (
                    LabelCall(image, text, labels, tuple(before)) if before else LikelihoodCall(image, text)
                )
            case "choice" if not before:
                text = "\n".join([self.text, *described])
                question = model.choice_question.replace(PLACEHOLDER, text)
                return ChoiceCall(image, question, tuple(option.name for option in self.options))
            case _:
                letters = tuple(ascii_uppercase[: len(self.options)])
                lines = [
                    f"{letter}. {option.line}" for letter, option in zip(letters, self.options, strict=True)
                ]
                kind = "level" if self.kind == "score" else "choice"
                text = "\n".join([self.text, *lines, f"Answer with the letter of one {kind} only."])
                return LabelCall(image, text, letters, tuple(before))

    def read(self, outcome: Any) -> "Reading":
        """Return the probabilities in an outcome.  Raises `CallRefused` if the question was cut."""
        if isinstance(outcome, Likelihood):
            logs = [outcome.log_p_yes, outcome.log_p_no]
        else:
            assert isinstance(outcome, Choices)
            logs = [fsum(tokens) for tokens in outcome.log_probs]
        if outcome.truncated:
            raise CallRefused(f"{self.place}: the question was cut at the model's length")
        likeliest = max(logs)
        weights = [exp(log - likeliest) for log in logs]
        total = fsum(weights)
        return Reading([weight / total for weight in weights], min(1.0, fsum(map(exp, logs))))


@dataclass(frozen=True, slots=True)
class Reading:
    """
    The answer to one question.

    Attributes:
        probabilities: of the options, in their order; their sum is 1.
        label_mass: probability of all options together, over the whole vocabulary.
    """

    probabilities: Sequence[float]
    label_mass: float

    @property
    def best(self) -> int:
        """The number of the likeliest option, the first of several."""
        return self.probabilities.index(max(self.probabilities))

    @property
    def confidence(self) -> float:
        """The probability of the likeliest option."""
        return max(self.probabilities)

    @property
    def is_likeliest(self) -> bool:
        """True if nothing else in the vocabulary can be likelier than the likeliest option."""
        return self.confidence * self.label_mass > 1 - self.label_mass

    @property
    def level(self) -> float:
        """The mean of the options' numbers from 0, weighted by probability."""
        return fsum(number * share for number, share in enumerate(self.probabilities))


def is_unicode(text: str) -> bool:
    """Return False for lone surrogates, which tokenizers cannot read."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_text(value: Any) -> str:
    """
    Return a text unchanged, nothing as an empty one, and other JSON in compact form.

    JSON longer than `MAX_TEXT` is cut there: no question may have as much.  Raises `Invalid` if it is nested
    too deep.
    """
    if value is None or isinstance(value, str):
        return value or ""
    pieces, characters = [], 0
    try:
        for piece in COMPACT.iterencode(value):
            pieces.append(piece)
            characters += len(piece)
            if characters > MAX_TEXT:
                break
    except RecursionError:
        raise Invalid("JSON in the place of a text is nested too deep") from None
    return "".join(pieces)


def with_input(state: str, question: str) -> str:
    """Return the text of a question after that of the request's input."""
    return "\n\n".join(filter(None, (state, question)))


def within_limits(questions: Iterable[TypedQuestion]) -> list[TypedQuestion]:
    """Return the questions.  Raises `Invalid` if their texts are too long in all."""
    found, characters = [], 0
    for each in questions:
        characters += each.characters
        if characters > MAX_TEXTS:
            raise Invalid(
                f"{each.place}: the questions so far have more than {MAX_TEXTS} characters, "
                "each with the text of the input"
            )
        found.append(each)
    return found


INVALID_STATUS = 422  # sent as 400, as by OpenAI, vLLM and SGLang


async def readings(
    request: Request,
    model: str | None,
    image: ImageRef | None,
    questions: Sequence[TypedQuestion],
    timeout_s: float,
) -> tuple[list[Reading], str]:
    """
    Return the answer to each question, and the model's label.

    Args:
        image: of all questions; None if each has its own.

    Raises:
        ScoregateError: as `outcomes_of`, and the first error of a question.
    """
    shared = [] if image is None else [image]
    places = {ref: "" for ref in shared} | {ref: each.place for each in questions for ref in each.own_images}

    def calls(images: Sequence[Image], info: ModelInfo) -> list[Call]:
        opened = dict(zip(places, images, strict=True))
        return [each.call([opened[ref] for ref in (*shared, *each.own_images)], info) for each in questions]

    demand = Demand(len(questions), sum(each.characters for each in questions))
    outcomes, label = await outcomes_of(request, model, places, calls, demand, timeout_s)
    return [reading(*pair) for pair in zip(questions, outcomes, strict=True)], label


async def outcomes_of(
    request: Request,
    model: str | None,
    refs: Mapping[ImageRef, str],
    calls: Callable[[Sequence[Image], ModelInfo], Sequence[Call]],
    demand: Demand,
    timeout_s: float,
) -> tuple[list[Any], str]:
    """
    Return the outcomes of the calls about opened pictures, errors among them, and the model's label.

    Args:
        model: a VQA model's name in the settings; None for the first.
        refs: with their places in the request.
        timeout_s: seconds from the first byte of the request, unless a header sets a timeout.

    Raises:
        NotFound: there is no such model.
        ScoregateError: as `Asker.ask`.
    """
    service = service_of(request)
    handle = chosen(service.asker.models, model)
    context = context_of(service, request, header_timeout(request) or round(timeout_s * 1000), BULK)
    request.state.items = demand.calls
    work = service.asker.ask(handle, refs, calls, demand, context)
    outcomes, info = await while_connected(request.receive, work)
    return outcomes, info.label


def reading(question: TypedQuestion, outcome: Any) -> Reading:
    """Return the probabilities.  Raises the question's error, with its place."""
    if isinstance(outcome, ScoregateError):
        raise outcome.of_part(question.place)
    return question.read(outcome)


def chosen(models: Mapping[str, Handle], name: str | None) -> Handle:
    """Return the VQA model of that name in the settings; the first without one.  Raises `NotFound`."""
    if not models:
        raise NotFound("no VQA model is configured")
    if name in (None, "default"):
        return next(iter(models.values()))
    if name not in models:
        raise NotFound(f"/model: there is no such VQA model here; there are {', '.join(models)}")
    return models[name]


def failed_nested(error: ScoregateError, request_id: str) -> Response:
    """Build the response to an error as OpenAI and vLLM have it."""
    status, headers, said = parts_of(error)
    return json_response({"error": {**said, "code": status}}, status, headers)


def parts_of(error: ScoregateError) -> tuple[int, dict[str, str], dict[str, Any]]:
    """Return the status, the headers, and the fields that all forms have."""
    status = 400 if error.status == INVALID_STATUS else error.status
    place = error.faults[0].pointer if error.faults else error.detail.partition(": ")[0]
    said = {
        "message": error.detail,
        "type": "invalid_request_error" if status < 500 else "server_error",
        "param": place if place.startswith("/") else None,
    }
    return status, headers_of(error), said
