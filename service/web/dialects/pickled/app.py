"""
The dialects whose bodies are pickles, at `POST /` of a port of their own.

flow_grpo and ddpo-pytorch read the pickle of every response and ignore its status; verl-omni and deepgen_rl
check it.  A pickled dict with `error` and a status that is not 200 ends all of them, and `Retry-After` makes
all but deepgen_rl wait.
"""

import struct
from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.core.errors import Draining, MethodNotAllowed, ScoregateError
from service.web.dialects.pickled.reader import read_pickle
from service.web.dialects.pickled.requests import RewardCall, request_of
from service.web.dialects.scoring import DialectScoring, answer_to, raise_most_telling
from service.web.server import body
from service.web.server.body import Raw
from service.wiring.bootstrap import Service

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


ROUTE = SimpleNamespace(path="pickle")  # in Prometheus metrics and the log
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
        reward = await self._read(request, named)
        timeout_s = self._service.settings.dialects.timeouts_s.pickle
        outcomes = await self._dialects.scored(request, reward.wanted, timeout_s, in_windows=True)
        raise_most_telling((f"images/{number}", found) for number, found in enumerate(outcomes))
        return written(reward.answer(outcomes))

    async def _read(self, request: Request, named: str) -> RewardCall:
        """Read the request.  Raises `Malformed`, `TooLarge`, `Invalid`, `CallerGone`."""
        # Off the event loop: opcodes take microseconds, and a small body may hold thousands.
        work = partial(self._reward, named)
        return await body.parsed(request, work, await body.whole(request))

    def _reward(self, named: str, pickled: Raw) -> RewardCall:
        value = read_pickle(pickled, self._service.settings.server.body_limit_mb * 2**20)
        keys = [metric.trainers.key for metric in self._dialects.known.values() if metric.trainers]
        return RewardCall(request_of(value, keys, self._dialects.check_shard), named, self._dialects)
