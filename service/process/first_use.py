"""The models that a request of this process needs, read from its JSON before the app reads it."""

from collections.abc import Iterator

import orjson

from service.core.errors import ScoregateError
from service.serving.handle import Handle
from service.web.server.body import parse
from service.web.wire.decide import DecideRequest
from service.web.wire.requests import QuestionsRequest
from service.web.wire.types import Requests
from service.wiring.bootstrap import Service

FORM = "multipart/form-data"


def needed_by(
    service: Service, requests: Requests, path: str, content_type: str, content: bytes
) -> dict[str, Handle]:
    """Return the models that a request may use, by name; none if the app refuses it."""
    path = path.partition("?")[0]
    try:
        if path == "/questions":
            wanted: QuestionsRequest = parse(json_in(content_type, content), requests.questions)
            _, writer = service.engine.catalog.style(wanted.style, {})
            return {writer.name: writer} if writer else {}
        metrics = [*metrics_of(service, requests, path, json_in(content_type, content))]
    except ScoregateError:
        return {}
    used = service.engine.catalog.used
    return {handle.name: handle for name in metrics for handle in used.get(name, ())}


def metrics_of(service: Service, requests: Requests, path: str, body: bytes) -> Iterator[str]:
    """Yield the metrics of a request.  Raises `ScoregateError` if the body is not valid."""
    match path:
        case "/score":
            yield from parse(body, requests.score).asked().values()
        case "/rank":
            yield from parse(body, requests.rank).metrics.values()
        case "/compare":
            yield parse(body, requests.compare).named
        case "/decide":
            decide: DecideRequest = parse(body, requests.decide)
            for name in decide.named.values():
                yield from service.policies[name].rules.metrics if name in service.policies else ()
        case "/policies":  # their ids name the models
            for policy in service.policies.values():
                yield from policy.rules.metrics
        case "/models" if body:
            yield from orjson.loads(body)["metrics"]


def json_in(content_type: str, content: bytes) -> bytes:
    """Return the JSON of a body; a form of the client begins with it."""
    if not content_type.startswith(FORM):
        return content
    boundary = content_type.partition("boundary=")[2].strip('"').encode()
    begin = content.find(b"\r\n\r\n") + 4
    return content[begin : content.find(b"\r\n--" + boundary, begin)]
