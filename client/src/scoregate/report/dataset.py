"""The page of a data set: its rows scored, or the results there are, with facts from its columns."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from math import nan
from pathlib import Path
from typing import Annotated, Any, Self

from scoregate.data.datasets import Dataset
from scoregate.data.rows import Row
from scoregate.errors import InputError, named
from scoregate.evaluation.tables import GENERATOR, Table, values
from scoregate.local import Service
from scoregate.records import Record
from scoregate.report.html import bytes_of, data_uri, write_html
from scoregate.report.page import page
from scoregate.report.rows import Columns, Cost, Details, ReportRow, ScoredRow
from scoregate.results import is_number, notices_in
from scoregate.runs.batch import BatchOutcome, ScoredRows, scored, session
from scoregate.runs.batch_settings import Run, check_output, dataset_of
from scoregate.runs.generators import ScoredGenerator, datasets_of, scored_generators
from scoregate.runs.manifest import runs_of
from scoregate.runs.plan import Line, Plan, key
from scoregate.runs.results import Results, existing
from scoregate.runs.summary import Summary, say_summary
from scoregate.settings import (
    Column,
    GeneratorColumn,
    Setting,
    SettingError,
    ends_of_scale,
    finite,
    share,
    whole,
)

ITEM = "prompt"  # the default of what generators share
Recorded = Mapping[str, Any]  # a run in a manifest


def price(text: str) -> float:
    """Return an amount of money, 0 or more."""
    value = finite(text)
    if value < 0:
        raise SettingError("a price is 0 or more")
    return value


@dataclass(frozen=True, kw_only=True)
class PageSettings(Run):
    """Settings of the page."""

    out: Annotated[Path, Setting("the page, a .html", ("-o", "--out"), metavar="PAGE")]
    human: Annotated[str | None, Column("people's rating, a number that is larger for a better picture")] = (
        None
    )
    model: Annotated[str | None, GeneratorColumn("the generator of the picture")] = None
    item: Annotated[
        str | None, Column("what the generators' pictures have in common (default: the prompt)")
    ] = None
    skill: Annotated[str | None, Column("a group, such as the skill that the prompt tests")] = None
    scale: Annotated[
        tuple[float, float] | None,
        Setting("ratings outside are counted and left out", metavar="A:B", parse=ends_of_scale),
    ] = None
    allow_model_change: Annotated[bool, Setting("scores of several models on one page")] = False
    explain: bool = True
    results: Annotated[
        Path | None,
        Setting(
            "the scores, as of `batch`; of several generators a folder (default: next to the page)",
            metavar="PATH",
        ),
    ] = None
    offline: Annotated[bool, Setting("draw what is in --results, without a service")] = False
    alpha: Annotated[
        float, Setting("generators differ where p is below (default 0.001)", metavar="A", parse=share)
    ] = 0.001
    price_per_hour: Annotated[
        float | None, Setting("of the service, for the price of 1,000 pictures", metavar="PRICE", parse=price)
    ] = None
    images: Annotated[
        int, Setting("shown of each metric (default %(default)s)", ("--pictures",), metavar="N", parse=whole)
    ] = 12

    @property
    def columns(self) -> Columns:
        """The names of the columns."""
        return Columns(self.human, self.model, self.item, self.skill)

    @property
    def file(self) -> Path:
        """The file of results."""
        return self.results or self.out.with_suffix(".results.jsonl")

    @property
    def folder(self) -> Path:
        """The folder of the results of several generators."""
        return self.results or self.out.with_suffix(".results")


def report(settings: PageSettings, service: Service) -> Summary:
    """
    Write the page of a data set, or of several generators; print the summary of the scores, and return it.

    Raises:
        InputError, ScoregateError: as `write_page`.
    """
    if settings.named:
        return Summary.merged([each.summary for each in write_page_of_generators(settings, service)])
    outcome = write_page(settings, service)
    say_summary(outcome.summary, outcome.requested, outcome.out, outcome.left_over)
    return outcome.summary


def write_page(settings: PageSettings, service: Service) -> BatchOutcome:
    """
    Score a data set, and write the page, also if some row lacks a score.

    Raises:
        InputError: settings do not go together, a column is not valid, or the results are of other scores.
        ScoregateError: a request failed as a whole; what was scored is kept.
    """
    dataset, file = dataset_of(settings, settings.names), settings.file
    check_output(dataset, file, settings.out)
    known = facts(str(dataset.path), map(record_of, dataset), settings.columns, settings.scale)
    opened = partial(session, settings, dataset, service)
    with offline(settings, dataset) if settings.offline else scored(opened, file) as found:
        results = found.results
        left_over, summary = len(results.left_over), Summary.of(results.lines())
        write_drawn(settings, PageSource.of(dataset, results, runs_of(file)), known)
    files = {file: dataset.path}
    return BatchOutcome(file, dataset, files, found.requested, summary, left_over, found.seconds)


def write_page_of_generators(settings: PageSettings, service: Service) -> list[ScoredGenerator]:
    """
    Write the page of several generators, whose data sets are scored first.

    Raises:
        InputError: settings do not go together, or a column is not valid.
        ScoregateError: a request failed as a whole; what was scored is kept.
    """
    paths, plain = settings.named, replace(settings, more=())
    datasets = {name: each for name, (_, each) in datasets_of(plain, paths).items()}
    if datasets and settings.offline:
        raise InputError(f"{named('offline')} draws results: name those of each generator, NAME=FILE")
    columns = replace(settings.columns, model=settings.model or GENERATOR)
    if datasets.keys() == paths.keys():  # columns of others are known when they are read
        before = ((name, record_of(row)) for name, dataset in datasets.items() for row in dataset)
        facts(", ".join(paths), numbered(before), columns, settings.scale)
    generators = scored_generators(plain, paths, settings.folder, service, page=settings.out)
    lines = ((each.name, record_in(line)) for each in generators for line in each.lines())
    source = PageSource.of_generators(generators)
    known = facts(source.name, numbered(lines), columns, settings.scale)
    write_drawn(replace(settings, model=columns.model), source, known)
    return generators


def numbered(records: Iterable[tuple[str, Record]]) -> Iterator[Record]:
    """Yield the records of generators, numbered throughout, each with its generator's name in a column."""
    for number, (name, record) in enumerate(records, 1):
        yield Record(number, {**record.values, GENERATOR: name})


def record_of(row: Row) -> Record:
    """Return the columns of a row, without its images."""
    return Record(row.number, {**row.columns, "prompt": row.prompt, "image": row.image})


def record_in(line: Line) -> Record:
    """Return the columns of a line of results."""
    columns = line.get("columns", {})
    return Record(line["row"], {**columns, "prompt": line["prompt"], "image": line["image"]})


@contextmanager
def offline(settings: PageSettings, dataset: Dataset) -> Iterator[ScoredRows]:
    """Yield the results there are."""
    metrics = settings.names if settings.metrics else None
    with existing(dataset, settings.file, metrics, allow_model_change=settings.allow_model_change) as results:
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


def facts(
    place: str, records: Iterable[Record], columns: Columns, scale: tuple[float, float] | None
) -> Facts:
    """
    Return the columns of all rows.

    Args:
        place: for errors.

    Raises:
        InputError: no row has a column, or a rating is not a number.
    """
    rows = list(records)
    table = Table(place, rows)
    human = table.numbers(columns.human).tolist() if columns.human else [nan] * len(rows)
    texts = [
        table.texts(column) if column else [None] * len(rows)
        for column in (columns.model, columns.item or ITEM)
    ]
    skills = table.each(columns.skill, values) if columns.skill else [[] for _ in rows]
    outside = {
        index
        for index, rating in enumerate(human)
        if scale and not (rating != rating or scale[0] <= rating <= scale[1])
    }
    kept = [nan if index in outside else rating for index, rating in enumerate(human)]
    found = {row.number: Fact(*cells) for row, *cells in zip(rows, kept, *texts, skills, strict=True)}
    return Facts(found, len(outside))


@dataclass(frozen=True)
class PageSource:
    """
    What a page is drawn from.

    Attributes:
        lines: the lines of results, each with its number as `row`.
        rows_of: the rows of the data set with some of these numbers.
        runs: those of the manifests.
    """

    name: str
    plan: Plan
    lines: Callable[[], Iterator[Line]]
    rows_of: Callable[[set[int]], Iterator[tuple[int, Row]]]
    runs: Sequence[Recorded]

    @classmethod
    def of(cls, dataset: Dataset, results: Results, runs: Sequence[Recorded]) -> Self:
        """Return the results of one data set."""

        def rows_of(wanted: set[int]) -> Iterator[tuple[int, Row]]:
            return ((row.number, row) for row in dataset if row.number in wanted)

        return cls(dataset.path.resolve().name, results.plan, results.lines, rows_of, runs)

    @classmethod
    def of_generators(cls, generators: Sequence[ScoredGenerator]) -> Self:
        """Return the results of several generators, numbered throughout."""

        def each_line() -> Iterator[tuple[ScoredGenerator, Line]]:
            every = ((each, line) for each in generators for line in each.lines())
            return ((each, {**line, "row": number}) for number, (each, line) in enumerate(every, 1))

        def rows_of(wanted: set[int]) -> Iterator[tuple[int, Row]]:
            keys = {(of.name, key(line)): line["row"] for of, line in each_line() if line["row"] in wanted}
            every = ((each.name, row) for each in generators for row in each.rows())
            return ((keys[name, row.key], row) for name, row in every if (name, row.key) in keys)

        runs = [run for each in generators for file in each.files for run in runs_of(file)]
        plan = generators[0].plan
        name = ", ".join(each.name for each in generators)
        return cls(name, plan, lambda: (line for _, line in each_line()), rows_of, runs)


def write_drawn(settings: PageSettings, source: PageSource, facts: Facts) -> None:
    """Write the page."""

    def details_of(wanted: set[int]) -> Mapping[int, Details]:
        return {each["row"]: each.get("details", {}) for each in source.lines() if each["row"] in wanted}

    def images_of(wanted: set[int]) -> Mapping[int, str]:
        return {number: data_uri(bytes_of(row)) for number, row in source.rows_of(wanted)}

    plan, runs = source.plan, source.runs
    scored_row = ScoredRow(
        name=source.name,
        drawn=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        rows=list(rows(source.lines(), facts)),
        metrics=plan.metrics,
        details_of=details_of,
        images_of=images_of,
        columns=settings.columns,
        models=plan.models,
        options=plan.options,
        lower=frozenset(plan.lower),
        version=str(runs[-1].get("service", {}).get("version", "")) if runs else "",
        out_of_scale=facts.out_of_scale,
        cost=cost_of(runs, settings.price_per_hour),
    )
    write_html(settings.out, page(scored_row, alpha=settings.alpha, images=settings.images))


def rows(lines: Iterable[Line], facts: Facts) -> Iterator[ReportRow]:
    """Yield a row for each line, with its facts from the data set."""
    for line in lines:
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
