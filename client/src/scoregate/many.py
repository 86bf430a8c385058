"""`score_many` without its event loop: batches, retries of items, order, progress, its file of results."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Any, NamedTuple, Protocol

from scoregate.connection import Connection
from scoregate.errors import (
    KINDS,
    BadImageError,
    BadResultsError,
    InvalidError,
    ModelChangedError,
    NotFoundError,
    ScoregateError,
    TooLargeError,
    UrlFailedError,
)
from scoregate.images import ImageLike
from scoregate.items import Files, Item, ScoreParams
from scoregate.records import Line, Store
from scoregate.results import Result, results_of, understood, without_warned
from scoregate.text import Progress

MAX_ITEMS = 128  # items of a request by the service's default
MATRIX_ITEMS = 32  # items of a request, if a picture has no more
MAX_BYTES = 32 * 2**20  # bytes of pictures in a request; one more still fits the service's 64 MB
ITEM_POINTER = re.compile(r"/items/([0-9]{1,9})(?:/(.*))?")


@dataclass(frozen=True)
class IndexedItem:
    """An item with its index, and its result of an earlier run."""

    index: int
    item: Item
    known: Result | None


class ManyRequest(NamedTuple):
    """A request of *items*, with the metrics of each; the body has their pictures."""

    items: Sequence[IndexedItem]
    metrics: Sequence[Sequence[str]]
    content_type: str
    body: bytes


class ScoringClient(Protocol):
    """What `score_many` has of a client."""

    connection: Connection
    timeout_s: float
    strict: bool
    allow_urls: bool


class Many:
    """
    One run of `score_many`.

    The caller starts `score` for each of `batches`, at most `ahead` at a time, and passes the results to
    `finish` in order.

    Args:
        client: if it is strict, items of an earlier run with warnings are scored again.
        concurrency: concurrent requests.
        batch_size: items of a request.
        allow_model_change: continue if the models change.
    """

    def __init__(
        self,
        client: ScoringClient,
        items: Iterable[Item | tuple[ImageLike, str | None]],
        params: ScoreParams,
        *,
        concurrency: int,
        batch_size: int,
        progress: bool,
        resume: str | PathLike[str] | None,
        allow_model_change: bool,
    ) -> None:
        if concurrency < 1 or batch_size < 1:
            raise ValueError("concurrency and batch_size must be at least 1")
        self._client, self._items, self._params, self._batch_size = client, items, params, batch_size
        self._allow_model_change = allow_model_change
        self._progress = Progress(len(items) if isinstance(items, Sequence) else None) if progress else None
        self._resume = None if resume is None else Resume(resume, params, strict=client.strict)
        self._models = self._resume.models if self._resume else {}  # models that gave the scores so far
        # Whether an item has metrics of its own, so that requests use different models.
        self._own = self._resume is not None and self._resume.is_mixed
        self._turns = asyncio.Semaphore(concurrency)
        self.ahead = 2 * concurrency  # one slow request must not idle the others

    def batches(self) -> Iterator[list[IndexedItem]]:
        """Yield the items in order, one list per request."""
        entries: list[IndexedItem] = []
        for index, given in enumerate(self._items):
            item = Item.of(given)
            self._own |= bool(item.metrics)
            known = self._resume.known(index, item) if self._resume else None
            entries.append(IndexedItem(index, item, known))
            if len(entries) == self._batch_size:
                yield entries
                entries = []
        if entries:
            yield entries

    async def score(self, entries: Sequence[IndexedItem]) -> list[Result]:
        """
        Score a batch.

        An item that cannot be encoded, or that the service rejects, gets the error; the others are sent
        without it.

        Raises:
            ScoregateError: a request failed as a whole.
        """
        results = {entry.index: entry.known for entry in entries if entry.known}
        async with self._turns:
            while left := [entry for entry in entries if entry.index not in results]:
                request, broken = await asyncio.to_thread(self._packed, left)
                results.update(broken)
                if request.items:
                    results.update(await self._answered(request))
        return [result for entry in entries if (result := results.get(entry.index))]

    def finish(self, results: Sequence[Result]) -> Iterator[Result]:
        """
        Write the results to the file and yield them.

        Raises:
            ModelChangedError: the models changed; raised after the results of the previous models.
        """
        change = None if self._allow_model_change else self._change(results)
        same = results[:change]
        if self._resume:
            self._resume.write(same)
        if self._progress is not None:
            for result in same:
                self._progress.step(failed=bool(result.errors))
        yield from same
        if change is not None:
            index, models = results[change].index, results[change].models
            raise ModelChangedError(
                f"item {index}: {change_of(self._before(models), models)}, and their"
                " scores are not comparable; allow_model_change=True goes on"
            )

    def _change(self, results: Sequence[Result]) -> int | None:
        """Return the position of the first result of other models than before."""
        for place, result in enumerate(results):
            if result.scores and result.models:
                if result.models != self._before(result.models):
                    return place
                self._models = {**self._models, **result.models}
        return None

    def _before(self, models: Mapping[str, str]) -> Mapping[str, str]:
        """Return the earlier models that *models* must equal."""
        if not self._own:
            return self._models or models
        return {name: self._models.get(name, label) for name, label in models.items()}

    def close(self) -> None:
        """Close the file and the progress bar."""
        if self._resume:
            self._resume.close()
        if self._progress is not None:
            self._progress.close()

    def _packed(self, entries: Sequence[IndexedItem]) -> tuple[ManyRequest, dict[int, Result]]:
        """Return a request of the items that fit it, and the results of those that cannot be encoded."""
        files = Files(allow_urls=self._client.allow_urls)
        wire: list[dict[str, Any]] = []
        sent: list[IndexedItem] = []
        broken: dict[int, Result] = {}
        for entry in entries:
            if files.size > MAX_BYTES:
                break
            try:
                wire.append(files.item(entry.item, f"/items/{len(wire)}", self._params.options))
                sent.append(entry)
            except BadImageError as exc:
                broken[entry.index] = self._failed(entry, exc.errors[0], exc)
        content_type, body = files.body(self._params.request(wire))
        metrics = [item.get("metrics", self._params.metrics) for item in wire]
        return ManyRequest(sent, metrics, content_type, body), broken

    async def _answered(self, request: ManyRequest) -> dict[int, Result]:
        """Send a request; return the results of its items, or of those alone that the service rejects."""
        sent, client = request.items, self._client
        try:
            raw = await client.connection.call(
                "POST",
                "/score",
                client.timeout_s,
                request.body,
                request.content_type,
                () if self._own else self._params.metrics,
            )
        except InvalidError as exc:
            places = [place_of(fault, len(sent)) for fault in exc.errors]
            refused = [sent[place] for place in places if place is not None]
            if not refused or len(refused) < len(places):
                raise
            faults = zip(refused, exc.errors, strict=True)
            return {entry.index: self._failed(entry, fault, exc) for entry, fault in faults}
        results = understood(results_of, raw, request.metrics)
        if client.strict:
            results = list(map(without_warned, results))
        pairs = zip(sent, results, strict=True)
        return {entry.index: replace(result, index=entry.index) for entry, result in pairs}

    def _failed(self, entry: IndexedItem, fault: Mapping[str, Any], exc: ScoregateError) -> Result:
        """Return the result of an item with a fault of its request."""
        kind = KINDS.get(str(fault.get("code")), type(exc))
        at = ITEM_POINTER.fullmatch(str(fault.get("pointer")))
        detail = ": ".join(filter(None, [at and at[2], str(fault.get("detail"))]))
        error = kind(detail, status=exc.status, request_id=exc.request_id)
        return Result.failed(entry.index, entry.item.id, self._params.metrics_of(entry.item), error)


def change_of(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Describe the models that changed."""
    names = sorted(name for name in {**before, **after} if before.get(name) != after.get(name))
    return "; ".join(
        f"{name} was {before.get(name, 'not there')} and is {after.get(name, 'gone')}" for name in names
    )


def place_of(fault: Mapping[str, Any], count: int) -> int | None:
    """Return the index of the item that a fault of a request points to, if any."""
    found = ITEM_POINTER.match(str(fault.get("pointer")))
    return int(found[1]) if found and int(found[1]) < count else None


# --- a file of results, to continue a stopped run ---


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
        self._keys: dict[int, str] = {}  # keys of the items that this run came to
        super().__init__(path)
        scored = [line.get("models", {}) for line in map(self.at, self.starts.values()) if line["scores"]]
        self.models: Mapping[str, str] = dict(pair for models in reversed(scored) for pair in models.items())
        self.is_mixed = len({frozenset(models) for models in scored}) > 1

    def parsed(self, data: bytes, place: str) -> Line:
        """Return a line of an earlier run.  Raises `BadResultsError`."""
        try:
            line: Line = json.loads(data)
            line["key"] = str(line["key"])
            Result.of_json(line)
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
        result = Result.of_json(line)
        if missing := set(self._params.metrics_of(item)) - {*result.scores, *result.errors}:
            raise BadResultsError(f"{self.name}: item {index} has no {', '.join(sorted(missing))}")
        return result

    def write(self, results: Sequence[Result]) -> None:
        """Append a line for each new result without a temporary error."""
        for result in results:
            key = self._keys.pop(result.index)
            if result.index not in self.starts and all(map(lasts, result.errors.values())):
                self.append({"index": result.index, "key": key} | result.as_json(), result.index)
        self.flush()


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
