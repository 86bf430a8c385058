"""DSG (Cho et al. 2024, "Davidsonian Scene Graph")."""

from collections.abc import Mapping, Sequence
from typing import Literal

from models.outcomes import Likelihood
from service.fields import Template
from service.metrics.contract import Item, Metric, MetricOptions, Score
from service.metrics.models import Models
from service.metrics.question_sets import Asked, SetDetails, cut, questions_for, set_details, told, vqa_demand
from service.questions.given import YesNoSet
from service.questions.sets import Question, QuestionSet, ordered
from service.questions.style import Style
from service.questions.styles.dsg import DSG, DSG_IN_THREE_CALLS
from service.serving.demand import Demand

Dependencies = Literal["direct", "transitive", "none"]


class DsgOptions(MetricOptions):
    """Options of `dsg`."""

    dependencies: Dependencies = "direct"
    answers: Literal["hard", "soft"] = "hard"
    generation: Literal["one_call", "three_calls"] = "one_call"
    question: Template = "{} Please answer yes or no."
    question_set: YesNoSet | None = None


class DsgAsked(Asked):
    """
    One question with its answer.

    Attributes:
        probability: of "yes" among "yes" and "no"; label_mass is what both have of the whole.
        zeroed_by: ids of the parents that made it count 0.
    """

    answer: Literal["yes", "no"]
    probability: float
    label_mass: float
    zeroed_by: list[int]


class DsgDetails(SetDetails):
    """What a `dsg` is made of: its question set and the answers."""

    questions: list[DsgAsked]


async def dsg(item: Item, models: Models, options: DsgOptions) -> Score:
    """
    The mean over the questions of [yes], where the children of a "no" count 0.

    With `answers: "soft"` a question counts P("yes") among "yes" and "no"; whether it is a "no" is still
    decided by the likelier of both.

    The released code zeroes a question when a direct parent's own answer is "no"; the paper's
    pseudo-code carries the zero on to grandchildren (`dependencies: "transitive"`).
    """
    question_set, found = await questions_for(item, models, style_of(options), options.question_set)
    questions = question_set.questions
    asked = [options.question.replace("{}", question.text) for question in questions]
    answers = await models.vqa.ask(item.image, asked, "Yes")
    yes = {q.id: answer.logit > 0 for q, answer in zip(questions, answers, strict=True)}
    counts = {q.id: answer.probability for q, answer in zip(questions, answers, strict=True)}
    zeroed = moot(questions, yes, options.dependencies)
    scores = dsg_scores(yes if options.answers == "hard" else counts, zeroed)
    truncated = any(answer.truncated for answer in answers)
    value = sum(scores.values()) / len(scores)
    return Score(value, details(question_set, answers, scores, zeroed), found, cut(truncated))


def dsg_scores(counts: Mapping[int, float], zeroed: Mapping[int, list[int]]) -> dict[int, float]:
    """What each question counts: its own, or 0 where a parent made it moot."""
    return {id: 0.0 if id in zeroed else float(count) for id, count in counts.items()}


def moot(
    questions: Sequence[Question], yes: Mapping[int, bool], dependencies: Dependencies
) -> dict[int, list[int]]:
    """Questions that count 0 because of a parent, with the parents that decided it."""
    zeroed: dict[int, list[int]] = {}
    if dependencies == "none":
        return zeroed
    for question in ordered(questions):
        deciding = [
            parent
            for parent in question.depends_on
            if not yes[parent] or (dependencies == "transitive" and parent in zeroed)
        ]
        if deciding:
            zeroed[question.id] = deciding
    return zeroed


def details(
    question_set: QuestionSet,
    answers: Sequence[Likelihood],
    scores: Mapping[int, float],
    zeroed: Mapping[int, list[int]],
) -> DsgDetails:
    """The answers with what they count."""
    return {
        **set_details(question_set, scores),
        "questions": [
            {
                **told(question, scores[question.id]),
                "answer": "yes" if answer.logit > 0 else "no",
                "probability": answer.probability,
                "label_mass": answer.label_mass,
                "zeroed_by": zeroed.get(question.id, []),
            }
            for question, answer in zip(question_set.questions, answers, strict=True)
        ],
    }


def style_of(options: DsgOptions) -> Style:
    """Sets written in one call of the LLM, or in three as in the paper."""
    return DSG if options.generation == "one_call" else DSG_IN_THREE_CALLS


def demand_of(prompt: str, options: DsgOptions) -> dict[str, Demand]:
    """A call for each question."""
    return vqa_demand(options.question_set, options.question)


metric = Metric(
    "dsg",
    dsg,
    options=DsgOptions,
    details=DsgDetails,
    roles=("vqa",),
    demand_of=demand_of,
    may_use=("questions",),
    range=(0, 1),
    formula="mean over the questions of [yes, and no direct parent answered no]",
    paper="Cho et al. 2024, arXiv 2310.18235",
    without="question sets pinned by an id or sent along",
    style=DSG,
    style_of=style_of,
)
