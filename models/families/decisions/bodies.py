"""
The bodies of decision endpoints: OpenAI's and SGLang's `POST /v1/decisions`, and `POST /v1/systemone`.

A question has choices, or is one of yes and no.  Each body is written with the questions' numbers as their
names, and read as the probability of each option.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar, Protocol

from models.core.contract import ModelError, UpstreamError
from models.families.decisions import Body

STATE_TEXT = "A picture."  # the text of a body that has one
EXPONENTIALS_TOLERANCE = 1e-6  # a server's sum of exponentials is rounded
SUM_TOLERANCE = 1e-3  # how far from 1 the sum of rounded probabilities may be


@dataclass(frozen=True, slots=True)
class Question:
    """A text, with choices unless the answer is yes or no."""

    text: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """
    The answer to a question.

    Attributes:
        probabilities: of the choices, or of yes and no; their sum is 1.
        mass: the probability of all options over the vocabulary; 1 if the server does not return it.
    """

    probabilities: tuple[float, ...]
    mass: float = 1.0


class Form(Protocol):
    """How one kind of server is called."""

    path: ClassVar[str]
    most_choices: ClassVar[int]

    def body(self, picture: str, questions: Sequence[Question]) -> dict[str, Any]:
        """Return the body about a picture, a data URI."""
        ...

    def read(self, answer: Mapping[str, Any], number: int, question: Question) -> Decision:
        """
        Return the answer to question *number*.

        Raises:
            ModelError: the server refused this question.
            UpstreamError, LookupError, TypeError: the answer has no probabilities.
        """
        ...


class OpenAi:
    """The body of OpenAI and its gateways; an answer has no label mass."""

    path: ClassVar = "decisions"
    most_choices: ClassVar = 255

    def body(self, picture: str, questions: Sequence[Question]) -> dict[str, Any]:
        """Return the body: a message with the picture, and a list of questions."""
        message = {"role": "user", "content": [{"type": "input_image", "image_url": picture}]}
        return {"input": [message], "questions": [self._of(n, each) for n, each in enumerate(questions)]}

    @staticmethod
    def _of(number: int, question: Question) -> dict[str, Any]:
        named = {"name": str(number), "instructions": question.text}
        if not question.choices:
            return {"type": "predicate", **named}
        return {"type": "choice", **named, "choices": [{"value": each} for each in question.choices]}

    def read(self, answer: Mapping[str, Any], number: int, question: Question) -> Decision:
        """Return the answer at the place of the question, whose name the server repeats."""
        found = answer["answers"][number]
        if found.get("name") not in (None, str(number)):
            raise UpstreamError("returned the answer to another question")
        if found.get("type") == "refusal":
            raise ModelError("the server refused this question")
        if not question.choices:
            return yes_no(found["probability"])
        return named(
            {each["value"]: each["probability"] for each in found["probabilities"]}, question.choices
        )


class Sglang:
    """The body of SGLang, at OpenAI's path."""

    path: ClassVar = "decisions"
    most_choices: ClassVar = 26

    def body(self, picture: str, questions: Sequence[Question]) -> dict[str, Any]:
        """Return the body: the input, pictures, and questions with ids."""
        listed = [self._of(number, each) for number, each in enumerate(questions)]
        return {"input": STATE_TEXT, "images": [{"url": picture}], "questions": listed}

    @staticmethod
    def _of(number: int, question: Question) -> dict[str, Any]:
        asked = {"id": str(number), "question": question.text}
        if not question.choices:
            return {"type": "yes_no", **asked}
        return {"type": "choice", **asked, "options": [{"name": each} for each in question.choices]}

    def read(self, answer: Mapping[str, Any], number: int, question: Question) -> Decision:
        """Return the answer with the id of the question, and its mass."""
        found = answer["answers"][str(number)]
        names = question.choices or ("yes", "no")
        return named(found["probabilities"], names, mass_of(found["label_mass"]))


class SystemOne:
    """The body of structured decisions, of vLLM and SGLang."""

    path: ClassVar = "systemone"
    most_choices: ClassVar = 26

    def body(self, picture: str, questions: Sequence[Question]) -> dict[str, Any]:
        """Return the body: a state, and questions by name."""
        listed = {str(number): self._of(each) for number, each in enumerate(questions)}
        return {"state": STATE_TEXT, "images": [picture], "questions": listed}

    @staticmethod
    def _of(question: Question) -> dict[str, Any]:
        if not question.choices:
            return {"type": "noul", "instructions": question.text}
        return {
            "type": "choice",
            "instructions": question.text,
            "criteria": dict.fromkeys(question.choices),
        }

    def read(self, answer: Mapping[str, Any], number: int, question: Question) -> Decision:
        """Return the question's answer; its mass is in SGLang's answer, or in vLLM's diagnostics."""
        found = answer["answers"][str(number)]
        if "x_label_mass" in found:
            mass = mass_of(found["x_label_mass"])
        else:
            mass = mass_of(answer["diagnostics"][str(number)]["label_mass"])
        if not question.choices and "probabilities" not in found:  # SGLang's noul
            return yes_no(found["noul"], mass)
        return named(found["probabilities"], question.choices or ("yes", "no"), mass)


FORMS: Mapping[Body, Form] = {"openai": OpenAi(), "sglang": Sglang(), "systemone": SystemOne()}


def named(found: Mapping[str, Any], names: Sequence[str], mass: float = 1.0) -> Decision:
    """Return the probabilities of *names*.  Raises `UpstreamError` if they are not those of all options."""
    shares = tuple(probability(found[name], "probability") for name in names)
    if len(found) != len(names) or abs(sum(shares) - 1) > SUM_TOLERANCE:
        raise UpstreamError("returned probabilities that do not add up to 1")
    return Decision(shares, mass)


def yes_no(value: Any, mass: float = 1.0) -> Decision:
    """Return a predicate's probability, and the rest for no.  Raises `UpstreamError`."""
    share = probability(value, "probability")
    return Decision((share, 1 - share), mass)


def mass_of(value: Any) -> float:
    """Return the mass of all labels, where rounding may exceed 1.  Raises `UpstreamError`."""
    rounded = isinstance(value, float) and 1 < value <= 1 + EXPONENTIALS_TOLERANCE
    return 1.0 if rounded else probability(value, "label_mass")


def probability(value: Any, name: str) -> float:
    """Return a number from 0 to 1.  Raises `UpstreamError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise UpstreamError(f"returned a {name} that is not a number")
    if not 0 <= value <= 1:
        raise UpstreamError(f"returned a {name} outside 0 to 1")
    return float(value)
