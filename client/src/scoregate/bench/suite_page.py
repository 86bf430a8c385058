"""The page of a suite of benchmarks, with the worst pictures, and its tables as LaTeX."""

from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from scoregate.bench.answers import Answers, BenchmarkItem, images_of
from scoregate.bench.benchmark import Benchmark, Own, rows_of
from scoregate.bench.generators.oneig_text import DISTANCE
from scoregate.data.rows import Row
from scoregate.formats import printed
from scoregate.report.benchmark import Tables, cautions_of, drawn, of_rows, parts_of, without_caution
from scoregate.report.gallery import GALLERY, figure
from scoregate.report.html import bad, bytes_of, data_uri, facts, in_sections, safe
from scoregate.report.rows import ReportRow
from scoregate.runs.plan import Line, LineKey, key
from scoregate.runs.reproduction import flat
from scoregate.runs.results import lines_of
from scoregate.runs.summary import kinds_of
from scoregate.text import number, shown


def page(
    manifest: Mapping[str, Any],
    tables: Mapping[str, Tables],
    left_out: Sequence[Mapping[str, str]],
    worst: Mapping[str, str],
) -> str:
    """Return the HTML: what ran, what was left out, and a section for each benchmark."""
    title = f"Benchmarks of {', '.join(manifest['generators'])}"
    known = {name: manifest[name] for name in ("suite", "ended", "command")} | flat(
        {name: fact for name, fact in manifest["facts"].items() if name != "benchmarks"}
    )
    sections = {
        f"of-{place}": (safe(name), "".join([*parts_of(tables[name]), worst[name]]))
        for place, name in enumerate(tables)
    }
    head = drawn("Left out", left_out) if left_out else ""
    return in_sections(title, head, {**sections, "run": ("Run", facts(known))}, GALLERY)


def latex_of(tables: Mapping[str, Tables]) -> str:
    """Return all tables as LaTeX; cautions are comments above them."""
    found = []
    for name, content in tables.items():
        lines = [name, *(f"caution of {each}" for each in cautions_of(content))]
        plain = {head: without_caution(rows) for head, rows in of_rows(content).items()}
        found.append("\n".join(f"% {shown(line)}" for line in lines))
        found.append(printed(plain, "latex", None))
    return "\n\n".join(found)


def worst(benchmark: Benchmark[Own], given: Own, most: int) -> str:
    """
    Return the pictures with the lowest values of each generator, as HTML, below the warnings about all.

    A picture has the mean of its values of the benchmark's first figure.  Answers in files have no pictures.

    Args:
        given: the settings of the benchmark.
        most: pictures of each generator.
    """
    settings, found = benchmark.resolved(given), ""
    items = {item.id: item for item in benchmark.items(settings)}
    for name, path in settings.answers.items():
        file = (settings.out or path) / f"{benchmark.name}-{name}.jsonl"
        if file.exists() and (placed := images_of(path, [*items.values()], name)):
            found += "".join(bad(f"{name}: {each}") for each in kinds_of(lines_of(file)))
            chosen = nsmallest(most, valued(benchmark, settings, items, file), key=lambda each: each.rank)
            wanted = {each.item.id: each.item for each in chosen}
            rows, _ = rows_of(benchmark, settings, [*wanted.values()], placed)
            of_key = {row.key: row for row in rows}  # none for the line of a picture that is gone
            figures = "".join(card(each, name, of_key[each.key]) for each in chosen if each.key in of_key)
            found += f'<h3>The worst pictures of {safe(name)}</h3>\n<div class="gallery">\n{figures}</div>\n'
    return found


class Valued(NamedTuple):
    """A line of results about an item, with the value of its picture; a lower *rank* is worse."""

    rank: float
    value: float
    figure: str
    line: Line
    item: BenchmarkItem
    answers: Answers

    @property
    def key(self) -> LineKey:
        return key(self.line)


def valued(
    benchmark: Benchmark[Own], settings: Own, items: Mapping[str, BenchmarkItem], file: Path
) -> Iterator[Valued]:
    """Yield the lines that have all scores and a value."""
    for line in lines_of(file):
        item = items.get(line.get("columns", {}).get("item"))
        if line["errors"] or item is None:
            continue
        answers = benchmark.reading.answers(item, line)
        for head, values in [*benchmark.values(settings, item, [answers]).items()][:1]:
            value = fmean(values)
            yield Valued(-value if head == DISTANCE else value, value, head, line, item, answers)


def card(valued: Valued, generator: str, row: Row) -> str:
    """Return a picture with its value and the answers about it."""
    said, details = explained(valued.item, valued.answers)
    of = ReportRow(valued.line["row"], valued.line["image"], valued.item.prompt, model=generator)
    return figure(of, {valued.figure: number(valued.value), **said}, data_uri(bytes_of(row)), details)


def explained(item: BenchmarkItem, answers: Answers) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the numbers and the text that was read, and the wrong verdicts as details of a metric."""
    said, questions = dict[str, str](), []
    for id, question in item.questions.items():
        text, answer = question.text, answers.get(id)
        if isinstance(answer, bool):
            right = answer == (question.expected.strip().lower() != "no")
            questions.append({"text": text, "score": float(right), "answer": "yes" if answer else "no"})
        elif isinstance(answer, int | float):
            said[text] = number(answer)
        else:
            said |= {"wanted": question.expected, "read": str(answer)}
    return said, {"questions": questions}
