"""
DSG (Cho et al. 2024, "Davidsonian Scene Graph").

The question LLM writes yes/no questions about single facts of the prompt; a question may depend on others,
its parents. The `vqa` model answers "yes" if P(Yes) is larger than P(No) for the first token.

    score = (1/n) Σ yes(q) · [no deciding parent of q was answered "no"]

The instructions to the LLM and their examples are our own. The released code generates
answers, and scores invalid sets.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from models.images.image import Image
from service.core.fields import Template
from service.metrics.common.answers import Dependencies, moot, said_yes
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
    yes_expected,
)
from service.questions.request_sets import YesNoSet
from service.questions.sets import Question
from service.questions.style import Style
from service.questions.styles.dsg import DSG, DSG_IN_THREE_CALLS


class DsgOptions(MetricOptions):
    """
    Options of `dsg`.

    Attributes:
        dependencies: `"direct"` (default): a direct parent's own answer is "no", the authors' released code;
            `"transitive"`: a direct parent's answer is "no", or the parent counts 0 for that reason, the
            paper's pseudo-code; `"none"`: never, the ablation without dependencies
        answers: `"soft"`: A question counts P(Yes) among Yes and No. A parent is a "no" if P(No) is larger;
            `"generated"`: A VLM behind a server writes an answer, which must begin with yes or no, else the
            error is `unanswered`.
        generation: `"three_calls"`: Tuples, questions and dependencies by one call of the LLM each, as in the
            paper.
        question: the template of each question.
        question_set: fixes the questions, in place of those that the question LLM writes.
    """

    dependencies: Dependencies = "direct"
    answers: Literal["hard", "soft", "generated"] = "hard"
    generation: Literal["one_call", "three_calls"] = "one_call"
    question: Template = "{} Please answer yes or no."
    question_set: YesNoSet | None = None

    def overruled(self) -> dict[str, str]:
        """Return the options without effect: a given set is not written."""
        return super().overruled() | ({"generation": "question_set"} if self.question_set else {})


class DsgAsked(QuestionDetail):
    """
    One question with its answer.

    Attributes:
        probability: of "yes" among "yes" and "no"; label_mass is the probability of both together.  Null for
            generated answers.
        zeroed_by: ids of the parents that made it count 0.
    """

    answer: Literal["yes", "no"]
    probability: float | None
    label_mass: float | None
    zeroed_by: list[int]


class DsgDetails(SetDetails):
    """Details of `dsg`: its question set and the answers."""

    questions: list[DsgAsked]


async def dsg(item: Item, models: ModelCalls, options: DsgOptions) -> Score:
    """
    Return the mean over the questions of [yes], with 0 for the children of a "no".

    By default the likelier of "yes" and "no" is the answer.  With `answers: "generated"` it is what the VQA
    model writes, as in the released code.  With `answers: "soft"` a question counts P("yes") among "yes" and
    "no"; it is still a "no" if that is likelier.

    The released code zeroes a question when a direct parent's own answer is "no"; the paper's
    pseudo-code carries the zero on to grandchildren (`dependencies: "transitive"`).
    """
    question_set, found = await questions_for(item, models, options.question_set)
    questions = yes_expected(question_set).questions
    asked = [options.question.replace("{}", question.text) for question in questions]
    answers = await answered(item.image, models, asked, options)
    yes = {q.id: answer.yes for q, answer in zip(questions, answers, strict=True)}
    counts = {q.id: answer.counts for q, answer in zip(questions, answers, strict=True)}
    folded = fold(questions, yes, counts if options.answers == "soft" else yes, options.dependencies)
    shown = {
        q.id: {
            "answer": "yes" if answer.yes else "no",
            "probability": answer.probability,
            "label_mass": answer.label_mass,
            "zeroed_by": folded.zeroed.get(q.id, []),
        }
        for q, answer in zip(questions, answers, strict=True)
    }
    return Score(folded.value, all_details(question_set, folded.scores, shown), found, cut(answers))


class DsgAnswer(NamedTuple):
    """The answer to one question; a generated one has no probability."""

    yes: bool
    probability: float | None = None
    label_mass: float | None = None
    truncated: bool = False

    @property
    def counts(self) -> float:
        """P("yes"), or 1 or 0 without a probability."""
        return float(self.yes) if self.probability is None else self.probability


async def answered(
    image: Image, models: ModelCalls, questions: Sequence[str], options: DsgOptions
) -> list[DsgAnswer]:
    """Return the VQA model's answers."""
    if options.answers == "generated":
        return [DsgAnswer(yes) for yes in await said_yes(models.vqa, image, questions)]
    return [
        DsgAnswer(found.logit > 0, found.probability, found.label_mass, found.truncated)
        for found in await models.vqa.ask(image, questions, "Yes")
    ]


class Folded(NamedTuple):
    """
    A score with the scores of its questions.

    Attributes:
        scores: by question.
        zeroed: questions that count 0 because of a parent, with the parents that decided it.
    """

    value: float
    scores: dict[int, float]
    zeroed: dict[int, list[int]]


def fold(
    questions: Sequence[Question],
    yes: Mapping[int, bool],
    counts: Mapping[int, float],
    dependencies: Dependencies,
) -> Folded:
    """Return the mean of `counts`, with 0 for questions that a parent's "no" made moot."""
    zeroed = moot(questions, yes, dependencies)
    scores = {id: 0.0 if id in zeroed else float(count) for id, count in counts.items()}
    return Folded(sum(scores.values()) / len(scores), scores, zeroed)


def style_of(options: DsgOptions) -> Style:
    """Return the style with one call of the LLM, or with three as in the paper."""
    return DSG if options.generation == "one_call" else DSG_IN_THREE_CALLS


metric = Metric(
    "dsg",
    dsg,
    options=DsgOptions,
    details=DsgDetails,
    roles=("vqa",),
    demand_of=vqa_demand,
    may_use=("questions",),
    range=(0, 1),
    formula="mean over the questions of [yes, and no direct parent answered no]",
    paper="Cho et al. 2024, arXiv 2310.18235",
    without={"questions": GIVEN_SETS},
    style=style_of,
)
