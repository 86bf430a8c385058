"""
TIFA (Hu et al. 2023, "TIFA: Accurate and Interpretable Text-to-Image Faithfulness Evaluation with QA").

The question LLM lists the visible elements of the prompt. For each it writes a question with choices and a
yes/no question.

    score = (1/n) Σ [the likeliest choice of q is the expected one]

A choice is ranked by the mean log-probability of its tokens, in lower case.

The released code generates answers, and filters questions by UnifiedQA. The authors' published questions
can be imported: `--format tifa`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

import numpy as np

from models.core.calls import TextCall
from models.core.contract import CHOICE_QUESTION
from models.images.image import Image
from service.core.fields import Template
from service.metrics.common.answers import answered, folded, with_choices, written
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
from service.observability.notes import Code, Note
from service.questions.request_sets import ChoiceSet
from service.questions.sets import Question
from service.questions.style import Style
from service.questions.styles.tifa import TIFA, TIFA_VERIFIED

MIN_LEAD = 0.1  # cosine by which the nearest choice leads; below it the next choice may be meant
MAX_SHOWN_CHARACTERS = 40  # characters of a written answer in a warning


class TifaOptions(MetricOptions):
    """
    Options of `tifa`.

    Attributes:
        answers: `"free_form"`: A VLM behind a server writes an answer. If it is none of the choices (apart
            from case and a full stop), the choice with the nearest embedding counts.
        question: for questions with choices. By default `{} Answer the question using a single word or
            phrase.` for CLIP-FlanT5 and free-form answers; a served VLM gets the choices as letters.
        verify: `true`: The question LLM also answers each question from the prompt alone; one with another
            answer is dropped.
        question_set: fixes the questions, in place of those that the question LLM writes.
    """

    answers: Literal["choices", "free_form"] = "choices"
    question: Template | None = None
    question_set: ChoiceSet | None = None
    verify: bool = False

    def overruled(self) -> dict[str, str]:
        """Return the options without effect: a given set is neither written nor verified."""
        return super().overruled() | ({"verify": "question_set"} if self.question_set else {})


class TifaAsked(QuestionDetail):
    """
    One question with its answer.

    Attributes:
        answer: the likeliest choice, or the nearest to the model's text.
        probabilities: of each choice among all of them; empty for a text of the model's.
        written: that text; null without one.
    """

    answer: str
    probabilities: Mapping[str, float]
    written: str | None


class TifaDetails(SetDetails):
    """Details of `tifa`: its question set and the answers."""

    questions: list[TifaAsked]


async def tifa(item: Item, models: ModelCalls, options: TifaOptions) -> Score:
    """
    Return the mean over the questions of [answer = expected answer].

    By default the answer is the likeliest choice, by the mean log-probability of its tokens.  With
    `answers: "free_form"` the model writes freely as in the released code: its text is the answer if it is a
    choice, and otherwise the choice with the nearest embedding is.

    With `verify` a question counts only if the question LLM, without the image, answers it from the prompt
    as expected: the paper's filter.  The released code uses UnifiedQA, with and without the choices.
    """
    question_set, found = await questions_for(item, models, options.question_set)
    questions = question_set.questions
    by = free_form if options.answers == "free_form" else by_likelihood
    said = await by(item.image, models, questions, options.question)
    value, scores = fold(questions, {id: each.answer for id, each in said.items()})
    shown = {
        id: {"answer": each.answer, "probabilities": each.probabilities, "written": each.written}
        for id, each in said.items()
    }
    warnings = (*cut(said.values()), *unclear(questions, said))
    return Score(value, all_details(question_set, scores, shown), found, warnings)


@dataclass(frozen=True, slots=True)
class Said:
    """
    The answer to a question: the likeliest choice, or the one that the *written* text is or is near to.

    Attributes:
        lead: of the nearest choice over the next, in cosine; None if the text is a choice.
    """

    answer: str
    probabilities: Mapping[str, float] = field(default_factory=dict)
    written: str | None = None
    truncated: bool = False
    lead: float | None = None


async def by_likelihood(
    image: Image, models: ModelCalls, questions: Sequence[Question], template: str | None
) -> dict[int, Said]:
    """Return the likeliest choice of each question."""
    return {
        each.question.id: Said(each.answer, each.probabilities, truncated=each.truncated)
        for each in await answered(models.vqa, image, questions, template)
    }


async def free_form(
    image: Image, models: ModelCalls, questions: Sequence[Question], template: str | None
) -> dict[int, Said]:
    """
    Return for each question the choice that the model's text is, or whose embedding is nearest to it.

    Case and a full stop do not matter.  Raises `NotReady` without a model for sentences.
    """
    with_choices(questions)
    asked = [(template or CHOICE_QUESTION).replace("{}", question.text) for question in questions]
    pairs = list(zip(questions, await written(models.vqa, image, asked), strict=True))
    texts = sorted({folded(each) for question, text in pairs for each in (text, *question.choices)})
    found = await models.ask("embedding", [TextCall(text) for text in texts])
    vectors = {text: each.vector.astype(float) for text, each in zip(texts, found, strict=True)}
    return {question.id: choice_of(question, text, vectors) for question, text in pairs}


def choice_of(question: Question, text: str, vectors: Mapping[str, np.ndarray]) -> Said:
    """
    Return the choice that *text* is, or the nearest one by cosine; the first of equals.

    Args:
        vectors: of the choices and the text, both `folded`.
    """
    same = [choice for choice in question.choices if plain(choice) == plain(text)]
    if same:
        return Said(same[0], written=text)
    sought = vectors[folded(text)]
    cosines = {choice: float(vectors[folded(choice)] @ sought) for choice in question.choices}
    nearest = max(cosines, key=lambda choice: cosines[choice])
    others = [cosine for choice, cosine in cosines.items() if choice != nearest]
    return Said(nearest, written=text, lead=cosines[nearest] - max(others) if others else None)


def unclear(questions: Sequence[Question], said: Mapping[int, Said]) -> Iterator[Note]:
    """Yield a warning for each text that is about as near to another choice as to the nearest one."""
    for question in questions:
        found = said[question.id]
        if found.lead is not None and found.lead < MIN_LEAD:
            written = repr(found.written)[:MAX_SHOWN_CHARACTERS]
            text = f"question {question.id}: the answer {written} is no choice, and {found.answer} is nearest"
            yield Note(Code.CHOICE_UNCLEAR, f"{text} by {found.lead:.2g} only: the score may be by chance")


def plain(text: str) -> str:
    """Return a text without case, surrounding spaces and a full stop at its end."""
    return folded(text).rstrip(".")


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
    may_use=("questions", "embedding"),
    range=(0, 1),
    formula="mean over the questions of [the likeliest choice is the expected answer]",
    paper="Hu et al. 2023, arXiv 2303.11897",
    without={"questions": GIVEN_SETS, "embedding": 'answers "choices", and not "free_form"'},
    style=style_of,
)
