"""Items to score, and the bodies of requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from typing import Any

from scoregate.errors import BadImageError
from scoregate.http import httpx
from scoregate.images import VIDEO_FRAMES, ImageLike, check_one, encoded, frames_of, is_url
from scoregate.results import Report, Result, report_of
from scoregate.text import hinted_keywords


@hinted_keywords
@dataclass(frozen=True)
class TimeSpan:
    """
    A part of a video file, and the frames of it that are scored.

    Attributes:
        start, end: seconds from the first frame; None for those of the file.
        fps: frames that are taken from each second; without a rate the service takes 16 of the whole part.
    """

    start: float | None = None
    end: float | None = None
    fps: float | None = None

    @property
    def fields(self) -> dict[str, float]:
        """Its fields of a request, without those that are not given."""
        return given(start=self.start, end=self.end, fps=self.fps)


@hinted_keywords
@dataclass(frozen=True, kw_only=True)
class Accept:
    """
    The pictures of a ranking that are accepted; all by default.

    Attributes:
        top_k: the number of the best ones.
        threshold: the worst score.
        on_error: for pictures that fail or cannot be encoded: `raise` an error, or rank them last, as
            accepted (`pass`) or not accepted (`block`).
    """

    top_k: int | None = None
    threshold: float | None = None
    on_error: str = "raise"


@hinted_keywords
@dataclass(frozen=True)
class Cascade:
    """
    A cheap metric that orders all pictures of a ranking, so that only its best are ranked by the other.

    Attributes:
        keep: the number of these.
        on_deadline: `cheap` falls back to the cheap metric's order at the deadline; `fail` raises.
    """

    metric: str
    keep: int
    on_deadline: str = "fail"


@hinted_keywords
@dataclass(frozen=True)
class Pairing:
    """
    The pairs of a comparison.

    Attributes:
        schedule: `all` pairs; `{"kind": "swiss", "pairs_per_image": 4}`, or `anchor`.
        noise: the largest difference of two scores that is a tie.
        on_error: for pictures that cannot be encoded here: `raise` an error, or `fail` their pairs.
    """

    schedule: str | Mapping[str, Any] = "all"
    noise: float | None = None
    on_error: str = "raise"


WHOLE_VIDEO = TimeSpan()
ALL_IMAGES = Accept()
ALL_PAIRS = Pairing()


@hinted_keywords
@dataclass(frozen=True, kw_only=True)
class Item:
    """
    One picture and the prompt that it is judged against.

    Attributes:
        prompt: None or empty for metrics that read none, such as `aesthetic`.
        image: in any form that `scoregate.images.encoded` takes; the frames of one scene are `Frames`.
        id: returned with the scores.
        metrics: those that score it, in place of the request's.
        options: of this item, by metric; they override those of the request.
        references: 0 to 3 other pictures, for metrics that compare with them.
        source: the picture before an edit, for metrics that use it.
        orient: `exif` applies the EXIF orientation of the pictures, `as_stored` ignores it; by default the
            service's setting.
        span: of a video file.
        group: for decisions alone: of the items of a group at most `keep` are accepted.

    Raises:
        TypeError: an image is a list, or an array of several.
    """

    prompt: str | None
    image: ImageLike
    id: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    references: Sequence[ImageLike] = ()
    source: ImageLike | None = None
    orient: str | None = None
    span: TimeSpan = WHOLE_VIDEO
    metrics: Sequence[str] = ()
    group: str | None = None

    def __post_init__(self) -> None:
        check_one(self.image)
        check_one(self.source, "source")
        for place, each in enumerate(self.references):
            check_one(each, f"references[{place}]")

    @classmethod
    def of(cls, given: Item | tuple[ImageLike, str | None]) -> Item:
        """Return an item, also of a tuple (image, prompt).  Raises `TypeError` for anything else."""
        if isinstance(given, Item):
            return given
        if isinstance(given, (tuple, list)) and len(given) == 2 and isinstance(given[1], str | None):
            return cls(prompt=given[1], image=given[0])
        raise TypeError("give scoregate.Item or a tuple (image, prompt)")


class Files:
    """
    The files of one request; a picture that several items name is read and sent once.

    Args:
        allow_urls: send URLs; otherwise they are errors.

    Attributes:
        parts: the files by name.
        size: their bytes.
    """

    def __init__(self, *, allow_urls: bool = False) -> None:
        self._allow_urls = allow_urls
        self._named: dict[Any, tuple[str, Any]] = {}  # the picture is kept, so that no other gets its id
        self._frames_of: dict[tuple[int, int], tuple[Any, Any]] = {}  # their number belongs to the key
        self.parts: dict[str, bytes] = {}
        self.size = 0

    def item(self, item: Item, place: str, shared: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """
        Return an item of a request.

        Args:
            shared: options of the request, by metric.

        Raises:
            BadImageError: a picture cannot be encoded.
        """
        taken = max([VIDEO_FRAMES, *samples_in(shared or {}), *samples_in(item.options)])
        image = self.add(item.image, f"{place}/image", taken)
        wire: dict[str, Any] = {"prompt": item.prompt, "image": image} if item.prompt else {"image": image}
        if item.id is not None:
            wire["id"] = item.id
        if item.metrics:
            wire["metrics"] = names_of(item.metrics)
        if item.options:
            wire["options"] = dict(item.options)
        if item.references:
            wire["references"] = [
                self.add(each, f"{place}/references/{index}") for index, each in enumerate(item.references)
            ]
        if item.source is not None:
            wire["source"] = self.add(item.source, f"{place}/source")
        return wire | given(orient=item.orient) | item.span.fields

    def images(self, images: Sequence[Any], *, strict: bool) -> tuple[list[Any], Mapping[int, BadImageError]]:
        """
        Add the `images` of a request; return their references, and by index the errors of those without one.

        Raises:
            TypeError: one is a list.
            BadImageError: *strict* is set, and one cannot be encoded.
        """
        for index, image in enumerate(images):
            check_one(image, f"images[{index}]")
        if strict:
            return [self.add(image, f"/images/{place}") for place, image in enumerate(images)], {}
        return packed(self.add, images, "/images")

    def add(self, image: Any, place: str, taken: int = VIDEO_FRAMES) -> Any:
        """
        Add *image*, or each frame of a video, and return its reference for the request.

        Args:
            taken: frames of a long video.

        Raises:
            BadImageError: it cannot be encoded; the error begins with *place*, a JSON pointer.
        """
        if isinstance(image, (bytes, str, PathLike)):  # the service takes the frames of a file
            return self._add(image, place)
        frames = self._frames(image, place, taken)
        if isinstance(frames, list):
            return [self._add(frame, f"{place}/{index}") for index, frame in enumerate(frames)]
        return self._add(image, place)

    def empty(self) -> dict[str, Any]:
        """Return the reference of a file without content, in place of a picture that cannot be encoded."""
        self.parts["empty"] = b""
        return {"part": "empty"}

    def _frames(self, image: Any, place: str, taken: int) -> Any:
        """Return the frames of *image*, the same objects at each call; an image without frames itself."""
        key = id(image), taken
        if key not in self._frames_of:
            try:
                self._frames_of[key] = image, frames_of(image, taken)
            except BadImageError as exc:
                raise located(exc, place) from None
        return self._frames_of[key][1]

    def _add(self, image: Any, place: str) -> Any:
        if self._allow_urls and is_url(image):
            return {"url": image}
        key = key_of(image)
        if key not in self._named:
            try:
                data = encoded(image)
            except BadImageError as exc:
                raise located(exc, place) from None
            name = f"image{len(self._named)}"
            self._named[key] = name, image
            self.parts[name] = data
            self.size += len(data)
        return {"part": self._named[key][0]}

    def keep(self, wire: Sequence[Mapping[str, Any]]) -> None:
        """Drop the files that none of the items of the wire format names."""
        self.parts = {name: self.parts[name] for item in wire for name in parts_of(item)}

    def body(self, request: Mapping[str, Any]) -> tuple[str, bytes]:
        """
        Return the content type and the body: *request* as JSON in the part `request`, then the files.

        The body is joined here, since httpx2 would write each part to the socket separately: for 32 small
        files, the writes would take 6 ms of the event loop, and one write takes 1 ms.

        Raises:
            ValueError: a number of the request is not finite.
            TypeError: a value of the request is not JSON.
        """
        content = json.dumps(request, allow_nan=False).encode()
        parts: dict[str, Any] = {"request": (None, content, "application/json")}
        parts |= {name: (name, data) for name, data in self.parts.items()}
        built = httpx.Request("POST", "", files=parts)
        return built.headers["Content-Type"], built.read()

    def sent(self, items: Sequence[Item]) -> list[tuple[str, bytes | None]]:
        """Return the prompt of each item, and its image that was added, see `file_of`."""
        return [(item.prompt or "", self.file_of(item.image)) for item in items]

    def file_of(self, image: Any) -> bytes | None:
        """Return the file of a picture that was added, the first of several frames; None for a URL."""
        frames = next((frames for added, frames in self._frames_of.values() if added is image), image)
        first = frames[0] if isinstance(frames, list) else image
        name, _ = self._named.get(key_of(first), ("", None))
        return self.parts.get(name)


def parts_of(wire: Mapping[str, Any]) -> list[str]:
    """Return the names of the files of an item: picture or frames, references, source; a URL has none."""
    image, source = wire["image"], wire.get("source")
    named = [*(image if isinstance(image, list) else [image]), *wire.get("references", ())]
    return [each["part"] for each in [*named, *([source] if source else [])] if "part" in each]


def samples_in(options: Mapping[str, Any]) -> list[int]:
    """Return the option `samples` of each metric that has it."""
    given = [each.get("samples") for each in options.values() if isinstance(each, Mapping)]
    return [count for count in given if isinstance(count, int)]


def packed(
    add: Callable[[Any, str], Any], things: Sequence[Any], place: str
) -> tuple[list[Any], dict[int, BadImageError]]:
    """Add *things* to a request; return their references, and by index the errors of those without one."""
    found = [added(add, thing, f"{place}/{index}") for index, thing in enumerate(things)]
    wire = [each for each in found if not isinstance(each, BadImageError)]
    return wire, {index: each for index, each in enumerate(found) if isinstance(each, BadImageError)}


def added(add: Callable[[Any, str], Any], thing: Any, place: str) -> Any:
    """Return the reference of *thing*; or its error, without its *place* in the request."""
    try:
        return add(thing, place)
    except BadImageError as exc:
        [fault] = exc.errors
        field = fault["pointer"].removeprefix(place).lstrip("/")
        return type(exc)(": ".join(filter(None, [field, fault["detail"]])))


def located(error: BadImageError, place: str) -> BadImageError:
    """Return *error* with the place of the picture, a JSON pointer."""
    fault = {"pointer": place, **error.as_json()}
    return type(error)(f"{place}: {error.detail}", errors=[fault])


def key_of(image: Any) -> Any:
    """Return the key of a picture, to send it once: its path, or the id of the object."""
    return image if isinstance(image, (str, PathLike)) else id(image)


@dataclass(frozen=True)
class ScoreParams:
    """The parameters of a request that hold for all its items."""

    metrics: Sequence[str]
    options: Mapping[str, Any] | None
    explain: bool
    priority: str

    def metrics_of(self, item: Item) -> Sequence[str]:
        """Return the metrics of *item*: its own, or those of the request."""
        return names_of(item.metrics) or self.metrics

    def request(self, wire: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the body of `POST /score` for items of the wire format."""
        return given(
            items=list(wire),
            metrics=list(self.metrics),
            options=self.options or None,
            explain=self.explain or None,
            priority=self.priority,
        )


@dataclass(frozen=True)
class ScoreBody:
    """
    The body of `POST /score`: the items of one request.

    Attributes:
        unsent: the results of those that cannot be encoded, by index, once the request is made.
        shown: the prompt and the picture of each, likewise.
    """

    items: Sequence[Item]
    params: ScoreParams
    unsent: dict[int, Result] = field(default_factory=dict)
    shown: list[tuple[str, bytes | None]] = field(default_factory=list)

    def request(self, files: Files) -> dict[str, Any] | None:
        """Return the body of `POST /score`, whose pictures are in *files*; None if no item can be encoded."""
        wire, broken = packed(partial(files.item, shared=self.params.options), self.items, "/items")
        for place, error in broken.items():
            item = self.items[place]
            self.unsent[place] = Result.failed(place, item.id, self.params.metrics_of(item), error)
        self.shown.extend(files.sent(self.items))
        return None if self.unsent and not wire else self.params.request(wire)

    def report(self, raw: Mapping[str, Any], *, strict: bool) -> Report:
        """Parse the response, as `report_of`.  Raises `ScoregateError`."""
        metrics = [*map(self.params.metrics_of, self.items)]
        return report_of(raw, metrics, self.shown, self.unsent, strict=strict)


def given(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def names_of(metrics: Sequence[str] | str) -> list[str]:
    """Return the metrics as a list; a single one may be given as its name.  Raises `TypeError`."""
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"give a name or a list of names, not {metrics!r}")
    return names


def name_of(metric: str, several: str = "score_items and score_many take several") -> str:
    """Return the metric of a call that takes one.  Raises `TypeError` with the way to give *several*."""
    if not isinstance(metric, str):
        raise TypeError(f"metric is one name, not {metric!r}; {several}")
    return metric


def check_prompt(prompt: str | None) -> None:
    """Raise `TypeError` for pictures in the place of their prompt."""
    if not isinstance(prompt, str | None):
        raise TypeError(f"the prompt comes first, then the pictures: {type(prompt).__name__} is no prompt")
