"""TIFA (Hu et al. 2023, "TIFA: Accurate and Interpretable Text-to-Image Faithfulness Evaluation with QA")."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from service.core.fields import Template
from service.metrics.common.choices import answered
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import Models
from service.metrics.common.question_sets import (
    GIVEN_SETS,
    QuestionDetail,
    SetDetails,
    all_details,
    cut,
    questions_for,
    vqa_demand,
)
from service.questions.given import ChoiceSet
from service.questions.sets import Question
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
    """Details of `tifa`: its question set and the answers."""

    questions: list[TifaAsked]


async def tifa(item: Item, models: Models, options: TifaOptions) -> Score:
    """
    Return the mean over the questions of [answer = expected answer].

    Here the answer is the likeliest choice, by the mean log-probability of its tokens.  In the released code
    the model writes freely, and the nearest choice by SBERT is the answer.

    With `verify` a question counts only if the question LLM, without the image, answers it from the prompt
    as expected: the paper's filter.  The released code uses UnifiedQA, with and without the choices.
    """
    question_set, found = await questions_for(item, models, options.question_set)
    questions = question_set.questions
    answers = await answered(models.vqa, item.image, questions, options.question)
    value, scores = fold(questions, {a.question.id: a.answer for a in answers})
    shown = {a.question.id: {"answer": a.answer, "probabilities": a.probabilities} for a in answers}
    return Score(value, all_details(question_set, scores, shown), found, cut(answers))


def fold(questions: Sequence[Question], answers: Mapping[int, str]) -> tuple[float, dict[int, float]]:
    """Return the mean and the score of each question: 1 if the answer is the expected one, else 0."""
    scores = {question.id: float(answers[question.id] == question.expected) for question in questions}
    return fmean(scores.values()), scores


def style_of(options: TifaOptions) -> Style:
    """Return the style of sets as the LLM wrote them, or of verified sets."""
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
