"""A JSON Lines file of results, to continue a stopped run."""

from __future__ import annotations

import hashlib
import json
import re
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
from scoregate.notices import Notice
from scoregate.records import check_regular
from scoregate.results import Result

CLIP = ("start", "end", "fps")  # of an item
LASTING = (InvalidError, NotFoundError, TooLargeError)  # the same item would get them again


class Resume:
    """
    The results of earlier runs, and the file to append to.

    An incomplete last line of such a file is cut off, and its item is scored again.  Temporary errors are not
    written, so their items are scored again, too.

    Args:
        strict: score items with warnings again.

    Raises:
        OSError: the file cannot be read or written.
        BadResultsError: a line is not valid.
    """

    def __init__(self, path: str | PathLike[str], params: ScoreParams, *, strict: bool = False) -> None:
        self._path, self._params, self._strict = path, params, strict
        self._known: dict[int, tuple[str, Result]] = {}  # with the keys of their items
        self._keys: dict[int, str] = {}  # of the items that this run came to
        check_regular(path)
        self._file = open(path, "a+b")  # noqa: SIM115, closed by `close`
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    def known(self, index: int, item: Item) -> Result | None:
        """
        Return the result of an item from an earlier run.

        Raises:
            BadResultsError: that run had another item there, or other parameters.
        """
        self._keys[index] = key = key_of(item, self._params)
        if index not in self._known:
            return None
        known, result = self._known[index]
        if known != key:
            raise BadResultsError(
                f"{fspath(self._path)}: item {index} is another one, or was scored with other parameters;"
                " name another file for another run"
            )
        if missing := set(self._params.metrics_of(item)) - {*result.scores, *result.errors}:
            raise BadResultsError(f"{fspath(self._path)}: item {index} has no {', '.join(sorted(missing))}")
        return result

    @property
    def models(self) -> Mapping[str, str]:
        """The models of the items with a score, of each name the first."""
        models: dict[str, str] = {}
        for _, result in self._known.values():
            if result.scores:
                models = {**result.models, **models}
        return models

    @property
    def is_mixed(self) -> bool:
        """True if items have scores of different models, as those with metrics of their own."""
        return len({frozenset(result.models) for _, result in self._known.values() if result.scores}) > 1

    def write(self, results: Sequence[Result]) -> None:
        """Append a line for each new result without a temporary error."""
        for result in results:
            key = self._keys.pop(result.index)
            if result.index not in self._known and all(map(lasts, result.errors.values())):
                self._file.write(line_of(result, key))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self) -> None:
        self._file.seek(0)
        whole = 0
        for number, line in enumerate(self._file, 1):
            if is_torn(line, "index", "key"):
                break
            try:
                entry = json.loads(line)
                key, result = str(entry["key"]), result_in(entry)
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as exc:
                raise BadResultsError(
                    f"{fspath(self._path)}, line {number}: not a line of score_many"
                ) from exc
            if not line.endswith(b"\n"):
                break
            if not (self._strict and result.warnings):
                self._known[result.index] = key, result
            whole += len(line)
        self._file.truncate(whole)


def is_torn(line: bytes, first: str, second: str) -> bool:
    """
    Return True for the beginning of a line of JSON that was not written to its end.

    Args:
        first, second: the names of the first fields of such a line; the first one's value is a number.
    """
    digits = re.match(rb'\{"%b": (\d+)' % first.encode(), line)
    head = b'{"%b": %b, "%b": ' % (first.encode(), digits[1] if digits else b"", second.encode())
    if line.endswith(b"\n") or not (head.startswith(line) or line.startswith(head)):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False


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
    if clip := {name: value for name in CLIP if (value := getattr(item, name)) is not None}:
        said.append(clip)
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def path_of(image: Any) -> str:
    """Return the path of a picture; empty if it is not a path."""
    return str(fspath(image)) if isinstance(image, (str, PathLike)) else ""


def lasts(error: ScoregateError) -> bool:
    """Return True if an error is permanent; a file that the client could not read may exist later."""
    lasting = isinstance(error, LASTING) and not isinstance(error, UrlFailedError)
    return lasting and bool(error.request_id)


def line_of(result: Result, key: str) -> bytes:
    """Return a result as a line of the file."""
    entry = {
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
    return json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n"
