"""
VQ² (Yarom et al. 2023, "What You See is What You Read? Improving Text-Image Alignment Evaluation").

The question LLM chooses spans of the prompt as answers, and writes a question for each:

    score = (1/n) Σ P("Yes" to `is "ANSWER" true for "QUESTION" in this image?`)

The released code has other spans and questions, and generates answers.
"""

import re
from collections.abc import Mapping
from math import exp
from statistics import fmean
from typing import Annotated, Literal

from pydantic import AfterValidator, StringConstraints

from models.core.outcomes import Likelihood
from service.core.fields import FILLED_PATTERN, MAX_PROMPT, filled, schema_keywords
from service.metrics.common.answers import said_yes
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls
from service.metrics.common.question_sets import (
    GIVEN_SETS,
    QuestionDetail,
    SetDetails,
    all_details,
    cut,
    questions_for,
    vqa_demand,
)
from service.questions.request_sets import AnswerSet
from service.questions.sets import Question
from service.questions.styles.vq2 import VQ2

PLACEHOLDERS = re.compile(r"\{(answer|question)\}")
BOTH_PLACEHOLDERS = "Contains {answer} and {question}, where they go."

Normalization = Literal["vocabulary", "yes_no"]


def with_both(template: str) -> str:
    """Refuse a template without a place for the answer and one for the question."""
    if {found[1] for found in PLACEHOLDERS.finditer(filled(template))} != {"answer", "question"}:
        raise ValueError("must contain {answer} and {question}, where they go")
    return template


PairTemplate = Annotated[
    str,
    StringConstraints(max_length=MAX_PROMPT),
    AfterValidator(with_both),
    schema_keywords(description=BOTH_PLACEHOLDERS, pattern=FILLED_PATTERN, minLength=1),
]


class Vq2Options(MetricOptions):
    """
    Options of `vq2`.

    Attributes:
        normalization: `"yes_no"`: P(Yes) / (P(Yes) + P(No)), for models that put much probability on other
            words. The default is P(Yes), as in the paper.
        answers: `"generated"`: As for `dsg`; yes counts 1 and no 0.
        question_set: `text` is the question, `expected` the answer. Two pairs may have one question.
        question: the template of each question.
    """

    answers: Literal["likelihood", "generated"] = "likelihood"
    normalization: Normalization = "vocabulary"
    question: PairTemplate = 'is "{answer}" true for "{question}" in this image?'
    question_set: AnswerSet | None = None

    def overruled(self) -> dict[str, str]:
        """Return the options without effect: a generated answer has no probability."""
        return super().overruled() | ({"normalization": "answers"} if self.answers == "generated" else {})


class Vq2Asked(QuestionDetail):
    """
    One pair with its answer; `score` is P("yes"), or 1 or 0 for a generated answer.

    Attributes:
        label_mass: the probability of "yes" and "no" together; null for a generated answer.
    """

    label_mass: float | None


class Vq2Details(SetDetails):
    """Details of `vq2`: its pairs and the answers."""

    questions: list[Vq2Asked]


async def vq2(item: Item, models: ModelCalls, options: Vq2Options) -> Score:
    """
    Return the mean over the pairs of P("yes") to `is "<answer>" true for "<question>" in this image?`.

    P is over the whole vocabulary, as the paper defines it; with `normalization: "yes_no"` among "yes" and
    "no".  The released code uses no probability: its model writes "yes" or "no", as here with
    `answers: "generated"`.
    """
    question_set, found = await questions_for(item, models, options.question_set)
    questions = question_set.questions
    asked = [filled_in(options.question, question) for question in questions]
    if options.answers == "generated":
        said = await said_yes(models.vqa, item.image, asked)
        scores = {question.id: float(yes) for question, yes in zip(questions, said, strict=True)}
        unknown = {id: {"label_mass": None} for id in scores}
        return Score(fold(scores), all_details(question_set, scores, unknown), found)
    answers = await models.vqa.ask(item.image, asked, "Yes")
    pairs = zip(questions, answers, strict=True)
    scores = {question.id: p_yes(answer, options.normalization) for question, answer in pairs}
    shown = {id: {"label_mass": answer.label_mass} for id, answer in zip(scores, answers, strict=True)}
    return Score(fold(scores), all_details(question_set, scores, shown), found, cut(answers))


def fold(scores: Mapping[int, float]) -> float:
    """Return the mean of the pairs' scores: P("yes"), or 1 and 0 if there are only answers."""
    return fmean(scores.values())


def filled_in(template: str, pair: Question) -> str:
    """Return the question about *pair*."""
    parts = {"answer": pair.expected, "question": pair.text}
    return PLACEHOLDERS.sub(lambda found: parts[found[1]], template)


def p_yes(answer: Likelihood, normalization: Normalization) -> float:
    """Return P("yes") of the first token, over the whole vocabulary or among "yes" and "no"."""
    return exp(answer.log_p_yes) if normalization == "vocabulary" else answer.probability


metric = Metric(
    "vq2",
    vq2,
    options=Vq2Options,
    details=Vq2Details,
    roles=("vqa",),
    demand_of=vqa_demand,
    may_use=("questions",),
    range=(0, 1),
    formula='mean over pairs of question and answer of P("yes") to whether the answer is true',
    paper="Yarom et al. 2023, arXiv 2305.10400",
    without={"questions": GIVEN_SETS},
    style=VQ2,
)
