"""Warnings for people: one line for each kind."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import scoregate
from scoregate.cli.lines import Line
from scoregate.notices import DEMO, Notice
from scoregate.text import shown

NAMED = 3  # pictures that a warning is about and names
DEMO_ID = "scoregate-demo-"  # how the ids of shipped demo models begin


@dataclass
class Kind:
    """Warnings of one kind: the number of rows, the first text, and the picture that it is about, if any."""

    text: str
    code: str
    image: str | None = None
    rows: int = 0

    def __str__(self) -> str:
        return f"{self.rows} row{'s' * (self.rows > 1)}: {self.text}"


def warn(answer: scoregate.Report | scoregate.Ranking | scoregate.Comparison, names: Sequence[str]) -> None:
    """
    Print the service's warnings to stderr, each text once with the pictures and the metrics that it is about.

    Args:
        names: of the request's items or pictures.
    """
    metrics: dict[tuple[str, int | None], list[str]] = {}
    for notice in with_demo(answer.warnings, answer.models):
        of_item = metrics.setdefault((notice.of_item().detail, notice.item), [])
        of_item += [notice.metric] if notice.metric else []
    about: dict[tuple[str, str], list[str]] = {}
    for (text, item), of_item in metrics.items():
        named = about.setdefault((text, ", ".join(dict.fromkeys(of_item))), [])
        named += [names[item]] if item is not None and item < len(names) else []
    for (text, of_text), named in about.items():
        place = ", ".join(filter(None, [pictures(named), of_text]))
        print(shown(f"warning: {place}: {text}" if place else f"warning: {text}"), file=sys.stderr)


def pictures(names: Sequence[str]) -> str:
    """Return *names* for a sentence: the number and the first ones if there are several."""
    if len(names) < 2:
        return "".join(names)
    return f"{len(names)} pictures ({', '.join(names[:NAMED])}{', …' * (len(names) > NAMED)})"


def kinds_of(lines: Iterable[Line]) -> list[Kind]:
    """Return the kinds of warnings of some lines, demo models first and then the most frequent ones."""
    found: dict[str, Kind] = {}
    for line in lines:
        for kind, notice in {notice.kind: notice for notice in notices_of(line)}.items():
            image = None if notice.code == DEMO else line["image"]
            found.setdefault(kind, Kind(str(notice), notice.code, image)).rows += 1
    return in_order(found.values())


def merged_kinds(kinds: Iterable[Kind]) -> list[Kind]:
    """Return *kinds* of several tables as those of one."""
    found: dict[str, Kind] = {}
    for kind in kinds:
        first = found.setdefault(Notice(kind.text, kind.code).kind, replace(kind, rows=0))
        first.rows += kind.rows
    return in_order(found.values())


def in_order(kinds: Iterable[Kind]) -> list[Kind]:
    """Return *kinds*, those of demo models first and then the most frequent ones."""
    return sorted(kinds, key=lambda kind: (kind.code != DEMO, -kind.rows))


def notices_of(line: Line) -> list[Notice]:
    """Return the warnings of a line, and one about demo models."""
    given = map(Notice.of_json, line.get("warnings", ()))
    return list(with_demo(given, line.get("models", {}) if line["scores"] else {}))


def with_demo(notices: Iterable[Notice], models: Mapping[str, str]) -> Iterator[Notice]:
    """Yield the notices, after one about demo models among *models* if the service sends none."""
    given = list(notices)
    if not any(notice.code == DEMO for notice in given):
        yield from demos(models)
    yield from given


def demos(models: Mapping[str, str]) -> list[Notice]:
    """Return a warning about the demo models among *models* (labels by name); empty without any."""
    names = [name for name, label in models.items() if label.startswith(DEMO_ID)]
    if not names:
        return []
    verb = "is a demo model" if len(names) == 1 else "are demo models"
    text = f"{', '.join(names)} {verb}: scores that rest on it mean nothing for real pictures"
    return [Notice(text.replace(" it ", " them ") if names[1:] else text, DEMO)]
