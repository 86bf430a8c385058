"""The body of `POST /v1/systemone`, as vLLM and SGLang have it."""

import time
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from service.core.errors import Invalid
from service.core.fields import Strict, few
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

MAX_QUESTIONS = 64
MAX_OPTIONS = 26


class SystemOneQuestion(Strict):
    """
    One question; its type decides the form of `criteria`, and a misspelt field is an error.

    Attributes:
        type: the kind of the answer.
        instructions: its text.
        criteria: the options or levels, by type.
    """

    type: Literal["noul", "choice", "score"]
    instructions: Any = ""
    criteria: Any = None

    def options(self, place: str) -> list[Option]:
        """Return the options.  Raises `Invalid`."""
        match self.type, self.criteria:
            case "noul", None:
                return [Option("Yes"), Option("No")]
            case "noul", dict(given) if given.keys() <= {"true", "false"}:
                return [Option("Yes", as_text(given.get("true"))), Option("No", as_text(given.get("false")))]
            case "choice", dict(given) if 1 <= len(given) <= MAX_OPTIONS:
                return [Option(name, as_text(said)) for name, said in given.items()]
            case "score", list(given) if 2 <= len(given) <= MAX_LEVELS:
                return [Option(as_text(level)) for level in given]
        raise Invalid(f"{place}/criteria: {CRITERIA[self.type]}")


CRITERIA = {
    "noul": "must be null, or an object with true and false",
    "choice": f"must map 1 to {MAX_OPTIONS} options to a description or null",
    "score": f"must be a list of 2 to {MAX_LEVELS} levels",
}


class SystemOneRequest(Loose):
    """
    The body.

    Attributes:
        model: a VQA model of the settings; by default the first.
        state: the text before each question, after the instructions.
        instructions: the text before the state.
        questions: by name.
        images: exactly one picture.
        audio, videos: rejected.
    """

    model: str | None = None
    state: Any
    instructions: str | None = None
    questions: Annotated[
        dict[Annotated[str, Field(min_length=1)], SystemOneQuestion], Field(min_length=1), few(MAX_QUESTIONS)
    ]
    images: Annotated[list[Any], Field(max_length=MAX_PARTS, fail_fast=True)] | None = None
    audio: list[str] | None = None
    videos: list[str] | None = None

    def image_sources(self) -> list[tuple[str, str]]:
        """Return each picture with its place; SGLang's clients name its URL.  Raises `Invalid`."""
        for field in ("audio", "videos"):
            if getattr(self, field):
                raise Invalid(f"/{field}: questions are about pictures alone")
        return [image_address(each, f"/images/{number}") for number, each in enumerate(self.images or [])]

    def asked(self) -> Iterator[TypedQuestion]:
        """Yield the questions, each after the instructions and the state.  Raises `Invalid`."""
        state = with_input(self.instructions or "", as_text(self.state))
        for name, each in self.questions.items():
            place, said = f"/questions/{name}", as_text(each.instructions)
            options = each.options(place)
            if each.type == "noul":
                said = f"Is the following true? {said}" if said.strip() else ""
                yield TypedQuestion(place, "yes_no", with_input(state, said), options)
            else:
                yield TypedQuestion(place, each.type, with_input(state, said), options)

    def answer(self, readings: Sequence[Reading], model: str, request_id: str) -> dict[str, Any]:
        """Return the response."""
        pairs = {
            name: (each, reading)
            for (name, each), reading in zip(self.questions.items(), readings, strict=True)
        }
        return {
            "id": request_id,
            "object": "structured_decision",
            "created": int(time.time()),
            "model": model,
            "answers": {name: answer_to(*pair) for name, pair in pairs.items()},
            "usage": {"input_tokens": 0, "output_tokens": 0},
            "diagnostics": {
                name: {"label_mass": read.label_mass, "argmax_is_label": read.is_likeliest}
                for name, (_, read) in pairs.items()
            },
        }


def image_address(given: Any, place: str) -> tuple[str, str]:
    """Return a picture with its place.  Raises `Invalid`."""
    match given:
        case str(address):
            return place, address
        case {"url": str(address)}:
            return f"{place}/url", address
    raise Invalid(f'{place}: must be a text or {{"url": …}}')


def answer_to(question: SystemOneQuestion, reading: Reading) -> dict[str, Any]:
    """Return the answer; the confidence is that of the likeliest option over the whole vocabulary."""
    shares = reading.probabilities
    value: dict[str, Any]
    more: dict[str, Any] = {}
    if question.type == "noul":
        names, value = ["yes", "no"], {"noul": shares[0]}
    elif question.type == "choice":
        names = [*question.criteria]
        value = {"choice": names[reading.best]}
    else:
        names = [str(number) for number in range(len(shares))]
        value = {"score": reading.level}
        more = {"legend": dict(zip(names, map(as_text, question.criteria), strict=True))}
    return {
        "type": question.type,
        **value,
        **more,
        "probabilities": dict(zip(names, shares, strict=True)),
        "confidence": reading.confidence * reading.label_mass,
        "x_label_mass": reading.label_mass,
    }
