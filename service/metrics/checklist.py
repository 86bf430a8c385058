"""
A checklist: fixed yes/no questions, each with a weight.

A question's answer is +1 if the `vqa` model gives "yes" a larger probability than "no" for the first token,
and -1 otherwise. A question that another one gates counts 0 unless that one is answered "yes":

    score = Σ weight(q) · answer(q) + intercept

or the mean of weight · answer. `alignment` adds the item's `vqascore`, by the same model, with a weight.

[Write your own](../guides/your-own-judge.md#checklists), or copy the questions and weights of a release, such
as VisionReward (Xu et al. 2024), whose own model cannot be served here. It decodes greedily: anything but
"yes" is -1, also if "no" is not the likeliest either; here a question is a warning if both together have less
than half of the probability. Without checklists in the settings there is only `demo`, about the shapes of the
demo models; its scores have a warning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import fsum
from typing import ClassVar, Literal

from typing_extensions import TypedDict

from models.core.outcomes import Likelihood
from service.core.errors import Unanswered
from service.core.fields import PLACEHOLDER
from service.core.settings import SettingsError
from service.core.settings.tree import Settings
from service.metrics.common.answers import moot
from service.metrics.common.contract import Item, Metric, Score
from service.metrics.common.model_calls import ModelCalls
from service.metrics.common.question_sets import cut
from service.metrics.rubrics.checklists import Checklist, checklists_in
from service.metrics.rubrics.tables import TableOptions, with_tables
from service.observability.notes import Code, Note
from service.serving.admission import Demand

LOW_MASS = 0.5  # probability of "yes" and "no" together; below it the model would answer something else

CHECKLISTS: Mapping[str, Checklist] = {
    "demo": Checklist(
        questions=[
            "Is there a circle?",
            "Is there a square?",
            "Is there a red circle?",
            "Is there a blue circle?",
            "Is there a red square?",
        ],
        weights=[0.4, 0.2, 0.3],
        intercept=0.1,
        gates=[[1, 3, 4], [2, 5]],
    )
}


class ChecklistOptions(TableOptions):
    """
    Options of `checklist`.

    Attributes:
        checklist: its name, also as `NAME@DIGEST`; a table, if the settings allow it. By default the first
            one of the settings.
    """

    option: ClassVar[str] = "checklist"
    kind: ClassVar[type] = Checklist
    tables: ClassVar[Mapping[str, Checklist]] = CHECKLISTS

    checklist: str = "demo"

    @property
    def chosen(self) -> Checklist:
        """The checklist."""
        found: Checklist = self.table
        return found


class ChecklistAsked(TypedDict):
    """
    One question with its answer.

    Attributes:
        id: its number, from 1.
        depends_on: the questions that gate it.
        probability: of "yes" among "yes" and "no"; label_mass is the probability of both together.
        zeroed_by: those of `depends_on` that are not answered "yes", so that it counts 0.
        score: +1 for yes, -1 for no, and 0 if it is gated.
        weight: null if it only gates others.
        contribution: to the metric; all contributions and the intercept are its score.
    """

    id: int
    text: str
    depends_on: Sequence[int]
    answer: Literal["yes", "no"]
    probability: float
    label_mass: float
    zeroed_by: list[int]
    score: float
    weight: float | None
    contribution: float


class AlignmentDetails(TypedDict):
    """The `vqascore` of the item with its weight, and their product."""

    score: float
    weight: float
    contribution: float


class ChecklistDetails(TypedDict):
    """
    Details of `checklist`.

    Attributes:
        checklist: its name; of a request's own the digest.
        digest: of its content.
        alignment: null without one.
    """

    checklist: str
    digest: str
    intercept: float
    alignment: AlignmentDetails | None
    questions: list[ChecklistAsked]


async def checklist(item: Item, models: ModelCalls, options: ChecklistOptions) -> Score:
    """
    Return the weighted sum of the answers, +1 for yes and -1 for no, and the intercept; or their mean.

    Raises:
        Unanswered: neither "yes" nor "no" has any probability for a question.
    """
    chosen, vqa = options.chosen, models.vqa
    texts = chosen.texts(item.prompt)
    aligned = [vqa.question.replace(PLACEHOLDER, item.prompt)] if chosen.alignment else []
    found = await vqa.ask(item.image, [*texts, *aligned], "Yes")
    asked = questions_of(chosen, found[: len(texts)])
    alignment = alignment_of(found[-1], chosen.weights[0]) if aligned else None
    details: ChecklistDetails = {
        "checklist": options.name,
        "digest": chosen.digest,
        "intercept": chosen.intercept,
        "alignment": alignment,
        "questions": asked,
    }
    parts = [each["contribution"] for each in (*asked, *([alignment] if alignment else []))]
    warnings = (*shipped(chosen), *unsure(asked), *cut(found))
    return Score(fsum((*parts, chosen.intercept)), details, warnings=warnings)


def questions_of(chosen: Checklist, answers: Sequence[Likelihood]) -> list[ChecklistAsked]:
    """Return each question with its answer and its contribution.  Raises `Unanswered`."""
    for number, answer in enumerate(answers, 1):
        if not answer.label_mass:
            raise Unanswered(f"question {number}: neither yes nor no has any probability")
    yes = {number: answer.logit > 0 for number, answer in enumerate(answers, 1)}
    zeroed = moot(chosen.all_questions, yes, "direct")
    counts = {id: 0.0 if id in zeroed else 1.0 if said else -1.0 for id, said in yes.items()}
    weights = dict(zip(chosen.factors, chosen.weights[chosen.alignment :], strict=True))
    return [
        {
            "id": question.id,
            "text": question.text,
            "depends_on": question.depends_on,
            "answer": "yes" if yes[question.id] else "no",
            "probability": answer.probability,
            "label_mass": answer.label_mass,
            "zeroed_by": zeroed.get(question.id, []),
            "score": counts[question.id],
            "weight": weights.get(question.id),
            "contribution": chosen.factors.get(question.id, 0.0) * counts[question.id] + 0.0,  # no -0.0
        }
        for question, answer in zip(chosen.all_questions, answers, strict=True)
    ]


def alignment_of(answer: Likelihood, weight: float) -> AlignmentDetails:
    """Return what the `vqascore` of the item adds to the score."""
    value = answer.normalized("reference")
    return {"score": value, "weight": weight, "contribution": weight * value}


def shipped(chosen: Checklist) -> list[Note]:
    """Return a warning if the checklist is the demo's, which has nothing to do with real pictures."""
    text = "the checklist is that of the demo, about circles and squares"
    return [Note(Code.DEMO_CHECKLIST, text)] if chosen is CHECKLISTS["demo"] else []


def unsure(asked: Sequence[ChecklistAsked]) -> list[Note]:
    """Return a warning if the answers to some questions have little probability."""
    low = [each for each in asked if each["label_mass"] < LOW_MASS]
    if not low:
        return []
    first = min(low, key=lambda each: each["label_mass"])
    text = f"yes and no have {first['label_mass']:.2g} of the probability of the answer to question"
    others = f", and below {LOW_MASS:g} of {len(low)} answers" if len(low) > 1 else ""
    said = f"{text} {first['id']}{others}: the model would answer something else"
    return [Note(Code.LOW_LABEL_MASS, said)]


def demand_of(prompt: str, options: ChecklistOptions) -> dict[str, Demand]:
    """Return a call for each question, and one for the alignment."""
    chosen = options.chosen
    texts = [*chosen.texts(prompt), *([prompt] if chosen.alignment else [])]
    return {"vqa": Demand(len(texts), sum(map(len, texts)))}


@lru_cache(maxsize=16)
def with_options(options: type[ChecklistOptions]) -> Metric:
    """Return the metric with these options; services with the same ones share it."""
    return replace(metric, options=options)


def configured(settings: Settings) -> Sequence[Metric]:
    """Return the metric with the checklists of the settings.  Raises `SettingsError`."""
    try:
        known = checklists_in(settings.checklists.folders, CHECKLISTS)
    except ValueError as exc:
        raise SettingsError(f"checklists.folders: {exc}") from exc
    inline = settings.checklists.allow_inline
    return [with_options(with_tables(ChecklistOptions, known, next(iter(known)), inline=inline))]


metric = Metric(
    "checklist",
    checklist,
    options=ChecklistOptions,
    details=ChecklistDetails,
    roles=("vqa",),
    demand_of=demand_of,
    range=lambda options: options.chosen.bounds,
    formula="Σ weight·(+1 for yes, -1 for no, 0 if gated) + intercept",
    paper="Xu et al. 2024, arXiv 2412.21059",
    configure=configured,
)
