"""A JSON Lines file of results of `score_many`, to continue a stopped run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

from scoregate.answers import is_number
from scoregate.errors import (
    BadResultsError,
    InvalidError,
    NotFoundError,
    ScoregateError,
    TooLargeError,
    UrlFailedError,
    error_of,
)
from scoregate.items import Item, ScoreParams
from scoregate.results import Notice, Result
from scoregate.store import Line, Store, opened

LASTING = (InvalidError, NotFoundError, TooLargeError)  # the same item would get them again


class Resume(Store[int]):
    """
    The results of earlier runs by the index of their item, and the file to append to.

    Temporary errors are not written, so their items are scored again.

    Args:
        strict: score items with warnings again.

    Attributes:
        models: of the items with a score, of each name the first.
        is_mixed: whether items have scores of different models, as those with metrics of their own.

    Raises:
        OSError: the file cannot be read or written.
        BadResultsError: a line is not valid.
    """

    FIRST = ("index", "key")

    def __init__(self, path: str | PathLike[str], params: ScoreParams, *, strict: bool = False) -> None:
        self._params, self._strict = params, strict
        self._keys: dict[int, str] = {}  # of the items that this run came to
        super().__init__(opened(path), str(fspath(path)))
        scored = [line.get("models", {}) for line in map(self.at, self.starts.values()) if line["scores"]]
        self.models: Mapping[str, str] = dict(pair for models in reversed(scored) for pair in models.items())
        self.is_mixed = len({frozenset(models) for models in scored}) > 1

    def parsed(self, data: bytes, place: str) -> Line:
        """Return a line of an earlier run.  Raises `BadResultsError`."""
        try:
            line: Line = json.loads(data)
            line["key"] = str(line["key"])
            result_in(line)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as exc:
            raise BadResultsError(f"{place}: not a line of score_many") from exc
        return line

    def key(self, line: Line) -> int | None:
        """Return the index of the item; None if its result does not count."""
        return None if self._strict and line.get("warnings") else line["index"]

    def known(self, index: int, item: Item) -> Result | None:
        """
        Return the result of an item from an earlier run.

        Raises:
            BadResultsError: that run had another item there, or other parameters.
        """
        self._keys[index] = key = key_of(item, self._params)
        if (line := self.get(index)) is None:
            return None
        if str(line["key"]) != key:
            raise BadResultsError(
                f"{self.name}: item {index} is another one, or was scored with other parameters;"
                " name another file for another run"
            )
        result = result_in(line)
        if missing := set(self._params.metrics_of(item)) - {*result.scores, *result.errors}:
            raise BadResultsError(f"{self.name}: item {index} has no {', '.join(sorted(missing))}")
        return result

    def write(self, results: Sequence[Result]) -> None:
        """Append a line for each new result without a temporary error."""
        for result in results:
            key = self._keys.pop(result.index)
            if result.index not in self.starts and all(map(lasts, result.errors.values())):
                self.append(line_of(result, key), result.index)
        self.flush()


def result_in(entry: Mapping[str, Any]) -> Result:
    """Parse a line of the file.  Raises a built-in exception if it is not valid."""
    index, scores, request_id = entry["index"], entry["scores"], str(entry["request_id"])
    if type(index) is not int or not all(map(is_number, scores.values())):
        raise ValueError("an index or a score is no number")
    return Result(
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


def key_of(item: Item, params: ScoreParams) -> str:
    """Return a hash of an item and the parameters; a picture is represented by its path."""
    said: list[Any] = [item.prompt, item.id, dict(item.options), path_of(item.image)]
    said += [list(params.metrics_of(item)), dict(params.options or {}), params.explain]
    if item.references or item.source is not None:
        said += [[path_of(each) for each in item.references], path_of(item.source)]
    if item.orient is not None:
        said.append(item.orient)
    if span := item.span.fields:
        said.append(span)
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def path_of(image: Any) -> str:
    """Return the path of a picture; empty if it is not a path."""
    return str(fspath(image)) if isinstance(image, (str, PathLike)) else ""


def lasts(error: ScoregateError) -> bool:
    """Return True if an error is permanent; a file that the client could not read may exist later."""
    lasting = isinstance(error, LASTING) and not isinstance(error, UrlFailedError)
    return lasting and bool(error.request_id)


def line_of(result: Result, key: str) -> Line:
    """Return a result as a line of the file."""
    return {
        "index": result.index,
        "key": key,
        "id": result.id,
        "scores": dict(result.scores),
        "errors": {name: {"code": e.code, "detail": e.detail} for name, e in result.errors.items()},
        "details": result.details,
        "cache": result.cache,
        "models": dict(result.models),
        "warnings": [notice.as_json() for notice in result.warnings],
        "request_id": result.request_id,
        "question_sets": dict(result.question_sets),
    }
