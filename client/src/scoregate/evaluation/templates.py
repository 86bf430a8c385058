"""
People's answers in Gecko's templates as scores: word level, DSG(H), Likert; and Gecko's reliable prompts.

Wiles et al. 2024 (arXiv 2404.16820), section 4.  An answer is about a word or a question of a picture, in
Likert about the whole picture.  A picture's score is the mean of its raters' scores, and a rater's the mean
over the words or questions that the rater was sure of.  Reliable prompts are those that raters agree about,
whichever the generator and the template.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan, nan
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from scoregate.errors import ColumnError, InputError
from scoregate.evaluation.agreement import correlation
from scoregate.evaluation.arrays import Codes, Floats, Names, Scale, coded, floats, inside
from scoregate.evaluation.raters import levels

ImageKey = tuple[str, str]  # the item and the generator
UNSURE = {"unsure", "i do not know the answer", "do not know", "subjective"}
INVALID = {"invalid"}  # invalid questions are left out, and not unsure
ANSWERS: Mapping[str, Mapping[str, float]] = {
    "wl": {"aligned": 1.0, "1": 1.0, "not aligned": 0.0, "0": 0.0},
    "dsg": {"yes": 1.0, "1": 1.0, "no": 0.0, "0": 0.0},
    "likert": {str(rating): (rating - 1) / 4 for rating in range(1, 6)},
}
CODES = {"likert": {"6"}}  # codes that mean unsure

THRESHOLD = 0.5
NOISE = 1e-9  # rounding of a variance: half of the largest one is not below half of it


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
class TemplateAnswers:
    """
    Answers as numbers from 0 to 1, NaN for unsure; None for an invalid question.

    Raises:
        ColumnError: there is none, or a rater answered about the same word or question twice.
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
            raise ColumnError("answer", "no row has a value")
        [((name, item, model, unit, rater), count)] = given
        if count > 1:
            about = f"{name}, {item}, {model}, {unit or 'no unit'}"
            raise ColumnError("unit", f"{rater} answered {count} times: {about}")


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


def templates(answers: TemplateAnswers) -> list[Template]:
    """Return a row for each template and generator, and for all generators of a template."""
    found = []
    for name in dict.fromkeys(answers.template):
        rows = [place for place, each in enumerate(answers.template) if each == name]
        for model in ("all", *sorted({answers.model[place] for place in rows})):
            of = rows if model == "all" else [place for place in rows if answers.model[place] == model]
            found.append(summary(name, model, answers, of))
    return found


def summary(name: str, model: str, answers: TemplateAnswers, rows: Sequence[int]) -> Template:
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


def scores(answers: TemplateAnswers) -> dict[str, dict[ImageKey, float]]:
    """Return the pictures' scores by template; a picture that all raters are unsure about has none."""
    cells: dict[str, dict[ImageKey, dict[str, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    columns = answers.template, answers.item, answers.model, answers.rater, answers.value
    for name, item, model, rater, value in zip(*columns, strict=True):
        of_template = cells[name]
        if value is not None and not isnan(value):
            of_template[item, model][rater].append(value)
    return {
        name: {image: fmean(map(fmean, raters.values())) for image, raters in images.items()}
        for name, images in cells.items()
    }


def correlations(found: Mapping[str, Mapping[ImageKey, float]]) -> list[dict[str, str | float | None]]:
    """Return the correlations of each two templates over the pictures that both have."""
    rows = []
    for a, b in combinations(found, 2):
        both = [image for image in found[a] if image in found[b]]
        row: dict[str, str | float | None] = {"a": a, "b": b, "pictures": len(both)}
        try:
            of = correlation([found[a][each] for each in both], [found[b][each] for each in both])
            row |= {"pearson": of.pearson, "spearman": of.spearman}
        except InputError:  # all scores may be the same, for example
            row |= {"pearson": None, "spearman": None}
        rows.append(row)
    return rows


@dataclass(frozen=True)
class ReliablePart:
    """
    One generator under one template.

    Attributes:
        prompts: with a disagreement, that is with two ratings of one thing.
        max_disagreement: of all prompts; a disagreement is the variance of ratings.
        reliable: prompts whose disagreement is below the threshold's share of that.
    """

    model: str
    template: str
    prompts: int
    max_disagreement: float
    reliable: int


@dataclass(frozen=True)
class Reliable:
    """
    Attributes:
        prompts: all; *reliable* are those that every part keeps, and *ids* their names.
        missing: prompts without two ratings of one thing in some part; they are not reliable.
    """

    prompts: int
    reliable: int
    threshold: float
    missing: int
    parts: list[ReliablePart]
    ids: list[str]
    out_of_scale: int


def reliable(
    prompt: Names,
    model: Names,
    rating: Any,
    *,
    template: Names | None = None,
    unit: Names | None = None,
    scale: Scale | None = None,
    threshold: float = THRESHOLD,
) -> Reliable:
    """
    Return the prompts with reliable ratings.

    Args:
        template: the wording of the question to raters; None for one template.
        unit: the rated part of a prompt, such as a word or a question; variances are averaged over the
            units.  None if the whole picture was rated.

    Raises:
        ColumnError: all ratings are the same or outside the scale, or nothing was rated twice.
    """
    values = floats(rating, "rating", varied=True)
    kept = inside(values, scale, "rating")
    prompts, rows = coded(prompt)
    wordings = [""] * len(values) if template is None else template
    pairs = list(zip(model, wordings, strict=True))
    number = {pair: place for place, pair in enumerate(sorted(set(pairs)))}
    places = np.array([number[pair] for pair in pairs])
    things = coded([""] * len(values) if unit is None else unit)[1]
    held = np.ones(len(prompts), bool)
    measured = held.copy()
    found = []
    for (name, how), place in number.items():
        chosen = kept & (places == place)
        disagreement = disagreements(rows[chosen], things[chosen], values[chosen], len(prompts))
        there = ~np.isnan(disagreement)
        if not there.any():
            raise ColumnError("rating", f"{name} {how}".strip() + ": nothing has two ratings")
        largest = float(np.nanmax(disagreement))
        below = there & (disagreement < threshold * largest * (1 - NOISE)) if largest else there
        held &= below
        measured &= there
        found.append(ReliablePart(name, how, int(there.sum()), largest, int(below.sum())))
    ids = [name for name, keep in zip(prompts, held, strict=True) if keep]
    return Reliable(len(prompts), len(ids), threshold, int((~measured).sum()), found, ids, int((~kept).sum()))


def disagreements(rows: Codes, things: Codes, values: Floats, prompts: int) -> Floats:
    """Return each prompt's variance of ratings, averaged over its units; NaN without two ratings."""
    cells, places = np.unique(np.stack([rows, things]), axis=1, return_inverse=True)
    places = places.reshape(-1)
    count = np.bincount(places)
    mean = np.bincount(places, values) / count
    variance = np.bincount(places, (values - mean[places]) ** 2) / count
    of_prompt = cells[0][count > 1]
    sums = np.bincount(of_prompt, variance[count > 1], minlength=prompts)
    number = np.bincount(of_prompt, minlength=prompts)
    return np.where(number > 0, sums / np.maximum(number, 1), np.nan)
