"""The page of a data set: its rows scored, or the results there are, with facts from its columns."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from math import nan
from pathlib import Path
from typing import Any

from scoregate.data.datasets import Dataset
from scoregate.evaluation.outcome import values
from scoregate.evaluation.tables import Table
from scoregate.local import Service
from scoregate.records import Record
from scoregate.report.html import data_uri
from scoregate.report.page import page
from scoregate.report.rows import Columns, Cost, Details, ReportRow, ScoredRow
from scoregate.report.sheet import bytes_of
from scoregate.results import is_number, notices_in
from scoregate.runs.batch import BatchOutcome, ScoredRows, scored, session
from scoregate.runs.manifest import runs_of
from scoregate.runs.results import Results, existing
from scoregate.runs.settings import ANY_MODELS, Run, check_output, dataset_of
from scoregate.runs.summary import Summary
from scoregate.settings import BadSetting, finite, in_column, scale, setting, share, whole

ITEM = "prompt"  # the default of what generators share
Recorded = Mapping[str, Any]  # a run in a manifest


def price(text: str) -> float:
    """Return an amount of money, 0 or more."""
    value = finite(text)
    if value < 0:
        raise BadSetting("a price is 0 or more")
    return value


@dataclass(frozen=True, kw_only=True)
class PageSettings(Run):
    """Settings of the page."""

    out: Path = setting("the page, a .html", "-o", "--out", metavar="PAGE", parse=Path)
    human: str | None = in_column(
        "people's rating, a number that is larger for a better picture", default=None
    )
    model: str | None = in_column("the generator of the picture", default=None)
    item: str | None = in_column(
        "what the generators' pictures have in common (default: the prompt)", default=None
    )
    skill: str | None = in_column("a group, such as the skill that the prompt tests", default=None)
    scale: tuple[float, float] | None = setting(
        "ratings outside are counted and left out", default=None, metavar="A:B", parse=scale
    )
    any_models: bool = setting("scores of several models on one page", ANY_MODELS, default=False)
    explain: bool = True
    results: Path | None = setting(
        "the scores, as of `batch` (default: next to the page)", default=None, metavar="FILE", parse=Path
    )
    offline: bool = setting("draw what is in --results, without a service", default=False)
    alpha: float = setting(
        "generators differ where p is below (default 0.001)", default=0.001, metavar="A", parse=share
    )
    price_per_hour: float | None = setting(
        "of the service, for the price of 1,000 pictures", default=None, metavar="PRICE", parse=price
    )
    images: int = setting(
        "shown of each metric (default %(default)s)", "--pictures", default=12, metavar="N", parse=whole
    )

    @property
    def columns(self) -> Columns:
        """The names of the columns."""
        return Columns(self.human, self.model, self.item, self.skill)

    @property
    def file(self) -> Path:
        """The file of results."""
        return self.results or self.out.with_suffix(".results.jsonl")


def write_page(settings: PageSettings, service: Service) -> BatchOutcome:
    """
    Score a data set, and write the page, also if some row lacks a score.

    Raises:
        BadInput: settings do not go together, a column is not valid, or the results are of other scores.
        ScoregateError: a request failed as a whole; what was scored is kept.
    """
    dataset, file = dataset_of(settings, settings.names), settings.file
    check_output(dataset, file, settings.out)
    known = facts(dataset, settings.columns, settings.scale)
    opened = partial(session, settings, dataset, service)
    with offline(settings, dataset) if settings.offline else scored(opened, file) as found:
        results = found.results
        summary, left_over = Summary.of(results.lines()), len(results.left_over)
        html = drawn(settings, dataset, results, known, runs_of(file))
        settings.out.write_text(html, "utf-8", errors="backslashreplace")
    files = {file: dataset.path}
    return BatchOutcome(file, dataset, files, found.requested, summary, left_over, found.seconds)


@contextmanager
def offline(settings: PageSettings, dataset: Dataset) -> Iterator[ScoredRows]:
    """Yield the results there are."""
    metrics = settings.names if settings.metrics else None
    with existing(dataset, settings.file, metrics, any_models=settings.any_models) as results:
        yield ScoredRows(results, dataset)


@dataclass(frozen=True)
class Fact:
    """Facts of one row; *human* is NaN without a rating, *skill* has all tags, texts are None if empty."""

    human: float
    model: str | None
    item: str | None
    skill: Sequence[str]


@dataclass(frozen=True)
class Facts:
    """Facts by the row's number, and the number of dropped ratings."""

    of: dict[int, Fact]
    out_of_scale: int


def facts(dataset: Dataset, columns: Columns, scale: tuple[float, float] | None) -> Facts:
    """
    Return the columns of all rows.

    Raises:
        BadInput: no row has a column, or a rating is not a number.
    """
    rows = [  # the pictures may be in the data set, and are left out
        Record(row.number, {**row.columns, "prompt": row.prompt, "image": row.image}) for row in dataset
    ]
    table = Table(dataset.path, rows)
    human = table.numbers(columns.human).tolist() if columns.human else [nan] * len(rows)
    texts = [
        table.texts(column) if column else [None] * len(rows)
        for column in (columns.model, columns.item or ITEM)
    ]
    skills = table.each(columns.skill, values) if columns.skill else [[] for _ in rows]
    outside = {
        place
        for place, rating in enumerate(human)
        if scale and not (rating != rating or scale[0] <= rating <= scale[1])
    }
    kept = [nan if place in outside else rating for place, rating in enumerate(human)]
    found = {row.number: Fact(*cells) for row, *cells in zip(rows, kept, *texts, skills, strict=True)}
    return Facts(found, len(outside))


def drawn(
    settings: PageSettings,
    dataset: Dataset,
    results: Results,
    facts: Facts,
    runs: Sequence[Recorded],
) -> str:
    """Return the page; *runs* are those of the manifest."""

    def details_of(wanted: set[int]) -> Mapping[int, Details]:
        return {each["row"]: each.get("details", {}) for each in results.lines() if each["row"] in wanted}

    def images_of(wanted: set[int]) -> Mapping[int, str]:
        return {row.number: data_uri(bytes_of(row)) for row in dataset if row.number in wanted}

    scored_row = ScoredRow(
        name=dataset.path.resolve().name,
        drawn=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        rows=list(rows(results, facts)),
        metrics=results.plan.metrics,
        details_of=details_of,
        images_of=images_of,
        columns=settings.columns,
        models=results.plan.models,
        options=results.plan.options,
        lower=frozenset(results.plan.lower),
        version=str(runs[-1].get("service", {}).get("version", "")) if runs else "",
        out_of_scale=facts.out_of_scale,
        cost=cost_of(runs, settings.price_per_hour),
    )
    return page(scored_row, alpha=settings.alpha, images=settings.images)


def rows(results: Results, facts: Facts) -> Iterator[ReportRow]:
    """Yield a row for each line, with its facts from the data set."""
    for line in results.lines():
        scores = line["scores"]
        details = line.get("details", {})
        yield ReportRow(
            number=line["row"],
            image=line["image"] or "",
            prompt=line["prompt"] or "",
            scores=scores,
            errors=line["errors"],
            models=line.get("models", {}) if scores else {},
            warnings=notices_in(line),
            parts={name: parts for name in details if (parts := parts_of(details[name], scores.get(name)))},
            **vars(facts.of[line["row"]]),
        )


def parts_of(details: Any, score: float | None) -> Mapping[str, float]:
    """Return a picture's score by skill, or by GenEval's task; empty if the details have neither."""
    if not isinstance(details, Mapping):
        return {}
    skills, tag = details.get("skills"), details.get("tag")
    if isinstance(skills, Mapping):
        return {str(name): float(value) for name, value in skills.items() if is_number(value)}
    return {tag: score} if isinstance(tag, str) and score is not None else {}


def cost_of(runs: Sequence[Recorded], price_per_hour: float | None) -> Cost:
    """Return the sum of the runs that sent requests."""
    asking = [run for run in runs if run["requested"]]
    requested, cached, seconds = (
        sum(run[name] for run in asking) for name in ("requested", "cached", "seconds")
    )
    return Cost(len(asking), requested, cached, seconds, price_per_hour)
