"""
Wire types that the dialects over HTTP share.

Texts and pictures have the formats of Jina, Cohere, vLLM and TEI.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, TypeGuard, TypeVar
from urllib.parse import parse_qs

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from service.core.errors import Invalid, ScoregateError
from service.core.fields import Prompt
from service.core.settings.dialects import MAX_IMAGES
from service.images.loader import Base64, Url
from service.web.dialects.scoring import DialectScoring, answer_to
from service.web.endpoints import json_response, service_of
from service.web.server import body
from service.web.server.body import B

T = TypeVar("T")

MAX_FORM = 4096  # bytes


class Loose(BaseModel):
    """A model that ignores unknown fields: formats of other projects grow."""

    # Pydantic refuses lone surrogates, which no response can hold, only in texts whose length is limited.
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, str_max_length=2**31)


# Limit of lists with an entry for each picture; entries beyond it are not validated.
IMAGE_LIST = Field(min_length=1, max_length=MAX_IMAGES, fail_fast=True)
PromptList = Annotated[list[Prompt], IMAGE_LIST]
Anything = Annotated[Any, Field(default=None)]


def dialects_of(request: Request) -> DialectScoring:
    """Return the dialects of this app."""
    dialects: DialectScoring = request.app.state.dialects
    return dialects


async def read_body(request: Request, wire: type[B]) -> B:
    """Read and check the JSON body.  Raises as `service.web.server.body.read_body`."""
    return await read_as(request, wire, lambda content: content)


async def read_as(request: Request, wire: type[B], convert: Callable[[B], T]) -> T:
    """Return what *convert* makes of the JSON body.  Raises as `service.web.server.body.read_as`."""
    converted, _ = await body.read_as(request, wire, service_of(request).settings.server, convert)
    return converted


async def form_of(request: Request) -> dict[str, str]:
    """Return the first value of each field of a small form.  Raises as `service.web.server.body.feed`."""
    text = bytes(await body.whole(request))[:MAX_FORM].decode("utf-8", "replace")
    return {name: values[0] for name, values in parse_qs(text).items()}


def failed(error: ScoregateError, request_id: str) -> Response:
    """Build the response to an error of a whole request, with its `detail`."""
    status, headers = answer_to(error)
    return json_response({"detail": error.detail, "code": error.code}, status, headers)


ImageSource = Base64 | Url

PROMPT: TypeAdapter[str] = TypeAdapter(Prompt)
ADDRESS = re.compile("https?://", re.IGNORECASE)
FORMS = 'a picture is a str of base64, a data: URI, {"image": …} or {"content": [{"type": "image_url", …}]}'


def side(given: Any) -> list[Any]:
    """Return the entries of one side of a comparison: a list, the parts of one content, or a single entry."""
    if isinstance(given, dict) and isinstance(given.get("content"), list):
        return list(given["content"])
    return given if isinstance(given, list) else [given]


def text(entry: Any, place: str) -> str:
    """Return the prompt of an entry.  Raises `Invalid`."""
    if is_image(entry):
        raise Invalid(f"{place}: is a picture; one of both sides must be texts")
    entry = only_part(entry, place)
    if isinstance(entry, dict) and "text" in entry:
        entry = entry["text"]
    try:
        return PROMPT.validate_python(entry, strict=True)
    except ValidationError as exc:
        raise Invalid(f"{place}: {exc.errors()[0]['msg'].removeprefix('Value error, ')}") from exc


def image_source(entry: Any, place: str) -> ImageSource:
    """Return the picture of an entry.  Raises `Invalid`."""
    found = image_of(only_part(entry, place))
    if found is None:
        raise Invalid(f"{place}: {FORMS}")
    return source_of(found)


def source_of(address: str) -> ImageSource:
    """Return the picture of an address, or of base64."""
    return Url(address) if ADDRESS.match(address) else Base64(address)


def is_image(entry: Any) -> bool:
    """Return True if an entry is marked as a picture; a str is one as a `data:image` URI."""
    found = parts(entry)
    if len(found) == 1 and isinstance(found[0], str):
        return is_image_uri(found[0])
    return len(found) == 1 and image_of(found[0]) is not None


def image_of(part: Any) -> str | None:
    """Return the str of a picture, if there is one; a text is one as a `data:image` URI."""
    if isinstance(part, dict):
        named = part.get("image", part.get("image_url"))
        if named is None and is_image_uri(said := part.get("text")):
            return said
        part = named.get("url") if isinstance(named, dict) else named
    return part if isinstance(part, str) else None


def is_image_uri(value: Any) -> TypeGuard[str]:
    """Return True for a `data:` URI of a picture."""
    return isinstance(value, str) and value.startswith("data:image")


def parts(entry: Any) -> list[Any]:
    """Return the parts of an entry's content, or the entry itself."""
    content = entry.get("content") if isinstance(entry, dict) else None
    return content if isinstance(content, list) else [entry]


def only_part(entry: Any, place: str) -> Any:
    """Return the only part of an entry.  Raises `Invalid` if there are others."""
    found = parts(entry)
    if len(found) != 1:
        raise Invalid(f"{place}: has {len(found)} parts; one picture or one text is needed")
    return found[0]
