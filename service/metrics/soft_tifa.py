"""
Soft-TIFA (Kamath et al. 2025, "GenEval 2: Addressing Benchmark Drift in Text-to-Image Evaluation").

With the question sets of `tifa`:

    score = (1/n) Σ P(the answer to q begins as the expected one)

P is the sum of the first token's probability over all tokens with which the expected answer can begin:
unchanged, in lower case and capitalised, each also after a space; a count also in digits ("four", "4"). A
served VLM needs `/tokenize`; if it returns only its twenty likeliest tokens, a missing one is an error.

`mean: "geometric"` (values are at least 1e-12) is close to 0 if one element is missing. The paper uses it
for whole prompts, with Qwen3-VL-8B-Instruct.
"""

from collections.abc import Sequence
from math import exp, log
from statistics import fmean
from typing import Literal

from models.core.calls import FirstTokenCall
from models.core.outcomes import FirstToken
from service.core.fields import Template
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
from service.questions.styles.tifa import TIFA

MIN_SCORE = 1e-12  # score of a question in a geometric mean
COUNT_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
TEEN_WORDS = [
    "eleven",
    "twelve",
    *(f"{n}teen" for n in ("thir", "four", "fif", "six", "seven", "eigh", "nine")),
]
DIGITS = {word: str(number) for number, word in enumerate([*COUNT_WORDS, *TEEN_WORDS, "twenty"])}
OTHER_SPELLINGS = {**DIGITS, **{digits: word for word, digits in DIGITS.items()}}

MeanKind = Literal["arithmetic", "geometric"]


class SoftTifaOptions(MetricOptions):
    """
    Options of `soft_tifa`.

    Attributes:
        question: the template of each question.
        question_set: fixes the questions, in place of those that the question LLM writes.
        mean: of the questions' values. `"geometric"` (values are at least 1e-12) is close to 0 if one element
            is missing; the paper uses it for whole prompts.
    """

    mean: MeanKind = "arithmetic"
    question: Template = "{} Answer in one word."
    question_set: AnswerSet | None = None


class SoftTifaAsked(QuestionDetail):
    """
    One question with its answer.

    Attributes:
        variants: ways of writing the expected answer; `score` is the probability that the model's answer
            begins like one of them.
    """

    variants: list[str]


class SoftTifaDetails(SetDetails):
    """Details of `soft_tifa`: its question set and the probabilities."""

    questions: list[SoftTifaAsked]


async def soft_tifa(item: Item, models: ModelCalls, options: SoftTifaOptions) -> Score:
    """
    Return the mean over the questions of P(expected answer).

    P is the probability of the answer's first token over the whole vocabulary, not only among the choices,
    summed over the ways of writing the answer, each token once.

    The paper takes the arithmetic mean for atoms of a prompt, and `mean: "geometric"` for whole prompts:
    then one missing object brings the score close to 0.
    """
    question_set, found = await questions_for(item, models, options.question_set)
    written = {question.id: variants(question.expected) for question in question_set.questions}
    calls = [
        FirstTokenCall(item.image, options.question.replace("{}", question.text), written[question.id])
        for question in question_set.questions
    ]
    answers: Sequence[FirstToken] = await models.vqa.answer(calls)
    scores = {id: answer.probability for id, answer in zip(written, answers, strict=True)}
    shown = {id: {"variants": [*ways]} for id, ways in written.items()}
    value = fold([*scores.values()], options.mean)
    return Score(value, all_details(question_set, scores, shown), found, cut(answers))


def variants(answer: str) -> tuple[str, ...]:
    """
    Return ways of writing *answer*: unchanged, in lower case and capitalised, each also after a space.

    A count is also in digits, or in words.
    """
    lower = answer.lower()
    ways = [answer, lower, *filter(None, [OTHER_SPELLINGS.get(lower)])]
    cased = [case for way in ways for case in (way, way[:1].upper() + way[1:])]
    return tuple(dict.fromkeys(before + way for way in cased for before in ("", " ")))


def fold(scores: Sequence[float], mean: MeanKind) -> float:
    """Return the arithmetic mean, or the geometric mean with a minimum of `MIN_SCORE` for each score."""
    if mean == "arithmetic":
        return fmean(scores)
    return exp(fmean(log(max(score, MIN_SCORE)) for score in scores))


metric = Metric(
    "soft_tifa",
    soft_tifa,
    options=SoftTifaOptions,
    details=SoftTifaDetails,
    roles=("vqa",),
    demand_of=vqa_demand,
    may_use=("questions",),
    range=(0, 1),
    formula="mean over the questions of P(first token of the expected answer)",
    paper="Kamath et al. 2025, arXiv 2512.16853",
    without={"questions": GIVEN_SETS},
    style=TIFA,
)
