"""Results, frozen, with HTML for notebooks, in which every text is escaped."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, TypeVar, overload

from scoregate.errors import ScoregateError
from scoregate.images import smaller

T = TypeVar("T")
SHOWN = 16  # pictures that a report keeps
MetricError = ScoregateError
"""Why a metric of an item has no score: the same classes as those of a whole request."""


MOST_WARNINGS = 10
MAX_BYTES = 2 * 2**20  # of one picture; larger ones would make the notebook's file too large
KINDS = {b"\xff\xd8\xff": "jpeg", b"\x89PNG": "png", b"GIF8": "gif", b"BM": "bmp", b"RIFF": "webp"}


@dataclass(frozen=True)
class Score:
    """
    One metric's score of one picture; `float(score)` is its value.

    Attributes:
        model: the `id@revision` of each model that the request used, joined by commas.
        details: the parts of the value, with `explain`.
        cache: `hit`, `miss` or `coalesced`; empty if the service does not return it.
        picture: the file that was sent, for notebooks; None if the picture was a URL.
        warnings: of the service, such as a truncated prompt.
        provenance: what the score was computed with; empty if the service does not return it.
    """

    value: float
    metric: str
    model: str
    details: Mapping[str, Any]
    request_id: str
    prompt: str
    cache: str
    picture: bytes | None = field(default=None, repr=False, compare=False)
    warnings: Sequence[Notice] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __float__(self) -> float:
        return self.value

    def _repr_html_(self) -> str:
        return of_score(self)


@dataclass(frozen=True)
class Result:
    """
    The scores of one item by metric, and an error for each metric without one.

    Attributes:
        index: the item's index in the request.
        details: the parts of each score, by metric, with `explain`.
        cache: `hit`, `miss` or `coalesced`, by metric; empty if the service does not return it.
        models: the `id@revision` of each model that answered, by its configured name.
        warnings: of the service, such as a truncated prompt.
        question_sets: the ids of the sets of questions, by metric.
        provenance: what the request's scores were computed with; empty if the service does not return it.
    """

    index: int
    id: str | None
    scores: Mapping[str, float]
    errors: Mapping[str, MetricError]
    details: Mapping[str, Any]
    cache: Mapping[str, str]
    request_id: str
    models: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[Notice] = ()
    question_sets: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def failed(cls, index: int, id: str | None, metrics: Sequence[str], error: ScoregateError) -> Result:
        """Return the result of an item that has the same error under every metric."""
        return cls(index, id, {}, dict.fromkeys(metrics, error), {}, {}, error.request_id)

    def score(self, metric: str) -> float:
        """Return the score of *metric*.  Raises its error, or `KeyError` for a metric not requested."""
        if metric in self.errors:
            raise self.errors[metric].at(f"item {self.index}, {metric}")
        return self.scores[metric]


class Entries(Sequence[T]):
    """
    A list of results, with the rest of the response.

    Attributes:
        models: the `id@revision` of each model in use, by its configured name.
        warnings: of the service, such as a truncated prompt.
        provenance: what the scores were computed with; empty if the service does not return it.
        raw: the JSON of the response.

    Args:
        places: the index of each item that was sent; items that cannot be encoded are not sent.
    """

    def __init__(self, entries: Sequence[T], raw: Mapping[str, Any], places: Sequence[int]) -> None:
        self._entries = tuple(entries)
        self.raw = raw
        self.models: Mapping[str, str] = dict(raw.get("models") or {})
        self.provenance: Mapping[str, Any] = dict(raw.get("provenance") or {})
        self.timings_ms: Mapping[str, float] = dict(raw.get("timings_ms") or {})
        indices = dict(enumerate(places))
        self.warnings: Sequence[Notice] = [
            notice if notice.item is None else notice.moved(indices.get(notice.item, notice.item))
            for notice in notices_of(raw)
        ]
        self.request_id = str(raw.get("request_id", ""))

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self._entries)!r})"


class Report(Entries[Result]):
    """
    The results of one request, in the order of its items.

    Attributes:
        partial: whether some metric of some item has no score.
        shown: prompt and picture of the first items, for notebooks.
    """

    def __init__(
        self,
        results: Sequence[Result],
        raw: Mapping[str, Any],
        sent: Sequence[tuple[str, bytes | None]],
        places: Sequence[int],
    ) -> None:
        super().__init__(results, raw, places)
        self.partial = any(result.errors for result in results)
        self.shown = tuple(sent[:SHOWN])

    def raise_for_errors(self) -> None:
        """Raise the first error of any item, if there is one."""
        for result in self:
            for metric in result.errors:
                result.score(metric)

    def _repr_html_(self) -> str:
        return of_report(self)


@dataclass(frozen=True)
class Ranked:
    """
    One picture of a ranking.

    Attributes:
        index: its index in the request.
        score: by the metric `decided_by`; None if it failed.
        accepted: within `top_k`, and not below `threshold`.
        decided_by: the metric that its place comes from.
        error: why it has no score.
    """

    index: int
    score: float | None
    accepted: bool
    decided_by: str | None
    error: MetricError | None


class Ranking(Entries[Ranked]):
    """Pictures, best first."""

    @property
    def best(self) -> Ranked:
        """The first picture with a score.  Raises the first error if no picture has a score."""
        for ranked in self:
            if ranked.score is not None:
                return ranked
        error = next((ranked.error for ranked in self if ranked.error), None)
        raise error or ScoregateError("the ranking is empty")

    @property
    def accepted(self) -> Sequence[Ranked]:
        """The accepted pictures, best first."""
        return [ranked for ranked in self if ranked.accepted]

    def _repr_html_(self) -> str:
        return of_ranking(self)


@dataclass(frozen=True)
class QuestionSet:
    """
    The questions about one prompt, or an error.

    Attributes:
        id: a hash of the content; scores with this id use exactly these questions.
        cached: whether the set was stored before; None if the service does not return it.
        questions: each with `id`, `text`, `kind`, `depends_on`, `expected`.
        provenance: who wrote them.
        unasked: words of the prompt without a question, though the style requires one.
    """

    prompt: str
    style: str
    id: str | None
    cached: bool | None
    questions: Sequence[Mapping[str, Any]]
    error: MetricError | None
    provenance: Mapping[str, str] = field(default_factory=dict)
    unasked: Sequence[str] = ()


def of_score(score: Score) -> str:
    """Return the picture with its prompt, score and questions."""
    head = f"<b>{escape(score.metric)} {score.value:.4f}</b><br>{escape(score.prompt)}"
    below = (
        f"<br><small>{escape(score.model)}</small>{warning_lines(score.warnings)}{questions(score.details)}"
    )
    return row_table([[image_of(score.picture), head + below]])


def of_report(report: Report) -> str:
    """Return a row for each item whose picture was kept, and the number of others."""
    rows = []
    for result, (prompt, shown) in zip(report[: len(report.shown)], report.shown, strict=True):
        cells = [f"{escape(name)} <b>{score:.4f}</b>" for name, score in result.scores.items()]
        cells += [f"{escape(name)} {failure(error)}" for name, error in result.errors.items()]
        asked = [questions(details) for details in result.details.values()]
        rows.append([image_of(shown), "<br>".join([escape(prompt), *cells]) + "".join(asked)])
    more = len(report) - len(rows)
    return (
        row_table(rows) + (f"<small>and {more} more</small>" if more else "") + warning_lines(report.warnings)
    )


def of_ranking(ranking: Ranking) -> str:
    """Return a row for each picture, best first."""
    rows = [["", "picture", "score", "decided by", "accepted"]]
    for place, ranked in enumerate(ranking, 1):
        score = failure(ranked.error) if ranked.score is None else f"{ranked.score:.4f}"
        accepted = "yes" if ranked.accepted else "no"
        rows.append([str(place), str(ranked.index), score, escape(ranked.decided_by or ""), accepted])
    return row_table(rows) + warning_lines(ranking.warnings)


def warning_lines(texts: Sequence[str]) -> str:
    """Return a line for each warning of the service, `MOST_WARNINGS` at most."""
    lines = [f"<br><small>warning: {escape(text)}</small>" for text in texts[:MOST_WARNINGS]]
    more = len(texts) - len(lines)
    return "".join(lines) + (f"<br><small>and {more} more warnings</small>" if more else "")


def questions(details: Any) -> str:
    """Return a table of the questions in a metric's details; empty without any."""
    asked = details.get("questions") if isinstance(details, Mapping) else None
    if not asked:
        return ""
    rows = [
        [escape(str(each.get(name, ""))) for name in ("text", "answer")] + [question_score(each)]
        for each in asked
    ]
    return row_table([["question", "answer", "score"], *rows])


def question_score(question: Mapping[str, Any]) -> str:
    """Return a question's score, if it has one."""
    score = question.get("score")
    return f"{score:.3f}" if isinstance(score, (int, float)) else ""


def failure(error: Any) -> str:
    """Return an error in place of a score."""
    return f"<span style='color:#c00'>{escape(error.code)}: {escape(error.detail)}</span>" if error else ""


def image_of(file: bytes | None) -> str:
    """Return the picture as an image of at most 160 pixels; empty without a file."""
    if not file:
        return ""
    kind = next((name for start, name in KINDS.items() if file.startswith(start)), "")
    if kind == "bmp":
        file = smaller(file)
    if not kind or len(file) > MAX_BYTES:
        return f"<small>{len(file):,} bytes</small>"
    data = base64.b64encode(file).decode()
    return f"<img alt='' style='max-width:160px;max-height:160px' src='data:image/{kind};base64,{data}'>"


def row_table(rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are HTML already."""
    lines = (
        "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in row) + "</tr>" for row in rows
    )
    return "<table>" + "".join(lines) + "</table>"


# --- the service's warnings ---


PLACED = re.compile(
    r"item (\d+)(?:, ([^\s:]+))?: (.*)", re.DOTALL
)  # how a text begins that is about one item
ITEM = re.compile(r"^item \d+")
NUMBER = re.compile(r"\d+(\.\d+)?")
DEMO = "demo_model"
DEMO_ID = "scoregate-demo-"  # how the ids of shipped demo models begin
DEMO_TEXT = re.compile(r"\S+ is a demo model\b")  # of a service that sends no codes


class ScoregateWarning(UserWarning):
    """The service warned about a score; adapters issue one for the first warning of each kind."""


class Notice(str):
    """
    A warning of the service; as a string its text.

    Attributes:
        code: such as `prompt_truncated`; empty if the service sends only texts.
        item: the item's place in its request; None on a `Result`, and if it is about all items.
        metric: None if it is about all metrics.
        share: of unknown tokens, for `unknown_tokens`.
    """

    code: str
    item: int | None
    metric: str | None
    share: float | None

    def __new__(
        cls,
        text: str,
        code: str = "",
        item: int | None = None,
        metric: str | None = None,
        share: float | None = None,
    ) -> Notice:
        made = super().__new__(cls, text)
        made.code, made.item, made.metric, made.share = code, item, metric, share
        return made

    @property
    def kind(self) -> str:
        """The group of the warning: the code, or the beginning of the text without its numbers."""
        return self.code or NUMBER.sub("#", self.of_item().detail.partition(":")[0])

    @property
    def detail(self) -> str:
        """The text without the metric that it begins with."""
        return self.removeprefix(f"{self.metric}: ")

    def of_item(self) -> Notice:
        """Return a copy without the item's index, which is valid only within its request."""
        placed = PLACED.fullmatch(self)
        text = str(self) if not placed else f"{placed[2]}: {placed[3]}" if placed[2] else placed[3]
        return Notice(text, self.code, None, self.metric, self.share)

    def moved(self, item: int) -> Notice:
        """Return a copy about the item at another index."""
        return Notice(ITEM.sub(f"item {item}", self), self.code, item, self.metric)

    def as_json(self) -> dict[str, Any]:
        """Return the warning as in a file of results."""
        return {"code": self.code, "metric": self.metric, "text": str(self)}

    @classmethod
    def of_json(cls, entry: Mapping[str, Any]) -> Notice:
        """Parse `as_json`.  Raises `LookupError`, `TypeError` or `ValueError` for anything else."""
        code, metric, text = entry["code"], entry["metric"], entry["text"]
        if not (isinstance(code, str) and isinstance(text, str) and isinstance(metric, (str, type(None)))):
            raise ValueError("a warning is a text with a code")
        return cls(text, code, None, metric)

    def about(self, index: int, metric: str | None = None) -> bool:
        """Return True if it is about the item at *index*, and about *metric* if one is named."""
        return self.item in (None, index) and (metric is None or self.metric in (None, metric))


def notices_of(raw: Mapping[str, Any]) -> tuple[Notice, ...]:
    """Return the warnings of an answer; `warning_codes` are read if there is one for each text."""
    texts, codes = raw.get("warnings") or [], raw.get("warning_codes") or []
    return tuple(map(notice_of, texts, codes if len(codes) == len(texts) else [None] * len(texts)))


def notice_of(text: str, entry: Mapping[str, Any] | None) -> Notice:
    """Return a warning; without *entry* of `warning_codes`, its place is parsed from the text."""
    if entry is not None:
        item, metric, share = entry.get("item"), entry.get("metric"), entry.get("share")
        place = None if item is None else int(item)
        return Notice(
            text, str(entry["code"]), place, metric and str(metric), None if share is None else float(share)
        )
    placed = PLACED.fullmatch(text)
    code = DEMO if DEMO_TEXT.match(text) else ""
    return Notice(text, code, int(placed[1]) if placed else None, placed[2] if placed else None)


def notices_in(line: Mapping[str, Any]) -> list[Notice]:
    """Return the warnings of a line of results, and one about demo models."""
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
