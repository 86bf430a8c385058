"""A request's body to a checked wire type: JSON, or a form that holds JSON or plain fields."""

import json
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request

from service.core.concurrency.disconnect import CallerGone
from service.core.errors import Malformed, TooLarge, UnsupportedMediaType
from service.core.settings.sections import Server
from service.metrics.common.contract import MAX_PICTURES
from service.web.problems import invalid
from service.web.server.incoming import BODY, Body, Raw
from service.web.server.multipart import read_multipart
from service.web.server.plain_form import content_of
from service.web.wire.translate import Parts

B = TypeVar("B", bound=BaseModel)
T = TypeVar("T")

# Bytes that are parsed on the event loop: at most 12 ms, for question sets that all differ.  A body may hold
# tens of megabytes of base64.
SMALL = 64 * 2**10

# Values of one body: above what valid requests hold (128 prompts of 4,000 commas; 128 sets of 64 questions
# are a tenth of it), and below what takes more than some 50 MB once read.
MAX_VALUES = 600_000
WINDOW = 256 * 2**10  # bytes that are scanned in one step

FORM = "application/x-www-form-urlencoded"
CURL = ". For curl with JSON use --json, or add -H 'Content-Type: application/json'"  # its -d sends FORM


async def read(request: Request, wire: type[B], limits: Server) -> tuple[B, Parts]:
    """Read and check the body, and return it with its file parts.  Raises as `read_as`."""
    return await read_as(request, wire, limits, lambda content: content)


async def read_as(
    request: Request, wire: type[B], limits: Server, convert: Callable[[B], T]
) -> tuple[T, Parts]:
    """
    Read and check the body, and return what *convert* makes of it, with its file parts.

    Args:
        convert: called on the thread that parses a large body, so that it delays no other request.

    Raises:
        UnsupportedMediaType: declared as neither JSON nor multipart, or compressed.
        Malformed: not JSON, or broken multipart.
        TooLarge: more values than any valid request holds.
        CallerGone: the caller disconnected before the end of the body.
        Invalid: the JSON is not the wire type, and every wrong place is named; or *convert* raises it.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    parts: dict[str, bytes] = {}
    body: Raw
    if kind == "multipart/form-data":
        max_files = limits.max_items * MAX_PICTURES + 1  # the JSON may be a file part, too
        content_type = request.headers["content-type"]
        form = await read_multipart(content_type, chunks(request), max_files)
        sent, parts = form.read()
        if sent is None:
            others = [name for name in parts if name not in form.images]
            content = content_of(form.fields(), form.images, others, wire)
            return convert(checked(content, wire)), parts
        body = sent
    elif kind in ("", "application/json") or kind.endswith("+json"):
        body = await whole(request)
    else:
        raise UnsupportedMediaType(
            f"{kind[:80]}; {UnsupportedMediaType.detail}{CURL if kind == FORM else ''}"
        )
    return await parsed(request, lambda raw: convert(parse(raw, wire)), body), parts


async def chunks(request: Request) -> AsyncIterator[bytes]:
    """
    Yield the body as it arrives.

    Raises:
        UnsupportedMediaType: the body is compressed.
        CallerGone: the caller disconnected before its end.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType("the body has a Content-Encoding, and none is read here; send it as it is")
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect as exc:
        raise CallerGone from exc


async def whole(request: Request) -> bytearray:
    """Read the body.  Raises as `chunks`.  Starlette's method would keep it as long as the request."""
    body = bytearray()
    async for chunk in chunks(request):
        body += chunk
    return body


async def parsed(request: Request, parse: Callable[[Raw], T], body: Raw, small: int = SMALL) -> T:
    """
    Call *parse* with the body, on a thread if it is large.

    Args:
        small: bytes of a body that is parsed on the event loop.
    """
    if len(body) <= small:
        return parse(body)
    held: Body = request.scope["state"][BODY]
    return await held.parsed(parse, body)


def parse(body: Raw, wire: type[B]) -> B:
    """Check *body* against the wire type."""
    return checked(load(body), wire)


def checked(content: Any, wire: type[B]) -> B:
    """Return *content* as the wire type.  Raises `Invalid`."""
    try:
        return wire.model_validate(content, context={})
    except ValidationError as exc:
        raise invalid(exc, content, wire) from exc


def load(body: Raw) -> Any:
    """
    Parse the JSON of *body*.

    pydantic's parser refuses NaN, deep nesting and lone surrogates, and does not copy refused content.  A
    body with a lone surrogate is parsed again by the standard library, so that validation can name the
    field.  A byte order mark, as Windows tools write it, is skipped.
    """
    if body.startswith(BOM_UTF8):
        body = body[len(BOM_UTF8) :]
    if len(body) > MAX_VALUES and holds_too_many(body):
        raise TooLarge(f"the JSON holds more than {MAX_VALUES} values")
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as exc:
        if "surrogate" in str(exc) or "hex escape" in str(exc):
            try:
                return json.loads(body.decode("utf-8", "surrogatepass"), parse_constant=refuse)
            except (ValueError, RecursionError):
                pass
        raise Malformed(f"not JSON: {exc}") from exc


def holds_too_many(body: Raw) -> bool:
    """Return True if JSON has more than `MAX_VALUES`; numpy takes a fifth of the time of `bytes.count`."""
    text, values = np.frombuffer(body, np.uint8), 0
    for start in range(0, len(text), WINDOW):
        window = text[start : start + WINDOW]
        values += sum(int(np.count_nonzero(window == mark)) for mark in b",[{")
        if values > MAX_VALUES:
            return True
    return False


def refuse(constant: str) -> Any:
    """Refuse NaN and the infinities, which are not JSON."""
    raise ValueError(constant)
