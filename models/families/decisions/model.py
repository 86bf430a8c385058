"""
A VQA model behind a decision endpoint.

    P(option | image, question) = probability x label_mass

Where a server has no `label_mass`, the probability is that among the options, not over the vocabulary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from models.core.calls import AnswerCall, ChoiceCall, FirstTokenCall, LabelCall, LikelihoodCall
from models.core.contract import QUESTION, ModelError, Post, Prepared, UpstreamError
from models.core.examples import opposite_pictures
from models.core.outcomes import CallResult, Choices, Likelihood
from models.families.decisions import FAMILY, Body, DecisionsSettings
from models.families.decisions.bodies import FORMS, Decision, Question
from models.families.openai import ServedModel, served_arguments
from models.families.openai.vlm import IMAGE_COST_TOKENS, data_uri
from models.images.image import Image

YES = "Yes"  # the only answer whose likelihood a decision has

VqaCall = LikelihoodCall | ChoiceCall | LabelCall | FirstTokenCall | AnswerCall


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about a picture: its digest, and its data URI."""

    picture: str
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

    def opposites(self) -> tuple[LikelihoodCall, ...]:
        """Return one question about two pictures: some servers of these bodies ignore pictures."""
        return opposite_pictures(self.info.question)

    def together(self, prepared: Prepared) -> str:
        """Return the picture's digest: all questions about it may share a request."""
        asked: Asked = prepared.data
        return asked.picture

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


def from_settings(settings: DecisionsSettings) -> DecisionModel:
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


def outcome(question: Question, decision: Decision) -> CallResult:
    """Return the result.  Raises `UpstreamError` for a probability of 0, whose logarithm is not finite."""
    shares = [share * decision.mass for share in decision.probabilities]
    if not all(shares):
        raise UpstreamError("returned a probability of 0, whose logarithm is not finite")
    logs = [log(share) for share in shares]
    if question.choices:
        return Choices(tuple((each,) for each in logs))
    yes, no = logs
    return Likelihood((yes,), yes, no)
