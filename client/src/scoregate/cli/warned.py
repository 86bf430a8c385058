"""Warnings for people: one line for each kind."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import scoregate
from scoregate.cli.lines import Line
from scoregate.cli.text import shown
from scoregate.notices import DEMO, Notice

DEMO_ID = "scoregate-demo-"  # how the ids of shipped demo models begin


@dataclass
class Kind:
    """Warnings of one kind: the number of rows, and the first text."""

    text: str
    code: str
    rows: int = 0

    def __str__(self) -> str:
        return f"{self.rows} row{'s' * (self.rows > 1)}: {self.text}"


def warn(answer: scoregate.Report | scoregate.Ranking) -> None:
    """Print the service's warnings to stderr; what it says of several pictures is one line."""
    found: dict[str, list[Notice]] = {}
    for notice in with_demo(answer.warnings, answer.models):
        found.setdefault(notice.of_item(), []).append(notice)
    for text, (notice, *more) in found.items():
        line = f"{1 + len(more)} pictures: {text}" if more else notice
        print(shown(f"warning: {line}"), file=sys.stderr)


def kinds_of(lines: Iterable[Line]) -> list[Kind]:
    """Return the kinds of warnings of some lines, demo models first and then the most frequent ones."""
    found: dict[str, Kind] = {}
    for line in lines:
        for kind, notice in {notice.kind: notice for notice in notices_of(line)}.items():
            found.setdefault(kind, Kind(str(notice), notice.code)).rows += 1
    return sorted(found.values(), key=lambda kind: (kind.code != DEMO, -kind.rows))


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
