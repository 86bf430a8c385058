"""Figures of raters: their agreement, how many are enough, reliable prompts, and answers in templates."""

import csv
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from scoregate.evaluation.bootstrap import Bootstrap, cluster_of
from scoregate.evaluation.outcome import TABLE, FigureOutcome, FigureSettings, OnScale, label, outcome
from scoregate.evaluation.raters import LEVELS, Level, alpha, convergence
from scoregate.evaluation.tables import Table
from scoregate.evaluation.templates import (
    ImageKey,
    TemplateAnswers,
    correlations,
    reliable,
    scores,
    templates,
    valued,
)
from scoregate.settings import Column, GeneratorColumn, Setting, count, share, whole

COLUMNS = {
    "template": "wl, dsg or likert",
    "item": "the prompt",
    "model": "the generator",
    "rater": "who answered",
    "answer": "the answer",
}


@dataclass(frozen=True, kw_only=True)
class RatingsSettings(FigureSettings, OnScale):
    """Settings of a table of ratings with one row for each."""

    table: Annotated[Path, Setting(TABLE, ("--ratings",), metavar="FILE")]
    unit: Annotated[str, Column("what was rated")]
    rater: Annotated[str, Column("who rated it")]
    rating: Annotated[str, Column("the rating, a number")]

    def complete(self, table: Table, *more: list[str | None]) -> list[Any]:
        """Return the columns unit, rater, rating and *more* of the complete rows of *table*."""
        texts = table.texts(self.unit), table.texts(self.rater)
        return table.complete(*texts, table.numbers(self.rating), *more)


@dataclass(frozen=True, kw_only=True)
class AlphaSettings(RatingsSettings, Bootstrap):
    """
    Settings of Krippendorff's alpha.

    Krippendorff's alpha (2011): 1 is perfect agreement, and 0 is chance.

    * `nominal`, `ordinal`, `interval`: Ratings are names, an order, or numbers (by the squared difference).
    * `single`: Units with one rating, which are not used. Two ratings of a unit by one rater are an error:
      `--unit` is the wrong column.
    * `extreme_disagreement`: The share of units whose highest and lowest rating are at least 40 % of the
      scale (without `--scale`: of the range of ratings) apart, as in Eldesokey et al. 2026, whose code
      calls `interval` "ordinal".
    """

    bootstrap: Annotated[
        int, Setting("intervals from N drawings, 0 for none (default 0)", metavar="N", parse=count)
    ] = 0


def of_alpha(settings: AlphaSettings, table: Table) -> FigureOutcome:
    """Return alpha at the three levels."""
    cluster = cluster_of(settings, table, "unit", table.texts(settings.unit))
    unit, rater, rating, together = settings.complete(table, [*cluster.cells])
    found = alpha(
        unit,
        rater,
        rating,
        scale=settings.scale,
        bootstrap=settings.bootstrap,
        seed=settings.seed,
        cluster=together,
    )

    def draw(axes: Any) -> None:
        axes.bar(LEVELS, [getattr(found, level) or 0 for level in LEVELS], color="lightsteelblue")
        for level, ends in (found.intervals or {}).items():
            axes.plot([level, level], ends, color="black", marker="_")
        axes.axhline(0, color="black", linewidth=0.5)
        axes.set_ylabel("Krippendorff's alpha")
        axes.set_title(f"{found.units} units, {found.raters} raters")

    drawn = {"cluster": cluster.name if settings.bootstrap else None}
    return outcome(table, draw, found, drawn)


@dataclass(frozen=True, kw_only=True)
class ConvergenceSettings(RatingsSettings):
    """
    Settings of the number of raters that is enough.

    Alpha (`--level`, by default `interval`) from 2, 3, … raters, as in that paper. With `--model`, also the
    correlation of the generators' scores from 1, 2, … raters with those from all.

    For every number of raters `k`, `mean` is that of all subsets, or of `--samples` different ones (default
    50): their alpha or, in `order`, Spearman's correlation; `low` to `high` is the middle 95 %. `undefined`
    counts subsets without one.
    """

    model: Annotated[
        str | None, GeneratorColumn("the generator of each unit: compare the generators' order, too")
    ] = None
    level: Annotated[Level, Setting("default interval")] = "interval"
    samples: Annotated[int, Setting("subsets of each size (default 50)", metavar="N", parse=whole)] = 50
    seed: Annotated[int, Setting("of the subsets (default 0)", parse=count)] = 0


def of_convergence(settings: ConvergenceSettings, table: Table) -> FigureOutcome:
    """Return mean and band for each number of raters."""
    more = [table.texts(settings.model)] if settings.model else []
    unit, rater, rating, *model = settings.complete(table, *more)
    found = convergence(
        unit,
        rater,
        rating,
        model=model[0] if model else None,
        level=settings.level,
        scale=settings.scale,
        samples=settings.samples,
        seed=settings.seed,
    )

    def draw(axes: Any) -> None:
        steps = [step for step in found.steps if step.mean is not None]
        at = [step.k for step in steps]
        axes.plot(at, [step.mean for step in steps], marker="o")
        axes.fill_between(at, [step.low for step in steps], [step.high for step in steps], alpha=0.3)
        axes.set_xticks(at)
        axes.set_xlabel("raters")
        axes.set_ylabel(f"alpha, {found.level}")

    return outcome(table, draw, found)


@dataclass(frozen=True, kw_only=True)
class ReliableSettings(FigureSettings, OnScale):
    """
    Settings of the prompts that raters agree about.

    Gecko's reliable prompts: those about which raters agree for all generators and templates.

    A prompt is reliable if, for every generator and `--template`, the variance of its ratings is below
    `--threshold` (default 0.5) of the largest one; with `--unit` averaged over words or questions.
    `missing` counts prompts without two ratings of a unit.
    """

    table: Annotated[Path, Setting(TABLE, ("--ratings",), metavar="FILE")]
    prompt: Annotated[str, Column("the prompt, or its id")]
    model: Annotated[str, GeneratorColumn("the generator")]
    rating: Annotated[str, Column("the rating, a number")]
    template: Annotated[str | None, Column("the wording of the question to raters, if there are several")] = (
        None
    )
    unit: Annotated[str | None, Column("the word or question that a rating is about")] = None
    threshold: Annotated[float, Setting("of the largest disagreement (default 0.5)", parse=share)] = 0.5


def of_reliable(settings: ReliableSettings, table: Table) -> FigureOutcome:
    """Return the prompts, and what every generator and template keeps."""
    optional = {name: getattr(settings, name) for name in ("template", "unit") if getattr(settings, name)}
    columns = [table.texts(column) for column in (settings.prompt, settings.model, *optional.values())]
    rating, prompt, model, *more = table.complete(table.numbers(settings.rating), *columns)
    found = reliable(
        prompt,
        model,
        rating,
        scale=settings.scale,
        threshold=settings.threshold,
        **dict(zip(optional, more, strict=True)),
    )

    def draw(axes: Any) -> None:
        names = [label(" ".join(filter(None, (part.model, part.template)))) for part in found.parts]
        axes.barh([*names, "all"], [*(part.reliable for part in found.parts), found.reliable])
        axes.set_xlim(0, found.prompts)
        axes.set_xlabel(f"reliable of {found.prompts} prompts")

    return outcome(table, draw, found)


@dataclass(frozen=True, kw_only=True)
class TemplatesSettings(FigureSettings):
    """
    Settings of answers in templates.

    Answers of raters in Gecko's three absolute templates (section 4.2), a row for each answer; `unit` is
    the word or question.

    Answers become numbers from 0 to 1:

    * `wl`, word level: `aligned` or 1 is 1, `not aligned` or 0 is 0.
    * `dsg`, DSG(H): `yes` or 1 is 1, `no` or 0 is 0. `do not know` and `subjective` are `unsure`, and
      `invalid` counts nowhere.
    * `likert`: 1 to 5 are 0, 0.25, … 1, and 6 is `unsure`.

    Alpha, `mean` and `sd` are without `unsure`. A picture's score is the mean over raters of their means;
    `--out FILE` writes these scores, `correlations` compares them.
    """

    table: Annotated[Path, Setting(TABLE, ("--answers",), metavar="FILE")]
    template: Annotated[str, Column(COLUMNS["template"])] = "template"
    item: Annotated[str, Column(COLUMNS["item"])] = "item"
    model: Annotated[str, GeneratorColumn(COLUMNS["model"])] = "model"
    rater: Annotated[str, Column(COLUMNS["rater"])] = "rater"
    answer: Annotated[str, Column(COLUMNS["answer"])] = "answer"
    unit: Annotated[
        str | None, Column("the word or question that the answer is about (default unit, where it is there)")
    ] = None
    out: Annotated[
        Path | None, Setting("write the pictures' scores, a .csv with a column by template", metavar="FILE")
    ] = None


def of_templates(settings: TemplatesSettings, table: Table) -> FigureOutcome:
    """Return a row for each template and generator, and the correlations of templates."""
    answers = answers_of(table, {name: getattr(settings, name) for name in COLUMNS}, settings.unit)
    rows, of_images = templates(answers), scores(answers)
    content = {
        "pictures": {name: len(found) for name, found in of_images.items()},
        "templates": [asdict(row) for row in rows],
        "correlations": correlations(of_images),
        "dropped": table.dropped,
    }
    if settings.out:
        write(settings.out, of_images)

    def draw(axes: Any) -> None:
        whole = [row for row in rows if row.model == "all"]
        names = [label(row.template) for row in whole]
        axes.bar(names, [row.ordinal or 0 for row in whole], color="lightsteelblue")
        axes.set_ylabel("Krippendorff's alpha, ordinal")

    return FigureOutcome(content, draw)


def answers_of(table: Table, names: Mapping[str, str], unit: str | None = None) -> TemplateAnswers:
    """
    Return the complete rows.

    Args:
        names: the columns by the names of `COLUMNS`.
        unit: the column of words or questions, by default `unit` if there is one.

    Raises:
        InputError: there is no such column, or a template does not have an answer.
    """
    if unit is None and table.has("unit"):
        unit = "unit"
    units: list[str | None] = (
        [text or "" for text in table.texts(unit)] if unit else [""] * len(table.records)
    )
    columns = [table.texts(names[name]) for name in COLUMNS]
    template, item, model, rater, answer, of = table.complete(*columns, units)
    template = [name.lower() for name in template]
    pairs = list(zip(template, answer, strict=True))
    values = table.each(names["answer"], lambda pair: valued(*pair), pairs)
    return TemplateAnswers(template, item, model, of, rater, values)


def write(path: Path, found: dict[str, dict[ImageKey, float]]) -> None:
    """Write a row for each picture, with an empty cell where a template has no score."""
    images = sorted({image for each in found.values() for image in each})
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["item", "model", *found])
        rows.writerows([*image, *(each.get(image) for each in found.values())] for image in images)
