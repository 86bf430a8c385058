"""The contact sheet of a data set: one page without another file, the worst pictures first."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import nsmallest
from pathlib import Path

from scoregate.data.rows import Row
from scoregate.report.html import bad, bytes_of, data_uri, document, image, note, safe, write_html
from scoregate.runs.plan import Line, Plan
from scoregate.runs.summary import Summary
from scoregate.text import number

STYLE = "body { max-width: 80rem; }\n"


def write_sheet(
    path: Path, dataset: Iterable[Row], plan: Plan, lines: Callable[[], Iterator[Line]], limit: int
) -> None:
    """
    Write a page of the *limit* worst rows by the first metric; those without a score come first.

    Args:
        lines: the results of *dataset*, in its order; iterated twice.
    """
    first = plan.metrics[0]
    sign = -1 if first in plan.lower else 1
    worst = nsmallest(limit, lines(), key=lambda line: badness(line, first, sign))
    rows = {line["row"] for line in worst}
    images = {row.number: data_uri(bytes_of(row)) for row in dataset if row.number in rows}
    write_html(path, page(worst, images, first, Summary.of(lines())))


def badness(line: Line, metric: str, sign: int) -> tuple[bool, float, int]:
    """Return the sort key: worst first, then in row order."""
    score = line["scores"].get(metric)
    return score is not None, sign * (score or 0.0), line["row"]


def page(worst: list[Line], images: Mapping[int, str], metric: str, summary: Summary) -> str:
    """Return the page of some lines; the *summary* is of all."""
    rows = summary.rows
    title = f"The {len(worst)} worst of {rows}" if len(worst) < rows else f"All {rows}, the worst first"
    head = f"<h1>{safe(title)}</h1>\n" + note(f"By {safe(metric)}; rows without a score come first.")
    if summary.decisions:
        policies = ", ".join(dict.fromkeys(line["policy"] for line in worst if "policy" in line))
        head += note(f"Decisions of {safe(policies)}: {safe(summary.decided)}.")
    head += "".join(map(bad, summary.warnings))
    figures = "".join(figure(line, images.get(line["row"], "")) for line in worst)
    return document(f"Scoregate: {title}", f'{head}<main class="gallery">\n{figures}</main>\n', STYLE)


def figure(line: Line, address: str) -> str:
    """Return a row: its picture, its prompt, its scores and its errors."""
    prompt = line["prompt"] or ""
    scores = "".join(f"<dt>{safe(m)}</dt><dd>{number(score)}</dd>" for m, score in line["scores"].items())
    errors = "".join(
        f'<dt>{safe(m)}</dt><dd class="bad">{safe(error["code"])}: {safe(error["detail"])}</dd>'
        for m, error in line["errors"].items()
    )
    decided = f"{line['decision']}: {line['because']}" if "decision" in line else ""
    errors += f"<dt>decision</dt><dd>{safe(decided)}</dd>" if decided else ""
    noted = "".join(f"<dt>warning</dt><dd>{safe(each['text'])}</dd>" for each in line.get("warnings", []))
    name = f"row {line['row']}" + (f", {safe(line['image'])}" if line["image"] else "")
    caption = f"<b>{safe(prompt)}</b><dl>{scores}{errors}{noted}</dl><small>{name}</small>"
    return f"<figure>\n{image(address, prompt, lazy=True)}\n<figcaption>{caption}</figcaption>\n</figure>\n"
