"""
A VQA model behind a decision endpoint: OpenAI's and SGLang's `POST /v1/decisions`, and `POST /v1/systemone`.

    P(option | image, question) = probability x label_mass

Where a server has no `label_mass`, the probability is that among the options, not over the vocabulary.  A
question has choices, or is one of yes and no.  Each body is written with the questions' numbers as their
names, and read as the probability of each option.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log
from typing import Any, ClassVar, Protocol

from models.core.calls import ChoiceCall, LabelCall, LikelihoodCall, VqaCall
from models.core.contract import QUESTION, KnownCalls, ModelError, Post, Prepared, UpstreamError
from models.core.examples import opposite_images
from models.core.outcomes import CallResult, Choices, Likelihood
from models.families.decisions import FAMILY, Body, DecisionEndpointSettings
from models.families.openai import ServedModel, served_arguments
from models.families.openai.vlm import IMAGE_COST_TOKENS, data_uri
from models.images.image import Image

# --- the bodies ---------------------------------------------------------------------------------

STATE_TEXT = "A picture."  # the text of a body that has one
EXPONENTIALS_TOLERANCE = 1e-6  # a server's sum of exponentials is rounded
SUM_TOLERANCE = 1e-3  # how far from 1 the sum of rounded probabilities may be


@dataclass(frozen=True, slots=True)
class Question:
    """A text, with choices unless the answer is yes or no."""

    text: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EndpointAnswer:
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

    def body(self, image: str, questions: Sequence[Question]) -> dict[str, Any]:
        """Return the body about a picture, a data URI."""
        ...

    def read(self, answer: Mapping[str, Any], number: int, question: Question) -> EndpointAnswer:
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

    def body(self, image: str, questions: Sequence[Question]) -> dict[str, Any]:
        """Return the body: a message with the picture, and a list of questions."""
        message = {"role": "user", "content": [{"type": "input_image", "image_url": image}]}
        return {"input": [message], "questions": [self._of(n, each) for n, each in enumerate(questions)]}

    @staticmethod
    def _of(number: int, question: Question) -> dict[str, Any]:
        named = {"name": str(number), "instructions": question.text}
        if not question.choices:
            return {"type": "predicate", **named}
        return {"type": "choice", **named, "choices": [{"value": each} for each in question.choices]}

    def read(self, answer: Mapping[str, Any], number: int, question: Question) -> EndpointAnswer:
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

    def body(self, image: str, questions: Sequence[Question]) -> dict[str, Any]:
        """Return the body: the input, pictures, and questions with ids."""
        listed = [self._of(number, each) for number, each in enumerate(questions)]
        return {"input": STATE_TEXT, "images": [{"url": image}], "questions": listed}

    @staticmethod
    def _of(number: int, question: Question) -> dict[str, Any]:
        asked = {"id": str(number), "question": question.text}
        if not question.choices:
            return {"type": "yes_no", **asked}
        return {"type": "choice", **asked, "options": [{"name": each} for each in question.choices]}

    def read(self, answer: Mapping[str, Any], number: int, question: Question) -> EndpointAnswer:
        """Return the answer with the id of the question, and its mass."""
        found = answer["answers"][str(number)]
        names = question.choices or ("yes", "no")
        return named(found["probabilities"], names, mass_of(found["label_mass"]))


class SystemOne:
    """The body of structured decisions, of vLLM and SGLang."""

    path: ClassVar = "systemone"
    most_choices: ClassVar = 26

    def body(self, image: str, questions: Sequence[Question]) -> dict[str, Any]:
        """Return the body: a state, and questions by name."""
        listed = {str(number): self._of(each) for number, each in enumerate(questions)}
        return {"state": STATE_TEXT, "images": [image], "questions": listed}

    @staticmethod
    def _of(question: Question) -> dict[str, Any]:
        if not question.choices:
            return {"type": "noul", "instructions": question.text}
        return {
            "type": "choice",
            "instructions": question.text,
            "criteria": dict.fromkeys(question.choices),
        }

    def read(self, answer: Mapping[str, Any], number: int, question: Question) -> EndpointAnswer:
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


def named(found: Mapping[str, Any], names: Sequence[str], mass: float = 1.0) -> EndpointAnswer:
    """Return the probabilities of *names*.  Raises `UpstreamError` if they are not those of all options."""
    shares = tuple(probability(found[name], "probability") for name in names)
    if len(found) != len(names) or abs(sum(shares) - 1) > SUM_TOLERANCE:
        raise UpstreamError("returned probabilities that do not add up to 1")
    return EndpointAnswer(shares, mass)


def yes_no(value: Any, mass: float = 1.0) -> EndpointAnswer:
    """Return a predicate's probability, and the rest for no.  Raises `UpstreamError`."""
    share = probability(value, "probability")
    return EndpointAnswer((share, 1 - share), mass)


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


# --- the model ----------------------------------------------------------------------------------

YES = "Yes"  # the only answer whose likelihood a decision has


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about a picture: its digest, and its data URI."""

    image: str
    uri: str
    question: Question


class DecisionModel(ServedModel):
    """
    A decision endpoint; further arguments as of `ServedModel`.

    Args:
        body: whose requests the server reads.
        max_questions: of a request.
        question: template of the question whether a picture shows a text; `{}` is the text.
    """

    family = FAMILY

    def __init__(
        self, model: str, body: Body, *, max_questions: int = 64, question: str = QUESTION, **served: Any
    ) -> None:
        super().__init__(model, **served, question=question, choice_question="{}")
        self.most_together, self._form = max_questions, FORMS[body]

    def prepare(self, call: VqaCall) -> Prepared:
        """Build the question; each image is encoded once for all its questions.  Raises `ModelError`."""
        question = question_of(call)
        if len(question.choices) > self._form.most_choices:
            raise ModelError(f"{len(question.choices)} choices; the server takes {self._form.most_choices}")
        image: Image = call.image
        return Prepared(IMAGE_COST_TOKENS, Asked(image.digest, image.once(data_uri, data_uri), question))

    def known_calls(self) -> KnownCalls:
        """Return one question about two pictures: some servers of these bodies ignore pictures."""
        return KnownCalls.of(
            *opposite_images(self.info.question), compared="probabilities for a red and a blue picture"
        )

    def together(self, prepared: Prepared) -> str:
        """Return the picture's digest: all questions about it may share a request."""
        asked: Asked = prepared.data
        return asked.image

    async def answer(self, prepared: Prepared, post: Post) -> CallResult:
        """Return the result of one question.  Raises `ModelError`, `UpstreamError`."""
        [outcome] = await self.answer_all([prepared], post)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def answer_all(self, prepared: Sequence[Prepared], post: Post) -> list[CallResult | Exception]:
        """
        Return the results of questions about one picture, with one request.

        The result of a question is an error if it was refused, or if its answer is missing or is no
        distribution over its options.

        Raises:
            UpstreamError: the server did not answer.
        """
        asked: list[Asked] = [each.data for each in prepared]
        questions = [each.question for each in asked]
        answer = await post(self._form.path, self.body(**self._form.body(asked[0].uri, questions)))
        return [self._outcome(answer, number, each) for number, each in enumerate(questions)]

    def _outcome(self, answer: Mapping[str, Any], number: int, question: Question) -> CallResult | Exception:
        """Return the result of question *number*, or its error."""
        try:
            return outcome(question, self._form.read(answer, number, question))
        except (ModelError, UpstreamError) as error:
            return error
        except (LookupError, TypeError, AttributeError):
            return UpstreamError("returned no probabilities for a question")


def from_settings(settings: DecisionEndpointSettings) -> DecisionModel:
    """Return the model of a table, without a request; not all servers read `extra_body`'s default."""
    arguments = served_arguments(settings)
    if "extra_body" not in settings.model_fields_set:
        arguments["extra_body"] = {}
    return DecisionModel(
        **arguments, body=settings.body, max_questions=settings.max_questions, question=settings.question
    )


def question_of(call: VqaCall) -> Question:
    """Translate *call*.  Raises `ModelError` for what is neither yes or no nor a choice about one image."""
    match call:
        case LikelihoodCall(_, question, answer) if answer == YES:
            return Question(question)
        case ChoiceCall(_, question, choices):
            return chosen(question, choices)
        case LabelCall(_, question, labels, ()):
            return chosen(question, labels)
        case LikelihoodCall():
            raise ModelError(f"a decision endpoint has the likelihood of {YES} alone")
        case LabelCall():
            raise ModelError("a decision endpoint takes one image, and no examples before it")
    raise ModelError("a decision endpoint has no answers in words")


def chosen(question: str, choices: tuple[str, ...]) -> Question:
    """Return a question with choices.  Raises `ModelError` for fewer than two, empty or equal ones."""
    if len(choices) < 2 or not all(each.strip() for each in choices) or len({*choices}) < len(choices):
        raise ModelError("a decision endpoint needs two or more choices, all different and none empty")
    return Question(question, choices)


def outcome(question: Question, decision: EndpointAnswer) -> CallResult:
    """Return the result.  Raises `UpstreamError` for a probability of 0, whose logarithm is not finite."""
    shares = [share * decision.mass for share in decision.probabilities]
    if not all(shares):
        raise UpstreamError("returned a probability of 0, whose logarithm is not finite")
    logs = [log(share) for share in shares]
    if question.choices:
        return Choices(tuple((each,) for each in logs))
    yes, no = logs
    return Likelihood((yes,), yes, no)
