"""Summaries of results: rows with and without scores, and one warning for each kind."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path

from scoregate.notices import DEMO, Notice
from scoregate.progress import say
from scoregate.runs.plan import UNREADABLE, Line
from scoregate.text import shown

DEMO_ID = "scoregate-demo-"  # how the ids of shipped demo models begin
REASONS = 5  # why rows cannot be read


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


@dataclass
class Summary:
    """
    The number of rows, and of those without all scores, by code; why the first ones cannot be read; warnings.
    """

    rows: int = 0
    incomplete: int = 0
    unread: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    details: list[str] = field(default_factory=list)
    warnings: list[Kind] = field(default_factory=list)

    @classmethod
    def of(cls, lines: Iterable[Line]) -> "Summary":
        """Return the summary of *lines*."""
        summary = cls()
        summary.warnings = kinds_of(summary.counted(lines))
        return summary

    @classmethod
    def merged(cls, parts: Sequence["Summary"]) -> "Summary":
        """Return the summary of the lines of all *parts*."""
        return cls(
            sum(part.rows for part in parts),
            sum(part.incomplete for part in parts),
            sum(part.unread for part in parts),
            sum((part.codes for part in parts), Counter()),
            [*islice(chain.from_iterable(part.details for part in parts), REASONS)],
            merged_kinds(chain.from_iterable(part.warnings for part in parts)),
        )

    def counted(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield *lines*, which may be many, and count them."""
        for line in lines:
            errors = line["errors"].values()
            self.rows += 1
            self.incomplete += bool(errors)
            self.codes.update({error["code"] for error in errors})
            why = {error["detail"] for error in errors if error["code"] == UNREADABLE}
            self.unread += len(why)
            self.details += why if len(self.details) < REASONS else ()
            yield line

    @property
    def text(self) -> str:
        return f"{self.rows - self.incomplete} of {self.rows} rows have all scores"

    @property
    def without(self) -> str:
        """The codes of the errors, for the end of a sentence."""
        codes = ", ".join(f"{number} {shown(code)}" for code, number in self.codes.most_common())
        return f"; without a score: {codes}" if codes else ""


def say_summary(summary: Summary, requested: int, out: Path, left_over: int = 0) -> None:
    """
    Print *summary* to stderr.

    Args:
        requested: rows that were sent.
        out: of the results.
        left_over: their lines of no row of the data set.
    """
    for detail in summary.details[:REASONS]:
        say(f"cannot read {detail}")
    if summary.unread > REASONS:
        say(f"and {summary.unread - REASONS} more rows, see {UNREADABLE} in the results")
    for warning in summary.warnings:
        say(f"warning: {warning}" + f" (first: {warning.image})" * bool(warning.image))
    say(f"{summary.text}; {requested} were requested in this run{summary.without}")
    say(str(out))
    if left_over:
        say(f"{left_over} lines are of no row of the data set; they are kept")
