"""Warnings of results: one for each kind."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from scoregate.notices import DEMO, Notice
from scoregate.runs.lines import Line

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
