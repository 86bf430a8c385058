"""
People's answers in Gecko's templates as scores: word level, DSG(H), Likert (Wiles et al. 2024, section 4).

An answer is about a word or a question of a picture, in Likert about the whole picture.  A picture's score is
the mean of its raters' scores, and a rater's the mean over the words or questions that the rater was sure of.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan, nan
from statistics import fmean, pstdev

from scoregate.evaluation.alpha import levels
from scoregate.evaluation.arrays import Names
from scoregate.evaluation.correlation import correlation
from scoregate.evaluation.errors import BadColumn, BadInput

Picture = tuple[str, str]  # the item and the generator
UNSURE = {"unsure", "i do not know the answer", "do not know", "subjective"}
INVALID = {"invalid"}  # of questions: left out, and not unsure
ANSWERS: Mapping[str, Mapping[str, float]] = {
    "wl": {"aligned": 1.0, "1": 1.0, "not aligned": 0.0, "0": 0.0},
    "dsg": {"yes": 1.0, "1": 1.0, "no": 0.0, "0": 0.0},
    "likert": {str(rating): (rating - 1) / 4 for rating in range(1, 6)},
}
CODES = {"likert": {"6"}}  # of unsure


@dataclass(frozen=True)
class Template:
    """
    The answers of a template about the pictures of one generator, or of `all`.

    Attributes:
        nominal, ordinal, interval: Krippendorff's alpha of the sure answers; None if it is undefined.
        mean, sd: of the sure answers, from 0 to 1; the deviation is that of a population.
        unsure: the share of answers that are unsure.
        invalid: answers about invalid questions; they count nowhere.
    """

    template: str
    model: str
    nominal: float | None
    ordinal: float | None
    interval: float | None
    mean: float | None
    sd: float | None
    unsure: float | None
    answers: int
    invalid: int


@dataclass(frozen=True)
class Answers:
    """
    Answers as numbers from 0 to 1, NaN for unsure; None for an invalid question.

    Raises:
        BadColumn: there is none, or a rater answered about the same word or question twice.
    """

    template: Names
    item: Names
    model: Names
    unit: Names
    rater: Names
    value: Sequence[float | None]

    def __post_init__(self) -> None:
        columns = self.template, self.item, self.model, self.unit, self.rater
        given = Counter(zip(*columns, strict=True)).most_common(1)
        if not given:
            raise BadColumn("answer", "no row has a value")
        [((name, item, model, unit, rater), count)] = given
        if count > 1:
            about = f"{name}, {item}, {model}, {unit or 'no unit'}"
            raise BadColumn("unit", f"{rater} answered {count} times: {about}")


def valued(template: str, answer: str) -> float | None:
    """Return an answer as a number: NaN for unsure, None for invalid.  Raises `ValueError`."""
    known, text = ANSWERS.get(template), answer.strip().lower()
    if known is None:
        raise ValueError(f"{template!r} is no template: {', '.join(ANSWERS)}")
    if text.removesuffix(".0") in known:
        return known[text.removesuffix(".0")]
    if text in INVALID:
        return None
    if text in UNSURE or text.removesuffix(".0") in CODES.get(template, ()):
        return nan
    raise ValueError(f"{answer!r} is no answer of {template}: {', '.join(known)}, unsure")


def templates(answers: Answers) -> list[Template]:
    """Return a row for each template and generator, and for all generators of a template."""
    found = []
    for name in dict.fromkeys(answers.template):
        rows = [place for place, each in enumerate(answers.template) if each == name]
        for model in ("all", *sorted({answers.model[place] for place in rows})):
            of = rows if model == "all" else [place for place in rows if answers.model[place] == model]
            found.append(summary(name, model, answers, of))
    return found


def summary(name: str, model: str, answers: Answers, rows: Sequence[int]) -> Template:
    given = [value for place in rows if (value := answers.value[place]) is not None]
    sure = [place for place in rows if (value := answers.value[place]) is not None and not isnan(value)]
    values = [answers.value[place] or 0.0 for place in sure]
    units = ["\0".join((answers.item[at], answers.model[at], answers.unit[at])) for at in sure]
    return Template(
        template=name,
        model=model,
        **levels(units, [answers.rater[place] for place in sure], values),
        mean=fmean(values) if values else None,
        sd=pstdev(values) if values else None,
        unsure=1 - len(values) / len(given) if given else None,
        answers=len(given),
        invalid=len(rows) - len(given),
    )


def scores(answers: Answers) -> dict[str, dict[Picture, float]]:
    """Return the pictures' scores by template; a picture that all raters are unsure about has none."""
    cells: dict[str, dict[Picture, dict[str, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    columns = answers.template, answers.item, answers.model, answers.rater, answers.value
    for name, item, model, rater, value in zip(*columns, strict=True):
        of_template = cells[name]
        if value is not None and not isnan(value):
            of_template[item, model][rater].append(value)
    return {
        name: {picture: fmean(map(fmean, raters.values())) for picture, raters in pictures.items()}
        for name, pictures in cells.items()
    }


def correlations(found: Mapping[str, Mapping[Picture, float]]) -> list[dict[str, str | float | None]]:
    """Return the correlations of each two templates over the pictures that both have."""
    rows = []
    for a, b in combinations(found, 2):
        both = [picture for picture in found[a] if picture in found[b]]
        row: dict[str, str | float | None] = {"a": a, "b": b, "pictures": len(both)}
        try:
            of = correlation([found[a][each] for each in both], [found[b][each] for each in both])
            row |= {"pearson": of.pearson, "spearman": of.spearman}
        except BadInput:  # for example, all scores are the same
            row |= {"pearson": None, "spearman": None}
        rows.append(row)
    return rows
