"""
Benchmarks of generators: prompts out, and the tables of the answers about a folder of pictures. A benchmark
is a `Benchmark`: what its items are, how their pictures are scored, and which values the answers give.  A
generator's figures are means of these, with intervals over the prompts and cautions.

* **`--prompts`** prints a line of JSON for each prompt: `id`, `prompt`, `files` (the pictures' names, also
  with another suffix; `{generator}` stands for NAME), `seeds`, and `grid` if the pictures are tiles of a
  sheet.
* **`NAME=FILE`** has answers that were given elsewhere: results of such a run, the authors' own file where
  the section names one, or a table with the columns `item` (the `id`), `tile` (of several pictures),
  `question` (its number or its text) and `answer`.
* **Missing answers.** `true` and `false` answer a yes-no question, and other texts count as they are
  written: an empty one is wrong, which `CAUTION` counts. Null, NaN and numbers are no answers: the picture
  is left out. A grade or a probability that is missing is an error. `--complete` makes an error of a prompt
  that lacks pictures or answers.
* **Several pictures of a prompt** have their mean in `dpg` and `oneig`, as in the papers. Figures of
  `oneig_text`, `longtext`, `compbench` and `unigen` are over all pictures, so a prompt with more of them
  counts more, which `CAUTION` says.
* **Sheets.** With `--grid 2x2`, rows x columns, a file is a sheet of several pictures.
* **`--bootstrap N`** draws prompts, each with all of its pictures, for intervals and for `differences` of
  each two generators.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Generic, TypeVar

import numpy as np

import scoregate
from scoregate.bench.answers import (
    FOLDER_KIND,
    Answer,
    Answers,
    BenchmarkItem,
    Found,
    Placed,
    Reading,
    images_of,
    in_file,
    in_lines,
)
from scoregate.data.rows import Row
from scoregate.data.tiles import Grid, grid_of
from scoregate.errors import InputError
from scoregate.evaluation.bootstrap import Drawings, Figures, Sample, compared, means, uncertainty
from scoregate.local import Service
from scoregate.records import kind
from scoregate.runs.batch import Part, scored_rows
from scoregate.runs.batch_settings import Scoring
from scoregate.runs.plan import plan_of
from scoregate.runs.results import ResultsFile
from scoregate.runs.summary import Summary, say_summary
from scoregate.settings import (
    CONCURRENCY,
    GRID_HELP,
    Concurrency,
    OptionsByMetric,
    Orient,
    Setting,
    Strict,
    whole,
)
from scoregate.text import say_outage

PART = ": "  # joins a table and its figure; figures without it are columns of the first table

Values = Mapping[str, Sequence[float]]  # an item's values by figure; a figure is the mean of its values


OfItems = Mapping[str, Values]
Released = Callable[[Path, Sequence[BenchmarkItem]], Found | None]


@dataclass(frozen=True)
class Paper:
    """
    The setting of the published figures, which cautions compare with.

    Attributes:
        model: its whole name, which a model of the service must have.
        prompts: their number; None: as many as there are in the data.
        images: of a prompt.
    """

    model: str
    prompts: int | None
    images: int = 1


@dataclass(frozen=True, kw_only=True)
class GeneratorSettings(Drawings):
    """
    The settings of a benchmark; one with settings of its own has more.

    Attributes:
        answers: none where only the prompts are wanted.
        grid: rows and columns of a sheet, such as 2x2; None if pictures are no sheets.
        resolution: side of a tile in pixels; None if the sheet is divided.
        rubric: of a judge; None without one.
    """

    data: Annotated[Path, Setting("your copy of the authors' data", option=False)]
    answers: Annotated[
        Mapping[str, Path],
        Setting(
            "of each generator by its name: a folder of pictures, or a file of answers about them",
            option=False,
        ),
    ] = field(default_factory=dict)
    out: Annotated[
        Path | None,
        Setting(
            "the folder of the results of scoring (default: that of the pictures)",
            ("-o", "--out"),
            metavar="FOLDER",
        ),
    ] = None
    complete: Annotated[
        bool,
        Setting(
            "a prompt without pictures, or without all answers about them, is an error, and not left out"
        ),
    ] = False
    grid: str | None = None
    resolution: int | None = None
    rubric: str | None = None
    options: Annotated[Mapping[str, Mapping[str, Any]], OptionsByMetric("of the metrics")] = field(
        default_factory=dict
    )
    orient: Orient = None
    strict: Strict = False
    concurrency: Concurrency = CONCURRENCY

    @property
    def sheet(self) -> Grid | None:
        """The grid of each picture; None if pictures are no sheets."""
        return grid_of(self.grid)._replace(side=self.resolution) if self.grid else None


@dataclass(frozen=True, kw_only=True)
class SheetSettings(GeneratorSettings):
    """Settings of pictures that are sheets."""

    grid: Annotated[str | None, Setting(GRID_HELP + " (default %(default)s)", metavar="RxC")] = "2x2"
    resolution: Annotated[
        int | None,
        Setting(
            "side of a tile, from the top left of the sheet (default: the sheet is divided)",
            metavar="PIXELS",
            parse=whole,
        ),
    ] = None


Own = TypeVar("Own", bound=GeneratorSettings)


def as_given(settings: Own) -> Own:
    """Return the settings: none of them depends on the data."""
    return settings


def no_more(settings: GeneratorSettings, figures: Figures) -> Figures:
    """Return no further figures."""
    return {}


@dataclass(frozen=True)
class Benchmark(Generic[Own]):
    """
    A benchmark of generators.

    Attributes:
        data: what the user's copy of the data is.
        settings: their class.
        items: its prompts.
        reading: how pictures are scored, and the form of answers in a table.
        values: of an item, from the answers about its pictures, in order; none if the item is dropped.
        derived: further figures, from those that are means of values.
        released: the answers in the authors' own files of a kind, or folders, by this kind; None if it is no
            such one.
        pooled: whether figures are means over all pictures, of which a prompt may have more than others.
        wording: whether the metric has the words of the paper's questions, or none.
        partial: whether a picture without answers is left out alone, and not all of its prompt.
        skip_black: whether a black tile stands for no picture.
        resolved: the settings with the defaults that depend on the data.
        notes: cautions of every row.
        answers: what those of a generator are.
        example: the words of a call of the command, after the benchmark's name.
    """

    name: str
    data: str
    settings: type[Own]
    paper: Paper
    items: Callable[[Own], list[BenchmarkItem]]
    reading: Reading
    values: Callable[[Own, BenchmarkItem, Sequence[Answers]], Values]
    derived: Callable[[Own, Figures], Figures] = no_more
    released: Mapping[str, Released] = field(default_factory=dict)
    pooled: bool = False
    wording: bool = False
    partial: bool = False
    skip_black: Callable[[Own], bool] = lambda settings: False
    resolved: Callable[[Own], Own] = as_given
    notes: Sequence[str] = ()
    answers: str = "a generator: a folder of pictures, or a file of answers about them"
    example: str = "data sd3=pictures/sd3"

    def prompts(self, settings: Own) -> Iterator[dict[str, Any]]:
        """Yield what a generator needs: id, prompt, and the names, seeds and grid of the pictures."""
        settings = self.resolved(settings)
        sheet, several = settings.sheet, self.paper.images
        for item in self.items(settings):
            files = [item.file] if sheet or several == 1 else item.names(several)
            line: dict[str, Any] = {"id": item.id, "prompt": item.prompt}
            line["files"] = [f"{each}.png" for each in files]
            if item.source:
                line["source"] = str(item.source)
            elif item.references:  # those of an item with a source show what its picture should be
                line["references"] = [str(path) for path in item.references]
            line["seeds"] = [*range(sheet.tiles if sheet else several)]
            yield line | ({"grid": settings.grid} if sheet else {})

    def tables(self, settings: Own, service: Service) -> dict[str, Any]:
        """
        Return a row for each generator, further tables with a row for each figure, and differences.

        Args:
            service: opened when the first pictures have to be scored.

        Raises:
            InputError: a file or a folder is not valid, or no picture of a generator has answers.
        """
        settings = self.resolved(settings)
        items = self.items(settings)
        return tables_of(self, settings, items, answers_of(self, settings, items, service))


def answers_of(
    benchmark: Benchmark[Own], settings: Own, items: Sequence[BenchmarkItem], service: Service
) -> dict[str, Found]:
    """Return the answers about each generator's pictures; score those in folders.  Raises `InputError`."""
    if not settings.answers:
        raise InputError("name a generator: NAME=PATH")
    check_names(settings.answers)
    found: dict[str, Found] = {}
    unscored: dict[str, Placed] = {}
    for name, path in settings.answers.items():  # all are read before models are loaded
        released = benchmark.released.get(FOLDER_KIND if path.is_dir() else kind(path))
        if released and (own := released(path, items)):
            found[name] = own
        elif placed := images_of(path, items, name):
            unscored[name] = placed
        else:
            found[name] = in_file(path, items, benchmark.reading)
    if unscored:
        needed = benchmark.reading.metrics
        with service.client(metrics=needed, strict=settings.strict, outage=say_outage) as client:
            for name, placed in unscored.items():
                found[name] = scored(benchmark, settings, items, name, placed, client)
    return {name: found[name] for name in settings.answers}


def check_names(generators: Mapping[str, Path]) -> None:
    """Raise `InputError` for a generator whose name cannot be that of a file."""
    if wrong := [
        f"{name}={path}" for name, path in generators.items() if not name or Path(name).name != name
    ]:
        raise InputError(f"{wrong[0]}: the name of a generator is part of the name of a file")


def scored(
    benchmark: Benchmark[Own],
    settings: Own,
    items: Sequence[BenchmarkItem],
    name: str,
    placed: Placed,
    client: scoregate.Client,
) -> Found:
    """Return the answers about pictures, which are scored; the next run continues their results."""
    scoring = Scoring(
        metrics=benchmark.reading.metrics,
        options=settings.options,
        explain=True,
        strict=settings.strict,
        orient=settings.orient,
    )
    plan = plan_of(client.models(scoring.names), scoring)
    rows, notes = rows_of(benchmark, settings, items, placed)
    file = (settings.out or placed.folder) / f"{benchmark.name}-{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    with ResultsFile(file, plan) as results:
        part = nullcontext(Part(rows, results))
        sent = scored_rows(client, plan, [part], settings.concurrency, len(rows))
        left_over, lines = len(results.left_over), [*results.lines()]
        say_summary(Summary.of(lines), sent, file, left_over)
        found = in_lines(lines, items, benchmark.reading)
    found.notes += notes
    return found


def rows_of(
    benchmark: Benchmark[Own], settings: Own, items: Sequence[BenchmarkItem], placed: Placed
) -> tuple[list[Row], list[str]]:
    """Return a row for each picture or tile that is scored, and notes about the folder."""
    skip_black = benchmark.skip_black(settings)
    return placed.rows(items, benchmark.reading.options, settings.sheet, skip_black=skip_black)


def tables_of(
    benchmark: Benchmark[Own], settings: Own, items: Sequence[BenchmarkItem], found: Mapping[str, Found]
) -> dict[str, Any]:
    """Return the tables of the answers about each generator's pictures.  Raises `InputError`."""
    values = {name: values_of(benchmark, settings, items, each) for name, each in found.items()}
    figures = {name: figures_of(benchmark, settings, each) for name, each in values.items()}
    limits = {name: limits_of(benchmark, settings, each) for name, each in values.items()}
    apart = compared(settings, values, partial(sample_of, benchmark, settings, chosen=first), "prompt")
    ends = {name: each.get("interval", {}) for name, each in limits.items()}
    few = {name: each.get("caution", "") for name, each in limits.items()}
    content: dict[str, Any] = {"prompts": len(items)}
    content |= {"seed": settings.seed, "cluster": "prompt"} if settings.bootstrap else {}
    content["generators"] = [
        {"generator": name, "mean": first(figures[name])}
        | {"pictures": sum(len(answered(each, id)) for id in values[name])}
        | {"models": ", ".join(sorted(each.models)) or None}
        | below("interval", first(ends[name]))
        | {"caution": "; ".join(cautions(benchmark, settings, items, each, values[name], few[name])) or None}
        for name, each in found.items()
    ]
    return content | parts(figures, ends) | apart


def first(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of the first table."""
    return {figure: each for figure, each in found.items() if PART not in figure}


def below(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: found} if found else {}


def parts(figures: Mapping[str, Figures], ends: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the tables that figures name before `PART`: a row for each, with the generators' values."""
    found: dict[str, list[dict[str, Any]]] = {}
    for figure in sorted({name for each in figures.values() for name in each}, key=natural):
        table, named, own = figure.partition(PART)
        if named:
            mean = {name: each.get(figure) for name, each in figures.items()}
            interval = {name: each[figure] for name, each in ends.items() if figure in each}
            found.setdefault(table, []).append({"figure": own, "mean": mean} | below("interval", interval))
    return found


def natural(figure: str) -> list[Any]:
    """Return the sort key of a name with numbers in it: text and numbers in turns."""
    return [int(each) if each.isdecimal() else each for each in re.split(r"(\d+)", figure)]


def values_of(
    benchmark: Benchmark[Own], settings: Own, items: Sequence[BenchmarkItem], found: Found
) -> OfItems:
    """
    Return the values of each item whose pictures all have answers; some of them, if the benchmark allows it.

    Raises:
        InputError: there is none, or by `--complete` not for each item; or an item has no question.
    """
    values: dict[str, Values] = {}
    for item in found.items or items:
        whole, partial = answered(found, item.id), benchmark.partial and not settings.complete
        enough = partial or len(whole) == len(found.images.get(item.id, ()))
        if whole and not item.questions:
            raise InputError(f"{benchmark.name}: item {item.id} has no question")
        if whole and enough and (of_item := means_of(benchmark, settings, item, whole)):
            values[item.id] = of_item
        elif settings.complete:
            raise InputError(f"{benchmark.name}: item {item.id} has not all answers about its pictures")
    if not values:
        lacking = sum(each.count(None) for each in found.images.values())
        why = f" (pictures that lack one: {lacking})" if lacking else ""
        raise InputError(f"{benchmark.name}: no prompt has pictures with all answers{why}")
    return values


def means_of(
    benchmark: Benchmark[Own], settings: Own, item: BenchmarkItem, images: Sequence[Answers]
) -> Values:
    """Return the values of an item; means over its pictures, if the paper has one of each prompt."""
    if benchmark.paper.images > 1:
        return benchmark.values(settings, item, images)
    each = [benchmark.values(settings, item, [answers]) for answers in images]
    return {
        figure: [fmean(cells) for cells in zip(*(values[figure] for values in each), strict=True)]
        for figure in each[0]
    }


def answered(found: Found, id: str) -> list[Answers]:
    """Return the answers about the pictures of an item that have all."""
    return [answers for answers in found.images.get(id, ()) if answers is not None]


def figures_of(benchmark: Benchmark[Own], settings: Own, values: OfItems) -> Figures:
    """Return each figure over all items."""
    found = {figure: fmean(each) for figure, (_, each) in columns_of(values).items()}
    return {**found, **benchmark.derived(settings, found)}


def columns_of(values: OfItems) -> dict[str, tuple[list[int], list[float]]]:
    """Return the values of each figure, each with the number of its item before it."""
    found: dict[str, tuple[list[int], list[float]]] = {}
    for unit, of_item in enumerate(values.values()):
        for figure, each in of_item.items():
            units, cells = found.setdefault(figure, ([], []))
            units += [unit] * len(each)
            cells += each
    return {figure: column for figure, column in found.items() if column[0]}


def sample_of(benchmark: Benchmark[Own], settings: Own, values: OfItems, chosen: Any = dict) -> Sample:
    """Return the sample of items, each drawn with all of its pictures, with the *chosen* figures."""
    in_order = {id: values[id] for id in sorted(values)}  # a seed must give the same drawings
    columns = {name: (np.array(of), np.array(each)) for name, (of, each) in columns_of(in_order).items()}
    shares = {name for name, (_, each) in columns.items() if np.isin(each, (0, 1)).all()}
    # Figures of a single item have no interval, and belong to derived ones when the item is drawn.
    single = {name: (of[0], fmean(each)) for name, (of, each) in columns.items() if len(set(of)) == 1}
    found = means(columns, len(values), shares=shares)

    def figures(times: Any) -> dict[str, float]:
        drawn = found.figures(times)
        every = {**drawn, **{name: value for name, (unit, value) in single.items() if times[unit]}}
        return dict(chosen({**drawn, **benchmark.derived(settings, every)}))

    return Sample(found.units, figures, found.shares)


def limits_of(benchmark: Benchmark[Own], settings: Own, values: OfItems) -> dict[str, Any]:
    """Return the interval of each figure, and the caution that the items are few."""
    return uncertainty(settings, sample_of(benchmark, settings, values), len(values), "prompt")


def cautions(
    benchmark: Benchmark[Own],
    settings: Own,
    items: Sequence[BenchmarkItem],
    found: Found,
    values: OfItems,
    few: str = "",
) -> Iterator[str]:
    """Yield what differs from the paper's setting, and what else limits the figures; last *few*, if any."""
    paper, every = benchmark.paper, max(len(items), benchmark.paper.prompts or 0)
    if len(values) < every or every > (paper.prompts or every):
        yield f"{len(values)} of {every} prompts"
    known = {item.id: item.questions for item in items}
    if others := sum(known.get(item.id) != item.questions for item in found.items):
        yield f"with other questions than those of DATA: {others}"
    if dropped := len(found.images) - len(values):
        yield f"left out without all answers: {dropped}"
    if lost := sum(found.images[id].count(None) for id in values):
        yield f"pictures left out without all answers: {lost}"
    counts = sorted({len(answered(found, id)) for id in values})
    if counts != [paper.images]:
        several = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        yield f"{several} of {paper.images} pictures of a prompt"
        if benchmark.pooled and len(counts) > 1:
            yield "a prompt with more pictures counts more"
    empty = sum(str(answer).strip() == "" for answer in every_answer(found, values))
    if empty and benchmark.reading.empty_is_wrong:
        yield f"empty answers, which are wrong: {empty}"
    if models := sorted(each for each in found.models if not is_named(each, paper.model)):
        yield f"answered by {', '.join(models)}, in the paper by {paper.model}"
    metric = benchmark.reading.metrics[0]
    if found.models:
        words = f"the rubric {settings.rubric}" if settings.rubric else metric
        if own := settings.options.get(metric, {}).get("question"):
            yield f"questions as {own!r}"
        elif not benchmark.wording:
            yield f"the questions' words are those of {words}"
    yield from (*found.notes, *benchmark.notes, *filter(None, [few]))


def every_answer(found: Found, values: OfItems) -> Iterator[Answer]:
    """Yield the answers from which values are."""
    for id in values:
        for answers in answered(found, id):
            yield from answers.values()


DATE = re.compile(r"-20\d\d-?\d\d-?\d\d$")  # snapshots end so, as in gpt-4o-2024-05-13


def is_named(label: str, model: str) -> bool:
    """
    Return True if a label, `owner/name@revision`, has the whole name of *model*; case and punctuation vary.

    A snapshot of a model has its name, but a model without a date may be any snapshot.
    """
    name = label.partition("@")[0].rpartition("/")[2]
    return plain(model) in (plain(name), plain(DATE.sub("", name)))


def plain(model: str) -> str:
    """Return the letters and digits of a model's name."""
    return re.sub(r"[^a-z0-9]", "", model.lower())
