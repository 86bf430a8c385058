"""
Results, frozen, and how they are parsed from responses of the service.

Every metric of every item must have a finite number or an error; otherwise the response is an error.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, ParamSpec, TypeVar, overload

from scoregate.errors import ScoregateError, ServiceConnectionError, WarnedError, error_of
from scoregate.notebooks import failure, image_of, questions, row_table, warning_lines
from scoregate.text import number

P = ParamSpec("P")
T = TypeVar("T")
MAX_SHOWN_IMAGES = 16  # pictures that a report keeps


@dataclass(frozen=True)
class Score:
    """
    One metric's score of one picture; `float(score)` is its value.

    Attributes:
        model: the `id@revision` of each model that the request used, joined by commas.
        details: the parts of the value, with `explain`.
        cache: `hit`, `miss` or `coalesced`; empty if the service does not return it.
        image: the file that was sent, for notebooks; None if the picture was a URL.
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
    image: bytes | None = field(default=None, repr=False, compare=False)
    warnings: Sequence[Notice] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __float__(self) -> float:
        return self.value

    def _repr_html_(self) -> str:
        head = f"<b>{escape(self.metric)} {number(self.value)}</b><br>{escape(self.prompt)}"
        below = (
            f"<br><small>{escape(self.model)}</small>{warning_lines(self.warnings)}{questions(self.details)}"
        )
        return row_table([[image_of(self.image), head + below]])


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
    errors: Mapping[str, ScoregateError]
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

    def as_json(self) -> dict[str, Any]:
        """Return the result as in a file of results, without its provenance."""
        return {
            "index": self.index,
            "id": self.id,
            "scores": dict(self.scores),
            "errors": {name: error.as_json() for name, error in self.errors.items()},
            "details": dict(self.details),
            "cache": dict(self.cache),
            "models": dict(self.models),
            "warnings": [notice.as_json() for notice in self.warnings],
            "request_id": self.request_id,
            "question_sets": dict(self.question_sets),
        }

    @classmethod
    def of_json(cls, entry: Mapping[str, Any]) -> Result:
        """Parse `as_json`.  Raises a built-in exception if it is not valid."""
        index, scores, request_id = entry["index"], entry["scores"], str(entry["request_id"])
        if type(index) is not int or not all(map(is_number, scores.values())):
            raise ValueError("an index or a score is no number")
        return cls(
            index,
            entry["id"],
            dict(scores),
            {name: error_of(each, request_id=request_id) for name, each in entry["errors"].items()},
            dict(entry["details"]),
            dict(entry["cache"]),
            request_id,
            dict(entry.get("models", {})),  # older runs noted neither these nor warnings
            tuple(map(Notice.of_json, entry.get("warnings", ()))),
            dict(entry.get("question_sets", {})),
        )

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
        self.shown = tuple(sent[:MAX_SHOWN_IMAGES])

    def raise_for_errors(self) -> None:
        """Raise the first error of any item, if there is one."""
        for result in self:
            for metric in result.errors:
                result.score(metric)

    def _repr_html_(self) -> str:
        rows = []
        for result, (prompt, shown) in zip(self[: len(self.shown)], self.shown, strict=True):
            cells = [f"{escape(name)} <b>{number(score)}</b>" for name, score in result.scores.items()]
            cells += [f"{escape(name)} {failure(error)}" for name, error in result.errors.items()]
            asked = [questions(details) for details in result.details.values()]
            rows.append([image_of(shown), "<br>".join([escape(prompt), *cells]) + "".join(asked)])
        more = len(self) - len(rows)
        below = (f"<small>and {more} more</small>" if more else "") + warning_lines(self.warnings)
        return row_table(rows) + below


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
    error: ScoregateError | None
    provenance: Mapping[str, str] = field(default_factory=dict)
    unasked: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the set in the service's wire format."""
        content: dict[str, Any] = {"prompt": self.prompt, "style": self.style}
        if self.error:
            return content | {"error": self.error.as_json()}
        return content | {"id": self.id, "cached": self.cached, "questions": list(self.questions)}


# --- responses, parsed ---


def understood(parse: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what *parse* returns.  Raises `ScoregateError` if the response has another shape."""
    try:
        return parse(*args, **kwargs)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as exc:
        raise ScoregateError(f"the service's answer has an unknown shape: {exc!r}") from exc


def wrong(what: str, raw: Mapping[str, Any]) -> ScoregateError:
    """Return the error for a response that does not match its request."""
    return ScoregateError(f"the service's answer is wrong: {what}", request_id=str(raw.get("request_id", "")))


def results_of(raw: Mapping[str, Any], metrics: Sequence[Sequence[str]]) -> list[Result]:
    """Parse the results of `POST /score`, given the *metrics* of each item.  Raises `ScoregateError`."""
    entries, notices = raw["results"], notices_of(raw)
    if len(entries) != len(metrics):
        raise wrong(f"{len(entries)} results for {len(metrics)} items", raw)
    return [
        result_of(entry, names, index, raw, notices)
        for index, (entry, names) in enumerate(zip(entries, metrics, strict=True))
    ]


def result_of(
    entry: Mapping[str, Any],
    metrics: Sequence[str],
    index: int,
    raw: Mapping[str, Any],
    notices: Sequence[Notice],
) -> Result:
    """Parse the result of the item at *index*.  Raises `ScoregateError`."""
    scores, errors = entry["scores"], entry.get("errors") or {}
    if entry["index"] != index:
        raise wrong(f"item {entry['index']} stands where item {index} belongs", raw)
    for metric in metrics:
        if metric not in errors and not is_number(scores.get(metric)):
            raise wrong(f"item {index} has neither a number nor an error for {metric}", raw)
    request_id = str(raw.get("request_id", ""))
    return Result(
        index,
        entry.get("id"),
        {metric: float(scores[metric]) for metric in metrics if metric not in errors},
        {metric: error_of(error, request_id=request_id) for metric, error in errors.items()},
        dict(entry.get("details") or {}),
        dict(entry.get("cache") or {}),
        request_id,
        dict(raw.get("models") or {}),
        tuple(notice.of_item() for notice in notices if notice.about(index)),
        dict(entry.get("question_sets") or {}),
        raw.get("provenance") or {},  # one object for all results
    )


async def streamed(
    lines: AsyncGenerator[tuple[str, bytes], None], metrics: Sequence[Sequence[str]]
) -> AsyncGenerator[Result, None]:
    """
    Yield the results in the lines of `POST /score?stream=1`, given the *metrics* of each item.

    Args:
        lines: each with the id of the request.

    Raises:
        ServiceConnectionError: there is no last line.
        ScoregateError: the last line is an error, or a line has another form.
    """
    missing, done = dict(enumerate(metrics)), False
    async with aclosing(lines):
        async for request_id, line in lines:
            raw = understood(object_in, line)
            if error := raw.get("error"):
                raise error_of(error, request_id=request_id)
            if raw.get("done"):
                if missing:
                    raise wrong(f"there is no result of item {min(missing)}", raw)
                done = True
                continue  # its connection is used again only after the end of the response
            raw["request_id"] = request_id
            if (index := raw.get("index")) not in missing:
                raise wrong(f"item {index} is none, or is there twice", raw)
            own = missing.pop(index)
            yield understood(streamed_result, raw, own)
    if not done:
        raise ServiceConnectionError("the service's answer was cut off")


def object_in(line: bytes) -> dict[str, Any]:
    """Parse the JSON object of a line."""
    return dict(json.loads(line))


def streamed_result(raw: Mapping[str, Any], metrics: Sequence[str]) -> Result:
    """Parse a line of a result."""
    return result_of(raw, metrics, raw["index"], raw, notices_of(raw))


def without_warned(result: Result) -> Result:
    """Return the result with an error in place of each score that the service warned about."""
    notices = {
        metric: [each for each in result.warnings if each.about(result.index, metric)]
        for metric in result.scores
    }
    errors = {metric: warned(found, result.request_id) for metric, found in notices.items() if found}
    scores = {metric: score for metric, score in result.scores.items() if metric not in errors}
    return replace(result, scores=scores, errors={**result.errors, **errors})


def warned(notices: Sequence[Notice], request_id: str) -> WarnedError:
    """Return the error for these warnings."""
    return WarnedError("; ".join(notices), request_id=request_id)


def is_number(value: Any) -> bool:
    """Return True if a score is a finite number in the range of floats."""
    most = sys.float_info.max
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -most <= value <= most


def question_sets_of(raw: Mapping[str, Any], count: int) -> list[QuestionSet]:
    """Parse the response of `POST /questions` for *count* prompts.  Raises `ScoregateError`."""
    if len(raw["sets"]) != count:
        raise wrong(f"{len(raw['sets'])} question sets for {count} prompts", raw)
    return [question_set_of(entry, str(raw.get("request_id", ""))) for entry in raw["sets"]]


def question_set_of(entry: Mapping[str, Any], request_id: str = "") -> QuestionSet:
    """Parse one question set, of `POST /questions` or `GET /questions/{id}`."""
    error = entry.get("error")
    return QuestionSet(
        entry["prompt"],
        entry["style"],
        entry.get("id"),
        entry.get("cached"),
        tuple(entry.get("questions") or ()),
        error_of(error, request_id=request_id) if error else None,
        dict(entry.get("provenance") or {}),
        tuple(entry.get("unasked") or ()),
    )


def report_of(
    raw: Mapping[str, Any],
    metrics: Sequence[Sequence[str]],
    items: Sequence[tuple[str, bytes | None]],
    unsent: Mapping[int, Result],
    *,
    strict: bool = False,
) -> Report:
    """
    Parse the response of `POST /score`.  Raises `ScoregateError`.

    Args:
        metrics: of each item.
        items: prompt and picture of each.
        unsent: the results of items that were not sent, by index.
        strict: as for `Client`.
    """
    places = [place for place in range(len(items)) if place not in unsent]

    def parsed() -> Report:
        results = results_of(raw, [metrics[place] for place in places])
        results = list(map(without_warned, results)) if strict else results
        found = {place: replace(result, index=place) for place, result in zip(places, results, strict=True)}
        return Report([result for _, result in sorted({**found, **unsent}.items())], raw, items, places)

    return understood(parsed)


def score_of(report: Report, metric: str) -> Score:
    """Return the score of a report's only item.  Raises the metric's error if it has none."""
    [result], [(prompt, image)] = report, report.shown
    if error := result.errors.get(metric):
        raise error
    return Score(
        result.scores[metric],
        metric,
        ", ".join(map(str, report.models.values())),
        result.details.get(metric) or {},
        result.request_id,
        prompt,
        result.cache.get(metric, ""),
        image,
        tuple(notice for notice in result.warnings if notice.about(0, metric)),
        report.provenance,
    )


def lower_is_better(metric: Mapping[str, Any]) -> bool:
    """Return True if lower scores are the better ones, by a metric's entry in `GET /models`."""
    return str(metric.get("direction", "")).startswith("lower")


# --- the service's warnings ---


PLACED_WARNING = re.compile(
    r"item (\d+)(?:, ([^\s:]+))?: (.*)", re.DOTALL
)  # how a text begins that is about one item
ITEM = re.compile(r"^item \d+")
NUMBER = re.compile(r"\d+(\.\d+)?")
DEMO = "demo_model"
DEMO_ID = "scoregate-demo-"  # how the ids of shipped demo models begin
DEMO_TEXT = re.compile(r"\S+ is a demo model\b")  # a service that sends no codes writes this


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
        placed = PLACED_WARNING.fullmatch(self)
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
    placed = PLACED_WARNING.fullmatch(text)
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
    return [Notice(demo_text(names), DEMO)] if names else []


def demo_text(names: Sequence[str]) -> str:
    """Return the text of a warning about demo models."""
    verb, them = ("are demo models", "them") if names[1:] else ("is a demo model", "it")
    return f"{', '.join(names)} {verb}: scores that rest on {them} mean nothing for real pictures"


def demo_names(text: str) -> list[str]:
    """Return the models that a warning about demo models names."""
    return re.split(r" (?:is a demo model|are demo models):", text)[0].split(", ")
