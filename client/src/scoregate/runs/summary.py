"""What a run ends with: how many rows have all scores, why others lack them, warnings, and figures."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from statistics import median

from scoregate.results import DEMO, Notice, demo_names, demo_text, notices_in
from scoregate.runs.plan import UNREADABLE_ROW, Line
from scoregate.text import ErrorLine, number, say, shown

MAX_REASONS = 5  # why rows cannot be read


@dataclass
class WarningKind:
    """
    Warnings of one kind.

    Attributes:
        image: the first picture that they are about, if any.
        rows: their number.
        details: the first text about each metric, without its name; those about no metric by their place in
            a row, and those of demo models by the model.
    """

    kind: str
    code: str
    image: str | None = None
    rows: int = 0
    details: dict[str | int, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.rows} row{'s' * (self.rows > 1)}: {self.text}"

    @property
    def text(self) -> str:
        """The texts, each once, after the metrics that it is about."""
        if self.code == DEMO:
            return demo_text([*map(str, self.details)])
        about: dict[str, list[str]] = {}
        for name, detail in self.details.items():
            about.setdefault(detail, []).extend([name] if isinstance(name, str) else [])
        return "; ".join(f"{', '.join(names)}: {text}" if names else text for text, names in about.items())

    def add(self, details: Mapping[str | int, str], rows: int = 1) -> None:
        """Add the warnings of other rows, with texts as in `details`."""
        self.rows += rows
        self.details |= {name: text for name, text in details.items() if name not in self.details}


def kinds_of(lines: Iterable[Line]) -> list[WarningKind]:
    """Return the kinds of warnings of some lines, demo models first and then the most frequent ones."""
    return kinds_in((line["image"], notices_in(line)) for line in lines)


def kinds_in(rows: Iterable[tuple[str | None, Sequence[Notice]]]) -> list[WarningKind]:
    """Return the kinds of warnings of rows, each with its picture, as `kinds_of`."""
    found: dict[str, WarningKind] = {}
    for image, notices in rows:
        of_row: dict[str, tuple[str, dict[str | int, str]]] = {}
        for notice in notices:
            code, details = of_row.setdefault(notice.kind, (notice.code, {}))
            for name in demo_names(notice) if code == DEMO else [notice.metric or len(details)]:
                details.setdefault(name, notice.detail)
        for kind, (code, details) in of_row.items():
            first = WarningKind(kind, code, None if code == DEMO else image)
            found.setdefault(kind, first).add(details)
    return in_order(found.values())


def merged_kinds(kinds: Iterable[WarningKind]) -> list[WarningKind]:
    """Return *kinds* of several tables as those of one."""
    found: dict[str, WarningKind] = {}
    for kind in kinds:
        found.setdefault(kind.kind, replace(kind, rows=0, details={})).add(kind.details, kind.rows)
    return in_order(found.values())


def in_order(kinds: Iterable[WarningKind]) -> list[WarningKind]:
    """Return *kinds*, those of demo models first and then the most frequent ones."""
    return sorted(kinds, key=lambda kind: (kind.code != DEMO, -kind.rows))


MAX_MEDIAN_SCORES = 10_000_000  # scores of a metric that are in memory, 8 bytes each
NAMED_SCORES = 3  # the worst scores, with their pictures


@dataclass
class ScoreFigures:
    """
    Figures of the scores of one metric.

    Attributes:
        lower: whether lower scores are better.
        values: all scores; empty for more than `MAX_MEDIAN_SCORES`, which have no median.
        worst: the worst scores with their pictures.
    """

    lower: bool = False
    count: int = 0
    total: float = 0.0
    values: "array[float]" = field(default_factory=lambda: array("d"))
    worst: list[tuple[float, str]] = field(default_factory=list)

    def add(self, score: float, image: str) -> None:
        """Add a score of a picture."""
        self.extend(1, score, (score,), [(score, image)])

    def extend(
        self, count: int, total: float, values: Iterable[float], worst: Sequence[tuple[float, str]]
    ) -> None:
        """Add the figures of other scores."""
        self.count += count
        self.total += total
        self.values.extend(values)
        if self.count > MAX_MEDIAN_SCORES:
            del self.values[:]
        every = sorted([*self.worst, *worst], key=lambda each: each[0], reverse=self.lower)
        self.worst = every[:NAMED_SCORES]

    def __str__(self) -> str:
        middle = f", median {number(median(self.values))}" if self.values else ""
        named = ", ".join(f"{number(score)} {image}" for score, image in self.worst)
        return (
            f"mean {number(self.total / self.count)}{middle}; {'highest' if self.lower else 'lowest'} {named}"
        )


def figure_lines(figures: Mapping[str, ScoreFigures]) -> list[str]:
    """Return a line for each metric with several scores: mean, median, and the worst ones."""
    return [f"{shown(name)}: {each}" for name, each in figures.items() if each.count > 1]


def pace(images: int, seconds: float) -> str:
    """Return how long the scoring took, and pictures per second."""
    rate = images / seconds if seconds > 0 else 0.0
    per_second = f", {rate:,.{1 if rate < 100 else 0}f} per second" if rate else ""
    return f"{images} picture{'s' * (images != 1)} in {seconds:.1f} s{per_second}"


@dataclass
class Summary:
    """
    The number of rows, and of those without all scores, by code; why the first ones cannot be read; warnings;
    the number of rows of each decision of a policy; figures of each metric.
    """

    rows: int = 0
    incomplete: int = 0
    unread: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    details: list[str] = field(default_factory=list)
    warnings: list[WarningKind] = field(default_factory=list)
    decisions: Counter[str] = field(default_factory=Counter)
    figures: dict[str, ScoreFigures] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: Iterable[Line]) -> "Summary":
        """Return the summary of *lines*."""
        summary = cls()
        summary.warnings = kinds_of(summary.counted(lines))
        return summary

    @classmethod
    def merged(cls, parts: Iterable["Summary"]) -> "Summary":
        """Return the summary of the lines of all *parts*."""
        whole = cls()
        for part in parts:
            whole.add(part)
        return whole

    def add(self, part: "Summary") -> None:
        """Add the summary of other lines."""
        self.rows += part.rows
        self.incomplete += part.incomplete
        self.unread += part.unread
        self.codes += part.codes
        self.details = [*islice(chain(self.details, part.details), MAX_REASONS)]
        self.warnings = merged_kinds([*self.warnings, *part.warnings])
        self.decisions += part.decisions
        for name, each in part.figures.items():
            own = self.figures.setdefault(name, ScoreFigures(each.lower))
            own.extend(each.count, each.total, each.values, each.worst)

    def counted(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield *lines*, which may be many, and count them."""
        for line in lines:
            errors = line["errors"].values()
            self.rows += 1
            self.incomplete += bool(errors)
            self.codes.update({error["code"] for error in errors})
            self.decisions.update([line["decision"]] if "decision" in line else ())
            for name, score in line["scores"].items():
                if name not in self.figures:
                    self.figures[name] = ScoreFigures(name in line.get("lower_is_better", ()))
                self.figures[name].add(score, line["image"] or f"row {line['row']}")
            why = {error["detail"] for error in errors if error["code"] == UNREADABLE_ROW}
            self.unread += len(why)
            self.details += why if len(self.details) < MAX_REASONS else ()
            yield line

    @property
    def text(self) -> str:
        return f"{self.rows - self.incomplete} of {self.rows} rows have all scores"

    @property
    def without(self) -> str:
        """The codes of the errors, for the end of a sentence."""
        codes = ", ".join(f"{number} {shown(code)}" for code, number in self.codes.most_common())
        return f"; without a score: {codes}" if codes else ""

    @property
    def decided(self) -> str:
        """The number of rows of each decision, the most frequent first."""
        return ", ".join(f"{count} {shown(name)}" for name, count in self.decisions.most_common())


def say_summary(
    summary: Summary,
    requested: int,
    out: Path,
    left_over: int = 0,
    seconds: float | None = None,
    *,
    again: str = "",
) -> None:
    """
    Print *summary* to stderr.

    Args:
        requested: rows that were sent.
        out: of the results.
        left_over: their lines of no row of the data set.
        seconds: that scoring took; with it the figures of the scores are printed.
        again: what the command needs to request rows with errors again.
    """
    rows = f"{summary.text}; {requested} were requested in this run{summary.without}"
    lines: list[str] = [ErrorLine(f"cannot read {detail}") for detail in summary.details[:MAX_REASONS]]
    if summary.unread > MAX_REASONS:
        more = summary.unread - MAX_REASONS
        lines.append(ErrorLine(f"and {more} more rows, see {UNREADABLE_ROW} in the results"))
    lines += [f"warning: {each}" + f" (first: {each.image})" * bool(each.image) for each in summary.warnings]
    if seconds is not None:
        lines += figure_lines(summary.figures)
    lines.append(ErrorLine(rows) if summary.incomplete else rows)
    if summary.incomplete:
        lines.append(f"the same command{again} tries rows with errors again")
    if seconds is not None and requested:
        lines.append(pace(requested, seconds))
    if summary.decisions:
        lines.append(summary.decided)
    lines.append(str(out))
    if left_over:
        lines.append(f"{left_over} lines are of no row of the data set; they are kept")
    say(*lines)
