"""Grades by a vision-language model, after VIEScore (Ku et al. 2023) and skill-aligned annotation (2026)."""

from collections.abc import Iterator, Mapping, Sequence
from math import exp, fsum
from typing import Annotated

from pydantic import AfterValidator
from typing_extensions import TypedDict

from models.core.calls import LabelCall
from models.core.known import PICTURE, TEXTS
from models.images.image import Image
from service.core.errors import MissingPicture, Unanswered
from service.core.fields import SLOT, schema_keywords
from service.metrics.common.contract import REFERENCES, SOURCE, Beside, Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import Models
from service.metrics.common.question_sets import cut
from service.metrics.rubrics.rubric import GRADES, RUBRICS, VALUES, Labels, Rubric
from service.observability.notes import Code, Note
from service.serving.demand import Demand

LOW_MASS = 0.5  # of all labels together; below it the model would rather answer something else


def known(name: str) -> str:
    """Refuse a rubric that is not there."""
    if name not in RUBRICS:
        raise ValueError(f"must be one of {', '.join(RUBRICS)}")
    return name


class JudgeOptions(MetricOptions):
    """
    Options of `judge`.

    Attributes:
        template: the rubric that it grades by.
        labels: what the model answers with; 5 and A are the best.
    """

    template: Annotated[str, AfterValidator(known), schema_keywords(enum=[*RUBRICS])] = "semantic_consistency"
    labels: Labels = "1-5"


class JudgeDetails(TypedDict):
    """
    What a `judge` is made of.

    Attributes:
        question: as the model is asked.
        probabilities: of each label over the whole vocabulary.
        label_mass: of all labels together.
        expected: the mean of the labels' values, each weighted by its probability: the score.
    """

    template: str
    labels: str
    question: str
    probabilities: dict[str, float]
    label_mass: float
    expected: float


async def judge(item: Item, models: Models, options: JudgeOptions) -> Score:
    """
    The expected grade, Σ p(label) · value / Σ p(label), from 1 to 5; 5 is the best.

    In both papers a model writes its grade.  Here each label is one token, and the probabilities of all of
    them count, so that pictures with the same likeliest grade differ.

    Raises:
        MissingPicture: the rubric compares with references or a source, and the item has none.
        Unanswered: no label has any probability.
    """
    rubric, values = RUBRICS[options.template], VALUES[options.labels]
    question = rubric.text(item.prompt, options.labels)
    call = LabelCall(item.image, question, tuple(values), tuple(shown_before(item, rubric, options.template)))
    [answer] = await models.vqa.answer([call])
    log_probs = {label: log_prob for label, (log_prob,) in zip(values, answer.log_probs, strict=True)}
    probabilities = {label: exp(log_prob) for label, log_prob in log_probs.items()}
    mass = min(1.0, fsum(probabilities.values()))
    if not mass:
        raise Unanswered("the model gives none of the labels any probability")
    expected = mean(log_probs, values)
    details: JudgeDetails = {
        "template": options.template,
        "labels": options.labels,
        "question": question,
        "probabilities": probabilities,
        "label_mass": mass,
        "expected": expected,
    }
    return Score(expected, details, warnings=(*unsure(mass, options.labels), *cut(answer.truncated)))


def mean(log_probs: Mapping[str, float], values: Mapping[str, int]) -> float:
    """The mean of the labels' values by their probabilities, however small all of these are."""
    likeliest = max(log_probs.values())
    weights = {label: exp(log_prob - likeliest) for label, log_prob in log_probs.items()}
    total = fsum(weight * values[label] for label, weight in weights.items())
    return min(float(GRADES), max(1.0, total / fsum(weights.values())))


def shown_before(item: Item, rubric: Rubric, template: str) -> Iterator[str | Image]:
    """Other pictures, each after its introduction, and that of the image.  Raises `MissingPicture`."""
    sources = () if item.source is None else (item.source,)
    given: Mapping[str, Sequence[Image]] = {REFERENCES: item.references, SOURCE: sources}
    for name, introduction in rubric.pictures.items():
        if name in given and not given[name]:
            raise MissingPicture(f"the template {template} looks at the item's {name}, and it has none")
        for number, picture in enumerate(given.get(name, ()), 1):
            yield introduction.replace(SLOT, str(number))
            yield picture
        if name not in given:
            yield introduction


def unsure(mass: float, labels: str) -> tuple[Note, ...]:
    """A warning where the model would rather answer something else than a label."""
    if mass >= LOW_MASS:
        return ()
    schema_keywords = (
        f"the labels {labels} have {mass:.2g} of the probability: the model would answer something else"
    )
    return (Note(Code.LOW_LABEL_MASS, schema_keywords),)


def demand_of(prompt: str, options: JudgeOptions) -> dict[str, Demand]:
    """One call, with the whole rubric."""
    return {"vqa": Demand(1, len(RUBRICS[options.template].text(prompt, options.labels)))}


def essential() -> dict[str, list[LabelCall]]:
    """A model must be able to answer with one kind of labels."""
    rubric = RUBRICS[JudgeOptions().template]
    return {"vqa": [LabelCall(PICTURE, rubric.text(TEXTS[0], kind), tuple(VALUES[kind])) for kind in VALUES]}


def uses_of(options: JudgeOptions) -> tuple[Beside, ...]:
    """What the rubric compares with."""
    return RUBRICS[options.template].uses


metric = Metric(
    "judge",
    judge,
    options=JudgeOptions,
    details=JudgeDetails,
    roles=("vqa",),
    demand_of=demand_of,
    essential=essential,
    range=(1, GRADES),
    formula="Σ P(label)·value / Σ P(label)",
    paper="Ku et al. 2023, arXiv 2312.14867; Eldesokey et al. 2026, arXiv 2605.13223",
    uses=(REFERENCES, SOURCE),
    uses_of=uses_of,
)
