"""The worst pictures, each with its prompt, its numbers, detected objects and the answers that cost most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scoregate.evaluation.arrays import average_ranks
from scoregate.report.html import facts, image, note, safe
from scoregate.report.rows import Details, ReportRow, ScoredRow
from scoregate.results import is_number
from scoregate.text import fixed, number

MAX_BOXES = 20  # boxes that are drawn, the surest ones
CLASS_COLOURS = 6  # classes of objects have them in turn
HALF_SCORE = 0.5  # a question below it cost more than half of what it could give

Box = tuple[str, float, tuple[float, ...], str]  # class, score, corners, colour


def figure(row: ReportRow, said: Mapping[str, str], address: str, details: Any) -> str:
    """Return a row as a card; *address* is its picture's, *details* those of one metric."""
    prompt = safe(row.prompt)
    boxes, size = boxes_of(details), size_of(details)
    shown = image(address, row.prompt) + (overlay(boxes, size) if address and boxes and size else "")
    of = f"row {row.number}" + "".join(f", {safe(name)}" for name in (row.image, row.model) if name)
    return (
        f'<figure>\n<div class="picture">{shown}</div>\n<figcaption><b>{prompt}</b>{facts(said)}'
        f"{found_list(boxes)}{reason_of(details)}{questions_of(details)}<small>{of}</small></figcaption>\n"
        "</figure>\n"
    )


def size_of(details: Any) -> tuple[float, float] | None:
    """Return width and height of the picture of the boxes; None if unknown."""
    if not isinstance(details, Mapping):
        return None
    width, height = details.get("width"), details.get("height")
    return (
        (float(width), float(height)) if is_number(width) and is_number(height) and width and height else None
    )


def boxes_of(details: Any) -> list[Box]:
    """Return the objects that a detector found; skip invalid ones."""
    boxes = details.get("boxes") if isinstance(details, Mapping) else None
    found: list[Box] = []
    for each in boxes if isinstance(boxes, list) else ():
        if not isinstance(each, Mapping):
            continue
        corners, score = each.get("box"), each.get("score")
        if (
            isinstance(corners, list)
            and len(corners) == 4
            and all(map(is_number, corners))
            and is_number(score)
        ):
            place = tuple(map(float, corners))
            found.append((str(each.get("class")), float(score or 0), place, str(each.get("color") or "")))
    return found


def overlay(boxes: list[Box], size: tuple[float, float]) -> str:
    """Return the surest boxes over the picture, each with the number that the list below has."""
    width, height = size
    letter = max(width, height) / 14
    kinds = list(dict.fromkeys(name for name, *_ in boxes))
    drawn = "".join(
        f'<g class="box{kinds.index(name) % CLASS_COLOURS}">'
        f'<rect x="{left:g}" y="{top:g}" width="{max(right - left, 0):g}" height="{max(bottom - top, 0):g}"/>'
        f'<text x="{left + letter / 4:g}" y="{top + letter:g}" font-size="{letter:g}">{place}</text></g>'
        for place, (name, _, (left, top, right, bottom), _) in enumerate(boxes[:MAX_BOXES], 1)
    )
    label = f"{len(boxes[:MAX_BOXES])} boxes of objects"
    return f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{label}">{drawn}</svg>'


def found_list(boxes: list[Box]) -> str:
    """Return a list of the boxes, with their numbers."""
    if not boxes:
        return ""
    lines = "".join(
        f"<li>{safe(' '.join(filter(None, (colour, name))))} {fixed(score, 2)}</li>"
        for name, score, _, colour in boxes[:MAX_BOXES]
    )
    left = len(boxes) - MAX_BOXES
    return f'<ol class="found">{lines}</ol>' + (f"<small>and {left} less sure</small>" if left > 0 else "")


def reason_of(details: Any) -> str:
    """Return why a check failed, one paragraph per line."""
    reason = details.get("reason") if isinstance(details, Mapping) else None
    lines = reason.splitlines() if isinstance(reason, str) else ()
    return "".join(f'<p class="bad">{safe(line)}</p>' for line in lines)


def questions_of(details: Any) -> str:
    """Return the questions with a score below one half."""
    asked = details.get("questions") if isinstance(details, Mapping) else None
    lines = [
        line(each)
        for each in (asked if isinstance(asked, list) else ())
        if isinstance(each, Mapping) and is_number(each.get("score")) and each["score"] < HALF_SCORE
    ]
    return f'<ul class="asked">{"".join(lines)}</ul>' if lines else ""


def line(question: Mapping[str, Any]) -> str:
    """Return a question with its answer, or with the parents that set it to zero."""
    answer = question.get("answer")
    text = safe(answer) if isinstance(answer, str) else number(question["score"])
    parents = question.get("zeroed_by")
    if isinstance(parents, list) and parents:
        text += f", and {safe(', '.join(map(str, parents)))} is a no"
    return f"<li>{safe(str(question.get('text')))} <b>{text}</b></li>"


@dataclass(frozen=True)
class ShownImage:
    """A row to show, with texts by name."""

    row: ReportRow
    said: Mapping[str, str]


def title(scored: ScoredRow) -> str:
    """Describe the section."""
    if scored.columns.human is None:
        return "Lowest scores" if not scored.lower else "Worst scores"
    return "Where metric and people disagree most"


def worst(scored: ScoredRow, most: int) -> str:
    """Return the pictures of each metric, *most* at most."""
    chosen = {metric: of_metric(scored, metric, most) for metric in scored.metrics}
    wanted = {each.row.number for shown in chosen.values() for each in shown}
    images, details = scored.images_of(wanted), scored.details_of(wanted)
    drawn = "".join(gallery(metric, shown, images, details) for metric, shown in chosen.items())
    if scored.columns.human is None:
        return drawn
    return drawn + note(
        "Both are ranked among the pictures with a score and a rating, the best first. Shown are those "
        "whose two ranks lie furthest apart."
    )


def gallery(
    metric: str, shown: Sequence[ShownImage], images: Mapping[int, str], details: Mapping[int, Details]
) -> str:
    """Return a metric's pictures."""
    heading = f"<h3>{safe(metric)}</h3>\n"
    if not shown:
        return heading + note("No picture has what is needed for this.")
    figures = "".join(
        figure(
            each.row,
            each.said,
            images.get(each.row.number, ""),
            details.get(each.row.number, {}).get(metric),
        )
        for each in shown
    )
    return f'{heading}<div class="gallery">\n{figures}</div>\n'


def of_metric(scored: ScoredRow, metric: str, most: int) -> list[ShownImage]:
    """Return the rows to show."""
    return (
        lowest(scored, metric, most) if scored.columns.human is None else disagreements(scored, metric, most)
    )


def lowest(scored: ScoredRow, metric: str, most: int) -> list[ShownImage]:
    rows = scored.with_score(metric)
    order = np.argsort(scored.worth(metric, rows), kind="stable")[:most]
    return [ShownImage(rows[place], {metric: number(rows[place].scores[metric])}) for place in order]


def disagreements(scored: ScoredRow, metric: str, most: int) -> list[ShownImage]:
    """Return the rows whose ranks by the metric and by people differ most."""
    rows = scored.rated(metric)
    ranks = average_ranks(-scored.worth(metric, rows)), average_ranks([-row.human for row in rows])
    apart = np.abs(ranks[0] - ranks[1])
    order = np.argsort(-apart, kind="stable")[:most]
    return [
        ShownImage(
            rows[place],
            {
                metric: f"{number(rows[place].scores[metric])}, rank {ranks[0][place]:g} of {len(rows)}",
                scored.columns.human or "": f"{rows[place].human:g}, rank {ranks[1][place]:g} of {len(rows)}",
            },
        )
        for place in order
        if apart[place] > 0
    ]


GALLERY = """
.picture { position: relative; width: fit-content; margin: 0 auto .5rem; }
.picture img { display: block; max-width: 100%; max-height: 16rem; }
.picture svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible; }
.picture rect { fill: none; stroke: var(--box); stroke-width: 2; vector-effect: non-scaling-stroke; }
.picture text { fill: var(--box); paint-order: stroke; stroke: #000; stroke-width: .2em; font-weight: 700; }
.box0 { --box: #4be3c4; } .box1 { --box: #ffb347; } .box2 { --box: #7db8ff; }
.box3 { --box: #ff8fb8; } .box4 { --box: #d6e34b; } .box5 { --box: #d0a2ff; }
"""
