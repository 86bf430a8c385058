"""
Grades by a vision-language model, after VIEScore (Ku et al. 2023) and skill-aligned annotation (2026).

A rubric is a question with the meaning of each grade: a TOML file in the folder `rubrics`.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from math import exp, fsum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from typing_extensions import TypedDict

from models.core.calls import LabelCall
from models.core.examples import PICTURE, TEXTS
from models.images.image import Image
from service.core.errors import MissingPicture, Unanswered
from service.core.fields import SLOT, Prompt, Strict, TextOrTemplate, schema_keywords
from service.metrics.common.contract import REFERENCES, SOURCE, Beside, Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import Models
from service.metrics.common.question_sets import cut
from service.observability.notes import Code, Note
from service.serving.admission import Demand

GRADES = 5
Labels = Literal["1-5", "A-E"]
VALUES: Mapping[Labels, Mapping[str, int]] = {
    "1-5": {str(value): value for value in range(1, GRADES + 1)},
    "A-E": {letter: GRADES - place for place, letter in enumerate("ABCDE")},
}
KIND: Mapping[Labels, str] = {"1-5": "digit", "A-E": "letter"}
LOW_MASS = 0.5  # of all labels together; below it the model would answer something else


class Rubric(Strict):
    """
    One rubric.

    Attributes:
        paper: its source.
        question: to the model; `{}` is the prompt.
        grades: the meaning of each grade, the worst first.
        pictures: the introduction of each image, in order; `{}` is the number of a reference.  Empty for the
            image alone, which needs no introduction.
    """

    paper: Prompt
    question: TextOrTemplate
    grades: Annotated[list[Prompt], Field(min_length=GRADES, max_length=GRADES)]
    pictures: dict[Beside | Literal["image"], Prompt] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _image_last(self) -> Self:
        if self.pictures and [*self.pictures][-1] != "image":
            raise ValueError("the last of the pictures must be the image, which the question is about")
        return self

    @property
    def uses(self) -> tuple[Beside, ...]:
        """The other images that the model gets."""
        return tuple(name for name in self.pictures if name != "image")

    def text(self, prompt: str, labels: Labels) -> str:
        """Return the question, the meaning of each label, the best first, and how to answer."""
        best_first = sorted(VALUES[labels].items(), key=lambda pair: -pair[1])
        meanings = [f"{label}: {self.grades[value - 1]}" for label, value in best_first]
        how = f"Answer with one {KIND[labels]} only."
        return "\n".join([self.question.strip().replace(SLOT, prompt), *meanings, how])


def rubric_of(name: str, text: str) -> Rubric:
    """Parse a rubric file.  Raises `ValueError` with its *name*."""
    try:
        return Rubric.model_validate(tomllib.loads(text))
    except ValueError as exc:  # of TOML or pydantic
        raise ValueError(f"the rubric {name}: {exc}") from exc


def rubrics() -> dict[str, Rubric]:
    """Return all rubrics of the folder `rubrics` by the names of their files."""
    found = {file.name: file for file in (files("service.metrics") / "rubrics").iterdir()}
    return {
        stem: rubric_of(stem, found[name].read_text(encoding="utf-8"))
        for name in sorted(found)
        if (stem := name.removesuffix(".toml")) != name
    }


RUBRICS = rubrics()


def known(name: str) -> str:
    """Refuse an unknown rubric."""
    if name not in RUBRICS:
        raise ValueError(f"must be one of {', '.join(RUBRICS)}")
    return name


class JudgeOptions(MetricOptions):
    """
    Options of `judge`.

    Attributes:
        template: the rubric.
        labels: of the grades; 5 and A are the best.
    """

    template: Annotated[str, AfterValidator(known), schema_keywords(enum=[*RUBRICS])] = "semantic_consistency"
    labels: Labels = "1-5"


class JudgeDetails(TypedDict):
    """
    Details of `judge`.

    Attributes:
        question: the text of the call.
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
    Return the expected grade, Σ p(label) · value / Σ p(label), from 1 to 5; 5 is the best.

    In both papers a model writes its grade.  Here each label is one token, and the probabilities of all
    labels count, so that images with the same likeliest grade have different scores.

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
        raise Unanswered("all labels have the probability 0")
    expected = mean(log_probs, values)
    details: JudgeDetails = {
        "template": options.template,
        "labels": options.labels,
        "question": question,
        "probabilities": probabilities,
        "label_mass": mass,
        "expected": expected,
    }
    return Score(expected, details, warnings=(*unsure(mass, options.labels), *cut([answer])))


def mean(log_probs: Mapping[str, float], values: Mapping[str, int]) -> float:
    """Return the mean of the labels' values, weighted by probabilities of any magnitude."""
    likeliest = max(log_probs.values())
    weights = {label: exp(log_prob - likeliest) for label, log_prob in log_probs.items()}
    total = fsum(weight * values[label] for label, weight in weights.items())
    return min(float(GRADES), max(1.0, total / fsum(weights.values())))


def shown_before(item: Item, rubric: Rubric, template: str) -> Iterator[str | Image]:
    """Yield other images, each after its introduction, then the image's.  Raises `MissingPicture`."""
    sources = () if item.source is None else (item.source,)
    given: Mapping[str, Sequence[Image]] = {REFERENCES: item.references, SOURCE: sources}
    for name, introduction in rubric.pictures.items():
        if name in given and not given[name]:
            raise MissingPicture(f"the template {template} needs the item's {name}, and it has none")
        for number, picture in enumerate(given.get(name, ()), 1):
            yield introduction.replace(SLOT, str(number))
            yield picture
        if name not in given:
            yield introduction


def unsure(mass: float, labels: str) -> tuple[Note, ...]:
    """Return a warning if the labels have little probability."""
    if mass >= LOW_MASS:
        return ()
    text = f"the labels {labels} have {mass:.2g} of the probability: the model would answer something else"
    return (Note(Code.LOW_LABEL_MASS, text),)


def demand_of(prompt: str, options: JudgeOptions) -> dict[str, Demand]:
    """Return one call, with the whole rubric."""
    return {"vqa": Demand(1, len(RUBRICS[options.template].text(prompt, options.labels)))}


def essential() -> dict[str, list[LabelCall]]:
    """Return a call for each kind of labels; a model must support one kind."""
    rubric = RUBRICS[JudgeOptions().template]
    return {"vqa": [LabelCall(PICTURE, rubric.text(TEXTS[0], kind), tuple(VALUES[kind])) for kind in VALUES]}


def uses_of(options: JudgeOptions | None) -> tuple[Beside, ...]:
    """Return the other images that the rubric uses, or those of all rubrics."""
    return RUBRICS[options.template].uses if options else (REFERENCES, SOURCE)


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
    uses=uses_of,
)
