"""
The dialects whose bodies are pickles, at `POST /` of a port of their own.

flow_grpo and ddpo-pytorch read the pickle of every response and ignore its status; verl-omni and deepgen_rl
check it.  A pickled dict with `error` and a status that is not 200 ends all of them, and `Retry-After` makes
all but deepgen_rl wait.
"""

import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.core.errors import Draining, Invalid, MethodNotAllowed, ScoregateError
from service.core.fields import MAX_PROMPT, Prompt
from service.metrics.common.contract import Metric, Score, TrainerFormat
from service.web.dialects.pickled.opcodes import LongText
from service.web.dialects.pickled.reader import read_pickle
from service.web.dialects.registry import Dialect
from service.web.dialects.scoring import DialectScoring, Wanted, answer_to, raise_most_telling
from service.web.server import body
from service.web.server.body import Raw
from service.wiring.bootstrap import Service

PROMPT: TypeAdapter[str] = TypeAdapter(Prompt)
ANSWER = "The image contains "  # what ddpo-pytorch puts before each prompt


@dataclass(frozen=True, slots=True)
class Pickled:
    """
    Attributes:
        images: picture files.
        prompts: one per image; None without any.
        entries: by key, other values of each picture.
        alone: whether there are only pictures.
        compared: whether it is ddpo-pytorch's request for a comparison of texts, which expects more.
    """

    images: list[bytes]
    prompts: list[str] | None
    entries: Mapping[str, list[Any]]
    alone: bool
    compared: bool


def request_of(value: Any, keys: Collection[str], check_size: Callable[[int], None]) -> Pickled:
    """
    Check the plain *value* of a body.

    Args:
        keys: of entries that metrics read, at the top level or in the `metadata`.
        check_size: raises `Invalid` for too many pictures, or too few.

    Raises:
        Invalid: it names the place.
    """
    if not isinstance(value, dict):
        raise Invalid(f"the pickle must hold a dict with images and prompts, not {kind(value)}")
    images = listed(value.get("images"), "images")
    check_size(len(images))
    compared = "prompts" not in value and "answers" in value
    named = "answers" if compared else "prompts"
    prompts = None if value.get(named) is None else of_each(value[named], named, images)
    if prompts is not None:
        prompts = [prompt(answer(each) if compared else each, number) for number, each in enumerate(prompts)]
    metadata = value.get("metadata")
    places = [value, metadata] if isinstance(metadata, dict) else [value]
    entries = {
        key: of_each(place[key], key, images)
        for key in keys
        for place in places
        if not (place.get(key) is None or place[key] == [])
    }
    found = [image(each, number) for number, each in enumerate(images)]
    return Pickled(found, prompts, entries, value.keys() == {"images"}, compared)


def listed(value: Any, name: str) -> list[Any]:
    """Return a list or a tuple as a list.  Raises `Invalid`."""
    if not isinstance(value, list | tuple):
        raise Invalid(f"{name}: must be a list, not {kind(value)}")
    return list(value)


def of_each(value: Any, name: str, images: Collection[Any]) -> list[Any]:
    """Return a list with an entry for each of *images*.  Raises `Invalid`."""
    found = listed(value, name)
    if len(found) != len(images):
        raise Invalid(f"{len(images)} images and {len(found)} {name}: send one for each")
    return found


def image(value: Any, number: int) -> bytes:
    """Return a picture's file.  Raises `Invalid`."""
    if not isinstance(value, bytes | bytearray):
        raise Invalid(f"images/{number}: must be the bytes of a picture file, not {kind(value)}")
    return bytes(value)


def prompt(value: Any, number: int) -> str:
    """Check a prompt.  Raises `Invalid`."""
    if isinstance(value, LongText):
        raise Invalid(f"prompts/{number}: String should have at most {MAX_PROMPT} characters")
    try:
        return PROMPT.validate_python(value, strict=True)
    except ValidationError as exc:
        detail = exc.errors()[0]["msg"].removeprefix("Value error, ")
        raise Invalid(f"prompts/{number}: {detail}") from exc


def answer(value: Any) -> Any:
    """Return the prompt in an answer of ddpo-pytorch: a list of one text."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return value[0].removeprefix(ANSWER)
    return value


def kind(value: Any) -> str:
    """Return the name of a value's type in error messages."""
    if isinstance(value, LongText):
        return "str"
    return "nothing" if value is None else type(value).__name__


class PickleRequest:
    """
    The metric and the pictures of one request.

    Args:
        named: the metric in its path; empty without one.

    Raises:
        UnknownMetric: its metric is not served.
        Invalid: an input of the metric is missing or wrong; the error names the place.
    """

    def __init__(self, request: Pickled, named: str, dialects: DialectScoring) -> None:
        self._compared = request.compared
        self._metric = dialects.known[named or metric_of(request, dialects)]
        self._format = format_in(request, self._metric)
        if self._format:
            self.wanted = self._by_entries(request, self._format, dialects)
            return
        if request.prompts is None and self._metric.reads_prompt:
            raise no_prompts(self._metric, dialects)
        prompts = request.prompts or [""] * len(request.images)
        self.wanted = [
            Wanted(prompt, image, (self._metric.name,))
            for image, prompt in zip(request.images, prompts, strict=True)
        ]

    def _by_entries(
        self, request: Pickled, form: TrainerFormat[Any], dialects: DialectScoring
    ) -> list[Wanted]:
        name, options = self._metric.name, dialects.options(self._metric)
        wanted = []
        for number, (image, entry) in enumerate(zip(request.images, request.entries[form.key], strict=True)):
            try:
                own = form.options_of(entry, options)
            except Invalid as error:
                raise error.of_part(f"{form.key}/{number}") from None
            wanted.append(Wanted(own.prompt, image, (name,), {name: own}))
        return wanted

    def answer(self, outcomes: Sequence[Any]) -> dict[str, Any]:
        """Build the response that the trainer reads; all outcomes must be scores."""
        found = [each[self._metric.name] for each in outcomes]
        scores = [score for score in found if isinstance(score, Score)]
        if self._format:
            return self._format.answer(scores)
        # Each client reads one of these names.
        names = ("scores", "outputs", *(("recall", "precision", "f1") if self._compared else ()))
        values = [score.value for score in scores]
        return dict.fromkeys(names, values)


def metric_of(request: Pickled, dialects: DialectScoring) -> str:
    """
    Return the metric of a request that names none.

    This is the metric whose entries it has; for pictures alone, the one that needs no prompts; else that of
    the settings.  Raises `UnknownMetric` if it is not served.
    """
    for metric in dialects.known.values():
        if format_in(request, metric):
            return dialects.metric(metric.name)
    chosen = dialects.metric(None)
    if request.alone and dialects.known[chosen].reads_prompt and len(free := without_prompts(dialects)) == 1:
        return free[0]
    return chosen


def format_in(request: Pickled, metric: Metric) -> TrainerFormat[Any] | None:
    """Return the entry format of *metric*, if the request has such entries."""
    return metric.trainers if metric.trainers and metric.trainers.key in request.entries else None


def without_prompts(dialects: DialectScoring) -> list[str]:
    """Return the served metrics that need the picture alone."""
    return [
        name
        for name, metric in dialects.known.items()
        if not metric.reads_prompt and not metric.uses_of() and not dialects.absent(name)
    ]


def no_prompts(metric: Metric, dialects: DialectScoring) -> Invalid:
    free = " or ".join(f"/{name}" for name in without_prompts(dialects))
    other = f", or to the path {free}, which needs none" if free else ""
    return Invalid(
        f'the request has no "prompts", and {metric.name} scores a picture against its prompt: '
        f'send {{"images": [bytes, …], "prompts": [str, …]}}{other}'
    )


START, STOP, MARK = b"\x80\x02", b".", b"("
EMPTY_DICT, SETITEMS = b"}", b"u"
EMPTY_LIST, APPENDS = b"]", b"e"
BINFLOAT, BINUNICODE = b"G", b"X"

Value: TypeAlias = "str | Sequence[float] | Mapping[str, Value]"


def written(answer: Mapping[str, Value]) -> bytes:
    """Pickle a dict."""
    return START + dict_of(answer) + STOP


def value_of(value: Value) -> bytes:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return dict_of(value)
    numbers = b"".join(BINFLOAT + struct.pack(">d", number) for number in value)
    return EMPTY_LIST + MARK + numbers + APPENDS


def dict_of(values: Mapping[str, Value]) -> bytes:
    items = b"".join(text(key) + value_of(value) for key, value in values.items())
    return EMPTY_DICT + MARK + items + SETITEMS


def text(value: str) -> bytes:
    encoded = value.encode("utf-8", "replace")
    return BINUNICODE + struct.pack("<I", len(encoded)) + encoded


ROUTE = SimpleNamespace(path="pickle")  # Prometheus metrics and the log have it as the route
PICKLE = "application/octet-stream"


def failed(error: ScoregateError, request_id: str) -> Response:
    """Build the response to an error."""
    status, headers = answer_to(error)
    return Response(written({"error": error.detail, "code": error.code}), status, headers, PICKLE)


class PickleApp:
    """The app that answers `POST /`, and `POST /METRIC` by that metric."""

    def __init__(self, service: Service, dialects: DialectScoring) -> None:
        self._service, self._dialects = service, dialects
        service.instruments.add_route(ROUTE.path, asks_models=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] != "http":
            return
        scope["route"] = ROUTE
        answer = await self._scores(Request(scope, receive))
        await Response(answer, media_type=PICKLE)(scope, receive, send)

    async def _scores(self, request: Request) -> bytes:
        """Return the pickled response.  Raises the most important error if a picture has no score."""
        if self._service.draining:
            raise Draining
        if request.method != "POST":
            raise MethodNotAllowed("only POST is served here")
        named = request.url.path.strip("/")
        if named:
            self._dialects.metric_of_path(named)
        sent = await self._read(request, named)
        timeout_s = self._service.settings.dialects.timeouts_s.pickle
        outcomes = await self._dialects.scored(request, sent.wanted, timeout_s, in_windows=True)
        raise_most_telling((f"images/{number}", found) for number, found in enumerate(outcomes))
        return written(sent.answer(outcomes))

    async def _read(self, request: Request, named: str) -> PickleRequest:
        """Read the request.  Raises `Malformed`, `TooLarge`, `Invalid`, `CallerGone`."""
        # A thread reads it: opcodes take microseconds, and a small body may hold thousands.
        work = partial(self._parsed, named)
        return await body.parsed(request, work, await body.whole(request))

    def _parsed(self, named: str, pickled: Raw) -> PickleRequest:
        value = read_pickle(pickled, self._service.settings.server.body_limit_mb * 2**20)
        keys = [metric.trainers.key for metric in self._dialects.known.values() if metric.trainers]
        return PickleRequest(request_of(value, keys, self._dialects.check_shard), named, self._dialects)


dialect = Dialect(
    "pickle", clients="flow_grpo, ddpo-pytorch, deepgen_rl, verl-omni", app=PickleApp, error_format=failed
)
