"""
Responses of the service, parsed into results.

Every metric of every item must have a finite number or an error; otherwise the response is an error.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from scoregate.errors import ScoregateError, ServiceConnectionError, WarnedError, error_of
from scoregate.http import httpx
from scoregate.results import Notice, QuestionSet, Ranked, Ranking, Report, Result, Score, notices_of

T = TypeVar("T")


def understood(read: Callable[[], T]) -> T:
    """Return `read()`.  Raises `ScoregateError` if the response has another shape."""
    try:
        return read()
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
            raw = understood(partial(object_in, line))
            if error := raw.get("error"):
                raise error_of(error, request_id=request_id)
            if raw.get("done"):
                if missing:
                    raise wrong(f"there is no result of item {min(missing)}", raw)
                done = True
                continue  # to the end of the response, so that its connection is used again
            raw["request_id"] = request_id
            if (index := raw.get("index")) not in missing:
                raise wrong(f"item {index} is none, or is there twice", raw)
            own = missing.pop(index)
            yield understood(partial(streamed_result, raw, own))
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


def ranking_of(raw: Mapping[str, Any], count: int, unsent: Mapping[int, Ranked]) -> Ranking:
    """
    Parse the response of `POST /rank` for *count* pictures.  Raises `ScoregateError`.

    Args:
        unsent: the entries of pictures that were not sent, by index; they come last in the ranking.
    """
    places = [place for place in range(count) if place not in unsent]
    ranking = [ranked_of(entry, raw) for entry in raw["ranking"]]
    if sorted(ranked.index for ranked in ranking) != list(range(len(places))):
        raise wrong(f"it does not rank each of {len(places)} pictures once", raw)
    sent = [replace(ranked, index=places[ranked.index]) for ranked in ranking]
    return Ranking([*sent, *unsent.values()], raw, places)


def ranked_of(entry: Mapping[str, Any], raw: Mapping[str, Any]) -> Ranked:
    """Parse one picture of a ranking.  Raises `ScoregateError`."""
    index, error = int(entry["index"]), entry.get("error")
    if not error and not is_number(entry.get("score")):
        raise wrong(f"picture {index} has neither a number nor an error", raw)
    return Ranked(
        index,
        None if error else float(entry["score"]),
        bool(entry["accepted"]),
        entry.get("decided_by"),
        error_of(error, request_id=str(raw.get("request_id", ""))) if error else None,
    )


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
    [result], [(prompt, picture)] = report, report.shown
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
        picture,
        tuple(notice for notice in result.warnings if notice.about(0, metric)),
        report.provenance,
    )


def lower_is_better(metric: Mapping[str, Any]) -> bool:
    """Return True if lower scores are the better ones, by a metric's entry in `GET /models`."""
    return str(metric.get("direction", "")).startswith("lower")


# --- responses, read and decompressed within limits ---


MAX_BYTES = 32 * 2**20  # of an answer, decompressed; one about 128 items with all their details has a few
ENCODING = "gzip"  # the only one accepted, since it can be decompressed incrementally
GZIP = 16 + zlib.MAX_WBITS
OF_A_PROXY = (429, 502, 503, 504)  # without a code of the service: it was not reached


@dataclass(frozen=True)
class Reply:
    """A complete response, decompressed."""

    url: str
    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        """Parse the JSON.  Raises `ScoregateError` if it is not valid, or nested too deeply."""
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError) as exc:
            raise ScoregateError(
                f"{self.url} answered {self.status} without JSON", status=self.status
            ) from exc


async def reply_of(response: httpx.Response, url: str) -> Reply:
    """
    Read the rest of a response from *url*.

    Raises:
        ScoregateError: it is longer than `MAX_BYTES`, or has another content encoding than `ENCODING`.
        httpx2.RequestError: the connection broke.
    """
    content = bytearray()
    async for piece in pieces_of(response, url):
        content += piece
    return Reply(url, response.status_code, response.headers, bytes(content))


async def pieces_of(response: httpx.Response, url: str) -> AsyncIterator[bytes]:
    """Yield the rest of a response in pieces as they come, decompressed.  Raises as `reply_of`."""
    size, pieces = 0, unpacked(response)
    try:
        async for piece in pieces:
            size += len(piece)
            check_size(size)
            yield piece
    except (ValueError, zlib.error) as exc:
        status = response.status_code
        raise ScoregateError(
            f"cannot read what {url} answered: {exc}",
            status=status,
            request_id=response.headers.get("x-request-id", ""),
        ) from exc


async def unpacked(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield pieces of at most one byte more than `MAX_BYTES`.  Raises `ValueError` and `zlib.error`."""
    if response.is_stream_consumed:  # a transport for tests has read and decompressed it
        yield response.content
        return
    encoding = response.headers.get("content-encoding", "identity").lower()
    if encoding not in (ENCODING, "identity"):
        raise ValueError(f"the content encoding {encoding[:40]!r} is not accepted")
    unpacker = zlib.decompressobj(GZIP)
    async for piece in response.aiter_raw():
        yield unpacker.decompress(piece, MAX_BYTES + 1) if encoding == ENCODING else piece


def check_size(size: int) -> None:
    """Raise `ValueError` for more than `MAX_BYTES`."""
    if size > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES} bytes")


def failure(reply: Reply) -> ScoregateError:
    """Return the error of a response; `ServiceConnectionError` for an error page of a proxy."""
    request_id = reply.headers.get("x-request-id", "")
    error = error_of(problem_of(reply) or foreign_problem(reply), status=reply.status, request_id=request_id)
    if error.retry_after_s is None:
        error.retry_after_s = retry_after_s(reply.headers)
    return error


def foreign_problem(reply: Reply) -> Mapping[str, Any]:
    """Return a problem for the response of another program, such as a proxy."""
    if reply.status in OF_A_PROXY:
        code, detail = ServiceConnectionError.code, f"a proxy answered {reply.status} in place of {reply.url}"
    else:
        code, detail = ScoregateError.code, f"HTTP {reply.status} from {reply.url}, not in the service's form"
    return {"code": code, "detail": detail}


def problem_of(reply: Reply) -> Mapping[str, Any] | None:
    """Return the problem in a response of the service; None for the response of another program."""
    try:
        content = reply.json()
    except ScoregateError:
        return None
    ours = isinstance(content, dict) and "detail" in content and isinstance(content.get("code"), str)
    return content if ours else None


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of the header `Retry-After`; dates are ignored, since clocks differ."""
    value = headers.get("retry-after", "").strip()
    return float(value) if value.isascii() and value.isdigit() else None
