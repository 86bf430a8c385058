"""DSG (Cho et al. 2024, "Davidsonian Scene Graph")."""

from collections.abc import Mapping, Sequence
from typing import Literal

from typing_extensions import TypedDict

from service.context import Found
from service.errors import Invalid
from service.fields import Template
from service.metrics.contract import Item, Metric, MetricOptions, Score
from service.metrics.models import Models
from service.questions.given import GivenSet
from service.questions.sets import Question, QuestionSet, ordered
from service.questions.styles.dsg import DSG
from service.serving.demand import Demand

USUAL_QUESTIONS = 8  # of a set


class DsgOptions(MetricOptions):
    """Options of `dsg`."""

    dependencies: Literal["direct", "transitive", "none"] = "direct"
    question: Template = "{} Please answer yes or no."
    question_set: GivenSet | None = None


class Answered(TypedDict):
    """
    One question with its answer.

    Attributes:
        probability: of "yes" among "yes" and "no"; label_mass is what both have of the whole.
        score: what the question counts, 1 or 0.
        zeroed_by: ids of the parents that made it count 0.
    """

    id: int
    text: str
    kind: str
    depends_on: Sequence[int]
    expected: str
    answer: Literal["yes", "no"]
    probability: float
    label_mass: float
    score: float
    zeroed_by: list[int]


class DsgDetails(TypedDict):
    """What a `dsg` is made of: the id of its question set, who wrote that, and the answers."""

    question_set: str
    provenance: dict[str, str]
    questions: list[Answered]


async def dsg(item: Item, models: Models, options: DsgOptions) -> Score:
    """
    The share of questions answered "yes", where the children of a "no" count 0.

    The released code zeroes a question when a direct parent's own answer is "no"; the paper's
    pseudo-code carries the zero on to grandchildren (`dependencies: "transitive"`).
    """
    question_set, found = await questions_for(item, models, options)
    questions = question_set.questions
    asked = [options.question.replace("{}", question.text) for question in questions]
    answers = await models.vqa.ask(item.image, asked, "Yes")
    yes = {q.id: answer.logit > 0 for q, answer in zip(questions, answers, strict=True)}
    zeroed = moot(questions, yes, options.dependencies)
    scores = {q.id: float(yes[q.id] and q.id not in zeroed) for q in questions}
    details: DsgDetails = {
        "question_set": question_set.id,
        "provenance": question_set.provenance,
        "questions": [
            {
                "id": question.id,
                "text": question.text,
                "kind": question.kind,
                "depends_on": question.depends_on,
                "expected": question.expected,
                "answer": "yes" if yes[question.id] else "no",
                "probability": answer.probability,
                "label_mass": answer.label_mass,
                "score": scores[question.id],
                "zeroed_by": zeroed.get(question.id, []),
            }
            for question, answer in zip(questions, answers, strict=True)
        ],
    }
    cut = ("a question was cut at the model's length",) if any(a.truncated for a in answers) else ()
    return Score(sum(scores.values()) / len(scores), details, found, cut)


async def questions_for(item: Item, models: Models, options: DsgOptions) -> tuple[QuestionSet, Found | None]:
    """The pinned set, the one brought along, or the prompt's own."""
    given = options.question_set
    if given is None:
        return await models.questions.of(item.prompt, DSG)
    if isinstance(given, list):
        asked = tuple(question.question() for question in given)
        return QuestionSet(item.prompt, DSG.name, asked, {"source": "request"}), None
    pinned = await models.questions.pinned(given)
    if pinned.prompt != item.prompt:
        raise Invalid("question_set: that set was written for another prompt; an item may name its own")
    return pinned, "hit"


def demand_of(prompt: str, options: DsgOptions) -> dict[str, Demand]:
    """A call for each question that was sent along, or for as many as a set usually has."""
    given = options.question_set
    texts = [question.text for question in given] if isinstance(given, list) else [""] * USUAL_QUESTIONS
    return {"vqa": Demand(len(texts), sum(map(len, texts)) + len(texts) * len(options.question))}


def moot(
    questions: Sequence[Question],
    yes: Mapping[int, bool],
    dependencies: Literal["direct", "transitive", "none"],
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
)
