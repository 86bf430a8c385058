"""TIFA (Hu et al. 2023, "TIFA: Accurate and Interpretable Text-to-Image Faithfulness Evaluation with QA")."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from service.core.fields import Template
from service.metrics.common.choices import Answered, answered
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import Models
from service.metrics.common.question_sets import (
    GIVEN_SETS,
    QuestionDetail,
    SetDetails,
    cut,
    question_detail,
    questions_for,
    set_details,
    vqa_demand,
)
from service.questions.given import ChoiceSet
from service.questions.sets import Question, QuestionSet
from service.questions.style import Style
from service.questions.styles.tifa import TIFA, TIFA_VERIFIED


class TifaOptions(MetricOptions):
    """Options of `tifa`."""

    question: Template | None = None
    question_set: ChoiceSet | None = None
    verify: bool = False


class TifaAsked(QuestionDetail):
    """
    One question with its answer.

    Attributes:
        answer: the likeliest choice.
        probabilities: of each choice among all of them.
    """

    answer: str
    probabilities: Mapping[str, float]


class TifaDetails(SetDetails):
    """What a `tifa` is made of: its question set and the answers."""

    questions: list[TifaAsked]


async def tifa(item: Item, models: Models, options: TifaOptions) -> Score:
    """
    The mean over the questions of [answer = expected answer].

    Here the answer is the likeliest choice, by the mean log-probability of its tokens.  The released code
    lets the model write freely, and takes the choice that an SBERT finds nearest to that.

    With `verify` a question counts only if the question LLM, which sees no picture, answers it from the
    prompt as expected: the paper's filter.  The released code asks UnifiedQA, with the choices and without.
    """
    question_set, found = await questions_for(item, models, style_of(options), options.question_set)
    questions = question_set.questions
    answers = await answered(models.vqa, item.image, questions, options.question)
    value, scores = fold(questions, {a.question.id: a.answer for a in answers})
    truncated = any(answer.truncated for answer in answers)
    return Score(value, details(question_set, answers, scores), found, cut(truncated))


def fold(questions: Sequence[Question], answers: Mapping[int, str]) -> tuple[float, dict[int, float]]:
    """The mean of what the questions count, and that: 1 where the answer is the expected one, else 0."""
    scores = {question.id: float(answers[question.id] == question.expected) for question in questions}
    return fmean(scores.values()), scores


def details(
    question_set: QuestionSet, answers: Sequence[Answered], scores: Mapping[int, float]
) -> TifaDetails:
    """The answers with what they count."""
    return {
        **set_details(question_set, scores),
        "questions": [
            {
                **question_detail(answer.question, scores[answer.question.id]),
                "answer": answer.answer,
                "probabilities": answer.probabilities,
            }
            for answer in answers
        ],
    }


def style_of(options: TifaOptions) -> Style:
    """Sets as the LLM wrote them, or without what the prompt does not confirm."""
    return TIFA_VERIFIED if options.verify else TIFA


metric = Metric(
    "tifa",
    tifa,
    options=TifaOptions,
    details=TifaDetails,
    roles=("vqa",),
    demand_of=vqa_demand,
    may_use=("questions",),
    range=(0, 1),
    formula="mean over the questions of [the likeliest choice is the expected answer]",
    paper="Hu et al. 2023, arXiv 2303.11897",
    without={"questions": GIVEN_SETS},
    style=TIFA,
    style_of=style_of,
)
