"""A request's body to a checked wire type: JSON, or the same JSON in a multipart part."""

import asyncio
import json
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from service.errors import Fault, Invalid, Malformed, UnsupportedMediaType
from service.inputs import Parts
from service.problems import invalid
from service.schemas import ImagePart, ScoreRequest

B = TypeVar("B", bound=BaseModel)

REQUEST = "request"  # the multipart part that holds the JSON


async def read(request: Request, wire: type[B], max_files: int, limit: int) -> tuple[B, Parts]:
    """
    The checked body and the file parts that came with it.

    Raises:
        UnsupportedMediaType: neither JSON nor multipart.
        Malformed: not JSON, or broken multipart.
        Invalid: JSON that is not the wire type; every wrong place is named.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    parts: dict[str, bytes] = {}
    if kind == "multipart/form-data":
        body, parts = await read_multipart(request, max_files, limit)
    elif kind == "application/json" or kind.endswith("+json"):
        body = await request.body()
    else:
        raise UnsupportedMediaType
    # Off the event loop: a body may hold tens of megabytes of base64.
    return await asyncio.get_running_loop().run_in_executor(None, parse, body, wire), parts


async def read_multipart(request: Request, max_files: int, limit: int) -> tuple[bytes, dict[str, bytes]]:
    """The JSON of the part `request`, and the bytes of every file part by name."""
    try:
        async with request.form(max_files=max_files, max_fields=2, max_part_size=limit) as form:
            files = {name: f for name, f in form.multi_items() if isinstance(f, UploadFile)}
            parts = {name: await file.read() for name, file in files.items()}
            json_part = form.get(REQUEST)
    except HTTPException as exc:
        raise Malformed(f"multipart: {exc.detail}") from exc
    body = json_part.encode() if isinstance(json_part, str) else parts.pop(REQUEST, None)
    if body is None:
        raise Malformed("multipart: there is no part named 'request'")
    return body, parts


def parse(body: bytes, wire: type[B]) -> B:
    """Check *body* against the wire type."""
    try:
        return wire.model_validate(load(body))
    except ValidationError as exc:
        raise invalid(exc) from exc


def load(body: bytes) -> Any:
    """
    The JSON value of *body*.

    orjson refuses NaN, deep nesting and lone surrogates.  A lone surrogate is read again by the
    standard library, so that validation can name the field that holds it.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as exc:
        if "surrogate" in exc.msg:
            try:
                return json.loads(body, parse_constant=refuse)
            except (ValueError, RecursionError):
                pass
        raise Malformed(f"not JSON: {exc.msg} (line {exc.lineno}, column {exc.colno})") from exc


def refuse(constant: str) -> Any:
    """NaN and the infinities are no JSON."""
    raise ValueError(constant)


def check_items(request: ScoreRequest, parts: Parts, max_items: int) -> None:
    """Limits that depend on the server, and parts that must exist.  Raises `Invalid`."""
    items = request.all_items()
    form = "items" if request.items is not None else "images"
    if len(items) > max_items:
        detail = f"{len(items)} {form}; at most {max_items}"
        raise Invalid(detail, faults=[Fault(f"/{form}", "too_many_items", detail)])
    faults = []
    for index, item in enumerate(items):
        for image in item.image if isinstance(item.image, list) else [item.image]:
            if isinstance(image, ImagePart) and image.part not in parts:
                place = f"/items/{index}/image" if request.items is not None else f"/images/{index}"
                detail = "there is no file part of that name"
                faults.append(Fault(f"{place}/part", "missing_part", detail))
    if faults:
        raise Invalid(f"{faults[0].pointer}: {faults[0].detail}", faults=faults)
