"""Tables of a benchmark of generators, with intervals over its prompts and cautions."""

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from scoregate.bench.answers import Answer, Answers, Found, Item
from scoregate.bench.benchmark import Benchmark, Figures, Own, Values, answers_of, own_settings
from scoregate.bench.grades import Judged
from scoregate.cli.arguments import settings_of
from scoregate.evaluation.bootstrap import Sample, means, together
from scoregate.evaluation.outcome import Drawings, caution, compared, interval_of
from scoregate.records import BadInput

PART = ": "  # in the name of a figure, after that of its table; all others are columns of the first one

OfItems = Mapping[str, Values]


def benchmark_tables(benchmark: Benchmark[Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """
    Return a row for each generator, further tables with a row for each figure, and generators' differences.

    Raises:
        UsageFault, BadInput: as `answers_of`.
        BadInput: no picture of a generator has answers.
    """
    settings = own_settings(benchmark, arguments)
    items = benchmark.items(settings)
    found = answers_of(benchmark, arguments, settings, items)
    values = {name: values_of(benchmark, settings, items, each) for name, each in found.items()}
    figures = {name: figures_of(benchmark, settings, each) for name, each in values.items()}
    ends = {name: ends_of(benchmark, arguments, settings, each) for name, each in values.items()}
    content: dict[str, Any] = {"prompts": len(items)}
    content |= {"seed": arguments.seed, "cluster": "prompt"} if arguments.bootstrap else {}
    content["generators"] = [
        {"generator": name, "mean": first(figures[name])}
        | {"pictures": sum(len(answered(each, id)) for id in values[name])}
        | {"models": ", ".join(sorted(each.models)) or None}
        | below("interval", first(ends[name]))
        | {"caution": "; ".join(cautions(benchmark, settings, items, each, values[name])) or None}
        for name, each in found.items()
    ]
    sample, drawings = partial(sample_of, benchmark, settings, chosen=first), settings_of(Drawings, arguments)
    return content | parts(figures, ends) | compared(drawings, values, sample, "prompt")


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


def values_of(benchmark: Benchmark[Own], settings: Own, items: Sequence[Item], found: Found) -> OfItems:
    """
    Return the values of each item whose pictures all have answers; some of them, if the benchmark allows it.

    Raises:
        BadInput: there is none, or by `--complete` not for each item; or an item has no question.
    """
    values: dict[str, Values] = {}
    for item in found.items or items:
        whole, partial = answered(found, item.id), benchmark.partial and not settings.complete
        enough = partial or len(whole) == len(found.pictures.get(item.id, ()))
        if whole and not item.questions:
            raise BadInput(f"{benchmark.name}: item {item.id} has no question")
        if whole and enough and (of_item := means_of(benchmark, settings, item, whole)):
            values[item.id] = of_item
        elif settings.complete:
            raise BadInput(f"{benchmark.name}: item {item.id} has not all answers about its pictures")
    if not values:
        lacking = sum(each.count(None) for each in found.pictures.values())
        why = f" (pictures that lack one: {lacking})" if lacking else ""
        raise BadInput(f"{benchmark.name}: no prompt has pictures with all answers{why}")
    return values


def means_of(benchmark: Benchmark[Own], settings: Own, item: Item, pictures: Sequence[Answers]) -> Values:
    """Return the values of an item; means over its pictures, if the paper has one of each prompt."""
    if benchmark.paper.pictures > 1:
        return benchmark.values(settings, item, pictures)
    each = [benchmark.values(settings, item, [answers]) for answers in pictures]
    return {
        figure: [fmean(cells) for cells in zip(*(values[figure] for values in each), strict=True)]
        for figure in each[0]
    }


def answered(found: Found, id: str) -> list[Answers]:
    """Return the answers about the pictures of an item that have all."""
    return [answers for answers in found.pictures.get(id, ()) if answers is not None]


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
    in_order = {id: values[id] for id in sorted(values)}  # so that a seed gives the same drawings
    columns = {name: (np.array(of), np.array(each)) for name, (of, each) in columns_of(in_order).items()}
    shares = {name for name, (_, each) in columns.items() if np.isin(each, (0, 1)).all()}
    found = together(
        means({name: columns[name] for name in columns if name in shares}, len(values), shares=True),
        means({name: columns[name] for name in columns if name not in shares}, len(values)),
    )

    # Figures of a single item have no interval, and belong to derived ones when the item is drawn.
    single = {name: (of[0], fmean(each)) for name, (of, each) in columns.items() if len(set(of)) == 1}

    def figures(times: Any) -> dict[str, float]:
        drawn = found.figures(times)
        every = {**drawn, **{name: value for name, (unit, value) in single.items() if times[unit]}}
        return dict(chosen({**drawn, **benchmark.derived(settings, every)}))

    return Sample(found.units, figures, found.shares)


def ends_of(
    benchmark: Benchmark[Own], arguments: argparse.Namespace, settings: Own, values: OfItems
) -> dict[str, Any]:
    """Return the interval of each figure; none without intervals."""
    found = interval_of(settings_of(Drawings, arguments), sample_of(benchmark, settings, values))
    return dict(found.get("interval", {}))


def cautions(
    benchmark: Benchmark[Own],
    settings: Own,
    items: Sequence[Item],
    found: Found,
    values: OfItems,
) -> Iterator[str]:
    """Yield what differs from the paper's setting, and what else limits the figures."""
    paper, every = benchmark.paper, max(len(items), benchmark.paper.prompts or 0)
    if len(values) < every or every > (paper.prompts or every):
        yield f"{len(values)} of {every} prompts"
    known = {item.id: item.questions for item in items}
    if others := sum(known.get(item.id) != item.questions for item in found.items):
        yield f"with other questions than those of DATA: {others}"
    if dropped := len(found.pictures) - len(values):
        yield f"left out without all answers: {dropped}"
    if lost := sum(found.pictures[id].count(None) for id in values):
        yield f"pictures left out without all answers: {lost}"
    counts = sorted({len(answered(found, id)) for id in values})
    if counts != [paper.pictures]:
        several = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        yield f"{several} of {paper.pictures} pictures of a prompt"
        if benchmark.pooled and len(counts) > 1:
            yield "a prompt with more pictures counts more"
    empty = sum(str(answer).strip() == "" for answer in every_answer(found, values))
    if empty and benchmark.reading.empty_is_wrong:
        yield f"empty answers, which are wrong: {empty}"
    if models := sorted(each for each in found.models if not is_named(each, paper.model)):
        yield f"answered by {', '.join(models)}, in the paper by {paper.model}"
    metric = benchmark.reading.metrics[0]
    if found.models:
        words = f"the rubric {settings.rubric}" if isinstance(settings, Judged) else metric
        if own := settings.options.get(metric, {}).get("question"):
            yield f"questions as {own!r}"
        elif not benchmark.wording:
            yield f"the questions' words are those of {words}"
    yield from (*found.notes, *benchmark.notes, *caution(len(values), "prompt").values())


def every_answer(found: Found, values: OfItems) -> Iterator[Answer]:
    """Yield the answers from which values are."""
    for id in values:
        for answers in answered(found, id):
            yield from answers.values()


DATE = re.compile(r"-20\d\d-?\d\d-?\d\d$")  # of a snapshot, as in gpt-4o-2024-05-13


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
