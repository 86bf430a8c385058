"""`score_many` without its event loop: batches, retries of items, order, progress, its file of results."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from scoregate.connection import Connection
from scoregate.errors import (
    KINDS,
    BadImageError,
    BadResultsError,
    InvalidError,
    ModelChangedError,
    ScoregateError,
)
from scoregate.images import Frames, ImageLike, digest
from scoregate.items import Files, Item, ScoreParams, parts_of
from scoregate.records import Line, Store
from scoregate.results import Result, results_of, understood, without_warned
from scoregate.text import Progress

MAX_ITEMS = 128  # items of a request by the service's default
MATRIX_ITEMS = 32  # items of a request, if a picture has no more
MAX_BYTES = 32 * 2**20  # bytes of pictures in a request; one more still fits the service's 64 MB
ITEM_POINTER = re.compile(r"/items/([0-9]{1,9})(?:/(.*))?")


@dataclass(frozen=True)
class IndexedItem:
    """An item with its index, and its line of an earlier run."""

    index: int
    item: Item
    earlier: Line | None


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
            earlier = self._resume.earlier(index, item) if self._resume else None
            entries.append(IndexedItem(index, item, earlier))
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
            BadResultsError: an earlier run had another picture without a path there.
            ScoregateError: a request failed as a whole.
        """
        results: dict[int, Result] = {}
        async with self._turns:
            while left := [entry for entry in entries if entry.index not in results]:
                request, unsent = await asyncio.to_thread(self._packed, left)
                results.update(unsent)
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
        known = {**models, **self._models} if self._own else self._models or models
        return models_before(known, models, mixed=self._own)

    def close(self) -> None:
        """Close the file and the progress bar."""
        if self._resume:
            self._resume.close()
        if self._progress is not None:
            self._progress.close()

    def _packed(self, entries: Sequence[IndexedItem]) -> tuple[ManyRequest, dict[int, Result]]:
        """
        Return a request of the items that fit it, and the results of others.

        These cannot be encoded, or have a result of the same pictures from an earlier run.
        """
        files = Files(allow_urls=self._client.allow_urls)
        wire: list[dict[str, Any]] = []
        sent: list[IndexedItem] = []
        unsent: dict[int, Result] = {}
        for entry in entries:
            if files.size > MAX_BYTES:
                break
            try:
                item = files.item(entry.item, f"/items/{len(wire)}", self._params.options)
            except BadImageError as exc:
                unsent[entry.index] = self._failed(entry, exc.errors[0], exc)
                continue
            if self._resume and (
                known := self._resume.known(entry, [files.parts[n] for n in parts_of(item)])
            ):
                unsent[entry.index] = known
            else:
                wire.append(item)
                sent.append(entry)
        if unsent:
            files.keep(wire)
        content_type, body = files.body(self._params.request(wire))
        metrics = [item.get("metrics", self._params.metrics) for item in wire]
        return ManyRequest(sent, metrics, content_type, body), unsent

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


def is_complete(line: Line, *, strict: bool) -> bool:
    """Return True if a line of results counts in the next run: no error, and if *strict*, no warning."""
    return not (line["errors"] or (strict and line.get("warnings")))


def models_before(known: Mapping[str, str], models: Mapping[str, str], *, mixed: bool) -> Mapping[str, str]:
    """Return those of *known* that *models*, of an answer, must equal; all, or if *mixed* those it names."""
    return {name: known[name] for name in models if name in known} if mixed else known


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


class Resume(Store[int]):
    """
    The results of earlier runs by the index of their item, and the file to append to.

    An item is scored again if its line has an error, or its picture was replaced at its path.

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
        self._sent: dict[int, Line] = {}  # the first fields of the lines of items that this run sends
        super().__init__(path)
        scored = [line.get("models", {}) for line in map(self.at, self.starts.values()) if line["scores"]]
        self.models: Mapping[str, str] = dict(pair for models in reversed(scored) for pair in models.items())
        self.is_mixed = len({frozenset(models) for models in scored}) > 1

    def parsed(self, data: bytes, place: str) -> Line:
        """Return a line of an earlier run.  Raises `BadResultsError`."""
        try:
            line: Line = json.loads(data)
            Result.of_json(line)
            if missing := {"key", "sha256"} - line.keys():
                raise LookupError(missing)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as exc:
            wrong = "not a line of score_many, or of an earlier version, which noted no digest of pictures"
            raise BadResultsError(f"{place}: {wrong}: name another file") from exc
        return line

    def key(self, line: Line) -> int:
        """Return the index of the item."""
        index: int = line["index"]
        return index

    def earlier(self, index: int, item: Item) -> Line | None:
        """
        Return the line of an item from an earlier run, if any.

        Raises:
            BadResultsError: that run had another item there, or other parameters.
        """
        line = self.get(index)
        if line and line["key"] != key_of(item, self._params):
            raise self._other(index)
        if line and (missing := {*self._params.metrics_of(item)} - {*line["scores"], *line["errors"]}):
            raise BadResultsError(f"{self.name}: item {index} has no {', '.join(sorted(missing))}")
        return line

    def known(self, entry: IndexedItem, files: Sequence[bytes]) -> Result | None:
        """
        Return the result of an item from an earlier run, if it counts for *files*; else note these.

        Runs in a thread while others write, so it reads nothing.

        Raises:
            BadResultsError: that run had another picture, and neither has a path.
        """
        index, item, line = entry.index, entry.item, entry.earlier
        sha256 = digest(*files) if files else None  # the key has the address of a URL
        if line and line["sha256"] != sha256 and not path_of(item.image):
            raise self._other(index)
        if line and line["sha256"] == sha256 and is_complete(line, strict=self._strict):
            return Result.of_json(line)
        self._sent[index] = {"index": index, "key": key_of(item, self._params), "sha256": sha256}
        return None

    def write(self, results: Sequence[Result]) -> None:
        """Append a line for each result of an item that was sent."""
        for result in results:
            if begin := self._sent.pop(result.index, None):
                self.append(begin | result.as_json(), result.index)
        self.flush()

    def close(self) -> None:
        """Close the file; one with several lines of an index is replaced by one with the last of each."""
        new, has_earlier = Path(f"{self.name}.new"), self.count > len(self.starts)
        try:
            if has_earlier:
                self.copy((self.starts[index] for index in sorted(self.starts)), new)
        finally:
            super().close()
        if has_earlier:
            os.replace(new, self.name)

    def _other(self, index: int) -> BadResultsError:
        return BadResultsError(
            f"{self.name}: item {index} is another one, or was scored with other parameters;"
            " name another file for another run"
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
    if isinstance(item.image, Frames):  # a frame at a URL has no digest
        said.append([*map(path_of, item.image.frames)])
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def path_of(image: Any) -> str:
    """Return the path of a picture; empty if it is not a path."""
    return str(fspath(image)) if isinstance(image, (str, PathLike)) else ""
