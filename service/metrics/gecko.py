"""
Gecko (Wiles et al. 2024, "Revisiting Text-to-Image Evaluation with Gecko").

It differs from `tifa` in three ways:

* **Coverage.** The question LLM first lists the keywords that a picture can show, then writes a question
  with choices for each. A keyword without a question is a warning.
* **No invented questions.** A question is dropped if the prompt entails it with the expected answer, by an
  NLI model, with a probability below `nli_threshold` (0.005 as in the paper). Without an NLI model all
  count, with a warning.
* **Uncertainty.** A question counts the share of the expected answer among all choices (equation 2):

      score = (1/n) Σ s(expected choice) / Σ s(choice)

Choices are in lower case. Options:

The paper has the negative log likelihood for s, and a T5 of 11 billion parameters (TRUE) as NLI model; with
another, check which questions the threshold drops.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Literal

from pydantic import Field

from models.core.calls import EntailmentCall
from models.core.outcomes import Entailment
from service.core.errors import NoQuestions
from service.core.fields import Template
from service.metrics.common.answers import Answered, Pooling, answered
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
from service.questions.sets import Question, QuestionSet
from service.questions.styles.gecko import GECKO

UNFILTERED_NOTE = Note(
    Code.NO_NLI_MODEL,
    "no NLI model is configured: questions that the prompt does not entail were not dropped",
)
CUT_FOR_NLI = Note(Code.PROMPT_TRUNCATED, "the prompt was cut at the NLI model's length")


class GeckoOptions(MetricOptions):
    """
    Options of `gecko`.

    Attributes:
        answers: `"hard"`: A question counts 1 if the likeliest choice is the expected one, else 0: equation
            1.
        choices: `"sum"`: s is the probability of the whole choice, small for long ones. By default (`"mean"`)
            it is exp of the mean log-probability of its tokens.
        question: for questions with choices. Yes/no questions use that of `dsg`.
        question_set: fixes the questions, in place of those that the question LLM writes.
        nli_threshold: the probability of entailment below which a question is dropped; 0.005 as in the paper.
    """

    answers: Literal["soft", "hard"] = "soft"
    choices: Pooling = "mean"
    nli_threshold: float = Field(0.005, ge=0, le=1)
    question: Template | None = None
    question_set: ChoiceSet | None = None


class GeckoAsked(QuestionDetail):
    """
    One question with its answer.

    Attributes:
        answer: the likeliest choice; null if the question was dropped.
        probabilities: of each choice among all of them.
        entailment: how likely the question with its answer is to follow from the prompt; null without an
            NLI model.
        dropped: true if that is below the threshold.
    """

    answer: str | None
    probabilities: Mapping[str, float]
    entailment: float | None
    dropped: bool


class GeckoDetails(SetDetails):
    """
    Details of `gecko`: its question set and the answers.

    Attributes:
        filtered: true if an NLI model dropped questions that the prompt does not entail.
        unasked: keywords of the prompt that the question LLM wrote no question about.
    """

    filtered: bool
    unasked: Sequence[str]
    questions: list[GeckoAsked]


async def gecko(item: Item, models: ModelCalls, options: GeckoOptions) -> Score:
    """
    Return the mean over the questions of s_a / Σ s_i: the expected answer's share of all choices (eq. 2).

    s_i is the probability of choice i, exp of the mean log-probability of its tokens, or with
    `choices: "sum"` of their sum.  The paper calls s_i the negative log likelihood; taken literally that
    gives the unlikely choices the largest shares, and a wrong picture the better score.

    With `answers: "hard"` a question counts 1 if the likeliest choice is the expected one, else 0 (eq. 1).
    Without an NLI model, that is the paper's ablation "+ coverage".

    A question is dropped if an NLI model finds that its answer does not follow from the prompt: the premise
    is the prompt, the hypothesis is the question and its answer, and the paper's threshold is 0.005.
    """
    question_set, found = await questions_for(item, models, options.question_set)
    entailed = await entailments(item.prompt, question_set.questions, models)
    asked = kept(question_set.questions, entailed, options.nli_threshold)
    answers = await answered(models.vqa, item.image, asked, options.question, options.choices)
    scores = {
        answer.question.id: answer.share if options.answers == "soft" else float(answer.correct)
        for answer in answers
    }
    shown = details(question_set, answers, entailed, scores)
    return Score(fmean(scores.values()), shown, found, warnings(question_set, answers, entailed))


async def entailments(
    prompt: str, questions: Sequence[Question], models: ModelCalls
) -> dict[int, Entailment] | None:
    """Return how far *prompt* entails each question's answer, by id; None without an NLI model."""
    if not models.has("nli"):
        return None
    calls = [EntailmentCall(prompt, f"{question.text} {question.expected}") for question in questions]
    results = await models.ask("nli", calls)
    return {question.id: result for question, result in zip(questions, results, strict=True)}


def kept(
    questions: Sequence[Question], entailed: Mapping[int, Entailment] | None, threshold: float
) -> list[Question]:
    """Return the questions that the prompt entails.  Raises `NoQuestions` if it entails none."""
    if entailed is None:
        return [*questions]
    found = [question for question in questions if entailed[question.id].probability >= threshold]
    if not found:
        raise NoQuestions(
            f"the prompt entails none of its {len(questions)} questions: the NLI model gives all of them"
            f" less than {threshold:g}"
        )
    return found


def details(
    question_set: QuestionSet,
    answers: Sequence[Answered],
    entailed: Mapping[int, Entailment] | None,
    scores: Mapping[int, float],
) -> dict[str, Any]:
    """Return the details of all questions in order, including dropped ones."""
    by_id = {answer.question.id: answer for answer in answers}
    counts = {question.id: scores.get(question.id) for question in question_set.questions}
    shown = {
        id: {
            "answer": by_id[id].answer if id in by_id else None,
            "probabilities": by_id[id].probabilities if id in by_id else {},
            "entailment": entailed[id].probability if entailed else None,
            "dropped": id not in by_id,
        }
        for id in counts
    }
    of_set = {"filtered": entailed is not None, "unasked": question_set.unasked}
    return all_details(question_set, counts, shown) | of_set


def warnings(
    question_set: QuestionSet, answers: Sequence[Answered], entailed: Mapping[int, Entailment] | None
) -> tuple[Note, ...]:
    """Return warnings about coverage, filtering and cut texts."""
    warnings = [*cut(answers)]
    if question_set.unasked:
        unasked = f"the question LLM wrote no question about: {', '.join(question_set.unasked)}"
        warnings.append(Note(Code.KEYWORDS_WITHOUT_QUESTION, unasked))
    if entailed is None:
        warnings.append(UNFILTERED_NOTE)
    elif any(result.truncated for result in entailed.values()):
        warnings.append(CUT_FOR_NLI)
    return tuple(warnings)


metric = Metric(
    "gecko",
    gecko,
    options=GeckoOptions,
    details=GeckoDetails,
    roles=("vqa",),
    demand_of=vqa_demand,
    may_use=("questions", "nli"),
    range=(0, 1),
    formula="mean over the questions that the prompt entails of s(expected choice) / Σ s(choice)",
    paper="Wiles et al. 2024, arXiv 2404.16820",
    without={
        "questions": GIVEN_SETS,
        "nli": "all questions, also those that the prompt does not entail",
    },
    style=GECKO,
)
